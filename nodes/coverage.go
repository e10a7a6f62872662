package nodes

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
)

// coverageOf derives which live fragments each segment of a logical index may answer for: its stored bitmap, taken
// through the history, without dead fragments (docs/FORMAT.md, "Index details"). nil = not known: there is no bitmap.
func coverageOf(l *loaded, h *history, li *logicalIndex) []*roaring.Bitmap {
	out := make([]*roaring.Bitmap, len(li.segments))
	derive := h.h.Broken == nil && len(h.h.Transitions) > 0
	for i, s := range li.segments {
		if s.ix.Bitmap == nil || systemEntry(s.ix) {
			continue
		}
		set := s.ix.Bitmap
		if derive && !h.h.Tagged && addressDomain(l.m, s.ix) {
			set = swapLegacy(h.h, set)
		}
		out[i] = liveOnly(l, set)
	}
	if derive && h.h.Tagged && !h.h.Opaque {
		deriveTagged(l, h.h, li, out)
	}
	return out
}

func liveOnly(l *loaded, set *roaring.Bitmap) *roaring.Bitmap {
	out := roaring.New()
	for it := set.Iterator(); it.HasNext(); {
		f := it.Next()
		if _, ok := l.m.Live()[fri.FragID(f)]; ok {
			out.Add(f)
		}
	}
	return out
}

// swapLegacy takes a stored bitmap through a legacy history: where a group's sources are all in it, they are swapped for
// its destinations; where only some are, or the group cannot be used, they are taken out.
func swapLegacy(h *fri.History, stored *roaring.Bitmap) *roaring.Bitmap {
	set := stored.Clone()
	for _, step := range h.Steps {
		next := set.Clone()
		for _, i := range step {
			t := h.Transitions[i]
			part, all := partly(set, t)
			if part == nil && !all && t.Usable() {
				continue
			}
			for _, d := range t.Sources {
				if d.ID <= 0xFFFFFFFF {
					next.Remove(uint32(d.ID))
				}
			}
			if all {
				addAll(next, t.Destinations)
			}
		}
		set = next
	}
	return set
}

// deriveTagged adds live destinations to the segments that contribute to them: a fragment that no segment of the index
// names is covered where every source of the record that made it is covered, directly or in the same way.
func deriveTagged(l *loaded, h *fri.History, li *logicalIndex, out []*roaring.Bitmap) {
	from := map[uint64]map[int]bool{} // fragment → segments that cover it
	for i, s := range li.segments {
		if s.ix.Bitmap == nil || !addressDomain(l.m, s.ix) {
			continue
		}
		for it := s.ix.Bitmap.Iterator(); it.HasNext(); {
			f := uint64(it.Next())
			if from[f] == nil {
				from[f] = map[int]bool{}
			}
			from[f][i] = true
		}
	}
	for _, t := range h.Transitions { // producers come before consumers
		if !t.Usable() {
			continue
		}
		contributors, all := map[int]bool{}, len(t.Sources) > 0
		for _, d := range t.Sources {
			all = all && len(from[d.ID]) > 0
			for i := range from[d.ID] {
				contributors[i] = true
			}
		}
		if !all {
			continue
		}
		for _, d := range t.Destinations {
			if from[d.ID] != nil {
				continue // a segment names it directly, and that one wins
			}
			from[d.ID] = contributors
			if _, live := l.m.Live()[d.Frag()]; live {
				for i := range contributors {
					out[i].Add(uint32(d.ID))
				}
			}
		}
	}
}
