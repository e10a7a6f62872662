package lancefile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/internal/lancefile"
)

// edited is an original, what is to be changed of it, and what the file made of both must hold.
type edited struct {
	dialect dialect
	rows    int
	before  container
	edit    lancefile.Edit
	cells   map[int][][]byte
	globals map[int][]byte
	buffers []uint64 // sizes of all buffers that are added, in order
}

func drawEdit(t *rapid.T, tb testing.TB) edited {
	x := edited{dialect: rapid.SampledFrom(dialects).Draw(t, "dialect"), rows: rapid.IntRange(0, 40).Draw(t, "rows"),
		cells: map[int][][]byte{}, globals: map[int][]byte{}}
	b := x.dialect.original(x.rows).Build().All()
	x.before = takeApart(tb, b)
	f := open(tb, b)
	pageRows := rapid.SampledFrom([]uint64{0, 8, 16}).Draw(t, "page rows")
	for i, c := range []string{"flat", "cells", "", "cells", "flat"} {
		if c == "" || rapid.Bool().Draw(t, c) {
			continue
		}
		if c == "flat" {
			flat := numbers(i, uint64(x.rows), pageRows)
			if rapid.Bool().Draw(t, "bytes") {
				flat = asBytes(flat)
			}
			x.edit.Flats = append(x.edit.Flats, flat)
			for left := x.rows; left > 0 && !x.dialect.old(); {
				n := left
				if pageRows > 0 {
					n = min(left, int(pageRows))
				}
				x.buffers = append(x.buffers, 8*uint64(n))
				left -= n
			}
			continue
		}
		cells := make([][]byte, x.rows)
		for k := range cells {
			if rapid.IntRange(0, 5).Draw(t, "null") > 0 {
				cells[k] = bytes.Repeat([]byte{byte(k)}, rapid.SampledFrom([]int{0, 1, 5, 20, 300}).Draw(t, "length"))
			}
		}
		pages := writeCells(tb, f, i, cells, lancefile.CellOptions{})
		for _, p := range pages.Pages {
			for _, b := range p.Buffers {
				x.buffers = append(x.buffers, uint64(b.Size))
			}
		}
		x.cells[i], x.edit.Cells = cells, append(x.edit.Cells, pages)
	}
	// The order in which columns are named makes no difference.
	slices.Reverse(x.edit.Flats)
	slices.Reverse(x.edit.Cells)
	x.edit.Globals = map[int]lancefile.Piece{}
	for i := 1; i <= 2; i++ {
		if rapid.Bool().Draw(t, "global") {
			x.globals[i] = bytes.Repeat([]byte{byte(i)}, rapid.SampledFrom([]int{0, 1, 64, 500}).Draw(t, "bytes"))
			x.edit.Globals[i] = lancefile.Bytes(x.globals[i])
			x.buffers = append(x.buffers, uint64(len(x.globals[i])))
		}
	}
	return x
}

// asBytes is the same column, written as bytes.
func asBytes(x lancefile.Flat) lancefile.Flat {
	fill := x.Fill
	x.Fill = nil
	x.Bytes = func(ctx context.Context, p []byte, off int64) error {
		cut := int(off % 8)
		v := make([]uint64, (cut+len(p)+7)/8)
		if err := fill(ctx, uint64(off/8), v); err != nil {
			return err
		}
		b := make([]byte, 8*len(v))
		for i := range v {
			binary.LittleEndian.PutUint64(b[8*i:], v[i])
		}
		copy(p, b[cut:])
		return nil
	}
	return x
}

// dataEnd is up to where the original's bytes stay: to its schema, or, where no column is made on the fly, to the end of
// the last buffer that is still in use.
func (x edited) dataEnd() (end uint64) {
	if len(x.edit.Flats) > 0 || len(x.cells)+len(x.globals) == 0 {
		return x.before.globals[0][0]
	}
	for i, g := range x.before.globals {
		if _, replaced := x.globals[i]; i > 0 && !replaced {
			end = max(end, g[0]+g[1])
		}
	}
	for i, c := range x.before.columns {
		if _, replaced := x.cells[i]; replaced {
			continue
		}
		for _, p := range c.GetPages() {
			for k, n := range p.GetBufferSizes() {
				if n > 0 {
					end = max(end, p.GetBufferOffsets()[k]+n)
				}
			}
		}
	}
	return end
}

// check compares a synthesised file with the original, part by part.
func (x edited) check(t *rapid.T, tb testing.TB, got []byte) {
	after := takeApart(tb, got)
	g0 := x.dataEnd()
	appends := len(x.cells)+len(x.globals) > 0 || (len(x.edit.Flats) > 0 && !x.dialect.old())
	if size := uint64(len(got)); appends {
		want := (g0 + 63) &^ 63
		for _, n := range x.buffers {
			want += (n + 63) &^ 63
		}
		want += x.before.globals[0][1] + 16*uint64(len(after.columns)+len(after.globals)) + 40
		for _, m := range after.metas {
			want += uint64(len(m))
		}
		if size != want {
			t.Errorf("size %d, want %d", size, want)
		}
	} else if int(size) != len(x.before.bytes) {
		t.Errorf("size %d, the original's is %d", size, len(x.before.bytes))
	}
	if !bytes.Equal(after.global(0), x.before.global(0)) {
		t.Error("another schema")
	}
	if !bytes.Equal(after.foot[24:], x.before.foot[24:]) {
		t.Errorf("footer ends with %x, want %x", after.foot[24:], x.before.foot[24:])
	}
	for i := range after.globals {
		want := x.before.global(i)
		if g, ok := x.globals[i]; ok {
			want = g
		}
		if after.globals[i][0]%64 != 0 || !bytes.Equal(after.global(i), want) {
			t.Errorf("global buffer %d at %d is %x, want %x", i, after.globals[i][0], after.global(i), want)
		}
	}
	changed := map[uint64]bool{} // bytes of pages that are written over
	f := open(tb, got)
	for i := range after.columns {
		if i == 0 || i == 4 {
			replaced := slices.ContainsFunc(x.edit.Flats, func(f lancefile.Flat) bool { return f.Column == i })
			for row, v := range read[uint64](tb, f, i) {
				want := uint64(row) << 32
				if replaced {
					want = number(uint64(row))
				}
				if uint64(v) != want {
					t.Fatalf("column %d row %d is %d, want %d", i, row, uint64(v), want)
				}
			}
			if replaced && x.dialect.old() {
				for _, p := range x.before.columns[i].GetPages() {
					for k := range 8 * p.GetLength() {
						changed[p.GetBufferOffsets()[0]+k] = true
					}
				}
				replaced = false // its description stays
			}
			if replaced {
				continue
			}
		} else if want, ok := x.cells[i]; ok {
			cells, _ := after.cells(tb, i)
			if !slices.EqualFunc(cells, want, func(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }) {
				t.Errorf("column %d has cells %q, want %q", i, cells, want)
			}
			continue
		}
		if !bytes.Equal(after.metas[i], x.before.metas[i]) {
			t.Errorf("another description of column %d", i)
		}
	}
	for off := range g0 {
		if !changed[off] && got[off] != x.before.bytes[off] {
			t.Fatalf("byte %d, before the schema, is %#x, was %#x", off, got[off], x.before.bytes[off])
		}
	}
}

func TestSynthesiseProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		x := drawEdit(r, t)
		s, err := lancefile.Synthesise(t.Context(), open(t, x.before.bytes), x.edit)
		if err != nil {
			r.Fatal(err)
		}
		whole := all(t, s)
		x.check(r, t, whole)
		for range 10 {
			off := rapid.IntRange(0, len(whole)+1).Draw(r, "off")
			p := make([]byte, rapid.IntRange(0, 300).Draw(r, "length"))
			n, err := s.ReadAt(t.Context(), p, int64(off))
			want := whole[min(off, len(whole)):]
			want = want[:min(len(want), len(p))]
			if !bytes.Equal(p[:n], want) || (n < len(p)) != (errors.Is(err, io.EOF)) || (err != nil && !errors.Is(err, io.EOF)) {
				r.Fatalf("%d bytes at %d of %d: %d, %v", len(p), off, len(whole), n, err)
			}
		}
	})
}

// Overlays go with the bytes that they are written over, also where those move.
func TestOverlays(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := rapid.SampledFrom(dialects).Draw(r, "dialect")
		original := d.original(9).Build().All()
		before := takeApart(t, original)
		schema := before.globals[0]
		var e lancefile.Edit
		want := bytes.Clone(original)
		for at := 0; ; {
			at += rapid.IntRange(0, 200).Draw(r, "gap")
			n := rapid.IntRange(0, 40).Draw(r, "length")
			if at+n > int(schema[0]) {
				break
			}
			b := bytes.Repeat([]byte{0xAA}, n)
			e.Overlays = append(e.Overlays, lancefile.Overlay{Off: int64(at), Piece: lancefile.Bytes(b)})
			copy(want[at:], b)
			at += n
		}
		inSchema := rapid.Uint64Range(0, schema[1]-1).Draw(r, "in schema")
		e.Overlays = append(e.Overlays, lancefile.Overlay{Off: int64(schema[0] + inSchema), Piece: lancefile.Bytes([]byte{0xBB})})
		want[schema[0]+inSchema] = 0xBB
		slices.Reverse(e.Overlays)
		if got := synthesise(t, original, e); !bytes.Equal(got, want) {
			r.Errorf("overlays alone: got\n%x, want\n%x", got, want)
		}
		e.Globals = map[int]lancefile.Piece{1: lancefile.Bytes([]byte("new"))}
		got := synthesise(t, original, e)
		at := binary.LittleEndian.Uint64(got[binary.LittleEndian.Uint64(got[len(got)-24:]):])
		if !bytes.Equal(got[:schema[0]], want[:schema[0]]) || !bytes.Equal(got[at:][:schema[1]], want[schema[0]:][:schema[1]]) {
			r.Error("overlays beside a new buffer do not go with their bytes")
		}
	})
}

func TestSynthesiseNothing(t *testing.T) {
	for _, d := range dialects {
		original := d.original(5).Build().All()
		if got := synthesise(t, original, lancefile.Edit{}); !bytes.Equal(got, original) {
			t.Errorf("%s: an Edit of nothing changes the file", d.name)
		}
	}
}

// One file of each dialect, byte for byte.
func TestEditGolden(t *testing.T) {
	for i, d := range dialects {
		t.Run(d.name, func(t *testing.T) {
			original := d.original(18).Build().All()
			cells := make([][]byte, 18)
			for k := range cells {
				if k%4 != 3 {
					cells[k] = bytes.Repeat([]byte{byte('a' + k)}, k*k)
				}
			}
			f := open(t, original)
			compareGolden(t, []string{"edit20", "edit21", "edit22", "edit23old", "edit23"}[i], synthesise(t, original, lancefile.Edit{
				Flats:   []lancefile.Flat{numbers(4, 18, 8)},
				Cells:   []lancefile.CellPages{writeCells(t, f, 1, cells, lancefile.CellOptions{}), writeCells(t, f, 3, cells, lancefile.CellOptions{})},
				Globals: map[int]lancefile.Piece{2: lancefile.Bytes([]byte("another second buffer"))},
			}))
		})
	}
}
