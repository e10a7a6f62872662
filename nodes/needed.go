package nodes

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
)

// neededBy is one index entry that still needs a record, judged by metadata alone.
type neededBy struct {
	index, uuid string
	why         string
}

// need says whether a record is still needed (docs/FORMAT.md, "Trimming").
type need struct {
	by       []neededBy
	keptBy   []int  // seqs of needed records whose destinations this one consumes
	unknown  string // why it cannot be told; "" = it can
	odd      string // what Lance's trim makes of it, where that is odd
	noIndex  bool   // no stored bitmap names any of its fragments, nor any that later records made of them
	between  bool   // no destination is live: only other records need it
	sources  bool   // its sources could be decoded
	legacyOf int    // number of the Version it belongs to; 0 = none
}

// pending reports whether the record is needed, or may be.
func (n *need) pending() bool { return len(n.by) > 0 || len(n.keptBy) > 0 || n.unknown != "" }

// needs judges every record of a history.
func needs(l *loaded, h *fri.History) []need {
	out := make([]need, len(h.Transitions))
	for i, t := range h.Transitions {
		n := &out[i]
		n.sources = t.SourcesOK
		n.between = noneLive(l, t.Destinations)
		if t.Legacy != nil {
			n.legacyOf = t.Legacy.Version
		}
	}
	markIndexed(l, h, out)
	chain := legacyChain(h)
	for i, t := range h.Transitions {
		switch {
		case t.Kind == fri.Unsupported || !t.SourcesOK:
			out[i].unknown = "the record cannot be read; Lance refuses to trim a history that holds it"
		case t.Legacy != nil:
			legacyNeed(l, t, chain, &out[i])
		case !h.Tagged:
			out[i].odd = "a transition under index_version 0 is never applied"
		default:
			taggedNeed(l, t, &out[i])
		}
	}
	spreadLegacy(h, out)
	if h.Tagged {
		forwardClosure(h, out)
	}
	return out
}

// legacyChain is every fragment that a legacy record names.
func legacyChain(h *fri.History) *roaring.Bitmap {
	chain := roaring.New()
	for _, t := range h.Transitions {
		if t.Legacy == nil {
			continue
		}
		for _, ds := range [][]fri.Digest{t.Sources, t.Destinations} {
			for _, d := range ds {
				if d.ID <= 0xFFFFFFFF {
					chain.Add(uint32(d.ID))
				}
			}
		}
	}
	return chain
}

// users calls f for each entry that may store addresses.
func users(l *loaded, f func(ix *dataset.Index)) {
	for _, ix := range l.m.Indices {
		if systemEntry(ix) {
			continue
		}
		if d, _ := indexDomain(l.m, ix); d != domainRowID {
			f(ix)
		}
	}
}

// legacyNeed applies the caught-up predicate for one group; the group's siblings follow in spreadLegacy.
func legacyNeed(l *loaded, t *fri.Transition, chain *roaring.Bitmap, n *need) {
	users(l, func(ix *dataset.Index) {
		name := neededBy{index: ix.Name, uuid: segmentName(ix)}
		if ix.Bitmap != nil && !ix.Bitmap.Intersects(chain) {
			return // covers nothing that was ever rewritten, whatever its version
		}
		if v := ix.PB.GetDatasetVersion(); v <= t.Legacy.DatasetVersion {
			name.why = fmt.Sprintf("it was built from version %d, not after the record's stamp %d", v, t.Legacy.DatasetVersion)
			n.by = append(n.by, name)
			return
		}
		if ix.Bitmap == nil {
			return
		}
		s, all := partly(ix.Bitmap, t)
		switch {
		case s != nil:
			n.odd = fmt.Sprintf("index %q covers only some sources: Lance's trim takes the record for corrupt and drops it", ix.Name)
			name.why = "its stored bitmap names some of the sources"
			n.by = append(n.by, name)
		case all:
			name.why = "its stored bitmap names all sources"
			n.by = append(n.by, name)
		}
	})
}

// spreadLegacy makes all groups of one legacy Version needed as soon as one of them is: a trim drops whole Versions.
func spreadLegacy(h *fri.History, out []need) {
	by := map[int][]neededBy{}
	for i := range out {
		if v := out[i].legacyOf; v != 0 && len(by[v]) < len(out[i].by) {
			by[v] = out[i].by
		}
	}
	for i := range h.Transitions {
		if v := out[i].legacyOf; v != 0 && len(out[i].by) == 0 && out[i].unknown == "" {
			out[i].by = by[v]
		}
	}
}

// taggedNeed: some logical index has provenance among the sources, and some destination is not directly covered by it.
func taggedNeed(l *loaded, t *fri.Transition, n *need) {
	for _, li := range l.logical {
		if systemEntry(li.segments[0].ix) {
			continue
		}
		var from []*dataset.Index
		direct := roaring.New()
		for _, s := range li.segments {
			if d, _ := indexDomain(l.m, s.ix); d == domainRowID {
				continue
			}
			if covers(s.ix, t.Sources) {
				from = append(from, s.ix)
			}
			if s.ix.Bitmap != nil {
				direct.Or(s.ix.Bitmap)
			}
		}
		if len(from) == 0 {
			continue
		}
		var open []uint64
		for _, d := range t.Destinations {
			if d.ID > 0xFFFFFFFF || !direct.Contains(uint32(d.ID)) {
				open = append(open, d.ID)
			}
		}
		if len(open) == 0 {
			continue
		}
		for _, ix := range from {
			n.by = append(n.by, neededBy{li.name, segmentName(ix), fmt.Sprintf(
				"its stored bitmap names a source, and no segment of the index covers destination %d directly", open[0])})
		}
	}
}

// forwardClosure keeps every consumer of a kept record's destinations.
func forwardClosure(h *fri.History, out []need) {
	for i, t := range h.Transitions { // in the order of application: producers first
		if !t.Usable() || !out[i].pending() {
			continue
		}
		for _, d := range t.Destinations {
			for _, c := range h.Consumer(d.Frag()) {
				k := &out[c.Seq-1]
				if len(k.keptBy) == 0 || k.keptBy[len(k.keptBy)-1] != t.Seq {
					k.keptBy = append(k.keptBy, t.Seq)
				}
			}
		}
	}
}

// markIndexed finds the records that concern no index. A stored bitmap may have been taken along to later fragments, so
// what was made of the destinations counts too.
func markIndexed(l *loaded, h *fri.History, out []need) {
	named := roaring.New()
	for _, ix := range l.m.Indices {
		if !systemEntry(ix) && ix.Bitmap != nil {
			named.Or(ix.Bitmap)
		}
	}
	later := map[uint64]bool{} // fragments of which something that is named was made
	for i := len(h.Transitions) - 1; i >= 0; i-- {
		t := h.Transitions[i]
		hit := false
		for _, ds := range [][]fri.Digest{t.Sources, t.Destinations} {
			for _, d := range ds {
				hit = hit || later[d.ID] || (d.ID <= 0xFFFFFFFF && named.Contains(uint32(d.ID)))
			}
		}
		out[i].noIndex = !hit
		if hit {
			for _, d := range t.Sources {
				later[d.ID] = true
			}
		}
	}
}

func noneLive(l *loaded, ds []fri.Digest) bool {
	for _, d := range ds {
		if _, ok := l.m.Live()[d.Frag()]; ok && d.ID <= 0xFFFFFFFF {
			return false
		}
	}
	return len(ds) > 0
}
