package lancefile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/pb"
)

// render puts a container together again: the data before the schema, the schema, some bytes behind it, column
// metadata as in c.columns, and tables with the places in c.globals. share makes the entries of the first two columns
// name the same metadata.
func (c container) render(t testing.TB, behind []byte, share bool) []byte {
	t.Helper()
	marshal := func(m proto.Message) []byte {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	le := binary.LittleEndian
	b := bytes.Clone(c.bytes[:c.globals[0][0]])
	schema := marshal(c.schema)
	b = append(b, schema...)
	b = append(b, make([]byte, -len(b)&63)...)
	b = append(b, behind...)
	foot := bytes.Clone(c.foot)
	le.PutUint64(foot, uint64(len(b)))
	var cmo, gbo []byte
	for i, m := range c.columns {
		x := marshal(m)
		at := uint64(len(b))
		b = append(b, x...)
		if share && i == 1 {
			at, x = le.Uint64(foot), b[le.Uint64(cmo):][:le.Uint64(cmo[8:])]
		}
		cmo = le.AppendUint64(le.AppendUint64(cmo, at), uint64(len(x)))
	}
	for i, g := range c.globals {
		if i == 0 {
			g[1] = uint64(len(schema))
		}
		gbo = le.AppendUint64(le.AppendUint64(gbo, g[0]), g[1])
	}
	le.PutUint64(foot[8:], uint64(len(b)))
	b = append(b, cmo...)
	le.PutUint64(foot[16:], uint64(len(b)))
	b = append(b, gbo...)
	return append(b, foot...)
}

// setEncoding gives a page another encoding.
func setEncoding(p *pb.ColumnMetadata_Page, url string, m proto.Message) {
	v, _ := proto.Marshal(m)
	v, _ = proto.Marshal(&pb.AnyValue{TypeUrl: url, Value: v})
	p.Encoding = &pb.ColumnEncoding{Location: &pb.ColumnEncoding_Direct_{Direct: &pb.ColumnEncoding_Direct{Encoding: v}}}
}

func TestSynthesiseBadFiles(t *testing.T) {
	v20, v22, v23 := dialects[0], dialects[2], dialects[4]
	flat := lancefile.Edit{Flats: []lancefile.Flat{numbers(0, 9, 0)}}
	both := lancefile.Edit{Flats: []lancefile.Flat{numbers(0, 9, 0), numbers(4, 9, 0)}}
	first := lancefile.Edit{Globals: map[int]lancefile.Piece{1: lancefile.Bytes([]byte("x"))}}
	second := lancefile.Edit{Globals: map[int]lancefile.Piece{2: lancefile.Bytes([]byte("x"))}}
	page := func(m *pb.ArrayEncoding) func(c *container) {
		return func(c *container) { setEncoding(c.columns[0].Pages[1], lancetest.ArrayURL, m) }
	}
	for _, c := range []struct {
		name    string
		dialect dialect
		edit    lancefile.Edit
		change  func(c *container)
		behind  bool // 64 bytes behind the schema are global buffer 1
		share   bool
		kind    fault.Kind // Unknown: no error
		text    string
	}{
		{name: "as it was", dialect: v22, edit: flat},
		{name: "buffer behind the schema", dialect: v22, edit: flat, behind: true, kind: fault.Unsupported, text: "a global buffer (64 bytes at"},
		{name: "another is replaced", dialect: v22, edit: second, behind: true, kind: fault.Unsupported, text: "does not lie before the schema"},
		{name: "it is replaced itself", dialect: v22, edit: first, behind: true},
		{name: "buffer behind the schema of a 2.0 file that keeps its layout", dialect: v20, edit: flat, behind: true},
		{name: "empty buffer behind the schema", dialect: v22, edit: flat, change: func(c *container) {
			c.globals[2] = [2]uint64{c.globals[0][0] + 64, 0}
		}, kind: fault.Unsupported, text: "a global buffer (0 bytes"},
		{name: "page of a kept column in the schema", dialect: v22, edit: flat, change: func(c *container) {
			c.columns[2].Pages[0].BufferOffsets[0] = c.globals[0][0]
		}, kind: fault.Unsupported, text: "a buffer of column 2"},
		{name: "the same in a replaced one", dialect: v22, edit: flat, change: func(c *container) {
			c.columns[0].Pages[0].BufferOffsets[0] = c.globals[0][0]
		}},
		{name: "page of a kept column outside the file", dialect: v22, edit: flat, change: func(c *container) {
			c.columns[1].Pages[1].BufferSizes[0] = 1 << 63
		}, kind: fault.Corrupt, text: "lies outside the file"},
		{name: "buffer of a kept column behind the schema", dialect: v22, edit: flat, change: func(c *container) {
			c.columns[1].BufferOffsets, c.columns[1].BufferSizes = []uint64{c.globals[0][0]}, []uint64{1}
		}, kind: fault.Unsupported, text: "a buffer of column 1"},
		{name: "an offset too many", dialect: v22, edit: flat, change: func(c *container) {
			c.columns[1].Pages[0].BufferOffsets = append(c.columns[1].Pages[0].BufferOffsets, 0)
		}, kind: fault.Corrupt, text: "2 buffer offsets and 1 buffer sizes"},
		{name: "a column's offset too many", dialect: v22, edit: flat, change: func(c *container) {
			c.columns[1].BufferOffsets = []uint64{0}
		}, kind: fault.Corrupt, text: "1 buffer offsets and 0 buffer sizes"},
		{name: "columns that share metadata", dialect: v22, edit: flat, share: true, kind: fault.Corrupt, text: "overlaps"},
		{name: "fewer rows in the column", dialect: v22, edit: flat, change: func(c *container) {
			c.columns[0].Pages = c.columns[0].Pages[:1]
		}, kind: fault.Corrupt, text: "the pages of column 0 hold 4 rows, the file 9"},
		{name: "more rows in the column", dialect: v22, edit: flat, change: func(c *container) {
			c.columns[0].Pages[1].Length = 1<<64 - 1
		}, kind: fault.Corrupt, text: "more than the 9 rows"},
		{name: "more rows than any file has", dialect: v22, edit: flat, change: func(c *container) {
			c.schema.Length, c.columns[0].Pages[1].Length = 1<<62, 1<<62-4
			for i := 1; i < 5; i++ {
				c.columns[i].Pages = nil
			}
		}, kind: fault.TooLarge, text: "2^63-1 bytes"},
		{name: "both grammars of 2.3", dialect: v23, edit: flat, change: func(c *container) {
			setEncoding(c.columns[2].Pages[1], lancetest.LayoutURL, &pb.PageLayout{})
		}, kind: fault.Unsupported, text: "mixes the two page grammars"},
		{name: "both in the replaced column", dialect: v23, edit: flat, change: func(c *container) {
			setEncoding(c.columns[0].Pages[1], lancetest.LayoutURL, &pb.PageLayout{})
		}, kind: fault.Unsupported, text: "mixes the two page grammars"},
		{name: "a third one", dialect: v23, edit: flat, change: func(c *container) {
			setEncoding(c.columns[0].Pages[1], "/lance.encodings24.X", &pb.PageLayout{})
		}, kind: fault.Unsupported, text: `page of type "/lance.encodings24.X"`},
		{name: "encoding elsewhere", dialect: v23, edit: flat, change: func(c *container) {
			c.columns[0].Pages[1].Encoding = &pb.ColumnEncoding{Location: &pb.ColumnEncoding_Indirect{Indirect: &pb.ColumnEncoding_Deferred{}}}
		}, kind: fault.Unsupported, text: `page of type ""`},
		{name: "2.0 with nulls", dialect: v20, edit: flat, change: page(array(someNulls(arrayFlat(1, 0), arrayFlat(64, 0)))), kind: fault.Unsupported, text: "not a plain array"},
		{name: "2.0 all null", dialect: v20, edit: flat, change: page(array(&pb.ArrayEncoding_Nullable{Nullability: &pb.ArrayEncoding_Nullable_AllNulls_{}})), kind: fault.Unsupported, text: "not a plain array"},
		{name: "2.0 flat without validity", dialect: v20, edit: flat, change: page(arrayFlat(64, 0)), kind: fault.Unsupported, text: "not a plain array"},
		{name: "2.0 constant", dialect: v20, edit: flat, change: page(array(noNulls(&pb.ArrayEncoding{ArrayEncoding: &pb.ArrayEncoding_Constant_{}}))), kind: fault.Unsupported, text: "not a plain array"},
		{name: "2.0 of 32 bits", dialect: v20, edit: flat, change: page(array(noNulls(arrayFlat(32, 0)))), kind: fault.Unsupported, text: "32 bits where 64"},
		{name: "2.0 in no buffer", dialect: v20, edit: flat, change: page(array(noNulls(arrayFlat(64, 1)))), kind: fault.Unsupported, text: "buffer 1 of 1"},
		{name: "2.0 with a page twice", dialect: v20, edit: flat, change: func(c *container) {
			c.columns[0].Pages[1].BufferOffsets[0] = c.columns[0].Pages[0].BufferOffsets[0] + 8
		}, kind: fault.Corrupt, text: "shares bytes"},
		{name: "2.0 with a page of two columns", dialect: v20, edit: both, change: func(c *container) {
			c.columns[4].Pages[0].BufferOffsets[0] = c.columns[0].Pages[0].BufferOffsets[0]
		}, kind: fault.Corrupt, text: "shares bytes"},
		{name: "2.0 with a page in that of another column", dialect: v20, edit: flat, change: func(c *container) {
			c.columns[2].Pages[0].BufferOffsets[0] = c.columns[0].Pages[0].BufferOffsets[0] + 31
		}, kind: fault.Corrupt, text: "shares bytes"},
		{name: "2.0 with a page in a global buffer", dialect: v20, edit: flat, change: func(c *container) {
			c.columns[0].Pages[0].BufferOffsets[0] = c.globals[2][0] + 8
		}, kind: fault.Corrupt, text: "shares bytes"},
		{name: "2.0 with a page in the column metadata", dialect: v20, edit: flat, change: func(c *container) {
			c.columns[0].Pages[0].BufferOffsets[0] = uint64(len(c.bytes)) - 200
		}, kind: fault.Corrupt, text: "does not lie before the column metadata"},
		{name: "2.0 with a page behind the schema, and a new buffer", dialect: v20, edit: lancefile.Edit{Flats: flat.Flats, Globals: second.Globals},
			change: func(c *container) { c.columns[0].Pages[0].BufferOffsets[0] = c.globals[0][0] + 8 },
			kind:   fault.Unsupported, text: "does not lie before the schema"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := takeApart(t, c.dialect.original(9).Build().All())
			var behind []byte
			if c.behind {
				behind = make([]byte, 64)
				x.globals[1] = [2]uint64{(x.globals[0][0] + x.globals[0][1] + 63) &^ 63, 64}
			}
			if c.change != nil {
				c.change(&x)
			}
			b := x.render(t, behind, c.share)
			s, err := lancefile.Synthesise(t.Context(), open(t, b), c.edit)
			if c.kind != fault.Unknown {
				wantError(t, err, c.kind, c.text)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			open(t, all(t, s))
		})
	}
}

func TestSynthesiseBadEdits(t *testing.T) {
	b := dialects[2].original(9).Build().All()
	f := open(t, b)
	schema, n := f.GlobalBuffer(0)
	cells := make([][]byte, 9)
	over := func(off, n int64) lancefile.Overlay {
		return lancefile.Overlay{Off: off, Piece: lancefile.Bytes(make([]byte, n))}
	}
	global := func(i int, p lancefile.Piece) lancefile.Edit {
		return lancefile.Edit{Globals: map[int]lancefile.Piece{i: p}}
	}
	some := map[int]lancefile.Piece{1: lancefile.Bytes([]byte("x"))}
	for _, c := range []struct {
		name string
		edit lancefile.Edit
		kind fault.Kind
		text string
	}{
		{"column 5 of 5", lancefile.Edit{Flats: []lancefile.Flat{numbers(5, 9, 0)}}, fault.Invalid, "column 5 of a file of 5 columns"},
		{"column -1", lancefile.Edit{Flats: []lancefile.Flat{numbers(-1, 9, 0)}}, fault.Invalid, "column -1"},
		{"a column twice", lancefile.Edit{Flats: []lancefile.Flat{numbers(0, 9, 0), numbers(0, 9, 0)}}, fault.Invalid, "replaced twice"},
		{"another type", lancefile.Edit{Flats: []lancefile.Flat{numbers(2, 9, 0)}}, fault.Unsupported, `column 2 "other" is of type float`},
		{"no function", lancefile.Edit{Flats: []lancefile.Flat{{Column: 0}}}, fault.Invalid, "filled by nothing"},
		{"uneven pages", lancefile.Edit{Flats: []lancefile.Flat{numbers(0, 9, 7)}}, fault.Invalid, "pages of 7 rows"},
		{"large pages", lancefile.Edit{Flats: []lancefile.Flat{numbers(0, 9, 1<<32)}}, fault.Invalid, "pages of 4294967296 rows"},
		{"cells of another file", lancefile.Edit{Cells: []lancefile.CellPages{
			writeCells(t, open(t, dialects[0].original(9).Build().All()), 1, cells, lancefile.CellOptions{})}}, fault.Invalid, "another version"},
		{"cells for other rows", lancefile.Edit{Cells: []lancefile.CellPages{
			writeCells(t, open(t, dialects[2].original(8).Build().All()), 1, cells[:8], lancefile.CellOptions{})}}, fault.Invalid, "8 cells"},
		{"the schema", global(0, lancefile.Bytes(nil)), fault.Invalid, "global buffer 0"},
		{"buffer 3 of 3", global(3, lancefile.Bytes(nil)), fault.Invalid, "global buffer 3"},
		{"negative size", global(1, lancefile.Piece{Size: -1}), fault.Invalid, "-1 bytes"},
		{"no bytes", global(1, lancefile.Piece{Size: 1}), fault.Invalid, "1 bytes of nothing"},
		{"too much", global(1, lancefile.Piece{Size: 1<<63 - 1, Read: func(context.Context, []byte, int64) error { return nil }}), fault.TooLarge, "2^63-1"},
		{"overlays that overlap", lancefile.Edit{Overlays: []lancefile.Overlay{over(5, 3), over(0, 6)}}, fault.Invalid, "[0, 6) and [5, 8) overlap"},
		{"overlay at -1", lancefile.Edit{Overlays: []lancefile.Overlay{over(-1, 3)}}, fault.Invalid, "lies outside"},
		{"overlay past the end", lancefile.Edit{Overlays: []lancefile.Overlay{over(int64(len(b))-1, 2)}}, fault.Invalid, "lies outside"},
		{"overlay of the footer of a changed file", lancefile.Edit{Globals: some, Overlays: []lancefile.Overlay{over(int64(len(b))-1, 1)}}, fault.Invalid, "0 of 1 overlays"},
		{"overlay across the end of the schema", lancefile.Edit{Globals: some, Overlays: []lancefile.Overlay{over(int64(schema+n)-1, 2)}}, fault.Invalid, "0 of 1 overlays"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := lancefile.Synthesise(t.Context(), f, c.edit)
			wantError(t, err, c.kind, c.text)
		})
	}
	if _, err := lancefile.Overlaid(bytes.NewReader(nil), -1, nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("size -1: %v", err)
	}
}

// brokenReader fails from a byte on.
type brokenReader struct {
	io.ReaderAt
	from int64
}

var errBroken = fault.New("test", "", fault.TimedOut, "the store is slow")

func (r *brokenReader) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > r.from {
		return 0, errBroken
	}
	return r.ReaderAt.ReadAt(p, off)
}

func TestSynthReadErrors(t *testing.T) {
	b := dialects[2].original(5000).Build().All()
	r := &brokenReader{bytes.NewReader(b), int64(len(b))}
	f, err := lancefile.Open(t.Context(), r, int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	bad := errors.New("no such row")
	edit := lancefile.Edit{Flats: []lancefile.Flat{numbers(0, 5000, 0), {Column: 4, Fill: func(context.Context, uint64, []uint64) error { return bad }}}}
	s, err := lancefile.Synthesise(t.Context(), f, edit)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, s.Size())
	if n, err := s.ReadAt(t.Context(), p, 0); !errors.Is(err, bad) || n < 5000*8 {
		t.Errorf("the error of a function: %d bytes, %v", n, err)
	}
	r.from = 0
	if n, err := s.ReadAt(t.Context(), p, 0); n != 0 || !fault.Is(err, fault.TimedOut) {
		t.Errorf("the error of the reader: %d bytes, %v", n, err)
	}
	if _, err := s.ReadAt(t.Context(), p, -1); !fault.Is(err, fault.Invalid) {
		t.Errorf("offset -1: %v", err)
	}
	if n, err := s.ReadAt(t.Context(), p, s.Size()); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %d bytes, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	schema, _ := f.GlobalBuffer(0)
	if _, err := s.ReadAt(ctx, p[:100], int64(schema)); !fault.Is(err, fault.Cancelled) {
		t.Errorf("cancelled: %v", err)
	}
}

// classifiedSynth fails unless an error of making a file from bad bytes says what is wrong with them.
func classifiedSynth(t *testing.T, err error) {
	t.Helper()
	if k := fault.KindOf(err); k != fault.Corrupt && k != fault.Unsupported && k != fault.TooLarge {
		t.Fatalf("kind %v: %v", k, err)
	}
}
