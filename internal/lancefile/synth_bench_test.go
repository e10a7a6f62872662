package lancefile_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
)

// benchSynth is a file of a replaced column of 64 Mi rows with a trivial Fill.
func benchSynth(b *testing.B, d dialect) (s *lancefile.Synth, base int64) {
	b.Helper()
	const rows = 64 << 20
	p := d.idPage(nil)
	p.Rows, p.Buffers = rows, []lancetest.Buffer{lancetest.Repeat(make([]byte, 8), 8*rows)}
	c := lancetest.File{Major: d.major, Minor: d.minor, Rows: rows, Columns: []lancetest.Column{{Name: "ids", Type: "uint64",
		Pages: []lancetest.Page{p}}}}.Build()
	f, err := lancefile.Open(b.Context(), c, c.Size())
	if err != nil {
		b.Fatal(err)
	}
	s, err = lancefile.Synthesise(b.Context(), f, lancefile.Edit{Flats: []lancefile.Flat{{Fill: func(_ context.Context, from uint64, dst []uint64) error {
		for i := range dst {
			dst[i] = from + uint64(i)
		}
		return nil
	}}}})
	if err != nil {
		b.Fatal(err)
	}
	if !d.old() {
		off, _ := f.GlobalBuffer(0)
		base = int64(off)
	}
	return s, base
}

func BenchmarkSynthSequential(b *testing.B) {
	for _, d := range []dialect{dialects[0], dialects[2]} {
		for _, size := range []int{128 << 10, 1 << 20, 8 << 20} {
			b.Run(fmt.Sprintf("%s/%dKiB", d.name, size>>10), func(b *testing.B) {
				s, base := benchSynth(b, d)
				p := make([]byte, size)
				off := base
				b.SetBytes(int64(size))
				for b.Loop() {
					if off+int64(size) > base+8*(64<<20) {
						off = base
					}
					if _, err := s.ReadAt(b.Context(), p, off); err != nil {
						b.Fatal(err)
					}
					off += int64(size)
				}
			})
		}
	}
}

func BenchmarkSynthRandom4KiB(b *testing.B) {
	s, base := benchSynth(b, dialects[2])
	p := make([]byte, 4096)
	r := rand.New(rand.NewPCG(1, 1))
	b.SetBytes(4096)
	for b.Loop() {
		if _, err := s.ReadAt(b.Context(), p, base+r.Int64N(8*(64<<20)-4096)); err != nil {
			b.Fatal(err)
		}
	}
}

// Planning a file whose columns have 2,000 pages each, as one of 1e9 rows has, and reading its first byte.
func BenchmarkSynthPlan(b *testing.B) {
	for _, d := range []dialect{dialects[0], dialects[2], dialects[4]} {
		b.Run(d.name, func(b *testing.B) {
			var pages []lancetest.Page
			for range 2000 {
				pages = append(pages, d.idPage([]uint64{1, 2, 3}))
			}
			raw := lancetest.File{Major: d.major, Minor: d.minor, Rows: 6000, Columns: []lancetest.Column{
				{Name: "values", Type: "uint64", Pages: pages}, {Name: "ids", Type: "uint64", Pages: pages}}}.Build().All()
			for b.Loop() {
				f, err := lancefile.Open(b.Context(), bytes.NewReader(raw), int64(len(raw)))
				if err != nil {
					b.Fatal(err)
				}
				s, err := lancefile.Synthesise(b.Context(), f, lancefile.Edit{Flats: []lancefile.Flat{numbers(1, 6000, 0)}})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.ReadAt(b.Context(), make([]byte, 1), 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSynthCells(b *testing.B) {
	for _, c := range []struct {
		name   string
		length int
		rows   int
		plain  bool
	}{{"100B", 100, 2000, true}, {"40KiB", 40 << 10, 200, true}, {"40KiB compressed", 40 << 10, 200, false}} {
		b.Run(c.name, func(b *testing.B) {
			raw := cellFile(b, dialects[2], "binary", c.rows, nil)
			f := open(b, raw)
			cell := make([]byte, c.length)
			r := rand.New(rand.NewPCG(1, 1))
			for i := range cell { // like the offsets of a sparse bitmap
				if cell[i] = byte(i / 40); i%2 == 0 {
					cell[i] = byte(r.Uint32())
				}
			}
			b.SetBytes(int64(c.rows * c.length))
			sink := &memorySink{}
			for b.Loop() {
				sink.b = sink.b[:0]
				w, err := lancefile.NewCellWriter(b.Context(), f, 0, sink, lancefile.CellOptions{Plain: c.plain})
				if err != nil {
					b.Fatal(err)
				}
				for range c.rows {
					if err := w.Append(cell, false); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := w.Finish(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
