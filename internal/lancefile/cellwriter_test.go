package lancefile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
)

// cellFile is a file with one column of cells of which only the number counts.
func cellFile(t testing.TB, d dialect, logical string, rows int, metadata map[string]string) []byte {
	t.Helper()
	b := lancetest.File{Major: d.major, Minor: d.minor, Rows: uint64(rows), Columns: []lancetest.Column{
		{Name: "cells", Type: logical, Nullable: true, Pages: []lancetest.Page{d.opaquePage(rows)}}}}.Build().All()
	if metadata == nil {
		return b
	}
	// The field gets its metadata: the schema is the last thing that the descriptor's place leaves room for.
	c := takeApart(t, b)
	for k, v := range metadata {
		c.schema.Schema.Fields[0].Metadata = map[string][]byte{k: []byte(v)}
	}
	schema, err := proto.Marshal(c.schema)
	if err != nil {
		t.Fatal(err)
	}
	at, n := c.globals[0][0], c.globals[0][1]
	out := append(bytes.Clone(b[:at]), schema...)
	out = append(out, b[at+n:]...)
	grown := uint64(len(schema)) - n
	le := binary.LittleEndian
	foot := out[len(out)-40:]
	for _, k := range []int{0, 8, 16} {
		le.PutUint64(foot[k:], le.Uint64(foot[k:])+grown)
	}
	le.PutUint64(out[le.Uint64(foot[8:]):], le.Uint64(foot))
	le.PutUint64(out[le.Uint64(foot[16:])+8:], uint64(len(schema)))
	return out
}

// pagesOf returns, for each page of column 0: rows, message, size of the row index or offsets in bytes.
func pagesOf(t testing.TB, b []byte) (messages []string, buffers [][]uint64) {
	t.Helper()
	for _, p := range takeApart(t, b).columns[0].GetPages() {
		_, v := layoutOf(t, p)
		messages, buffers = append(messages, hex.EncodeToString(v)), append(buffers, p.GetBufferSizes())
	}
	return messages, buffers
}

func TestCellPagesAsWritten(t *testing.T) {
	small := func(n int) [][]byte {
		c := make([][]byte, n)
		for i := range c {
			c[i] = []byte("0123456789")
		}
		return c
	}
	big := bytes.Repeat([]byte("posting "), 10000)
	v22, v20, v23 := dialects[2], dialects[0], dialects[4]
	for _, c := range []struct {
		name     string
		dialect  dialect
		logical  string
		metadata map[string]string
		plain    bool
		cells    [][]byte
		messages []string
		indexes  []uint64 // size of the row index, or the offsets
	}{
		// The message of a real BITMAP file of 12.0.0 with eight rows.
		{name: "as in a BITMAP", dialect: v22, cells: small(8), messages: []string{"1a132020280830083a0812060a040a020820420101"}, indexes: []uint64{9}},
		// Of 300,000 rows with two values: value_compression 5210...
		{name: "compressed one by one", dialect: v22, cells: [][]byte{big, []byte("x")},
			messages: []string{"1a1d2020280230023a12" + "52100a04080210001a0812060a040a020820" + "420101"}, indexes: []uint64{3}},
		{name: "compression refused by the field", dialect: v22, metadata: map[string]string{"lance-encoding:compression": "none"},
			cells: [][]byte{big, nil}, messages: []string{
				"1a132020280130013a0812060a040a020820420101", "1a1510012020280130013a0812060a040a020820420103"}, indexes: []uint64{8, 2}},
		{name: "compression refused by the caller", dialect: v22, plain: true, cells: [][]byte{big}, messages: []string{"1a132020280130013a0812060a040a020820420101"}, indexes: []uint64{8}},
		{name: "a null, after which all have control bytes", dialect: v22, cells: [][]byte{{1}, nil, {2}, {3}},
			messages: []string{"1a132020280130013a0812060a040a020820420101", "1a1510012020280330033a0812060a040a020820420103"}, indexes: []uint64{2, 4}},
		{name: "wide offsets", dialect: v22, logical: "large_binary", cells: small(40), messages: []string{"1a132040282830283a0812060a040a020840420101"}, indexes: []uint64{82}},
		{name: "planar", dialect: v23, cells: small(3), messages: []string{"0a050a030a010112141212" + "0a0812060a040a0208201200202028033003"}, indexes: []uint64{4}},
		{name: "planar with a null", dialect: v23, cells: [][]byte{nil}, messages: []string{"0a050a030a010312161214" + "0a0812060a040a02082012021001202028013001"}, indexes: []uint64{2}},
		// The message of a real NGRAM file, but for the compression that it names, "none", and the adjustment.
		{name: "2.0", dialect: v20, cells: [][]byte{[]byte("abc"), nil, big}, messages: []string{
			"321c" + "0a0c120a0a080a060a0408401200" + "12080a060808120208" + "01" + "1884f104"}, indexes: []uint64{24}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.logical == "" {
				c.logical = "binary"
			}
			b := cellFile(t, c.dialect, c.logical, len(c.cells), c.metadata)
			got := synthesise(t, b, lancefile.Edit{Cells: []lancefile.CellPages{
				writeCells(t, open(t, b), 0, c.cells, lancefile.CellOptions{Plain: c.plain})}})
			messages, buffers := pagesOf(t, got)
			if strings.Join(messages, "\n") != strings.Join(c.messages, "\n") {
				t.Errorf("pages\n%s, want\n%s", strings.Join(messages, "\n"), strings.Join(c.messages, "\n"))
			}
			for i := range min(len(buffers), len(c.indexes)) {
				index := buffers[i][1]
				if c.dialect.old() {
					index = buffers[i][0]
				}
				if index != c.indexes[i] {
					t.Errorf("page %d has an index of %d bytes, want %d", i, index, c.indexes[i])
				}
			}
			cells, packed := takeApart(t, got).cells(t, 0)
			if len(cells) != len(c.cells) {
				t.Fatalf("%d cells, want %d", len(cells), len(c.cells))
			}
			for i, cell := range cells {
				if packed && cell != nil {
					cell = unpack(t, cell)
				}
				if !bytes.Equal(cell, c.cells[i]) || (cell == nil) != (c.cells[i] == nil) {
					t.Errorf("cell %d is %.40q, want %.40q", i, cell, c.cells[i])
				}
			}
		})
	}
}

// unpack undoes the compression of one value: a u64 length and a frame.
func unpack(t testing.TB, b []byte) []byte {
	t.Helper()
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	out, err := d.DecodeAll(b[8:], []byte{})
	if err != nil || uint64(len(out)) != binary.LittleEndian.Uint64(b) {
		t.Fatalf("%d bytes, said to be %d: %v", len(out), binary.LittleEndian.Uint64(b), err)
	}
	return out
}

// Pages end at 8 MiB, and a cell that is larger has one for itself.
func TestCellPagesAreBounded(t *testing.T) {
	random := make([]byte, 9<<20)
	rand.NewChaCha8([32]byte{1}).Read(random)
	for _, d := range []dialect{dialects[0], dialects[2]} {
		cells := [][]byte{random[:5<<20], random[:4<<20], random, random[:1<<20], random[:1<<20]}
		b := cellFile(t, d, "binary", len(cells), nil)
		got := synthesise(t, b, lancefile.Edit{Cells: []lancefile.CellPages{
			writeCells(t, open(t, b), 0, cells, lancefile.CellOptions{Plain: true})}})
		var rows []uint64
		for _, p := range takeApart(t, got).columns[0].GetPages() {
			rows = append(rows, p.GetLength())
		}
		if fmt.Sprint(rows) != "[1 1 1 2]" {
			t.Errorf("%s: pages of %v rows", d.name, rows)
		}
		back, _ := takeApart(t, got).cells(t, 0)
		for i := range cells {
			if !bytes.Equal(back[i], cells[i]) {
				t.Errorf("%s: cell %d came back as another", d.name, i)
			}
		}
	}
}

// fullSink takes no more than so many bytes.
type fullSink struct {
	memorySink
	room int
}

var errFull = errors.New("no space left")

func (s *fullSink) Append(p []byte) error {
	if s.room -= len(p); s.room < 0 {
		return errFull
	}
	return s.memorySink.Append(p)
}

func TestCellWriterErrors(t *testing.T) {
	d := dialects[2]
	b := d.original(3).Build().All()
	f := open(t, b)
	for _, c := range []struct {
		name   string
		column int
		kind   fault.Kind
	}{
		{"a column of numbers", 0, fault.Unsupported},
		{"no such column", 5, fault.Invalid},
		{"a negative one", -1, fault.Invalid},
	} {
		if _, err := lancefile.NewCellWriter(t.Context(), f, c.column, &memorySink{}, lancefile.CellOptions{}); !fault.Is(err, c.kind) {
			t.Errorf("%s: %v, want kind %v", c.name, err, c.kind)
		}
	}
	writer := func(sink lancefile.Sink, column int) *lancefile.CellWriter {
		w, err := lancefile.NewCellWriter(t.Context(), f, column, sink, lancefile.CellOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := writer(&memorySink{}, 1)
	if _, err := w.Finish(); !fault.Is(err, fault.Invalid) {
		t.Errorf("no cells for three rows: %v", err)
	}
	w = writer(&memorySink{}, 1)
	for range 3 {
		if err := w.Append([]byte("x"), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Append(nil, false); !fault.Is(err, fault.Invalid) {
		t.Errorf("a fourth cell for three rows: %v", err)
	}
	if _, err := w.Finish(); err == nil {
		t.Error("Finish succeeds after an error")
	}
	w = writer(&fullSink{room: 20}, 1)
	if err := w.Append(make([]byte, 30), false); !errors.Is(err, errFull) {
		t.Errorf("a full sink gives %v", err)
	}
	if err := w.Append(nil, false); !errors.Is(err, errFull) {
		t.Errorf("after a full sink: %v", err)
	}
	dense := open(t, cellFileWithout(t, d))
	w, err := lancefile.NewCellWriter(t.Context(), dense, 0, &memorySink{}, lancefile.CellOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(nil, true); !fault.Is(err, fault.Invalid) {
		t.Errorf("a null in a column without nulls: %v", err)
	}
}

// cellFileWithout is a file of one row whose column of cells has no nulls.
func cellFileWithout(t testing.TB, d dialect) []byte {
	t.Helper()
	return lancetest.File{Major: d.major, Minor: d.minor, Rows: 1, Columns: []lancetest.Column{
		{Name: "cells", Type: "binary", Pages: []lancetest.Page{d.opaquePage(1)}}}}.Build().All()
}

// A sink that has lost bytes is an error of the read, not wrong bytes.
func TestSinkThatLostBytes(t *testing.T) {
	b := cellFileWithout(t, dialects[2])
	f := open(t, b)
	sink := &memorySink{}
	w, err := lancefile.NewCellWriter(t.Context(), f, 0, sink, lancefile.CellOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(make([]byte, 1000), false); err != nil {
		t.Fatal(err)
	}
	p, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	s, err := lancefile.Synthesise(t.Context(), f, lancefile.Edit{Cells: []lancefile.CellPages{p}})
	if err != nil {
		t.Fatal(err)
	}
	sink.b = sink.b[:500]
	if n, err := s.ReadAt(context.Background(), make([]byte, s.Size()), 0); !fault.Is(err, fault.Unavailable) || int64(n) >= s.Size() {
		t.Errorf("%d bytes, %v", n, err)
	}
}
