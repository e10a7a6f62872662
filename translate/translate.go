package translate

import (
	"context"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// pieceRows is how many addresses are translated together: each mapping is asked once per piece.
const pieceRows = 65536

// Results receives the answers of a call; the slices are the caller's and as long as the input.
type Results struct {
	// New is the new address where Outcome has one (Outcome.HasAddress), else unspecified. It must not overlap the input.
	New []fri.RowAddr
	// Outcome says what became of each address.
	Outcome []Outcome
	// Last, which may be nil, receives the last address reached: New where there is one, the address in the dead
	// fragment for Dangling, the one that could not be followed for Unresolved, Dropped and OutOfRange.
	Last []fri.RowAddr
	// Strict makes corrupt data of a mapping that did open fail the call, instead of making the addresses that need
	// them Unresolved. Whoever has told sizes by Push wants that.
	Strict bool
}

func (r *Results) check(n int) error {
	if len(r.New) != n || len(r.Outcome) != n || r.Last != nil && len(r.Last) != n {
		return fault.New("translate", "", fault.Invalid, "%d addresses, room for %d new ones, %d outcomes, %d last ones",
			n, len(r.New), len(r.Outcome), len(r.Last))
	}
	return nil
}

func (r *Results) slice(lo, hi int) Results {
	s := Results{New: r.New[lo:hi], Outcome: r.Outcome[lo:hi], Strict: r.Strict}
	if r.Last != nil {
		s.Last = r.Last[lo:hi]
	}
	return s
}

// Translate tells where the rows at addrs are now. Any order and duplicates are fine; addresses in ascending order
// are the fastest. An error (cancelled, timed_out, unavailable; invalid for slices of the wrong length) means that r
// holds nothing.
func (t *Translator) Translate(ctx context.Context, addrs []fri.RowAddr, r *Results) error {
	return t.pieces(ctx, "translate.Translate", len(addrs), r, func(w *work, lo, hi int, p *Results) error {
		return t.piece(ctx, w, addrs[lo:hi], p)
	})
}

// pieces has n addresses answered by do, pieceRows at a time: [lo, hi) of the input with its part of r.
func (t *Translator) pieces(ctx context.Context, op string, n int, r *Results, do func(w *work, lo, hi int, p *Results) error) error {
	if err := r.check(n); err != nil {
		return err
	}
	w := t.getWork()
	defer t.putWork(w)
	for lo := 0; lo < n; lo += pieceRows {
		if err := ctx.Err(); err != nil {
			return fault.Wrap(op, "", err)
		}
		hi := min(lo+pieceRows, n)
		p := r.slice(lo, hi)
		if err := do(w, lo, hi, &p); err != nil {
			return err
		}
	}
	return nil
}

// TranslateRun is Translate for the n consecutive addresses from start on, which must not reach past the fragment's
// last possible offset.
func (t *Translator) TranslateRun(ctx context.Context, start fri.RowAddr, n int, r *Results) error {
	if err := r.check(n); err != nil {
		return err
	}
	if uint64(start.Offset())+uint64(n) > unlimited {
		return fault.New("translate.TranslateRun", "", fault.Invalid, "%d rows from %v on reach past the fragment's last offset", n, start)
	}
	return t.pieces(ctx, "translate.TranslateRun", n, r, func(w *work, lo, _ int, p *Results) error {
		return t.runPiece(ctx, w, start+fri.RowAddr(lo), p)
	})
}

// runPiece translates consecutive addresses of one fragment, at most pieceRows.
func (t *Translator) runPiece(ctx context.Context, w *work, start fri.RowAddr, r *Results) error {
	n := t.node(uint32(start.Frag()))
	if n.first.s != nil && !n.strict {
		s := n.first.s
		m, err := t.open(ctx, s)
		if err == nil {
			err = m.ForwardRun(ctx, n.sourceOf(s), uint64(start.Offset()), r.New, statuses(r.Outcome))
		}
		if err == nil {
			for i := range r.Last {
				r.Last[i] = start + fri.RowAddr(i)
			}
			w.begin(r)
			if err := t.settle(ctx, w, s, 0, nil, r.New, r.Outcome, true); err != nil {
				return err
			}
			return t.drain(ctx, w)
		}
		if fatal(err) {
			return err
		}
	}
	addrs := w.inputs(len(r.New))
	for i := range addrs {
		addrs[i] = start + fri.RowAddr(i)
	}
	return t.piece(ctx, w, addrs, r)
}

// piece translates at most pieceRows addresses.
func (t *Translator) piece(ctx context.Context, w *work, addrs []fri.RowAddr, r *Results) error {
	copy(r.Last, addrs)
	w.begin(r)
	for lo := 0; lo < len(addrs); {
		n := t.node(uint32(addrs[lo] >> 32))
		hi := lo + sameFragment(addrs[lo:])
		switch {
		case n.first.s == nil:
			if err := t.settleStart(ctx, n, addrs[lo:hi], r.New[lo:hi], r.Outcome[lo:hi]); err != nil {
				return err
			}
		case n.strict:
			// The manifest has the last word on what exists; what lies within it is checked against the record.
			for i := lo; i < hi; i++ {
				if uint64(addrs[i].Offset()) >= n.limit {
					r.Outcome[i] = OutOfRange
					continue
				}
				r.New[i] = addrs[i]
				w.later(n.first.s, int32(i))
			}
		default:
			if hi-lo < shortSpan {
				hi += t.sameStart(n.first.s, addrs[hi:])
			}
			w.start(n.first.s, lo, hi)
		}
		lo = hi
	}
	if err := t.startSpans(ctx, w, addrs); err != nil {
		return err
	}
	return t.drain(ctx, w)
}

// sameFragment returns how many leading addresses lie in the fragment of the first.
func sameFragment(addrs []fri.RowAddr) int {
	f, i := addrs[0]>>32, 1
	if len(addrs) > 1 && addrs[1]>>32 != f {
		return 1
	}
	for ; i+64 <= len(addrs) && addrs[i]>>32 == f && addrs[i+63]>>32 == f; i += 64 {
		var diff fri.RowAddr
		for _, a := range addrs[i : i+64] {
			diff |= a>>32 ^ f
		}
		if diff != 0 {
			break
		}
	}
	for i < len(addrs) && addrs[i]>>32 == f {
		i++
	}
	return i
}

// sameStart returns how many leading addresses, of any fragments, have s as their first step. It is not inlined, to
// keep its loop in registers.
//
//go:noinline
func (t *Translator) sameStart(s *step, addrs []fri.RowAddr) int {
	least, dense := t.min, t.dense
	for i, a := range addrs {
		k := uint64(a>>32) - least
		if k >= uint64(len(dense)) {
			return i
		}
		if n := dense[k]; n == nil || n.first.s != s || n.strict {
			return i
		}
	}
	return len(addrs)
}

// settleStart answers addresses whose walk ends in the fragment where it starts.
func (t *Translator) settleStart(ctx context.Context, n *node, addrs, out []fri.RowAddr, o []Outcome) error {
	copy(out, addrs)
	what := n.first.what
	var d *deletions
	if what == Moved {
		what = Same
		del, ok, err := t.deletionsOf(ctx, n)
		if err != nil {
			return err
		}
		if d = del; !ok {
			what = Unresolved
		}
	}
	fill(o, what)
	if n.limit != unlimited {
		for i, a := range addrs {
			if uint64(a.Offset()) >= n.limit {
				o[i] = OutOfRange
			}
		}
	}
	if d == nil {
		return nil
	}
	c := d.cursor()
	for i, a := range addrs {
		if c.has(a.Offset()) && o[i] == Same {
			o[i] = DeletedNow
		}
	}
	return nil
}

// forward applies the mapping of s to addrs. Addresses that need what is corrupt get no status; nothing is lost for
// the others.
func (t *Translator) forward(ctx context.Context, w *work, s *step, addrs, out []fri.RowAddr, o []Outcome) error {
	m, err := t.open(ctx, s)
	if err == nil {
		if err = m.Forward(ctx, addrs, out, statuses(o)); err == nil {
			return nil
		}
		if w.r.Strict {
			return err
		}
		if !fatal(err) {
			err = salvage(ctx, m.Forward, addrs, out, o)
		}
	} else if !fatal(err) {
		err = nil
		fill(o, Unresolved)
	}
	if err != nil {
		return err
	}
	for i, a := range addrs {
		if n := t.node(uint32(a >> 32)); o[i] == Unresolved && n.limit != unlimited && uint64(a.Offset()) >= n.limit {
			o[i] = OutOfRange // that much is known without the mapping
		}
	}
	return nil
}
