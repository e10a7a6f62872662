package lancefile_test

import (
	"bytes"
	"io"
	"testing"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/lancefile"
)

// What CellWriter writes, OpenCells reads: in every dialect, compressed or not, with nulls or without.
func TestCellsComeBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := rapid.SampledFrom(dialects).Draw(r, "dialect")
		logical := rapid.SampledFrom([]string{"binary", "large_binary", "string"}).Draw(r, "type")
		cells := make([][]byte, rapid.IntRange(1, 30).Draw(r, "rows"))
		for i := range cells {
			if rapid.IntRange(0, 6).Draw(r, "null") > 0 {
				cells[i] = bytes.Repeat([]byte{byte('a' + i)}, rapid.SampledFrom([]int{0, 1, 300, 32 << 10, 32<<10 + 1, 50_000}).Draw(r, "length"))
			}
		}
		b := cellFile(t, d, logical, len(cells), nil)
		got := synthesise(t, b, lancefile.Edit{Cells: []lancefile.CellPages{writeCells(t, open(t, b), 0, cells,
			lancefile.CellOptions{Plain: rapid.Bool().Draw(r, "plain")})}})
		c, err := lancefile.OpenCells(t.Context(), open(t, got), 0)
		if err != nil {
			r.Fatal(err)
		}
		from := rapid.IntRange(0, len(cells)).Draw(r, "from")
		next := from
		err = c.Read(t.Context(), uint64(from), uint64(len(cells)-from), func(row uint64, cell []byte, null bool) error {
			if row != uint64(next) || null != (cells[row] == nil) || !bytes.Equal(cell, cells[row]) {
				r.Errorf("row %d is %d bytes, null %v; want row %d, %d bytes, null %v", row, len(cell), null, next, len(cells[next]), cells[next] == nil)
			}
			next++
			return nil
		})
		if err != nil || next != len(cells) {
			r.Errorf("%d of %d rows: %v", next, len(cells), err)
		}
	})
}

// A cell that is written by steps is the same as one that is given at once, and must be of the size that was said.
func TestCellsByTheStep(t *testing.T) {
	for _, d := range dialects {
		for _, size := range []int{0, 5, 33_000, 3 << 20} {
			cell := bytes.Repeat([]byte("abcdefg0"), size/8+1)[:size]
			steps := func(w io.Writer) error {
				for at := 0; at < size; at += 1000 {
					if _, err := w.Write(cell[at:min(at+1000, size)]); err != nil {
						return err
					}
				}
				return nil
			}
			b := cellFile(t, d, "large_binary", 2, nil)
			w, err := lancefile.NewCellWriter(t.Context(), open(t, b), 0, &memorySink{}, lancefile.CellOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.AppendFrom(size, steps); err != nil {
				t.Fatal(err)
			}
			if err := w.Append(cell, false); err != nil {
				t.Fatal(err)
			}
			pages, err := w.Finish()
			if err != nil {
				t.Fatal(err)
			}
			c, err := lancefile.OpenCells(t.Context(), open(t, synthesise(t, b, lancefile.Edit{Cells: []lancefile.CellPages{pages}})), 0)
			if err != nil {
				t.Fatal(err)
			}
			err = c.Read(t.Context(), 0, 2, func(row uint64, got []byte, null bool) error {
				if null || !bytes.Equal(got, cell) {
					t.Errorf("%s, row %d: %d other bytes, want %d", d.name, row, len(got), size)
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s: %v", d.name, err)
			}
			w, err = lancefile.NewCellWriter(t.Context(), open(t, b), 0, &memorySink{}, lancefile.CellOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.AppendFrom(size+1, steps); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: a byte less than was said: %v", d.name, err)
			}
		}
	}
}
