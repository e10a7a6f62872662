package translate

import (
	"context"
	"slices"

	"github.com/frifs/frifs/fri"
)

// backVerdict is what happens to an address on its way back.
type backVerdict struct {
	s    *step // undo this step
	lost bool  // a record that cannot be used may have produced the fragment
}

// back decides how to go on from n when the steps of the groups from `group` on are undone. A tagged fragment has at
// most one producer; a legacy one may have been produced in several versions, the last of which is undone first.
func (t *Translator) back(n *node, group int) backVerdict {
	for i := len(n.in) - 1; i >= 0; i-- {
		e := n.in[i]
		switch {
		case e.s == nil:
			return backVerdict{lost: true}
		case t.h.Tagged || e.group < group:
			return backVerdict{s: e.s}
		}
	}
	return backVerdict{}
}

// Inverse tells where the rows that are at addrs in the version asked about come from: the earliest address that the
// history records. Outcomes are Moved and DeletedNow (New is the old address; for DeletedNow the row is deleted now),
// Same (the fragment is live and no record produced it; New is the address itself), OutOfRange, Dangling (the fragment
// is not live and no record produced it) and Unresolved (a record or mapping that would be needed cannot be used).
// Addresses in fragments that are no longer live, but that records produced, are followed too. Errors are those of
// Translate.
func (t *Translator) Inverse(ctx context.Context, addrs []fri.RowAddr, r *Results) error {
	return t.pieces(ctx, "translate.Inverse", len(addrs), r, func(w *work, lo, hi int, p *Results) error {
		return t.inversePiece(ctx, w, addrs[lo:hi], p)
	})
}

func (t *Translator) inversePiece(ctx context.Context, w *work, addrs []fri.RowAddr, r *Results) error {
	w.begin(r)
	copy(r.New, addrs)
	copy(r.Last, addrs)
	last := len(t.steps) // Versions are counted from 0, so no group reaches this
	if t.h != nil {
		last = len(t.h.Steps)
	}
	for i, a := range addrs {
		n := t.node(uint32(a >> 32))
		limit := n.limit
		if limit == unlimited && len(n.in) > 0 && n.in[len(n.in)-1].s != nil {
			limit = n.in[len(n.in)-1].rows()
		}
		switch {
		case n == t.gone && n.lost:
			r.Outcome[i] = Unresolved
		case n == t.gone:
			r.Outcome[i] = Dangling
		case uint64(a.Offset()) >= limit:
			r.Outcome[i] = OutOfRange
		case n.live:
			t.goBack(w, int32(i), n, last, Same)
		default:
			t.goBack(w, int32(i), n, last, Dangling)
		}
	}
	if err := t.drainBack(ctx, w); err != nil {
		return err
	}
	return t.markDeleted(ctx, addrs, r)
}

// rows is the row count of the destination that the edge leads to, unlimited where it is 0.
func (e edge) rows() uint64 {
	if rows := e.s.t.Destinations[e.pos].PhysicalRows; rows > 0 {
		return rows
	}
	return unlimited
}

// goBack notes what address i of the piece, which is in n now, waits for, or ends its way with the outcome what.
func (t *Translator) goBack(w *work, i int32, n *node, group int, what Outcome) {
	switch v := t.back(n, group); {
	case v.lost:
		w.r.Outcome[i] = Unresolved
	case v.s != nil:
		w.later(v.s, i)
		w.r.Outcome[i] = what
	default:
		w.r.Outcome[i] = what
	}
}

// drainBack undoes steps, the last applied first, until no address waits.
func (t *Translator) drainBack(ctx context.Context, w *work) error {
	for pos := len(t.steps) - 1; pos >= 0; pos-- {
		idx := w.steps[pos].idx
		if len(idx) == 0 {
			continue
		}
		s := t.steps[pos]
		in, out, o := w.batch(len(idx))
		for k, i := range idx {
			in[k] = w.r.New[i]
		}
		if err := t.undo(ctx, w, s, in, out, o); err != nil {
			return err
		}
		var n *node
		for k, i := range idx {
			if o[k] != Moved {
				// At the start the range was checked: here the record that led back disagrees with this one.
				w.r.Outcome[i] = Unresolved
				continue
			}
			w.r.New[i] = out[k]
			if w.r.Last != nil {
				w.r.Last[i] = out[k]
			}
			if n == nil || n.id != out[k].Frag() {
				n = t.node(uint32(out[k] >> 32))
			}
			if v := t.back(n, s.group); v.s != nil && v.s.pos >= pos {
				w.r.Outcome[i] = Unresolved
				continue
			}
			t.goBack(w, i, n, s.group, Moved)
		}
		w.release(pos)
	}
	return nil
}

// undo is forward for the inverse mapping of s.
func (t *Translator) undo(ctx context.Context, w *work, s *step, addrs, out []fri.RowAddr, o []Outcome) error {
	m, err := t.open(ctx, s)
	if err == nil {
		err = m.Inverse(ctx, addrs, out, statuses(o))
		if err != nil && !fatal(err) && !w.r.Strict {
			return salvage(ctx, m.Inverse, addrs, out, o)
		}
		return err
	}
	if fatal(err) {
		return err
	}
	fill(o, Unresolved)
	return nil
}

// markDeleted turns answers for rows that are deleted in the version asked about into DeletedNow, and into Unresolved
// where the deletions cannot be read.
func (t *Translator) markDeleted(ctx context.Context, addrs []fri.RowAddr, r *Results) error {
	for lo := 0; lo < len(addrs); {
		hi := lo + sameFragment(addrs[lo:])
		n := t.node(uint32(addrs[lo] >> 32))
		if n.live {
			d, ok, err := t.deletionsOf(ctx, n)
			if err != nil {
				return err
			}
			c := d.cursor()
			for i := lo; i < hi && (d != nil || !ok); i++ {
				switch {
				case r.Outcome[i] != Same && r.Outcome[i] != Moved:
				case !ok:
					r.Outcome[i] = Unresolved
				case c.has(addrs[i].Offset()):
					r.Outcome[i] = DeletedNow
				}
			}
		}
		lo = hi
	}
	return nil
}

// Hop is one step of a single address's way.
type Hop struct {
	Seq      int // of the transition in its history, from 1
	From, To fri.RowAddr
	// Outcome is Moved, Dropped, OutOfRange or Unresolved; To is meaningful for Moved only.
	Outcome Outcome
	// Err says why the outcome is Unresolved, where the mapping failed.
	Err error
}

// Trace follows one address and returns each step it met, in order, with the final outcome. Errors are those of
// Translate.
func (t *Translator) Trace(ctx context.Context, a fri.RowAddr) (hops []Hop, o Outcome, last fri.RowAddr, err error) {
	var r = Results{New: make([]fri.RowAddr, 1), Outcome: make([]Outcome, 1), Last: make([]fri.RowAddr, 1)}
	if err := t.Translate(ctx, []fri.RowAddr{a}, &r); err != nil {
		return nil, Unknown, a, err
	}
	n := t.node(uint32(a.Frag()))
	if r.Outcome[0] == OutOfRange && r.Last[0] == a {
		return nil, OutOfRange, a, nil
	}
	v, at := n.first, a
	for v.s != nil {
		h := t.hop(ctx, v.s, at, true)
		hops = append(hops, h)
		if h.Outcome != Moved {
			break
		}
		at = h.To
		v = t.next(t.node(uint32(at.Frag())), v.s)
	}
	return hops, r.Outcome[0], r.Last[0], nil
}

// TraceBack is Trace for the way back: the steps that led to the row at a, the last one first.
func (t *Translator) TraceBack(ctx context.Context, a fri.RowAddr) (hops []Hop, o Outcome, last fri.RowAddr, err error) {
	var r = Results{New: make([]fri.RowAddr, 1), Outcome: make([]Outcome, 1), Last: make([]fri.RowAddr, 1)}
	if err := t.Inverse(ctx, []fri.RowAddr{a}, &r); err != nil {
		return nil, Unknown, a, err
	}
	if t.h == nil || r.Outcome[0] == OutOfRange {
		return nil, r.Outcome[0], r.Last[0], nil
	}
	group, at := len(t.h.Steps), a
	for range t.steps {
		v := t.back(t.node(uint32(at.Frag())), group)
		if v.s == nil {
			break
		}
		h := t.hop(ctx, v.s, at, false)
		hops = append(hops, h)
		if h.Outcome != Moved {
			break
		}
		at, group = h.To, v.s.group
	}
	return hops, r.Outcome[0], r.Last[0], nil
}

// hop applies, or undoes, step s for one address.
func (t *Translator) hop(ctx context.Context, s *step, a fri.RowAddr, forward bool) Hop {
	h := Hop{Seq: s.t.Seq, From: a, Outcome: Unresolved}
	m, err := t.open(ctx, s)
	if err != nil {
		h.Err = err
		return h
	}
	in, out, o := []fri.RowAddr{a}, make([]fri.RowAddr, 1), make([]Outcome, 1)
	apply := m.Forward
	if !forward {
		apply = m.Inverse
	}
	if h.Err = apply(ctx, slices.Clone(in), out, statuses(o)); h.Err == nil {
		h.Outcome, h.To = o[0], out[0]
	}
	return h
}
