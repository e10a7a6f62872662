package nodes

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
)

// straddle says that a segment covers only some sources of a transition, so that its destinations are not covered and
// the affected rows need a scan.
type straddle struct {
	t                  *fri.Transition
	covered, uncovered []uint64 // fragments among the sources
}

// straddles follows a set of covered fragments through the history and finds the transitions whose sources it covers
// only in part. Legacy: groups swap sources for destinations, all of one version at once. Tagged: destinations join once
// all sources are covered (docs/FORMAT.md, "Trimming" and "Index details").
func straddles(h *fri.History, stored *roaring.Bitmap) []straddle {
	if stored == nil || h.Broken != nil {
		return nil
	}
	set := stored.Clone()
	var out []straddle
	if h.Tagged {
		for _, t := range h.Transitions {
			if s, all := partly(set, t); s != nil {
				out = append(out, *s)
			} else if all {
				addAll(set, t.Destinations)
			}
		}
		return out
	}
	for _, step := range h.Steps {
		next := set.Clone()
		for _, i := range step {
			t := h.Transitions[i]
			s, all := partly(set, t)
			if s != nil {
				out = append(out, *s)
			}
			if s != nil || all {
				for _, d := range t.Sources {
					next.Remove(uint32(d.ID))
				}
			}
			if all {
				addAll(next, t.Destinations)
			}
		}
		set = next
	}
	return out
}

// partly reports whether a set covers all sources of a usable transition, or only some of them.
func partly(set *roaring.Bitmap, t *fri.Transition) (*straddle, bool) {
	if !t.Usable() || len(t.Sources) == 0 {
		return nil, false
	}
	s := straddle{t: t}
	for _, d := range t.Sources {
		if set.Contains(uint32(d.ID)) {
			s.covered = append(s.covered, d.ID)
		} else {
			s.uncovered = append(s.uncovered, d.ID)
		}
	}
	if len(s.covered) > 0 && len(s.uncovered) > 0 {
		return &s, false
	}
	return nil, len(s.uncovered) == 0
}

func addAll(set *roaring.Bitmap, ds []fri.Digest) {
	for _, d := range ds {
		set.Add(uint32(d.ID))
	}
}

// orphans are the fragments that a stored bitmap names although they are not live and no record consumes them: entries
// of fragments that were wholly deleted, and that pass through every history.
func orphans(l *loaded, h *fri.History, stored *roaring.Bitmap) []uint32 {
	if stored == nil || h.Broken != nil {
		return nil
	}
	var out []uint32
	for it := stored.Iterator(); it.HasNext(); {
		f := fri.FragID(it.Next())
		if _, live := l.m.Live()[f]; !live && len(h.Consumer(f)) == 0 && len(h.Claimants(f)) == 0 {
			out = append(out, uint32(f))
		}
	}
	return out
}
