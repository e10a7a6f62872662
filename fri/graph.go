package fri

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// use is one fragment in the role of a source or of a destination of a draft.
type use struct {
	frag FragID
	d    int // index of the draft
	rows uint64
}

// uses collects the digests of the given drafts, sorted by fragment and then by record.
func uses(ds []*draft, digests func(*Transition) []Digest, which func(*draft) bool) []use {
	var us []use
	for i, d := range ds {
		if !which(d) {
			continue
		}
		for _, g := range digests(d.t) {
			if g.validID() {
				us = append(us, use{g.Frag(), i, g.PhysicalRows})
			}
		}
	}
	slices.SortFunc(us, func(a, b use) int { return cmp.Or(cmp.Compare(a.frag, b.frag), a.d-b.d) })
	return us
}

func sourcesOf(t *Transition) []Digest      { return t.Sources }
func destinationsOf(t *Transition) []Digest { return t.Destinations }

// groups calls f for each run of uses of one fragment.
func groups(us []use, f func([]use)) {
	for i := 0; i < len(us); {
		j := i + 1
		for j < len(us) && us[j].frag == us[i].frag {
			j++
		}
		f(us[i:j])
		i = j
	}
}

// named returns the uses of f.
func named(us []use, f FragID) []use {
	i, _ := slices.BinarySearchFunc(us, f, func(u use, f FragID) int { return cmp.Compare(u.frag, f) })
	j := i
	for j < len(us) && us[j].frag == f {
		j++
	}
	return us[i:j]
}

// graphRules applies rules 22 and 23 to the records that are valid by themselves, all at once: what one conflict
// spoils still takes part in the others.
func (o *opener) graphRules() {
	prod := uses(o.drafts, destinationsOf, (*draft).usable)
	cons := uses(o.drafts, sourcesOf, (*draft).usable)
	var fails []func() // applied last, so that every rule sees the same records
	twice := func(us []use, role string) {
		if len(us) < 2 {
			return
		}
		list := o.records(us)
		for _, u := range us {
			fails = append(fails, func() {
				o.drafts[u.d].fail(checkGraph, 22, "duplicate %s for fragment %d: records %s", role, u.frag, list)
			})
		}
	}
	groups(prod, func(us []use) { twice(us, "producer") })
	groups(cons, func(us []use) { twice(us, "consumer") })
	for _, members := range cycles(len(o.drafts), prod, cons) {
		list := o.recordList(members)
		for _, m := range members {
			fails = append(fails, func() {
				o.drafts[m].fail(checkGraph, 22, "cycle of records %s", list)
			})
		}
	}
	groups(prod, func(ps []use) {
		cs := named(cons, ps[0].frag)
		if len(cs) == 0 {
			return
		}
		rows := func(a, b use) int { return cmp.Compare(a.rows, b.rows) }
		disagree := func(us []use, others ...use) {
			for _, u := range us {
				for _, other := range others {
					if other.rows == u.rows {
						continue
					}
					fails = append(fails, func() {
						o.drafts[u.d].fail(checkGraph, 23, "fragment %d has %d rows here and %d in record %d; its producer and its consumer "+
							"must agree", u.frag, u.rows, other.rows, o.drafts[other.d].t.Record)
					})
					break
				}
			}
		}
		disagree(ps, slices.MinFunc(cs, rows), slices.MaxFunc(cs, rows))
		disagree(cs, slices.MinFunc(ps, rows), slices.MaxFunc(ps, rows))
	})
	for _, f := range fails {
		f()
	}
}

// records lists the records of uses, e.g. "1 and 2".
func (o *opener) records(us []use) string {
	ids := make([]int, len(us))
	for i, u := range us {
		ids[i] = u.d
	}
	return o.recordList(ids)
}

// recordList renders the record numbers of drafts, at most eight of them.
func (o *opener) recordList(drafts []int) string {
	var parts []string
	for i, d := range drafts {
		if i == 8 {
			return fmt.Sprintf("%s and %d more", strings.Join(parts, ", "), len(drafts)-8)
		}
		parts = append(parts, fmt.Sprint(o.drafts[d].t.Record))
	}
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}

// cycles returns the members of each cycle: the strongly connected parts, with a record, of the graph whose nodes are
// the n drafts and the fragments that are both produced and consumed. Fragments are nodes so that k producers and k
// consumers of one fragment cost 2k edges. Members ascend; so do the cycles by their first member.
func cycles(n int, prod, cons []use) [][]int {
	type pair struct{ from, to int }
	var edges []pair
	nodes := n
	groups(prod, func(ps []use) {
		cs := named(cons, ps[0].frag)
		if len(cs) == 0 {
			return
		}
		for _, p := range ps {
			edges = append(edges, pair{p.d, nodes})
		}
		for _, c := range cs {
			edges = append(edges, pair{nodes, c.d})
		}
		nodes++
	})
	slices.SortStableFunc(edges, func(a, b pair) int { return a.from - b.from })
	first := make([]int, nodes+1) // edges[first[v]:first[v+1]] leave v
	for _, e := range edges {
		first[e.from+1]++
	}
	for v := range nodes {
		first[v+1] += first[v]
	}

	// Tarjan's algorithm with an explicit stack.
	const unseen = -1
	index, low := make([]int, nodes), make([]int, nodes)
	onStack := make([]bool, nodes)
	for v := range index {
		index[v] = unseen
	}
	type frame struct{ v, next int }
	var stack []int
	var calls []frame
	var out [][]int
	count := 0
	enter := func(v int) {
		index[v], low[v] = count, count
		count++
		stack, onStack[v] = append(stack, v), true
		calls = append(calls, frame{v, first[v]})
	}
	for root := range nodes {
		if index[root] != unseen {
			continue
		}
		enter(root)
		for len(calls) > 0 {
			top := &calls[len(calls)-1]
			v := top.v
			if top.next < first[v+1] {
				to := edges[top.next].to
				top.next++
				if index[to] == unseen {
					enter(to)
				} else if onStack[to] {
					low[v] = min(low[v], index[to])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				up := calls[len(calls)-1].v
				low[up] = min(low[up], low[v])
			}
			if low[v] != index[v] {
				continue
			}
			var part []int
			size := 0
			for {
				u := stack[len(stack)-1]
				stack, onStack[u] = stack[:len(stack)-1], false
				size++
				if u < n {
					part = append(part, u)
				}
				if u == v {
					break
				}
			}
			if size > 1 && len(part) > 0 {
				slices.Sort(part)
				out = append(out, part)
			}
		}
	}
	slices.SortFunc(out, func(a, b []int) int { return a[0] - b[0] })
	return out
}

// order puts the drafts in the order of application. Legacy histories keep the wire order. In a tagged one the usable
// records are sorted topologically (Kahn's algorithm with a FIFO queue, seeded in wire order) and take, in that order,
// the places of the usable records; the others stay at their wire place.
func (o *opener) order() []*draft {
	if !o.h.Tagged {
		return o.drafts
	}
	prod := uses(o.drafts, destinationsOf, (*draft).usable)
	cons := uses(o.drafts, sourcesOf, (*draft).usable)
	waits := make([]int, len(o.drafts)) // fragments whose producer is not placed yet
	for _, c := range cons {
		waits[c.d] += len(named(prod, c.frag))
	}
	var queue []int
	var places []int
	for i, d := range o.drafts {
		if !d.usable() {
			continue
		}
		places = append(places, i)
		if waits[i] == 0 {
			queue = append(queue, i)
		}
	}
	out := slices.Clone(o.drafts)
	for n := 0; n < len(queue); n++ {
		d := o.drafts[queue[n]]
		out[places[n]] = d
		for _, g := range d.t.Destinations {
			for _, c := range named(cons, g.Frag()) {
				if waits[c.d]--; waits[c.d] == 0 {
					queue = append(queue, c.d)
				}
			}
		}
	}
	return out
}
