package translate

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/frifs/frifs/fri"
)

func newResults(n int) *Results {
	return &Results{New: make([]fri.RowAddr, n), Outcome: make([]Outcome, n), Last: make([]fri.RowAddr, n)}
}

// checkAll compares the results for addrs with the reference; they are in any order.
func (w *world) checkAll(t *testing.T, how string, addrs []fri.RowAddr, r *Results, want map[fri.RowAddr]answer) {
	t.Helper()
	for i, a := range addrs {
		x := want[a]
		if r.Outcome[i] != x.o || r.Last[i] != x.last || x.o.HasAddress() && r.New[i] != x.last {
			t.Fatalf("seed %d (tagged %v), %s: %v gives %v, new %v, last %v; want %v, %v",
				w.seed, w.tagged, how, a, r.Outcome[i], r.New[i], r.Last[i], x.o, x.last)
		}
	}
}

type answer struct {
	o    Outcome
	last fri.RowAddr
}

func TestRandomHistories(t *testing.T) {
	t.Parallel()
	var seen [NumOutcomes]int
	for seed := range uint64(histories) {
		newWorld(seed, false).checkEverything(t, &seen)
	}
	for o := Moved; o < NumOutcomes; o++ {
		if seen[o] < histories/4 {
			t.Errorf("the histories gave %v only %d times: they test too little", o, seen[o])
		}
	}
}

// TestLargeFragments has fragments at the edges of containers, so that pieces and containers end within them.
func TestLargeFragments(t *testing.T) {
	t.Parallel()
	var seen [NumOutcomes]int
	for seed := uint64(0); seen[Moved]+seen[Dropped] < largeRows; seed++ {
		newWorld(seed, true).checkEverything(t, &seen)
	}
}

func (w *world) checkEverything(t *testing.T, seen *[NumOutcomes]int) {
	t.Helper()
	ctx, seed := context.Background(), w.seed
	addrs := w.addresses()
	want := make(map[fri.RowAddr]answer, len(addrs))
	for _, a := range addrs {
		o, last := w.reference(a)
		want[a] = answer{o, last}
		seen[o]++
	}
	var live Live = w
	if seed%2 == 0 {
		live = hinted{w}
	}
	tr := New(w.h, live, w.open, Options{DeletionBytes: 200 + 20000*int64(seed%3)})
	r := newResults(len(addrs))
	if err := tr.Translate(ctx, addrs, r); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	w.checkAll(t, "ascending", addrs, r, want)

	rnd := rand.New(rand.NewPCG(seed, 9))
	mixed := append(append([]fri.RowAddr{}, addrs...), addrs[:len(addrs)/3]...)
	rnd.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	r = newResults(len(mixed))
	if err := tr.Translate(ctx, mixed, r); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	w.checkAll(t, "shuffled", mixed, r, want)

	for _, f := range w.frags {
		off := rnd.IntN(int(w.rowsEver[f]) + 1)
		n := int(w.rowsEver[f]) + 3 - off
		r = newResults(n)
		if err := tr.TranslateRun(ctx, fri.Addr(f, uint32(off)), n, r); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		run := make([]fri.RowAddr, n)
		for i := range run {
			run[i] = fri.Addr(f, uint32(off+i))
		}
		w.checkAll(t, "run", run, r, want)
		w.checkPush(t, tr, f, uint64(off), uint64(off+n), r)
	}
	w.checkTrace(t, tr, addrs, want)
	w.checkInverse(t, tr, mixed)
}

// checkPush compares a Push with the outcomes of the same rows.
func (w *world) checkPush(t *testing.T, tr *Translator, f fri.FragID, from, to uint64, r *Results) {
	t.Helper()
	for _, rec := range w.recs {
		if len(rec.corrupt) > 0 {
			return // Push does not look at each row, so it does not meet what is corrupt
		}
	}
	p, err := tr.Push(context.Background(), f, from, to)
	if err != nil {
		t.Fatalf("seed %d: Push(%d, %d, %d): %v", w.seed, f, from, to, err)
	}
	var rows [NumOutcomes]uint64
	want := map[fri.RowAddr]bool{}
	for i, o := range r.Outcome {
		rows[o]++
		if o.HasAddress() {
			want[r.New[i]] = true
		}
	}
	if p.Rows != rows {
		t.Fatalf("seed %d: Push(%d, %d, %d) counts %v, want %v", w.seed, f, from, to, p.Rows, rows)
	}
	n := 0
	for _, g := range p.Ranges {
		for o := g.From; o < g.To; o++ {
			if n++; !want[fri.Addr(g.Frag, uint32(o))] {
				t.Fatalf("seed %d: Push(%d, %d, %d) names %d:%d", w.seed, f, from, to, g.Frag, o)
			}
		}
	}
	if n != len(want) {
		t.Fatalf("seed %d: Push(%d, %d, %d) names %d addresses, want %d", w.seed, f, from, to, n, len(want))
	}
}

// checkTrace compares traces of a few addresses with the reference.
func (w *world) checkTrace(t *testing.T, tr *Translator, addrs []fri.RowAddr, want map[fri.RowAddr]answer) {
	t.Helper()
	for i := 0; i < len(addrs); i += 1 + len(addrs)/5 {
		a := addrs[i]
		hops, o, last, err := tr.Trace(context.Background(), a)
		if err != nil || o != want[a].o || last != want[a].last {
			t.Fatalf("seed %d: Trace(%v) gives %v, %v, %v; want %v", w.seed, a, o, last, err, want[a])
		}
		at := a
		for k, h := range hops {
			if h.From != at || k < len(hops)-1 && h.Outcome != Moved {
				t.Fatalf("seed %d: Trace(%v): hop %d is %+v, the way is at %v", w.seed, a, k, h, at)
			}
			if h.Outcome == Moved {
				at = h.To
			}
		}
		if at != last {
			t.Fatalf("seed %d: Trace(%v) ends at %v, want %v", w.seed, a, at, last)
		}
	}
}

// checkInverse compares Inverse with the reference, and the way back with the way there.
func (w *world) checkInverse(t *testing.T, tr *Translator, addrs []fri.RowAddr) {
	t.Helper()
	r := newResults(len(addrs))
	if err := tr.Inverse(context.Background(), addrs, r); err != nil {
		t.Fatalf("seed %d: %v", w.seed, err)
	}
	for i, a := range addrs {
		o, last := w.backReference(a)
		if r.Outcome[i] != o || r.Last[i] != last || o.HasAddress() && r.New[i] != last {
			t.Fatalf("seed %d (tagged %v): inverse of %v is %v, new %v, last %v; want %v, %v",
				w.seed, w.tagged, a, r.Outcome[i], r.New[i], r.Last[i], o, last)
		}
	}
	for i := 0; i < len(addrs); i += 1 + len(addrs)/3 {
		hops, o, last, err := tr.TraceBack(context.Background(), addrs[i])
		if err != nil || o != r.Outcome[i] || last != r.Last[i] {
			t.Fatalf("seed %d: TraceBack(%v) = %v, %v, %v", w.seed, addrs[i], o, last, err)
		}
		at := addrs[i]
		for _, h := range hops {
			if h.From != at {
				t.Fatalf("seed %d: TraceBack(%v): hop %+v, the way is at %v", w.seed, addrs[i], h, at)
			}
			if h.Outcome == Moved {
				at = h.To
			}
		}
		if at != last {
			t.Fatalf("seed %d: TraceBack(%v) ends at %v, want %v", w.seed, addrs[i], at, last)
		}
	}
}
