package mapcsv

import (
	"context"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
	"github.com/frifs/frifs/rowmap/rowmaptest"
	"github.com/frifs/frifs/translate"
)

// history opens a synthetic content.
func history(t fataler, r fri.Reader) *fri.History {
	t.Helper()
	h, err := fri.Open(context.Background(), r, fri.Options{IndexVersion: 1})
	if err != nil {
		t.Fatalf("fri.Open: %v", err)
	}
	if h.Broken != nil || len(h.Errors) > 0 {
		t.Fatalf("synthetic history: %v, %v", h.Broken, h.Errors)
	}
	return h
}

func newOrdered(t fataler, c rowmaptest.Compactions, cache int64) *rowmap.Ordered {
	t.Helper()
	m, err := rowmap.NewOrdered(history(t, c.History()).Transitions[0], rowmap.Options{Cache: rowmap.NewCache(cache)})
	if err != nil {
		t.Fatalf("NewOrdered: %v", err)
	}
	return m
}

var (
	tenMillion = rowmaptest.Compactions{Fragments: 10, Rows: 1 << 20, DestRows: 4 << 20, FirstID: 12, Deleted: 0.05}
	billion    = rowmaptest.Compactions{Fragments: 1000, Rows: 1e6, DestRows: 5e6, FirstID: 1200, Deleted: 0.05}
)

// cpuTime is the processor time that this process has used, in ns: on a shared machine it says more than the clock.
func cpuTime() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// benchWarm is benchSequential of a file whose blocks all are in the cache.
func benchWarm(b *testing.B, f File, piece int) {
	b.Helper()
	readAll(b, f, 1<<20)
	benchSequential(b, f, piece)
}

// benchSequential reads a file in pieces, from its start again when the end is reached.
func benchSequential(b *testing.B, f File, piece int) {
	b.Helper()
	ctx := context.Background()
	size, err := f.Size(ctx)
	if err != nil {
		b.Fatal(err)
	}
	p := make([]byte, piece)
	b.SetBytes(int64(piece))
	off := int64(0)
	start := cpuTime()
	for b.Loop() {
		if off+int64(piece) > size {
			off = 0
		}
		if n, err := f.ReadAt(ctx, p, off); n != piece || err != nil {
			b.Fatalf("ReadAt = %d, %v", n, err)
		}
		off += int64(piece)
	}
	b.ReportMetric(float64(piece)*float64(b.N)*1e3/float64(cpuTime()-start), "cpu-MB/s")
}

// benchRandom reads 4 KiB anywhere in [lo, hi) of a file; hi 0 means its end.
func benchRandom(b *testing.B, f File, lo, hi int64) {
	b.Helper()
	ctx := context.Background()
	size, err := f.Size(ctx)
	if err != nil {
		b.Fatal(err)
	}
	if hi == 0 {
		hi = size
	}
	if hi < 1<<30 {
		readAll(b, f, 1<<20)
	}
	p := make([]byte, 4096)
	rnd := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		if n, err := f.ReadAt(ctx, p, lo+rnd.Int64N(hi-lo-4096)); n != 4096 || err != nil {
			b.Fatalf("ReadAt = %d, %v", n, err)
		}
	}
}

func orderedCSV(m ordered) *text {
	return newText(mappingHeader, &orderedBody{m: m})
}

func BenchmarkMappingCSVOrdered(b *testing.B) {
	b.Run("rows=10M", func(b *testing.B) { benchWarm(b, orderedCSV(newOrdered(b, tenMillion, 64<<20)), 1<<17) })
	b.Run("rows=1e9,cold", func(b *testing.B) { benchSequential(b, orderedCSV(newOrdered(b, billion, 1<<20)), 1<<17) })
}

func BenchmarkOrderedSize1e9(b *testing.B) {
	m := newOrdered(b, billion, 1<<20)
	for b.Loop() {
		if n, err := orderedCSV(m).Size(context.Background()); err != nil || n < 4e10 {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkOrderedRead4K(b *testing.B) {
	b.Run("cached", func(b *testing.B) { benchRandom(b, orderedCSV(newOrdered(b, tenMillion, 64<<20)), 0, 0) })
	b.Run("rows=1e9,cold", func(b *testing.B) { benchRandom(b, orderedCSV(newOrdered(b, billion, 1<<20)), 0, 0) })
}

func BenchmarkInverseOrdered(b *testing.B) {
	f := newText(inverseHeader, &orderedInverse{m: newOrdered(b, tenMillion, 64<<20)})
	benchSequential(b, f, 1<<17)
}

func BenchmarkMappingArrow(b *testing.B) {
	open := func(m rowmap.Mapping) File {
		f, err := MappingArrow(m)
		if err != nil {
			b.Fatal(err)
		}
		return f
	}
	b.Run("ordered", func(b *testing.B) { benchSequential(b, open(newOrdered(b, tenMillion, 64<<20)), 1<<17) })
	b.Run("destinations=64", func(b *testing.B) { benchWarm(b, open(newPartition(b, pattern(2<<20, 64), 64<<20)), 1<<17) })
}

func newPartition(t fataler, p rowmaptest.Pattern, cache int64) *rowmap.Partition {
	t.Helper()
	tr, file := p.Build()
	m, err := rowmap.OpenPartition(context.Background(), tr, file, rowmap.Options{Cache: rowmap.NewCache(cache)})
	if err != nil {
		t.Fatalf("OpenPartition: %v", err)
	}
	return m
}

// pattern is a stable partition with a thousandth of its rows in each source.
func pattern(rows uint64, destinations int) rowmaptest.Pattern {
	return rowmaptest.Pattern{Rows: rows, SourceRows: max(rows/1000, 1<<20), Destinations: destinations, Deleted: 0.05, FirstID: 1200,
		Encoding: rowmaptest.Packed}
}

func partitionCSV(m partition) *text { return newText(mappingHeader, &partitionBody{m: m}) }

func BenchmarkMappingCSVPartition(b *testing.B) {
	b.Run("destinations=64", func(b *testing.B) {
		benchSequential(b, partitionCSV(newPartition(b, pattern(10<<20, 64), 64<<20)), 1<<17)
	})
	b.Run("destinations=1000", func(b *testing.B) {
		benchSequential(b, partitionCSV(newPartition(b, pattern(10<<20, 1000), 64<<20)), 1<<17)
	})
	b.Run("rows=1e9,destinations=1000,cold", func(b *testing.B) {
		benchSequential(b, partitionCSV(newPartition(b, pattern(1e9, 1000), 8<<20)), 1<<17)
	})
}

func BenchmarkPartitionSize1e9(b *testing.B) {
	m := newPartition(b, pattern(1e9, 1000), 8<<20)
	for b.Loop() {
		if n, err := partitionCSV(m).Size(context.Background()); err != nil || n < 4e10 {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkPartitionRead4K(b *testing.B) {
	b.Run("destinations=64,cached", func(b *testing.B) { benchRandom(b, partitionCSV(newPartition(b, pattern(4<<20, 64), 64<<20)), 0, 0) })
	b.Run("destinations=1000,cached", func(b *testing.B) { benchRandom(b, partitionCSV(newPartition(b, pattern(4<<20, 1000), 64<<20)), 0, 0) })
	b.Run("rows=1e9,destinations=1000,cold", func(b *testing.B) {
		benchRandom(b, partitionCSV(newPartition(b, pattern(1e9, 1000), 8<<20)), 0, 0)
	})
}

func BenchmarkInversePartition(b *testing.B) {
	b.Run("rows=10M,destinations=64", func(b *testing.B) {
		benchSequential(b, newText(inverseHeader, &partitionInverse{m: newPartition(b, pattern(10<<20, 64), 128<<20)}), 1<<17)
	})
	b.Run("rows=100M,destinations=1000", func(b *testing.B) { // needs some 20,000 reads until passes over the labels pay
		p := pattern(1e8, 1000)
		p.Encoding = rowmaptest.Array // the cheapest to make up
		benchSequential(b, newText(inverseHeader, &partitionInverse{m: newPartition(b, p, 128<<20)}), 1<<17)
	})
}

func BenchmarkSizeOfInverse(b *testing.B) {
	m := newPartition(b, pattern(1e8, 1000), 8<<20)
	for b.Loop() {
		if _, err := newPartitionArrivals(context.Background(), m); err != nil {
			b.Fatal(err)
		}
	}
}

// composed returns composed.csv of a history whose last destinations are live.
func composed(t fataler, h *fri.History) File {
	live := translate.Snapshot{}
	for _, d := range h.Transitions[len(h.Transitions)-1].Destinations {
		live[d.Frag()] = translate.Fragment{Rows: d.PhysicalRows}
	}
	return Composed(translate.New(h, live, nil, translate.Options{Mapping: rowmap.Options{Cache: rowmap.NewCache(64 << 20)}}))
}

func fiveSteps(c rowmaptest.Compactions) rowmaptest.Compactions {
	c.Steps = 5
	return c
}

func BenchmarkComposedOC5(b *testing.B) {
	b.Run("rows=10M", func(b *testing.B) {
		benchSequential(b, composed(b, history(b, fiveSteps(tenMillion).History())), 1<<17)
	})
	b.Run("rows=1e9", func(b *testing.B) {
		benchSequential(b, composed(b, history(b, fiveSteps(billion).History())), 1<<17)
	})
}

func BenchmarkComposedOC5Size1e9(b *testing.B) {
	h := history(b, fiveSteps(billion).History())
	for b.Loop() {
		if n, err := composed(b, h).Size(context.Background()); err != nil || n < 1e11 {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkComposedOC5Read4K(b *testing.B) {
	benchRandom(b, composed(b, history(b, fiveSteps(billion).History())), 0, 0)
}

// mixed is a history of one partition, whose sources have 1 M rows each.
func mixed(t fataler, rows uint64, destinations int) *translate.Translator {
	t.Helper()
	p := pattern(rows, destinations)
	tr, file := p.Build()
	h := &fri.History{IndexVersion: 1, Tagged: true, Transitions: []*fri.Transition{tr}}
	live := translate.Snapshot{}
	for _, d := range tr.Destinations {
		live[d.Frag()] = translate.Fragment{Rows: d.PhysicalRows}
	}
	maps := func(ctx context.Context, tr *fri.Transition) (rowmap.Mapping, error) {
		return rowmap.OpenPartition(ctx, tr, file, rowmap.Options{Cache: rowmap.NewCache(64 << 20)})
	}
	return translate.New(h, live, maps, translate.Options{})
}

func BenchmarkComposedPartition(b *testing.B) {
	benchSequential(b, Composed(mixed(b, 4<<20, 64)), 1<<17)
}

func BenchmarkComposedPartitionSize(b *testing.B) {
	const rows = 16 << 20
	tr := mixed(b, rows, 64)
	start := cpuTime()
	for b.Loop() {
		if _, err := Composed(tr).Size(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(rows*float64(b.N)*1e3/float64(cpuTime()-start), "cpu-Mrows/s")
}
