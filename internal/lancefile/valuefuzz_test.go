package lancefile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"path"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/pb"
)

// schemas are the types that FuzzValues knows: from the outermost field "v" to the leaf.
var schemas = [][]string{
	{"uint64"}, {"uint8"}, {"int32"}, {"bool"}, {"double"}, {"decimal:128:20:3"}, {"string"}, {"large_binary"}, {"binary"},
	{"fixed_size_list:float:8"}, {"fixed_size_list:float:5"}, {"fixed_size_list:bool:3"}, {"null"},
	{"list", "int32"}, {"list", "string"}, {"struct", "int32"}, {"list", "list", "int32"}, {"list", "struct", "uint16"},
}

func fieldsOf(types []string) (out []*pb.FileField) {
	name := "v"
	for i, t := range types {
		out = append(out, &pb.FileField{Name: name, Id: int32(i), ParentId: int32(i) - 1, LogicalType: t, Nullable: true})
		name = "item"
	}
	return out
}

// rawPage is a page as it stands in a file.
type rawPage struct {
	url     string
	enc     []byte
	rows    uint64
	buffers [][]byte
}

// firstPage takes the first page of each column out of a file.
func firstPage(t testing.TB, b []byte) (pages []rawPage) {
	t.Helper()
	foot := b[len(b)-40:]
	cmo, n := binary.LittleEndian.Uint64(foot[8:]), binary.LittleEndian.Uint32(foot[28:])
	for i := range uint64(n) {
		at, size := binary.LittleEndian.Uint64(b[cmo+16*i:]), binary.LittleEndian.Uint64(b[cmo+16*i+8:])
		m, a := &pb.ColumnMetadata{}, &pb.AnyValue{}
		if err := proto.Unmarshal(b[at:at+size], m); err != nil {
			t.Fatal(err)
		}
		if len(m.GetPages()) == 0 {
			return nil
		}
		p := m.GetPages()[0]
		if err := proto.Unmarshal(p.GetEncoding().GetDirect().GetEncoding(), a); err != nil {
			t.Fatal(err)
		}
		r := rawPage{url: a.GetTypeUrl(), enc: a.GetValue(), rows: p.GetLength()}
		for k, o := range p.GetBufferOffsets() {
			r.buffers = append(r.buffers, b[o:o+p.GetBufferSizes()[k]])
		}
		pages = append(pages, r)
	}
	return pages
}

// classifiedValues fails unless an error says that bytes are bad, unknown, or too many.
func classifiedValues(t *testing.T, err error) {
	t.Helper()
	if err != nil && !fault.Is(err, fault.TooLarge) {
		classified(t, err)
	}
}

// readField reads some ranges of a field and of its cells; what is read twice must be the same.
func readField(t *testing.T, f *lancefile.File, field string) {
	ctx := t.Context()
	v, err := lancefile.OpenValues(ctx, f, field)
	if err != nil {
		classifiedValues(t, err)
		return
	}
	n := min(v.Rows(), 300)
	for _, from := range []uint64{0, v.Rows() / 3, v.Rows() - n} {
		n := min(n, v.Rows()-from)
		a, err := v.Read(ctx, from, n)
		if err != nil {
			classifiedValues(t, err)
			continue
		}
		if uint64(a.Len) != n {
			t.Fatalf("%d rows read as %d", n, a.Len)
		}
		if size(a) > 1<<22 {
			continue
		}
		one := texts(a)
		again, err := v.Read(ctx, from, n)
		if err != nil || !bytes.Equal(one, texts(again)) {
			t.Fatalf("rows [%d, %d) read %.200s, then %.200s (%v)", from, from+n, one, texts(again), err)
		}
		checkSameCells(ctx, t, f, field, a, from)
	}
}

// size is the number of bytes and values of an array.
func size(a *lancefile.Array) int {
	n := a.Len + len(a.Fixed) + len(a.Bytes)
	if a.Child != nil {
		n += size(a.Child)
	}
	for _, m := range a.Fields {
		n += size(m.Array)
	}
	return n
}

// checkSameCells compares the cells of a string field with its values from row from on.
func checkSameCells(ctx context.Context, t *testing.T, f *lancefile.File, field string, a *lancefile.Array, from uint64) {
	if a.Offsets == nil || a.Child != nil {
		return
	}
	col, _, err := f.Column(field)
	if err != nil {
		t.Fatal(err)
	}
	c, err := lancefile.OpenCells(ctx, f, col)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Read(ctx, from, uint64(a.Len), func(row uint64, cell []byte, null bool) error {
		i := int(row - from)
		if null == a.Valid(i) || !null && !bytes.Equal(cell, a.Value(i)) {
			return fmt.Errorf("cell %d is %.100x, null %v; its value is %.100x", row, cell, null, a.Value(i))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// seeds calls add with the pages of small files: schema number, version, page.
func seeds(t testing.TB, limit int, add func(schema int, v lancefile.Version, p rawPage)) {
	for name, b := range formFiles(t) {
		if len(b) > limit {
			continue
		}
		f := open(t, b)
		pages := firstPage(t, b)
		if len(pages) != 1 {
			continue
		}
		var types []string
		for _, x := range f.Fields() {
			types = append(types, x.GetLogicalType())
		}
		for k, s := range schemas {
			if strings.Join(s, " ") == strings.Join(types, " ") && path.Dir(name) == f.Version().String() {
				add(k, f.Version(), pages[0])
			}
		}
	}
}

// FuzzValues reads a page with any encoding message and any buffers as a field of any type.
func FuzzValues(f *testing.F) {
	urls := []string{lancetest.ArrayURL, lancetest.LayoutURL, lancetest.PlanarURL}
	seeds(f, 1500, func(schema int, v lancefile.Version, p rawPage) {
		var bufs [4][]byte
		copy(bufs[:], p.buffers)
		kind := uint8(1)
		for i, u := range urls {
			if u == p.url {
				kind = uint8(i)
			}
		}
		f.Add(uint8(v-lancefile.V20), uint8(schema), kind, uint8(len(p.buffers)), uint32(p.rows), p.enc, bufs[0], bufs[1], bufs[2], bufs[3])
	})
	f.Fuzz(func(t *testing.T, version, schema, kind, buffers uint8, rows uint32, enc, a, b, c, d []byte) {
		v := lancefile.V20 + lancefile.Version(version%4)
		page := lancetest.Page{Rows: uint64(rows), Raw: enc, URL: urls[kind%3]}
		for _, x := range [][]byte{a, b, c, d}[:buffers%5] {
			page.Buffers = append(page.Buffers, lancetest.Bytes(x))
		}
		file := fileOf(v, 16, page)
		file.Fields = fieldsOf(schemas[int(schema)%len(schemas)])
		content := file.Build()
		x, err := lancefile.Open(t.Context(), content, content.Size())
		if err != nil {
			t.Fatal(err)
		}
		readField(t, x, "v")
	})
}

// FuzzCells reads any bytes as a file with a column of cells, or of anything else.
func FuzzCells(f *testing.F) {
	for name, b := range formFiles(f) {
		if len(b) < 1100 && !strings.Contains(name, "int") {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := lancefile.Open(t.Context(), bytes.NewReader(b), int64(len(b)))
		if err != nil {
			classified(t, err)
			return
		}
		for i, l := range file.Leaves() {
			if i == 4 {
				break
			}
			top, _, _ := strings.Cut(l.Path, ".")
			if _, _, err := file.Column(top); fault.Is(err, fault.NotFound) {
				continue // a name with a dot
			}
			readField(t, file, top)
		}
	})
}
