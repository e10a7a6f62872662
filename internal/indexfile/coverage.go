package indexfile

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/translate"
)

// Claims is which live fragments each entry of an index section may answer for in a remapped dataset: the derived
// coverage, less what its files cannot prove there (docs/DESIGN.md, "Remapped dataset"). It only ever shrinks.
type Claims struct{ left []*roaring.Bitmap }

// NewClaims starts with the derived coverage of segments (translate.Cover) and takes away what the history cannot
// prove. address tells the entries that store addresses: what an entry with row ids covers does not depend on any
// mapping. opens tells of a usable transition whether its mapping can be opened.
//
//   - A broken history proves nothing of any address.
//   - What came out of a tagged transition that does not open is not covered by those that get there through it.
//   - What came out of a legacy record that cannot be used is not covered at all: Lance writes bitmaps that are taken
//     through such records before it writes the files, so a bitmap that names a destination may stand over addresses of
//     the sources.
//   - What several segments of one name got through tagged transitions, each its own rows, is covered by none of them:
//     readers take it that a fragment's rows are all in one segment.
func NewClaims(h *fri.History, segments []translate.Segment, covers []translate.Coverage, address []bool, opens func(*fri.Transition) bool) *Claims {
	c := &Claims{left: make([]*roaring.Bitmap, len(segments))}
	names := map[string][]int{}
	for i, s := range segments {
		c.left[i] = covers[i].Live.Clone()
		if !s.System {
			names[s.Name] = append(names[s.Name], i)
		}
	}
	if h == nil {
		return c
	}
	lost, everything := brokenLegacy(h, opens)
	everything = everything || h.Broken != nil
	for i := range segments {
		switch {
		case !address[i]:
		case everything:
			c.left[i].Clear()
		default:
			c.left[i].AndNot(lost)
		}
	}
	if h.Tagged && !everything {
		for _, members := range names {
			c.shut(h, segments, members, address, opens)
			c.unshare(covers, members)
		}
	}
	return c
}

// brokenLegacy collects what legacy records that cannot be used may have made, and all that was made of that later.
// everything is set where nobody knows what such a record made.
func brokenLegacy(h *fri.History, opens func(*fri.Transition) bool) (lost *roaring.Bitmap, everything bool) {
	lost = roaring.New()
	for grown := true; grown; {
		before := lost.GetCardinality()
		for _, t := range h.Transitions {
			bad := t.Legacy != nil && (!t.Usable() || !opens(t))
			if bad && (!t.SourcesOK || len(t.Destinations) == 0) {
				return lost, true
			}
			if bad || meets(t.Sources, lost) {
				addAll(lost, t.Destinations)
			}
		}
		grown = lost.GetCardinality() != before
	}
	return lost, false
}

// shut takes from the members of one logical index what they reach only through transitions that do not open.
func (c *Claims) shut(h *fri.History, segments []translate.Segment, members []int, address []bool, opens func(*fri.Transition) bool) {
	direct := roaring.New()
	for _, i := range members {
		if segments[i].State == translate.BitmapPresent && segments[i].Usable {
			direct.Or(segments[i].Bitmap)
		}
	}
	lost := roaring.New()
	for _, t := range h.Transitions { // the usable ones come in the order of their dependencies
		if !t.Usable() {
			continue
		}
		if !opens(t) || meets(t.Sources, lost) {
			addAll(lost, t.Destinations)
			lost.AndNot(direct)
		}
	}
	for _, i := range members {
		if address[i] {
			c.left[i].AndNot(lost)
		}
	}
}

// unshare takes from the members of one logical index what more than one of them got from elsewhere.
func (c *Claims) unshare(covers []translate.Coverage, members []int) {
	once, shared := roaring.New(), roaring.New()
	for _, i := range members {
		derived := roaring.AndNot(covers[i].Live, covers[i].Direct)
		shared.Or(roaring.And(once, derived))
		once.Or(derived)
	}
	for _, i := range members {
		c.left[i].AndNot(roaring.AndNot(shared, covers[i].Direct))
	}
}

// Unshare takes from the given entries, which are those of one name, every fragment that more than one of them still
// claims, and returns these fragments.
func (c *Claims) Unshare(members []int) *roaring.Bitmap {
	once, shared := roaring.New(), roaring.New()
	for _, i := range members {
		shared.Or(roaring.And(once, c.left[i]))
		once.Or(c.left[i])
	}
	for _, i := range members {
		c.left[i].AndNot(shared)
	}
	return shared
}

// meets reports whether a fragment of ds is in set.
func meets(ds []fri.Digest, set *roaring.Bitmap) bool {
	for _, d := range ds {
		if d.ID <= 0xFFFFFFFF && set.Contains(uint32(d.ID)) {
			return true
		}
	}
	return false
}

func addAll(set *roaring.Bitmap, ds []fri.Digest) {
	for _, d := range ds {
		if d.ID <= 0xFFFFFFFF {
			set.Add(uint32(d.ID))
		}
	}
}

// Of returns the fragments that entry i may answer for. The bitmap must not be changed.
func (c *Claims) Of(i int) *roaring.Bitmap { return c.left[i] }

// Lose says that the files of entry i lack rows of the fragments in gaps.
func (c *Claims) Lose(i int, gaps *roaring.Bitmap) { c.left[i].AndNot(gaps) }
