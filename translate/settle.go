package translate

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/frifs/frifs/fri"
)

// groupRows is how many answers settle looks at together.
const groupRows = 64

// landings is how many destinations of a step are remembered while its answers are settled.
const landings = 1024

// landing is what there is to know of a fragment that a step moved rows into.
type landing struct {
	frag  uint32
	epoch uint32 // of the settle call it was found for
	v     verdict
	limit uint64
	final bool           // every row that the step's record put there is live and not deleted
	c     deletionCursor // c.d is nil where nothing is deleted
}

// landing looks f up, first among those that this call of settle met.
func (t *Translator) landing(ctx context.Context, w *work, s *step, f uint32) (*landing, error) {
	at := &w.landings[f%landings]
	if at.epoch == w.epoch && at.frag == f {
		return at, nil
	}
	n := t.node(f)
	*at = landing{frag: f, v: t.next(n, s), limit: n.limit}
	if at.v.end && at.v.what == Moved {
		d, ok, err := t.deletionsOf(ctx, n)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			at.v.what = Unresolved
		case d != nil:
			at.c = d.cursor()
		default:
			for _, e := range n.in {
				at.final = at.final || e.s == s && s.t.Destinations[e.pos].PhysicalRows <= n.limit
			}
		}
	}
	at.epoch = w.epoch
	return at, nil
}

// forgetLandings voids what was remembered for another step.
func (w *work) forgetLandings() {
	if w.epoch++; w.epoch == 0 {
		w.landings, w.epoch = [landings]landing{}, 1
	}
}

// settle takes the answers of step s for the addresses idx of the piece and decides what happens to each: it is
// final, or waits for a later step. A nil idx means the addresses from lo on, with answers that stand in the piece's
// own slices. first says that s was the first step of their walk.
func (t *Translator) settle(ctx context.Context, w *work, s *step, lo int, idx []int32, out []fri.RowAddr, o []Outcome, first bool) error {
	r := w.r
	ahead := t.outlookOf(s)
	if idx == nil && first && ahead.final {
		if r.Last != nil {
			for k, what := range o {
				if what == Moved {
					r.Last[lo+k] = out[k]
				}
			}
		}
		return nil
	}
	if (ahead.final || ahead.next != nil) && !odd(o) {
		w.settleAlike(lo, idx, out, o, ahead.next)
		return nil
	}
	if idx == nil {
		idx = w.consecutive(lo, len(o))
	}
	w.forgetLandings()
	at := &landing{} // of no epoch, so it is never taken for fragment 0
	for len(o) > 0 {
		n := min(len(o), groupRows)
		g := group{idx[:n], out[:n], o[:n]}
		if f, ok := g.together(at.frag); ok {
			if at.epoch != w.epoch || at.frag != f {
				var err error
				if at, err = t.landing(ctx, w, s, f); err != nil {
					return err
				}
			}
			if at.v.s != nil || at.final {
				list := w.waiting(at.v.s)
				g.all(r, list)
				idx, out, o = idx[n:], out[n:], o[n:]
				continue
			}
		}
		if err := t.settleEach(ctx, w, s, g, first); err != nil {
			return err
		}
		idx, out, o = idx[n:], out[n:], o[n:]
	}
	return nil
}

// settleAlike settles answers that are all Moved or Dropped, where the same holds for all that moved: they are final, or
// wait for next.
func (w *work) settleAlike(lo int, idx []int32, out []fri.RowAddr, o []Outcome, next *step) {
	r := w.r
	if r.Last != nil {
		for k, what := range o {
			if what == Moved {
				i := lo + k
				if idx != nil {
					i = int(idx[k])
				}
				r.Last[i] = out[k]
			}
		}
	}
	var list []int32
	at := w.waiting(next)
	n := 0
	if at != nil {
		n = len(*at)
		*at = slices.Grow(*at, len(o))
		list = (*at)[n : n+len(o)]
	}
	switch {
	case idx != nil:
		n += group{idx, out, o}.store(r.New, r.Outcome, list)
	case list != nil: // what is answered stands where it belongs
		n += moved(o, int32(lo), list)
	}
	if at != nil {
		*at = (*at)[:n]
	}
}

// moved writes the positions of the moved rows, of which the first is lo, to list, and returns their number. It is not
// inlined, to keep its loop in registers.
//
//go:noinline
func moved(o []Outcome, lo int32, list []int32) int {
	n := 0
	for k, what := range o {
		list[n] = lo + int32(k)
		n += int(what & 1)
	}
	return n
}

// odd reports whether an outcome is neither Moved nor Dropped, which are 1 and 2: one of their two low bits is set, and
// no other.
//
//go:noinline
func odd(o []Outcome) bool {
	const ones = 0x0101010101010101
	b, strange := outcomeBytes(o), uint64(0)
	for ; len(b) >= 8; b = b[8:] {
		x := binary.LittleEndian.Uint64(b)
		strange |= x&^(3*ones) | ^(x^x>>1)&ones
	}
	for _, what := range b {
		strange |= uint64((what - 1) &^ 1)
	}
	return strange != 0
}

// settleEach settles the answers of a group one by one.
func (t *Translator) settleEach(ctx context.Context, w *work, s *step, g group, first bool) error {
	r := w.r
	var at *landing
	for k, what := range g.o {
		i, a := g.idx[k], g.out[k]
		if what != Moved {
			if what == OutOfRange && !first {
				what = Unresolved // the record that led here and this one disagree on the fragment's rows
			}
			r.Outcome[i] = what
			continue
		}
		if f := uint32(a >> 32); at == nil || at.frag != f {
			var err error
			if at, err = t.landing(ctx, w, s, f); err != nil {
				return err
			}
		}
		switch {
		case at.v.s != nil:
			w.later(at.v.s, i)
		case at.v.what != Moved:
			what = at.v.what
		case uint64(uint32(a)) >= at.limit:
			what = Unresolved // the record promised a row that the manifest does not have
		case at.c.d != nil && at.c.has(uint32(a)):
			what = DeletedNow
		}
		r.New[i], r.Outcome[i] = a, what
		if r.Last != nil {
			r.Last[i] = a
		}
	}
	return nil
}

// group is a few neighbouring answers of a step: positions in the piece, new addresses, outcomes so far.
type group struct {
	idx []int32
	out []fri.RowAddr
	o   []Outcome
}

// together reports whether each answer is Dropped or Moved, the latter all into one fragment, which it returns. It
// tries the fragment guess first.
func (g group) together(guess uint32) (uint32, bool) {
	odd, diff := g.differ(guess)
	if odd || !diff {
		return guess, !odd
	}
	for k, what := range g.o {
		if what == Moved {
			f := uint32(g.out[k] >> 32)
			_, diff = g.differ(f)
			return f, !diff
		}
	}
	return guess, false
}

// differ reports whether an outcome is neither Moved nor Dropped, and whether a moved row is in another fragment than
// f. It is not inlined, to keep its loop in registers.
//
//go:noinline
func (g group) differ(f uint32) (odd, diff bool) {
	out, o := g.out[:len(g.o)], g.o
	var other fri.RowAddr
	var strange Outcome
	for k, what := range o {
		dropped := fri.RowAddr(what&1) - 1 // all ones, or zero for Moved
		strange |= (what - 1) &^ 1
		other |= (out[k]>>32 ^ fri.RowAddr(f)) &^ dropped
	}
	return strange != 0, other != 0
}

// all takes over the answers of a group that is together: final ones, or with a list ones that wait in it.
func (g group) all(r *Results, list *[]int32) {
	if r.Last != nil {
		for k, what := range g.o {
			if what == Moved {
				r.Last[g.idx[k]] = g.out[k]
			}
		}
	}
	if list == nil {
		g.store(r.New, r.Outcome, nil)
		return
	}
	n := len(*list)
	room := slices.Grow(*list, groupRows)
	*list = room[:n+g.store(r.New, r.Outcome, room[n:n+groupRows])]
}

// store writes the answers to the piece and the positions of the moved ones to list, unless it is nil; it returns
// their number. What it writes beside a dropped row's outcome is of no account.
//
//go:noinline
func (g group) store(addrs []fri.RowAddr, outcome []Outcome, list []int32) int {
	idx, out, o := g.idx, g.out[:len(g.idx)], g.o[:len(g.idx)]
	n := 0
	for k, i := range idx {
		what := o[k]
		addrs[i], outcome[i] = out[k], what
		if list != nil {
			list[n] = i
			n += int(what & 1)
		}
	}
	return n
}
