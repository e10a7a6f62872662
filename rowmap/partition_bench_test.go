package rowmap_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
	"github.com/frifs/frifs/rowmap/rowmaptest"
)

func openPattern(b *testing.B, p rowmaptest.Pattern, cache int64) *rowmap.Partition {
	b.Helper()
	p.Deleted, p.SourceRows, p.FirstID = 0.05, 10_000_000, 7
	t, f := p.Build()
	m, err := rowmap.OpenPartition(b.Context(), t, f, rowmap.Options{Cache: rowmap.NewCache(cache)})
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// rate reports millions of addresses per second.
func rate(b *testing.B, n int) {
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Maddr/s")
}

func BenchmarkPartitionOpen(b *testing.B) {
	for _, dests := range []int{64, 1000} {
		b.Run(fmt.Sprintf("rows=1e9/dests=%d", dests), func(b *testing.B) {
			t, f := rowmaptest.Pattern{Rows: 1_000_000_000, SourceRows: 10_000_000, Destinations: dests, Deleted: 0.05, Encoding: rowmaptest.Packed}.Build()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rowmap.OpenPartition(b.Context(), t, f, rowmap.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPartitionLoad is the time from bytes to checked labels, per source row.
func BenchmarkPartitionLoad(b *testing.B) {
	for _, e := range []rowmaptest.Encoding{rowmaptest.Zipped, rowmaptest.Packed, rowmaptest.Array} {
		for _, dests := range []int{64, 1000} {
			b.Run(fmt.Sprintf("encoding=%d/dests=%d", e, dests), func(b *testing.B) {
				p := openPattern(b, rowmaptest.Pattern{Rows: 10_000_000, Destinations: dests, Encoding: e}, 4<<20)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					if _, err := p.Labels(b.Context(), i); err != nil {
						b.Fatal(err)
					}
					if i++; i == p.LabelBlocks()-1 {
						i = 0
					}
				}
				rate(b, p.LabelBlockRows())
			})
		}
	}
}

func BenchmarkPartitionForwardRun(b *testing.B) {
	for _, c := range []struct {
		name  string
		dests int
		batch int
		cache int64
	}{
		{"cached/dests=64", 64, 1 << 16, 1 << 30}, {"cached/dests=1000", 1000, 1 << 16, 1 << 30},
		{"cached/dests=1000/batch=5000", 1000, 5000, 1 << 30}, {"cold/dests=1000", 1000, 1 << 16, 16 << 20},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := openPattern(b, rowmaptest.Pattern{Rows: 20_000_000, Destinations: c.dests, Encoding: rowmaptest.Packed}, c.cache)
			out, st := make([]fri.RowAddr, c.batch), make([]rowmap.Status, c.batch)
			pass := func() {
				for s, d := range p.Sources() {
					for off := uint64(0); off < d.PhysicalRows; off += uint64(c.batch) {
						n := min(uint64(c.batch), d.PhysicalRows-off)
						if err := p.ForwardRun(b.Context(), s, off, out[:n], st[:n]); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
			pass()
			for b.Loop() {
				pass()
			}
			rate(b, int(p.Rows()))
		})
	}
}

func randomAddrs(p *rowmap.Partition, n int) []fri.RowAddr {
	rnd := rand.New(rand.NewPCG(1, 2))
	addrs := make([]fri.RowAddr, n)
	for i := range addrs {
		s, off := p.SourceOf(rnd.Uint64N(p.Rows()))
		addrs[i] = fri.Addr(p.Sources()[s].Frag(), uint32(off))
	}
	return addrs
}

func BenchmarkPartitionForwardRandom(b *testing.B) {
	for _, c := range []struct {
		name  string
		rows  uint64
		dests int
		batch int
		cache int64
	}{
		{"cached/rows=1e8/dests=64", 100_000_000, 64, 1 << 16, 1 << 30},
		{"cached/rows=1e8/dests=1000", 100_000_000, 1000, 1 << 16, 1 << 30},
		{"small cache/rows=1e8/dests=1000", 100_000_000, 1000, 1 << 16, 64 << 20},
		{"small cache/rows=1e8/dests=1000/batch=1M", 100_000_000, 1000, 1 << 20, 64 << 20},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := openPattern(b, rowmaptest.Pattern{Rows: c.rows, Destinations: c.dests, Encoding: rowmaptest.Packed}, c.cache)
			addrs := randomAddrs(p, max(1<<20, c.batch))
			out, st := make([]fri.RowAddr, c.batch), make([]rowmap.Status, c.batch)
			if err := p.Forward(b.Context(), addrs[:c.batch], out, st); err != nil {
				b.Fatal(err)
			}
			at := 0
			for b.Loop() {
				if err := p.Forward(b.Context(), addrs[at:at+c.batch], out, st); err != nil {
					b.Fatal(err)
				}
				if at += c.batch; at+c.batch > len(addrs) {
					at = 0
				}
			}
			rate(b, c.batch)
		})
	}
}

func BenchmarkPartitionInverseRandom(b *testing.B) {
	p := openPattern(b, rowmaptest.Pattern{Rows: 100_000_000, Destinations: 1000, Encoding: rowmaptest.Packed}, 1<<30)
	rnd := rand.New(rand.NewPCG(1, 2))
	addrs := make([]fri.RowAddr, 1<<16)
	for i := range addrs {
		d := p.Destinations()[rnd.IntN(1000)]
		addrs[i] = fri.Addr(d.Frag(), uint32(rnd.Uint64N(d.PhysicalRows)))
	}
	out, st := make([]fri.RowAddr, len(addrs)), make([]rowmap.Status, len(addrs))
	if err := p.Inverse(b.Context(), addrs, out, st); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := p.Inverse(b.Context(), addrs, out, st); err != nil {
			b.Fatal(err)
		}
	}
	rate(b, len(addrs))
}

// BenchmarkPartitionInverseRun reads all destinations in order, in runs of 2,000 rows.
func BenchmarkPartitionInverseRun(b *testing.B) {
	for _, c := range []struct {
		name  string
		cache int64
	}{{"orders cached", 1 << 30}, {"windows/cache=192MiB", 192 << 20}, {"windows/cache=96MiB", 96 << 20}} {
		b.Run("rows=1e8/dests=1000/"+c.name, func(b *testing.B) {
			p := openPattern(b, rowmaptest.Pattern{Rows: 100_000_000, Destinations: 1000, Encoding: rowmaptest.Packed}, c.cache)
			out := make([]fri.RowAddr, 2000)
			pass := func() {
				for d, f := range p.Destinations() {
					for off := uint64(0); off < f.PhysicalRows; off += uint64(len(out)) {
						if err := p.InverseRun(b.Context(), d, off, out[:min(uint64(len(out)), f.PhysicalRows-off)]); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
			if c.cache == 1<<30 {
				pass()
			}
			for b.Loop() {
				pass()
			}
			rate(b, 95_000_000)
		})
	}
}
