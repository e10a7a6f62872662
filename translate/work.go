package translate

import (
	"context"
	"math/bits"
	"slices"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
)

// shortSpan is the average length below which the spans of a step are gathered into one batch.
const shortSpan = 64

// work is the state of one piece: which of its addresses wait for which step.
type work struct {
	r       *Results
	steps   []waiting // by position of the step
	active  []uint64  // bit per step: something waits for it
	cur     span      // the span that is being extended; it belongs to curStep
	curStep *step

	addrs   []fri.RowAddr // generated inputs
	in, out []fri.RowAddr // gathered batch
	o       []Outcome
	idx     []int32

	free     [][]int32 // emptied position lists, for the next step that needs one
	freeRoom int       // their capacity together

	landings [landings]landing // by fragment id modulo their number
	epoch    uint32            // landings of other epochs are void
}

// waiting is what waits for one step: spans of the input that it is the first step of, and positions of addresses
// that earlier steps led to it, which stand in Results.New.
type waiting struct {
	spans []span
	idx   []int32
}

type span struct{ lo, hi int32 }

func (t *Translator) getWork() *work {
	if w, ok := t.work.Get().(*work); ok {
		return w
	}
	return &work{steps: make([]waiting, len(t.steps)), active: make([]uint64, (len(t.steps)+63)/64)}
}

func (t *Translator) putWork(w *work) {
	w.r = nil
	t.work.Put(w)
}

// begin forgets what an earlier piece, which may have failed, left behind.
func (w *work) begin(r *Results) {
	w.r, w.curStep = r, nil
	w.each(w.release)
	clear(w.active)
}

// keptRoom bounds the position lists that are kept for reuse: 4 bytes each, a few pieces in all.
const keptRoom = 4 * pieceRows

// release empties what waits for a step. Without the bound a long history would keep a list for each of its steps.
func (w *work) release(pos int) {
	s := &w.steps[pos]
	if room := cap(s.idx); room > 0 && w.freeRoom+room <= keptRoom {
		w.free = append(w.free, s.idx[:0])
		w.freeRoom += room
	}
	*s = waiting{}
}

// each calls f for the active steps in order of application, also for those that f makes active after itself.
func (w *work) each(f func(pos int)) {
	for i := range w.active {
		for done := uint64(0); ; {
			left := w.active[i] &^ done
			if left == 0 {
				break
			}
			k := bits.TrailingZeros64(left)
			done |= 1<<k<<1 - 1
			f(i<<6 | k)
		}
	}
}

// start notes that the addresses [lo, hi) of the piece begin with step s. It is called in ascending order.
func (w *work) start(s *step, lo, hi int) {
	if w.curStep == s && int(w.cur.hi) == lo {
		w.cur.hi = int32(hi)
		return
	}
	w.flush()
	w.curStep, w.cur = s, span{int32(lo), int32(hi)}
}

func (w *work) flush() {
	if s := w.curStep; s != nil {
		w.steps[s.pos].spans = append(w.steps[s.pos].spans, w.cur)
		w.active[s.pos>>6] |= 1 << (s.pos & 63)
		w.curStep = nil
	}
}

// later notes that address i of the piece, now in Results.New, waits for step s.
func (w *work) later(s *step, i int32) {
	at := w.waiting(s)
	*at = append(*at, i)
}

// waiting returns the list of the positions that wait for s; nil for no step.
func (w *work) waiting(s *step) *[]int32 {
	if s == nil {
		return nil
	}
	at := &w.steps[s.pos]
	if at.idx == nil {
		if k := len(w.free) - 1; k >= 0 {
			at.idx = w.free[k]
			w.free, w.freeRoom = w.free[:k], w.freeRoom-cap(at.idx)
		}
		w.active[s.pos>>6] |= 1 << (s.pos & 63)
	}
	return &at.idx
}

// consecutive returns the positions lo, lo+1, and on, n of them.
func (w *work) consecutive(lo, n int) []int32 {
	w.idx = slices.Grow(w.idx[:0], n)[:n]
	for k := range w.idx {
		w.idx[k] = int32(lo + k)
	}
	return w.idx
}

func (w *work) inputs(n int) []fri.RowAddr {
	w.addrs = slices.Grow(w.addrs[:0], n)[:n]
	return w.addrs
}

// batch returns the scratch slices for n gathered addresses.
func (w *work) batch(n int) (in, out []fri.RowAddr, o []Outcome) {
	w.in, w.out, w.o = slices.Grow(w.in[:0], n)[:n], slices.Grow(w.out[:0], n)[:n], slices.Grow(w.o[:0], n)[:n]
	return w.in, w.out, w.o
}

// startSpans applies their first step to all addresses that have one.
func (t *Translator) startSpans(ctx context.Context, w *work, addrs []fri.RowAddr) error {
	w.flush()
	var failed error
	w.each(func(pos int) {
		spans := w.steps[pos].spans
		if failed != nil || len(spans) == 0 {
			return
		}
		s, total := t.steps[pos], 0
		for _, sp := range spans {
			total += int(sp.hi - sp.lo)
		}
		if len(spans) == 1 || total/len(spans) >= shortSpan {
			for _, sp := range spans {
				out, o := w.r.New[sp.lo:sp.hi], w.r.Outcome[sp.lo:sp.hi]
				if failed = t.forward(ctx, w, s, addrs[sp.lo:sp.hi], out, o); failed != nil {
					return
				}
				if failed = t.settle(ctx, w, s, int(sp.lo), nil, out, o, true); failed != nil {
					return
				}
			}
			return
		}
		in, out, o := w.batch(total)
		idx := slices.Grow(w.idx[:0], total)
		for _, sp := range spans {
			for i := sp.lo; i < sp.hi; i++ {
				in[len(idx)] = addrs[i]
				idx = append(idx, i)
			}
		}
		w.idx = idx
		if failed = t.forward(ctx, w, s, in, out, o); failed == nil {
			failed = t.settle(ctx, w, s, 0, idx, out, o, true)
		}
	})
	return failed
}

// drain applies the later steps, in order of application, until no address waits.
func (t *Translator) drain(ctx context.Context, w *work) error {
	var failed error
	w.each(func(pos int) {
		idx := w.steps[pos].idx
		if failed != nil || len(idx) == 0 {
			return
		}
		in, out, o := w.batch(len(idx))
		for k, i := range idx {
			in[k] = w.r.New[i]
		}
		if failed = t.forward(ctx, w, t.steps[pos], in, out, o); failed == nil {
			failed = t.settle(ctx, w, t.steps[pos], 0, idx, out, o, false)
		}
		w.release(pos)
	})
	return failed
}

// batchFunc is Mapping.Forward or Mapping.Inverse.
type batchFunc func(ctx context.Context, addrs, out []fri.RowAddr, st []rowmap.Status) error

// salvage is apply for a batch that failed on corrupt data: the addresses that need those data become Unresolved,
// the others get their answer. Sorted addresses share what they need with their neighbours, so halving finds it.
func salvage(ctx context.Context, apply batchFunc, addrs, out []fri.RowAddr, o []Outcome) error {
	order := make([]int32, len(addrs))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		switch {
		case addrs[a] < addrs[b]:
			return -1
		case addrs[a] > addrs[b]:
			return 1
		}
		return 0
	})
	in, moved, st := make([]fri.RowAddr, len(addrs)), make([]fri.RowAddr, len(addrs)), make([]Outcome, len(addrs))
	for k, i := range order {
		in[k] = addrs[i]
	}
	var halve func(lo, hi int) error
	halve = func(lo, hi int) error {
		err := apply(ctx, in[lo:hi], moved[lo:hi], statuses(st[lo:hi]))
		switch {
		case err == nil:
			return nil
		case fatal(err):
			return err
		case in[lo] == in[hi-1]:
			fill(st[lo:hi], Unresolved)
			return nil
		}
		mid := (lo + hi) / 2
		if err := halve(lo, mid); err != nil {
			return err
		}
		return halve(mid, hi)
	}
	if err := halve(0, len(in)); err != nil {
		return err
	}
	for k, i := range order {
		out[i], o[i] = moved[k], st[k]
	}
	return nil
}
