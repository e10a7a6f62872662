package store

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"testing/synctest"
)

// All caches together stay within the budget, whoever grows: those that hold most give way.
func TestBudgetIsSharedByAll(t *testing.T) {
	b := NewBudget(10_000)
	a, c := newMemory(8000, b), newMemory(8000, b)
	var watched int64
	b.Watch("watched", func() int64 { return watched })
	fixed := b.Share("fixed", nil)
	check := func(what string, most int64) {
		t.Helper()
		if used := b.Used(); used > most {
			t.Errorf("%s: %d bytes, want at most %d: %v", what, used, most, b.Parts())
		}
		if sum := a.bytes() + c.bytes(); b.used.Load()-fixed.used.Load() != sum {
			t.Errorf("%s: %d bytes are counted, %d kept", what, b.used.Load(), sum)
		}
	}
	fill := func(m *memory, name string, n int) {
		for i := range int64(n) {
			m.put(name, i, make([]byte, 744)) // 1000 with what it takes to find it
			m.settle()
		}
	}
	fill(a, "a", 8)
	check("one cache", 8000)
	fill(c, "c", 8)
	check("two caches", 10_000)
	if a.bytes() == 0 || c.bytes() == 0 {
		t.Errorf("one cache has it all: %v", b.Parts())
	}
	watched = 5000
	a.settle()
	check("a third that bounds itself", 10_000)
	fixed.Add(3000)
	fixed.Settle()
	check("what cannot be let go of", 10_000)
	fixed.Add(9000)
	fixed.Settle()
	check("more than there is", 17_000)
	if a.bytes()+c.bytes() != 0 {
		t.Errorf("caches hold bytes in an overdrawn budget: %v", b.Parts())
	}
	fixed.Add(-12_000)
	if got, want := b.Parts(), []Part{{"store_blocks", 0}, {"watched", 5000}, {"fixed", 0}}; !slices.Equal(got, want) {
		t.Errorf("parts %v, want %v", got, want)
	}
	var none *Budget
	none.Share("x", nil).Add(5)
	none.Share("x", nil).Settle()
}

func TestBudgetUnderConcurrentUse(t *testing.T) {
	b := NewBudget(50_000)
	var wg sync.WaitGroup
	for i := range 4 {
		m := newMemory(40_000, b)
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for k := range int64(500) {
				m.put("x", k, make([]byte, r.IntN(2000)))
				m.settle()
				m.get("x", r.Int64N(k+1))
			}
		})
	}
	wg.Wait()
	if used := b.Used(); used > 50_000 || used < 30_000 {
		t.Errorf("%d bytes of 50000 are kept", used)
	}
}

// The blocks under way are bounded as well, read-ahead included, and count in the budget.
func TestTransfersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const memory, transfer = 3 << 20, 1 << 20
		want := pattern(8 << 20)
		f := newFake(map[string]string{"a": want})
		f.script = func(int, request) reply { return reply{wait: 10 * time.Millisecond} }
		b := NewBudget(memory + transfer)
		l := NewLayer(Config{Memory: memory, Transfer: transfer, Budget: b})
		st := l.wrap(f)
		var wg sync.WaitGroup
		for i := range 8 {
			r := open(t, st, "a")
			wg.Go(func() {
				for off := i << 18; off+1<<19 <= len(want); off += 2 << 20 {
					reads(t, r, want, off, 1<<19)
					if under := l.transfer.used.Load(); under > transfer {
						t.Errorf("%d bytes under way", under)
					}
					if used := b.Used(); used > memory+transfer {
						t.Errorf("%d bytes in all: %v", used, b.Parts())
					}
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if n := l.transfer.used.Load(); n != 0 {
			t.Errorf("%d bytes under way when all is done", n)
		}
		// A bound below one request is no obstacle.
		small := NewLayer(Config{Memory: 1 << 20, Transfer: 1})
		reads(t, open(t, small.wrap(f), "a"), want, 0, len(want))
	})
}
