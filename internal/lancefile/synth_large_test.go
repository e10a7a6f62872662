package lancefile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
)

// TestManyRows replaces a column of more rows than a page can have. The original claims them with one constant page.
func TestManyRows(t *testing.T) {
	for _, rows := range []uint64{1<<32 - 1, 1 << 32, 5<<31 + 3} {
		x := takeApart(t, dialects[2].original(2).Build().All())
		x.schema.Length = rows
		for i := range x.columns {
			x.columns[i].Pages = x.columns[i].Pages[:1]
			x.columns[i].Pages[0].Length = rows
		}
		b := x.render(t, nil, false)
		f := open(t, b)
		s, err := lancefile.Synthesise(t.Context(), f, lancefile.Edit{Flats: []lancefile.Flat{numbers(0, rows, 0)}})
		if err != nil {
			t.Fatal(err)
		}
		g0, n := f.GlobalBuffer(0)
		tail := make([]byte, 3000)
		got, err := s.ReadAt(t.Context(), tail, int64(g0+8*rows))
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		tail = tail[:got]
		if end := g0 + 8*rows + uint64(got); end != uint64(s.Size()) {
			t.Errorf("%d rows: ends at %d, size %d", rows, end, s.Size())
		}
		if pad := -(8 * rows) & 63; !bytes.Equal(tail[:pad], bytes.Repeat([]byte{'H'}, int(pad))) {
			t.Errorf("%d rows: padding %q", rows, tail[:pad])
		}
		re, err := lancefile.Open(t.Context(), readerOf{s}, s.Size())
		if err != nil {
			t.Fatal(err)
		}
		if _, m := re.GlobalBuffer(0); m != n {
			t.Errorf("%d rows: schema of %d bytes, want %d", rows, m, n)
		}
		c, err := lancefile.OpenColumn[uint64](t.Context(), re, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []uint64{0, 1<<31 - 3, 1<<32 - 10, rows - 9} {
			v := make([]uint64, 9)
			if _, err := c.Read(t.Context(), from, v, nil); err != nil {
				t.Fatal(err)
			}
			for i := range v {
				if v[i] != number(from+uint64(i)) {
					t.Errorf("%d rows: row %d is %d, want %d", rows, from+uint64(i), v[i], number(from+uint64(i)))
				}
			}
		}
	}
}

// readerOf makes a Synth an io.ReaderAt.
type readerOf struct{ *lancefile.Synth }

func (r readerOf) ReadAt(p []byte, off int64) (int, error) {
	return r.Synth.ReadAt(context.Background(), p, off)
}

// Reads of more rows than one batch, by several goroutines at once.
func TestLargeReads(t *testing.T) {
	const rows = 150_001
	b := lancetest.File{Major: 2, Minor: 2, Rows: rows, Columns: []lancetest.Column{{Name: "ids", Type: "uint64",
		Pages: []lancetest.Page{dialects[2].opaquePage(rows)}}}}.Build().All()
	s, err := lancefile.Synthesise(t.Context(), open(t, b), lancefile.Edit{Flats: []lancefile.Flat{numbers(0, rows, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			off := 13*i + 3
			p := make([]byte, 8*rows-off-i)
			if _, err := s.ReadAt(t.Context(), p, int64(off)); err != nil {
				t.Error(err)
				return
			}
			var le [8]byte
			for k := range p {
				if at := off + k; k == 0 || at%8 == 0 {
					binary.LittleEndian.PutUint64(le[:], number(uint64(at/8)))
				}
				if p[k] != le[(off+k)%8] {
					t.Errorf("byte %d is %d, want %d", off+k, p[k], le[(off+k)%8])
					return
				}
			}
		})
	}
	readers.Wait()
}

// FuzzSynthesise replaces what it can of any file: the result opens, and holds what was put in.
func FuzzSynthesise(f *testing.F) {
	for _, name := range []string{"mini20", "mini22", "mini23"} {
		f.Add(golden(f, name), uint8(0))
	}
	for i, d := range dialects {
		b := d.original(5).Build().All()
		f.Add(b, uint8(i))
		f.Add(takeApart(f, b).render(f, make([]byte, 64), i == 1), uint8(4))
	}
	f.Fuzz(func(t *testing.T, b []byte, which uint8) {
		file, err := lancefile.Open(t.Context(), bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		column := int(which) % (file.Columns() + 1)
		if column == file.Columns() {
			return
		}
		e := lancefile.Edit{Globals: map[int]lancefile.Piece{}}
		if file.Rows() <= 1000 && which&64 != 0 {
			w, err := lancefile.NewCellWriter(t.Context(), file, column, &memorySink{}, lancefile.CellOptions{})
			if err != nil {
				classifiedSynth(t, err)
				return
			}
			for range file.Rows() {
				if err := w.Append([]byte("cell"), false); err != nil {
					t.Fatal(err)
				}
			}
			p, err := w.Finish()
			if err != nil {
				t.Fatal(err)
			}
			e.Cells = append(e.Cells, p)
		} else {
			e.Flats = append(e.Flats, numbers(column, file.Rows(), 0))
		}
		if file.GlobalBuffers() > 1 && which&128 != 0 {
			e.Globals[1] = lancefile.Bytes([]byte("another"))
		}
		s, err := lancefile.Synthesise(t.Context(), file, e)
		if err != nil {
			classifiedSynth(t, err)
			return
		}
		again, err := lancefile.Open(t.Context(), readerOf{s}, s.Size())
		if err != nil {
			t.Fatal(err)
		}
		if again.Rows() != file.Rows() || again.Columns() != file.Columns() || again.GlobalBuffers() != file.GlobalBuffers() {
			t.Fatalf("%d rows, %d columns, %d global buffers; the original has %d, %d, %d", again.Rows(), again.Columns(), again.GlobalBuffers(),
				file.Rows(), file.Columns(), file.GlobalBuffers())
		}
		if len(e.Flats) == 0 {
			return
		}
		c, err := lancefile.OpenColumn[uint64](t.Context(), again, column)
		if err != nil {
			t.Fatal(err)
		}
		n := min(c.Rows(), 100)
		for _, from := range []uint64{0, c.Rows() - n} {
			v := make([]uint64, n)
			if _, err := c.Read(t.Context(), from, v, nil); err != nil {
				t.Fatal(err)
			}
			for i := range v {
				if v[i] != number(from+uint64(i)) {
					t.Fatalf("row %d is %d, want %d", from+uint64(i), v[i], number(from+uint64(i)))
				}
			}
		}
	})
}
