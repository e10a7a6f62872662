package translate

import (
	"sort"

	"github.com/frifs/frifs/fri"
)

// The naive reference: docs/DESIGN.md, "Words" and "Meaning", one address at a time, from the tables of rows.

// inOrder returns the records by Seq; a record that stands twice in the history counts twice.
func (w *world) inOrder() []*rewrite { return w.ordered }

// rowCount is the row count of f, if anybody knows it.
func (w *world) rowCount(f fri.FragID) (uint64, bool) {
	l := w.live[f]
	if l != nil && l.known {
		return l.rows, true
	}
	for _, r := range w.inOrder() {
		if d, ok := digestOf(r.Sources, f); ok && r.usable && d.PhysicalRows > 0 {
			return d.PhysicalRows, true
		}
	}
	for _, r := range w.inOrder() {
		if d, ok := digestOf(r.Destinations, f); ok && r.usable && d.PhysicalRows > 0 && l != nil {
			return d.PhysicalRows, true
		}
	}
	return 0, false
}

func (w *world) isSource(f fri.FragID, usable bool) bool {
	for _, r := range w.inOrder() {
		if _, ok := digestOf(r.Sources, f); ok && r.usable == usable {
			return true
		}
	}
	return false
}

// apply follows one record; ok is false where the walk ends with the outcome o.
func (r *rewrite) apply(a fri.RowAddr) (to fri.RowAddr, o Outcome, ok bool) {
	d, _ := digestOf(r.Sources, a.Frag())
	if r.closed || r.corrupt[a] || d.PhysicalRows > 0 && uint64(a.Offset()) >= d.PhysicalRows {
		return a, Unresolved, false
	}
	if to, moved := r.to[a]; moved {
		return to, Moved, true
	}
	return a, Dropped, false
}

// reference returns the outcome of a and the last address reached.
func (w *world) reference(a fri.RowAddr) (Outcome, fri.RowAddr) {
	if rows, known := w.rowCount(a.Frag()); known && uint64(a.Offset()) >= rows &&
		(w.live[a.Frag()] != nil || w.isSource(a.Frag(), true)) {
		return OutOfRange, a
	}
	at, hops := a, 0
	if w.tagged {
		for w.live[at.Frag()] == nil {
			var r *rewrite
			for _, c := range w.inOrder() {
				if _, ok := digestOf(c.Sources, at.Frag()); ok && c.usable {
					r = c
				}
			}
			if r == nil {
				break
			}
			to, o, ok := r.apply(at)
			if !ok {
				return o, at
			}
			at = to
			hops++
		}
	} else {
		for _, members := range w.h.Steps {
			var r *rewrite
			spoilt := false
			for _, i := range members {
				c := w.recs[w.h.Transitions[i].Record-1]
				if _, ok := digestOf(c.Sources, at.Frag()); ok {
					if spoilt = spoilt || !c.usable; c.usable {
						r = c
					}
				}
			}
			if spoilt {
				return Unresolved, at
			}
			if r == nil {
				continue
			}
			to, o, ok := r.apply(at)
			if !ok {
				return o, at
			}
			at = to
			hops++
		}
	}
	l := w.live[at.Frag()]
	switch {
	case l == nil && (w.h.Opaque || w.isSource(at.Frag(), false)):
		return Unresolved, at
	case l == nil:
		return Dangling, at
	}
	if rows, known := w.rowCount(at.Frag()); known && uint64(at.Offset()) >= rows || l.broken {
		return Unresolved, at
	}
	switch {
	case l.deleted != nil && l.deleted.Contains(at.Offset()):
		return DeletedNow, at
	case hops == 0:
		return Same, at
	}
	return Moved, at
}

// addresses lists every row that ever existed, a few beyond each fragment's end, and some of no fragment.
func (w *world) addresses() []fri.RowAddr {
	all := []fri.RowAddr{fri.Addr(1<<31, 0), fri.Addr(1<<31, 5), fri.Addr(1<<30, 1), ^fri.RowAddr(0)}
	for _, f := range w.frags {
		rows := w.rowsEver[f]
		for o := range rows + 3 {
			all = append(all, fri.Addr(f, uint32(o)))
		}
		all = append(all, fri.Addr(f, 1<<31), fri.Addr(f, 1<<32-1))
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	return all
}

// backReference is the naive inverse of an address that is in the version asked about: the earliest address on record.
func (w *world) backReference(a fri.RowAddr) (Outcome, fri.RowAddr) {
	f := a.Frag()
	known := w.live[f] != nil
	for _, r := range w.recs {
		_, src := digestOf(r.Sources, f)
		_, dst := digestOf(r.Destinations, f)
		known = known || src || dst
	}
	switch {
	case !known && w.h.Opaque:
		return Unresolved, a
	case !known:
		return Dangling, a
	}
	at, o := a, Same
	if w.live[f] == nil {
		o = Dangling // unless a record says where it came from
	}
	group := len(w.h.Steps)
	limit, counted := w.rowCount(f)
	for {
		r, g, lost := w.producer(at.Frag(), group)
		if at == a && !counted && r != nil {
			d, _ := digestOf(r.Destinations, f)
			limit, counted = d.PhysicalRows, d.PhysicalRows > 0
		}
		if at == a && counted && uint64(a.Offset()) >= limit {
			return OutOfRange, a
		}
		if lost {
			return Unresolved, at
		}
		if r == nil {
			break
		}
		from, ok := r.from[at]
		if r.closed || !ok || r.corrupt[from] {
			return Unresolved, at
		}
		at, o, group = from, Moved, g
	}
	if l := w.live[f]; l != nil {
		switch {
		case l.broken:
			return Unresolved, at
		case l.deleted != nil && l.deleted.Contains(a.Offset()):
			return DeletedNow, at
		}
	}
	return o, at
}

// producer returns the usable record that made f, of legacy ones the last in a Version before group; lost where
// there is none but one that cannot be used.
func (w *world) producer(f fri.FragID, group int) (r *rewrite, g int, lost bool) {
	for i, t := range w.h.Transitions {
		c := w.recs[t.Record-1]
		if _, ok := digestOf(c.Destinations, f); !ok {
			continue
		}
		if !c.usable {
			lost = true
			continue
		}
		in := 0
		for s, members := range w.h.Steps {
			for _, k := range members {
				if k == i {
					in = s
				}
			}
		}
		if w.tagged || in < group {
			r, g = c, in
		}
	}
	return r, g, lost && r == nil
}
