package translate

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
)

// BitmapState tells the three states of a stored fragment bitmap apart.
type BitmapState uint8

// The states. The zero value means that the segment has no bitmap: its coverage is unknown.
const (
	BitmapAbsent    BitmapState = iota
	BitmapWithdrawn             // present, but empty: the segment covers nothing
	BitmapPresent
)

// Segment is an index segment as the manifest describes it.
type Segment struct {
	Name           string // of the logical index
	UUID           string
	DatasetVersion uint64
	State          BitmapState
	Bitmap         *roaring.Bitmap // the stored bitmap; nil unless State is BitmapPresent
	System         bool            // a system index: never translated, never needs a record
	// Usable says that readers can use the segment on a tagged table: its type and version are known, and its
	// addresses can be translated in batches. Others cover nothing there, but their provenance counts.
	Usable bool
}

// Straddle is a record of whose sources a segment, or in a tagged history its logical index, covers only some: its
// destinations are not covered, and their rows need a scan.
type Straddle struct {
	Seq              int
	Covered, Missing []fri.FragID
}

// Coverage is which live fragments a segment may answer for.
type Coverage struct {
	// Known is false where the segment has no bitmap.
	Known bool
	// Live is the derived coverage: only live fragments. Never nil.
	Live *roaring.Bitmap
	// Direct is the part of Live that the stored bitmap names itself.
	Direct *roaring.Bitmap
	// Excluded, for tagged histories, is what other segments of the same logical index cover directly and this one
	// does not: a walk that meets it belongs to them.
	Excluded *roaring.Bitmap
	// Orphaned is what the stored bitmap names and is neither live nor a source of any record: entries there dangle.
	Orphaned  *roaring.Bitmap
	Straddles []Straddle
}

// Cover derives the coverage of each segment from its stored bitmap and the history (nil: none), for the version in
// which the fragments of live are live (docs/DESIGN.md, "Meaning"). The results are in the order of segments.
//
//   - Legacy: version by version, groups whose sources are all covered are swapped for their destinations; where only
//     some are, or the group cannot be used, the sources go and nothing comes.
//   - Tagged: a fragment that a segment names directly is covered by it; else a fragment is covered by the segments
//     that contribute to it, if every source of the record that produced it is covered, directly or in this way.
//
// A destination is covered only when all sources are. Where a record that cannot be read may have touched any
// fragment, only direct coverage counts.
func Cover(h *fri.History, live *roaring.Bitmap, segments []Segment) []Coverage {
	out := make([]Coverage, len(segments))
	sources := everySource(h)
	for i, s := range segments {
		c := &out[i]
		*c = Coverage{Live: roaring.New(), Direct: roaring.New(), Excluded: roaring.New(), Orphaned: roaring.New()}
		c.Known = s.State != BitmapAbsent
		if s.State != BitmapPresent || s.Bitmap == nil {
			continue
		}
		c.Orphaned = roaring.AndNot(s.Bitmap, live)
		c.Orphaned.AndNot(sources)
		c.Direct = roaring.And(s.Bitmap, live)
		c.Live = c.Direct.Clone()
	}
	switch {
	case h == nil || h.Broken != nil:
	case !h.Tagged:
		for i, s := range segments {
			if s.State == BitmapPresent && s.Bitmap != nil && !s.System {
				out[i].swapLegacy(h, s.Bitmap, live)
			}
		}
	default:
		groups := map[string][]int{}
		var names []string
		for i, s := range segments {
			if s.System {
				continue
			}
			if groups[s.Name] == nil {
				names = append(names, s.Name)
			}
			groups[s.Name] = append(groups[s.Name], i)
		}
		for _, name := range names {
			coverTagged(h, live, segments, groups[name], out)
		}
	}
	return out
}

// everySource is every fragment that a record names as a source, whether it can be used or not.
func everySource(h *fri.History) *roaring.Bitmap {
	set := roaring.New()
	if h != nil {
		for _, t := range h.Transitions {
			addAll(set, t.Sources)
		}
	}
	return set
}

func addAll(set *roaring.Bitmap, ds []fri.Digest) {
	for _, d := range ds {
		if d.ID <= math.MaxUint32 {
			set.Add(uint32(d.ID))
		}
	}
}

// split tells which sources of t are in set.
func split(t *fri.Transition, set func(fri.FragID) bool) (in, out []fri.FragID) {
	for _, d := range t.Sources {
		if d.ID > math.MaxUint32 {
			continue
		}
		if set(d.Frag()) {
			in = append(in, d.Frag())
		} else {
			out = append(out, d.Frag())
		}
	}
	return in, out
}

// swapLegacy takes the stored bitmap through the versions of a legacy history. Like addresses, all groups of one
// version are applied at once.
func (c *Coverage) swapLegacy(h *fri.History, stored, live *roaring.Bitmap) {
	set := stored.Clone()
	for _, members := range h.Steps {
		gone, come := roaring.New(), roaring.New()
		for _, i := range members {
			t := h.Transitions[i]
			in, out := split(t, func(f fri.FragID) bool { return set.Contains(uint32(f)) })
			if len(in) == 0 {
				continue
			}
			for _, f := range in {
				gone.Add(uint32(f))
			}
			switch {
			case len(out) > 0:
				c.Straddles = append(c.Straddles, Straddle{t.Seq, in, out})
			case t.Usable():
				addAll(come, t.Destinations)
			}
		}
		set.AndNot(gone)
		set.Or(come)
	}
	if h.Opaque {
		set.And(stored)
	}
	set.And(live)
	c.Live = set
	c.Direct.And(set)
}

// coverTagged derives the coverage of the segments of one logical index; members are their positions.
func coverTagged(h *fri.History, live *roaring.Bitmap, segments []Segment, members []int, out []Coverage) {
	direct := map[fri.FragID][]int{}
	all := roaring.New()
	for _, i := range members {
		s := &segments[i]
		if s.State != BitmapPresent || s.Bitmap == nil || !s.Usable {
			if !s.Usable {
				out[i].Live, out[i].Direct = roaring.New(), roaring.New()
			}
			continue
		}
		all.Or(s.Bitmap)
		for it := s.Bitmap.Iterator(); it.HasNext(); {
			f := fri.FragID(it.Next())
			direct[f] = append(direct[f], i)
		}
	}
	// The usable records come in the order of their dependencies, so what a record needs is known when it is met.
	from := map[fri.FragID][]int{} // who contributes to a produced fragment
	for _, t := range h.Transitions {
		if !t.Usable() || h.Opaque {
			continue
		}
		var who []int
		in, missing := split(t, func(f fri.FragID) bool {
			by := direct[f]
			if by == nil {
				by = from[f]
			}
			who = union(who, by)
			return by != nil
		})
		if len(missing) > 0 {
			for _, i := range who {
				out[i].Straddles = append(out[i].Straddles, Straddle{t.Seq, in, missing})
			}
			continue
		}
		for _, d := range t.Destinations {
			f := d.Frag()
			if direct[f] != nil || len(who) == 0 {
				continue // direct coverage wins
			}
			from[f] = who
			for _, i := range who {
				if live.Contains(uint32(f)) {
					out[i].Live.Add(uint32(f))
				}
			}
		}
	}
	for _, i := range members {
		out[i].Excluded = all.Clone()
		if segments[i].Bitmap != nil {
			out[i].Excluded.AndNot(segments[i].Bitmap)
		}
	}
}

// union merges two ascending lists without duplicates into a new one.
func union(a, b []int) []int {
	if len(b) == 0 {
		return a
	}
	out := make([]int, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			out, a = append(out, a[0]), a[1:]
		case len(a) == 0 || b[0] < a[0]:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, a[0]), a[1:], b[1:]
		}
	}
	return out
}
