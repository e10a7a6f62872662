package translate

import (
	"context"
	"math"
	"sort"
	"sync"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
)

// maxRanges bounds the ranges of one Push: a chain of partitions with very many destinations falls apart into more
// ranges than looking at each row would cost.
const maxRanges = 1 << 20

// Range is the addresses of fragment Frag with offsets From ... To-1.
type Range struct {
	Frag     fri.FragID
	From, To uint64
}

// Push is what became of a range of consecutive rows, without their order.
type Push struct {
	// Rows counts the rows per outcome.
	Rows [NumOutcomes]uint64
	// Ranges are the addresses where the rows with the outcomes Same, Moved and DeletedNow are, each address once.
	// They come in no particular order, and neighbours are not joined.
	Ranges []Range
}

// Source is a fragment that a record of the history names as a source, usable or not.
type Source struct {
	Frag fri.FragID
	// Rows is its physical row count: by the manifest where it is live, else by the first record that names it. 0
	// where nobody knows.
	Rows uint64
	Live bool
	// Ordered reports that every step its rows can meet is an ordered compaction, so that a Push costs microseconds
	// wherever the range starts and ends.
	Ordered bool
}

// Sources returns the source fragments of the history, ascending, each once. A broken history has none.
func (t *Translator) Sources() []Source {
	if t.h == nil || t.h.Broken != nil {
		return nil
	}
	at := make(map[fri.FragID]int)
	var all []Source
	for _, tr := range t.h.Transitions {
		for _, d := range tr.Sources {
			if d.ID > math.MaxUint32 {
				continue
			}
			f := d.Frag()
			n := t.node(uint32(f))
			i, ok := at[f]
			if !ok {
				i = len(all)
				at[f] = i
				all = append(all, Source{Frag: f, Live: n.live})
				if n.limit != unlimited {
					all[i].Rows = n.limit
				}
			}
			if all[i].Rows == 0 && d.PhysicalRows <= math.MaxUint32 && n.limit == unlimited {
				all[i].Rows = d.PhysicalRows
			}
		}
	}
	memo := make(map[*step]bool)
	for i := range all {
		n := t.node(uint32(all[i].Frag))
		all[i].Ordered = n.first.end || t.ordered(n.first.s, memo)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Frag < all[j].Frag })
	return all
}

// ordered reports whether s and all that can follow it are ordered compactions.
func (t *Translator) ordered(s *step, memo map[*step]bool) bool {
	if known, ok := memo[s]; ok {
		return known
	}
	all := s.t.Kind == fri.OrderedCompaction
	for i := 0; all && i < len(s.t.Destinations); i++ {
		if v := t.next(t.node(uint32(s.t.Destinations[i].ID)), s); v.s != nil {
			all = t.ordered(v.s, memo)
		}
	}
	memo[s] = all
	return all
}

// Push tells where the rows from ... to-1 of a fragment are now, without looking at each row: a range of rows stays a
// range through an ordered compaction, split at destination ends, and becomes at most one range per destination in a
// partition. At multiples of 65,536 ordered compactions answer from their headers. Pushes of adjacent ranges add up.
//
// Errors are those of Translate with Results.Strict set, and too_large where the range falls apart into more than
// about a million ranges: then the rows have to be translated and counted.
func (t *Translator) Push(ctx context.Context, f fri.FragID, from, to uint64) (Push, error) {
	var p Push
	if from >= to {
		return p, nil
	}
	n := t.node(uint32(f))
	pu := pusher{t: t, ctx: ctx, p: &p}
	if to > n.limit {
		p.Rows[OutOfRange] += to - max(from, n.limit)
		to = n.limit
	}
	id := f // t.gone stands for many fragments
	err := pu.push(n, id, n.first, from, to, true)
	return p, err
}

type pusher struct {
	t   *Translator
	ctx context.Context //nolint:containedctx // lives for one call
	p   *Push
}

// push follows rows from ... to-1 of n; first says that no step was applied yet.
func (u *pusher) push(n *node, f fri.FragID, v verdict, from, to uint64, first bool) error {
	if from >= to {
		return nil
	}
	rows := &u.p.Rows
	if !v.end {
		return u.through(n, v.s, from, to, first)
	}
	if v.what != Moved {
		rows[v.what] += to - from
		return nil
	}
	if to > n.limit {
		rows[Unresolved] += to - max(from, n.limit)
		if to = n.limit; from >= to {
			return nil
		}
	}
	d, ok, err := u.t.deletionsOf(u.ctx, n)
	if err != nil {
		return err
	}
	if !ok {
		rows[Unresolved] += to - from
		return nil
	}
	gone := d.between(from, to)
	rows[DeletedNow] += gone
	if first {
		rows[Same] += to - from - gone
	} else {
		rows[Moved] += to - from - gone
	}
	if len(u.p.Ranges) >= maxRanges {
		return fault.New("translate.Push", "", fault.TooLarge, "the rows fall apart into more than %d ranges", maxRanges)
	}
	u.p.Ranges = append(u.p.Ranges, Range{f, from, to})
	return nil
}

// through applies step s to rows from ... to-1 of n.
func (u *pusher) through(n *node, s *step, from, to uint64, first bool) error {
	pos := n.sourceOf(s)
	if rows := s.t.Sources[pos].PhysicalRows; rows > 0 && to > rows {
		what := Unresolved
		if first && !n.live {
			what = OutOfRange
		}
		u.p.Rows[what] += to - max(from, rows)
		if to = rows; from >= to {
			return nil
		}
	}
	m, err := u.t.open(u.ctx, s)
	if err != nil {
		if fatal(err) {
			return err
		}
		u.p.Rows[Unresolved] += to - from
		return nil
	}
	if o, ok := m.(*rowmap.Ordered); ok {
		return u.throughOrdered(o, s, pos, from, to)
	}
	a, b := countsFor(m), countsFor(m)
	defer countsPool.Put(a)
	defer countsPool.Put(b)
	if err := m.Received(u.ctx, pos, from, *a); err != nil {
		return err
	}
	if err := m.Received(u.ctx, pos, to, *b); err != nil {
		return err
	}
	left := to - from
	for d, end := range *b {
		start := (*a)[d]
		if start >= end {
			continue
		}
		left -= end - start
		next := u.t.node(uint32(s.t.Destinations[d].ID))
		if err := u.push(next, s.t.Destinations[d].Frag(), u.t.next(next, s), start, end, false); err != nil {
			return err
		}
	}
	u.p.Rows[Dropped] += left
	return nil
}

func (u *pusher) throughOrdered(o *rowmap.Ordered, s *step, pos int, from, to uint64) error {
	start, err := o.Rank(u.ctx, pos, from)
	if err != nil {
		return err
	}
	end, err := o.Rank(u.ctx, pos, to)
	if err != nil {
		return err
	}
	u.p.Rows[Dropped] += to - from - (end - start)
	start, end = start+o.First(pos), end+o.First(pos)
	for start < end {
		d, off, left := o.Dest(start)
		if left == 0 {
			return fault.New("translate.Push", "", fault.Corrupt, "record %d: survivor %d lies in no destination", s.t.Record, start)
		}
		k := min(left, end-start)
		next := u.t.node(uint32(s.t.Destinations[d].ID))
		if err := u.push(next, s.t.Destinations[d].Frag(), u.t.next(next, s), off, off+k, false); err != nil {
			return err
		}
		start += k
	}
	return nil
}

// sourceOf returns the position of n among the sources of s.
func (n *node) sourceOf(s *step) int {
	for _, e := range n.out {
		if e.s == s {
			return e.pos
		}
	}
	return 0
}

var countsPool sync.Pool // *[]uint64, scratch of through

func countsFor(m rowmap.Mapping) *[]uint64 {
	n := len(m.Destinations())
	c, _ := countsPool.Get().(*[]uint64)
	if c == nil || cap(*c) < n {
		s := make([]uint64, n)
		return &s
	}
	*c = (*c)[:n]
	return c
}
