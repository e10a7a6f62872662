package lancefile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/pb"
)

// dialect is a file version with a page grammar.
type dialect struct {
	name         string
	major, minor uint16
	planar       bool
}

var dialects = []dialect{
	{"2.0", 0, 3, false},
	{"2.1", 2, 1, false},
	{"2.2", 2, 2, false},
	{"2.3 with the older grammar", 2, 3, false},
	{"2.3", 2, 3, true},
}

func (d dialect) old() bool { return d.minor == 3 && d.major == 0 }

// idPage is a page of u64 values as in the golden files.
func (d dialect) idPage(v []uint64) lancetest.Page {
	p := lancetest.Page{Rows: uint64(len(v)), Buffers: []lancetest.Buffer{lancetest.Bytes(lancetest.Words(v, 64))}}
	switch {
	case d.old():
		p.Encoding = array(noNulls(arrayFlat(64, 0)))
	case d.planar:
		p.Encoding = zipPlanar(64, 0, uint32(len(v)))
	default:
		p.Encoding = zipLayout(64, 0, uint32(len(v)))
	}
	return p
}

// opaquePage is a page that only a decoder of its own could read; a file is synthesised without knowing such pages.
func (d dialect) opaquePage(rows int, buffers ...[]byte) lancetest.Page {
	p := lancetest.Page{Rows: uint64(rows), Raw: []byte{0xf2, 0x06, 1, 'x'}, URL: lancetest.LayoutURL} // field 110
	if d.old() {
		p.URL = lancetest.ArrayURL
	} else if d.planar {
		p.URL = lancetest.PlanarURL
	}
	for _, b := range buffers {
		p.Buffers = append(p.Buffers, lancetest.Bytes(b))
	}
	return p
}

// original is a file with two u64 columns, two of cells, one that nothing knows, and two global buffers.
func (d dialect) original(rows int) lancetest.File {
	ids := make([]uint64, rows)
	for i := range ids {
		ids[i] = uint64(i) << 32
	}
	f := lancetest.File{Major: d.major, Minor: d.minor, Rows: uint64(rows), Metadata: map[string]string{"batch_size": "4096"},
		Globals: []lancetest.Buffer{lancetest.Bytes([]byte("one")), lancetest.Bytes(bytes.Repeat([]byte("two"), 50))},
		Columns: []lancetest.Column{
			{Name: "ids", Type: "uint64"},
			{Name: "cells", Type: "binary", Nullable: true},
			{Name: "other", Type: "float"},
			{Name: "large", Type: "large_binary", Nullable: true},
			{Name: "row", Type: "uint64", Nullable: true},
		}}
	if rows == 0 {
		return f
	}
	half := rows / 2
	for i := range f.Columns {
		pages := []lancetest.Page{d.opaquePage(half, []byte{byte(i)}), d.opaquePage(rows-half, bytes.Repeat([]byte{byte(i)}, 70), []byte("b"))}
		if f.Columns[i].Type == "uint64" {
			pages = []lancetest.Page{d.idPage(ids[:half]), d.idPage(ids[half:])}
		}
		if half == 0 {
			pages = pages[1:]
		}
		f.Columns[i].Pages = pages
	}
	return f
}

// container is a file taken apart by the letter of docs/FORMAT.md, "Lance file", with nothing of the package's own.
type container struct {
	bytes   []byte
	globals [][2]uint64
	schema  *pb.FileDescriptor
	columns []*pb.ColumnMetadata
	metas   [][]byte
	foot    []byte
}

func takeApart(t testing.TB, b []byte) container {
	t.Helper()
	foot := b[len(b)-40:]
	le := binary.LittleEndian
	c := container{bytes: b, foot: foot, schema: &pb.FileDescriptor{}}
	entry := func(table uint64, i uint32) (off, n uint64) {
		e := b[table+16*uint64(i):]
		return le.Uint64(e), le.Uint64(e[8:])
	}
	for i := range le.Uint32(foot[24:]) {
		off, n := entry(le.Uint64(foot[16:]), i)
		c.globals = append(c.globals, [2]uint64{off, n})
	}
	if err := proto.Unmarshal(c.global(0), c.schema); err != nil {
		t.Fatal(err)
	}
	for i := range le.Uint32(foot[28:]) {
		off, n := entry(le.Uint64(foot[8:]), i)
		m := &pb.ColumnMetadata{}
		if err := proto.Unmarshal(b[off:off+n], m); err != nil {
			t.Fatal(err)
		}
		c.columns, c.metas = append(c.columns, m), append(c.metas, b[off:off+n])
	}
	return c
}

func (c container) global(i int) []byte {
	return c.bytes[c.globals[i][0]:][:c.globals[i][1]]
}

// layoutOf returns type URL and message of a page's encoding.
func layoutOf(t testing.TB, p *pb.ColumnMetadata_Page) (url string, value []byte) {
	t.Helper()
	a := &pb.AnyValue{}
	if err := proto.Unmarshal(p.GetEncoding().GetDirect().GetEncoding(), a); err != nil {
		t.Fatal(err)
	}
	return a.GetTypeUrl(), a.GetValue()
}

// cells decodes a column of cells by its offsets. What a value compressed by itself comes to is not looked at: it is
// returned as it stands, and packed says so.
func (c container) cells(t testing.TB, column int) (cells [][]byte, packed bool) {
	t.Helper()
	first := uint64(0)
	for k, p := range c.columns[column].GetPages() {
		if p.GetPriority() != first {
			t.Errorf("page %d has priority %d, want %d", k, p.GetPriority(), first)
		}
		first += p.GetLength()
		buffer := func(i int) []byte { return c.bytes[p.GetBufferOffsets()[i]:][:p.GetBufferSizes()[i]] }
		url, value := layoutOf(t, p)
		if url == lancetest.ArrayURL {
			data := buffer(1)
			end := uint64(0)
			for offsets := buffer(0); len(offsets) > 0; offsets = offsets[8:] {
				next := binary.LittleEndian.Uint64(offsets)
				if next > uint64(len(data)) {
					cells = append(cells, nil)
					if next-uint64(len(data))-1 != end {
						t.Errorf("null ends at %d, want %d", next-uint64(len(data))-1, end)
					}
					continue
				}
				cells = append(cells, append([]byte{}, data[end:next]...))
				end = next
			}
			continue
		}
		var control, width int
		var items uint64
		if url == lancetest.PlanarURL {
			m := &pb.PlanarLayout{}
			if err := proto.Unmarshal(value, m); err != nil {
				t.Fatal(err)
			}
			z := m.GetValues().GetZipped()
			control, width, items = int(z.GetLevels().GetBitsDefinition()), int(z.GetBitsPerOffset()/8), z.GetNumItems()
			packed = packed || z.GetCompression().GetGeneral() != nil
		} else {
			m := &pb.PageLayout{}
			if err := proto.Unmarshal(value, m); err != nil {
				t.Fatal(err)
			}
			z := m.GetFullZipLayout()
			control, width, items = int(z.GetBitsDef()), int(z.GetBitsPerOffset()/8), uint64(z.GetNumItems())
			packed = packed || z.GetValueCompression().GetGeneral() != nil
		}
		data, index := buffer(0), buffer(1)
		size := len(index) / int(p.GetLength()+1)
		if items != p.GetLength() || size*int(p.GetLength()+1) != len(index) {
			t.Fatalf("%d items in a page of %d rows, index of %d bytes", items, p.GetLength(), len(index))
		}
		number := func(b []byte) int {
			return int(binary.LittleEndian.Uint64(append(append([]byte{}, b...), make([]byte, 8)...)))
		}
		if end := number(index[len(index)-size:]); end != len(data) {
			t.Fatalf("the index ends at %d, the data at %d", end, len(data))
		}
		for i := range int(p.GetLength()) {
			item := data[number(index[i*size:][:size]):number(index[(i+1)*size:][:size])]
			if control == 1 && item[0] == 1 {
				if len(item) != 1 {
					t.Errorf("a null of %d bytes", len(item))
				}
				cells = append(cells, nil)
				continue
			}
			item = item[control:]
			if n := number(item[:width]); n != len(item)-width {
				t.Fatalf("length word %d before %d bytes", n, len(item)-width)
			}
			cells = append(cells, append([]byte{}, item[width:]...))
		}
	}
	return cells, packed
}

// memorySink is a Sink.
type memorySink struct{ b []byte }

func (s *memorySink) Append(p []byte) error { s.b = append(s.b, p...); return nil }
func (s *memorySink) Size() int64           { return int64(len(s.b)) }
func (s *memorySink) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, s.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// writeCells writes cells; nil is a null.
func writeCells(t testing.TB, f *lancefile.File, column int, cells [][]byte, o lancefile.CellOptions) lancefile.CellPages {
	t.Helper()
	w, err := lancefile.NewCellWriter(t.Context(), f, column, &memorySink{}, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cells {
		if err := w.Append(c, c == nil); err != nil {
			t.Fatal(err)
		}
	}
	p, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// number is the value of a replaced column at a row.
func number(row uint64) uint64 { return row*0x9E3779B97F4A7C15 + 0xFFFFFFFE<<32 }

// numbers is a Flat of number; it fails where it is asked for rows that do not exist, or too many.
func numbers(column int, rows, pageRows uint64) lancefile.Flat {
	return lancefile.Flat{Column: column, PageRows: pageRows, Fill: func(_ context.Context, from uint64, dst []uint64) error {
		if len(dst) == 0 || len(dst) > 1<<16 || from+uint64(len(dst)) > rows {
			return fmt.Errorf("asked for %d rows at %d of %d", len(dst), from, rows)
		}
		for i := range dst {
			dst[i] = number(from + uint64(i))
		}
		return nil
	}}
}
