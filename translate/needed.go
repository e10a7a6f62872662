package translate

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
)

// Reason says why a segment, or its logical index, needs a record.
type Reason uint8

// The reasons. The zero value is unknown.
const (
	ReasonUnknown Reason = iota
	// ByStamp: the segment was built at or before the dataset version that the legacy record carries, so its file may
	// hold addresses from before it.
	ByStamp
	// ByBitmap: the stored bitmap names all sources of a legacy group.
	ByBitmap
	// ByProvenance: the stored bitmaps of the index name a source, and no usable segment covers some destination
	// directly.
	ByProvenance
)

// Needer is a segment that needs a record; for ByProvenance it stands for its logical index.
type Needer struct {
	Segment int // position in the input
	Why     Reason
}

// Need tells whether one record is still needed, judged by metadata alone.
type Need struct {
	Seq     int
	Needers []Needer
	// KeptBy are the Seqs of needed records whose destinations this one consumes: whoever keeps those keeps this one.
	KeptBy []int
	// Straddles are the segments whose stored bitmap names only some sources of a legacy group: Lance takes the record
	// for corrupt and drops it.
	Straddles []int
	// Unclear is set where the record, or another one of the history, cannot be read: nothing may be dropped.
	Unclear bool
	// Resolved, for a needed tagged record, says that following its destinations to what is live shows every index
	// covering all of it directly: Lance 14.0.2 keeps such records, although nothing needs them.
	Resolved bool
}

// Trimmable reports whether the record may be dropped.
func (n *Need) Trimmable() bool { return len(n.Needers) == 0 && len(n.KeptBy) == 0 && !n.Unclear }

// NeededBy judges each record of h by the raw stored metadata of the segments, as Lance 14.0.2 trims: legacy records
// a Version at a time by the caught-up predicate, with an inclusive stamp; tagged ones by provenance and direct
// coverage, then closed forwards. What an index needs for certain only the addresses in its files tell. The results
// are in the order of h.Transitions.
func NeededBy(h *fri.History, live *roaring.Bitmap, segments []Segment) []Need {
	if h == nil {
		return nil
	}
	out := make([]Need, len(h.Transitions))
	chain, unclear := roaring.New(), h.Opaque || h.Broken != nil
	for i, t := range h.Transitions {
		out[i].Seq = t.Seq
		if t.Form == fri.Legacy {
			addAll(chain, t.Sources)
			addAll(chain, t.Destinations)
		}
		unclear = unclear || h.Tagged && t.Kind == fri.Unsupported || !t.SourcesOK
	}
	versions := map[int][]int{}
	for i, t := range h.Transitions {
		switch {
		case t.Form == fri.Legacy && t.Legacy != nil:
			versions[t.Legacy.Version] = append(versions[t.Legacy.Version], i)
		case h.Tagged:
			provenance(t, live, segments, h, &out[i])
		}
	}
	for _, members := range versions {
		caughtUp(h, members, chain, segments, out)
	}
	if h.Tagged {
		closeForwards(h, versions, out)
	}
	for i := range out {
		out[i].Unclear = unclear
	}
	return out
}

// caughtUp applies the legacy predicate to the groups of one Version; all of them share the answer. The first rule
// that applies to a segment decides.
func caughtUp(h *fri.History, members []int, chain *roaring.Bitmap, segments []Segment, out []Need) {
	var needers []Needer
	var straddles []int
	stamp := h.Transitions[members[0]].Legacy.DatasetVersion
	for k, s := range segments {
		bitmap := s.Bitmap
		if s.State == BitmapWithdrawn {
			bitmap = roaring.New()
		}
		switch {
		case s.System || bitmap != nil && !bitmap.Intersects(chain):
			continue
		case s.DatasetVersion <= stamp:
			needers = append(needers, Needer{k, ByStamp})
			continue
		case bitmap == nil:
			continue
		}
		whole, part := false, false
		for _, i := range members {
			in, missing := split(h.Transitions[i], func(f fri.FragID) bool { return bitmap.Contains(uint32(f)) })
			whole = whole || len(in) > 0 && len(missing) == 0
			part = part || len(in) > 0 && len(missing) > 0
		}
		switch {
		case part:
			straddles = append(straddles, k)
		case whole:
			needers = append(needers, Needer{k, ByBitmap})
		}
	}
	if len(straddles) > 0 {
		needers = nil
	}
	for _, i := range members {
		out[i].Needers, out[i].Straddles = needers, straddles
	}
}

// provenance applies the tagged predicate to t, for each logical index.
func provenance(t *fri.Transition, live *roaring.Bitmap, segments []Segment, h *fri.History, n *Need) {
	sources := roaring.New()
	addAll(sources, t.Sources)
	n.Resolved = true
	for first, s := range segments {
		if s.System || firstOf(segments, s.Name) != first {
			continue
		}
		direct, needer := roaring.New(), -1
		for k, other := range segments {
			if other.System || other.Name != s.Name || other.Bitmap == nil {
				continue
			}
			if needer < 0 && other.Bitmap.Intersects(sources) {
				needer = k
			}
			if other.Usable {
				direct.Or(other.Bitmap)
			}
		}
		if needer < 0 {
			continue
		}
		missing := false
		for _, d := range t.Destinations {
			missing = missing || !direct.Contains(uint32(d.ID)) || !live.Contains(uint32(d.ID))
		}
		if missing {
			n.Needers = append(n.Needers, Needer{needer, ByProvenance})
			n.Resolved = n.Resolved && coveredAtTheEnd(h, t, live, direct)
		}
	}
	n.Resolved = n.Resolved && len(n.Needers) > 0
}

func firstOf(segments []Segment, name string) int {
	for i, s := range segments {
		if !s.System && s.Name == name {
			return i
		}
	}
	return -1
}

// coveredAtTheEnd follows the destinations of t to live fragments and reports whether direct names them all.
func coveredAtTheEnd(h *fri.History, t *fri.Transition, live, direct *roaring.Bitmap) bool {
	met := map[fri.FragID]bool{}
	todo := make([]fri.FragID, 0, len(t.Destinations))
	add := func(t *fri.Transition) {
		for _, d := range t.Destinations {
			if !met[d.Frag()] {
				met[d.Frag()] = true
				todo = append(todo, d.Frag())
			}
		}
	}
	for add(t); len(todo) > 0; {
		f := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if live.Contains(uint32(f)) {
			if !direct.Contains(uint32(f)) {
				return false
			}
			continue
		}
		for _, next := range h.Consumer(f) {
			add(next)
		}
	}
	return true
}

// closeForwards keeps the consumers of what kept records produced, legacy ones with all groups of their Version.
func closeForwards(h *fri.History, versions map[int][]int, out []Need) {
	var todo []int
	kept := make([]bool, len(out))
	keep := func(i int) {
		members := []int{i}
		if l := h.Transitions[i].Legacy; l != nil {
			members = versions[l.Version]
		}
		for _, k := range members {
			if !kept[k] {
				kept[k] = true
				todo = append(todo, k)
			}
		}
	}
	for i := range out {
		if len(out[i].Needers) > 0 {
			keep(i)
		}
	}
	for len(todo) > 0 {
		t := h.Transitions[todo[0]]
		todo = todo[1:]
		for _, d := range t.Destinations {
			for _, next := range h.Consumer(d.Frag()) {
				if k := next.Seq - 1; k >= 0 && k < len(out) && next != t {
					out[k].KeptBy = append(out[k].KeptBy, t.Seq)
					keep(k)
				}
			}
		}
	}
	for i := range out {
		// A sibling group that only its Version keeps is kept by what keeps the Version.
		if l := h.Transitions[i].Legacy; kept[i] && l != nil && len(out[i].Needers) == 0 && len(out[i].KeptBy) == 0 {
			for _, k := range versions[l.Version] {
				out[i].KeptBy = append(out[i].KeptBy, out[k].KeptBy...)
			}
		}
		slices.Sort(out[i].KeptBy)
		out[i].KeptBy = slices.Compact(out[i].KeptBy)
	}
}
