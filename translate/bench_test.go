package translate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
	"github.com/frifs/frifs/rowmap/rowmaptest"
)

// ordered opens a history of ordered compactions whose last destinations are live.
func ordered(b *testing.B, c rowmaptest.Compactions, cache int64) *Translator {
	b.Helper()
	h, err := fri.Open(context.Background(), c.History(), fri.Options{IndexVersion: 1})
	if err != nil || len(h.Errors) > 0 {
		b.Fatal(err, h.Errors)
	}
	live := Snapshot{}
	for _, d := range h.Transitions[len(h.Transitions)-1].Destinations {
		live[d.Frag()] = Fragment{Rows: d.PhysicalRows}
	}
	return New(h, live, nil, Options{Mapping: rowmap.Options{Cache: rowmap.NewCache(cache)}})
}

// run measures Translate over addrs, in batches of 65,536.
func run(b *testing.B, tr *Translator, addrs []fri.RowAddr) {
	b.Helper()
	r := &Results{New: make([]fri.RowAddr, pieceRows), Outcome: make([]Outcome, pieceRows)}
	all := func() {
		for lo := 0; lo+pieceRows <= len(addrs); lo += pieceRows {
			if err := tr.Translate(context.Background(), addrs[lo:lo+pieceRows], r); err != nil {
				b.Fatal(err)
			}
		}
	}
	all()
	n := 0
	cpu := cpuTime()
	for b.Loop() {
		all()
		n += len(addrs) / pieceRows * pieceRows
	}
	report(b, n, cpu)
}

// report gives the addresses per second of wall time and, for busy machines, of processor time since cpu.
func report(b *testing.B, n int, cpu time.Duration) {
	b.Helper()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Maddrs/s")
	b.ReportMetric(float64(n)/(cpuTime()-cpu).Seconds()/1e6, "Maddrs/cpu-s")
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const tenMillion = 10_000_000

// BenchmarkInOrder translates ascending addresses through one ordered compaction of 10 fragments of 10 M rows.
func BenchmarkInOrder(b *testing.B) {
	for _, deleted := range []float64{0.05, 0.001} {
		for _, gaps := range []float64{0, 0.01, 0.05, 0.5} {
			b.Run(fmt.Sprintf("deleted=%g/gaps=%g", deleted, gaps), func(b *testing.B) {
				tr := ordered(b, rowmaptest.Compactions{Fragments: 10, Rows: tenMillion, Deleted: deleted}, 1<<30)
				rnd := rand.New(rand.NewPCG(1, 1))
				var addrs []fri.RowAddr
				for f := range fri.FragID(10) {
					for o := uint32(0); o < tenMillion && len(addrs) < 1<<18; o++ {
						if gaps == 0 || rnd.Float64() >= gaps {
							addrs = append(addrs, fri.Addr(f, o))
						}
					}
				}
				run(b, tr, addrs)
			})
		}
	}
}

// BenchmarkRandom translates addresses in random order through one ordered compaction.
func BenchmarkRandom(b *testing.B) {
	for _, c := range []struct {
		name  string
		frags int
		rows  uint64
		cache int64
	}{
		{"rows=100M", 10, tenMillion, 1 << 30},
		{"rows=1e9", 100, tenMillion, 2 << 30},
	} {
		b.Run(c.name, func(b *testing.B) {
			tr := ordered(b, rowmaptest.Compactions{Fragments: c.frags, Rows: c.rows, Deleted: 0.05}, c.cache)
			rnd := rand.New(rand.NewPCG(1, 1))
			addrs := make([]fri.RowAddr, 1<<23)
			for i := range addrs {
				addrs[i] = fri.Addr(fri.FragID(rnd.IntN(c.frags)), rnd.Uint32N(uint32(c.rows)))
			}
			run(b, tr, addrs)
		})
	}
}

// BenchmarkChain translates a run through five ordered compactions.
func BenchmarkChain(b *testing.B) {
	tr := ordered(b, rowmaptest.Compactions{Steps: 5, Fragments: 10, Rows: tenMillion, Deleted: 0.05}, 1<<30)
	r := &Results{New: make([]fri.RowAddr, 1<<20), Outcome: make([]Outcome, 1<<20)}
	n, cpu := 0, cpuTime()
	for b.Loop() {
		if err := tr.TranslateRun(context.Background(), fri.Addr(1, 0), 1<<20, r); err != nil {
			b.Fatal(err)
		}
		n += 1 << 20
	}
	report(b, n, cpu)
}

// BenchmarkPush asks for a prefix of a fragment through five ordered compactions of 1e9 rows in all.
func BenchmarkPush(b *testing.B) {
	tr := ordered(b, rowmaptest.Compactions{Steps: 5, Fragments: 100, Rows: tenMillion, Deleted: 0.05}, 1<<30)
	for _, off := range []uint64{tenMillion, 5_000_001} {
		b.Run(fmt.Sprint(off), func(b *testing.B) {
			for b.Loop() {
				if _, err := tr.Push(context.Background(), 7, 0, off); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
