package indexfile

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/fritest"
	"github.com/frifs/frifs/translate"
)

// naiveClaims says fragment by fragment, from the rules in NewClaims' words, what an entry may answer for.
type naiveClaims struct {
	h        *fri.History
	segments []translate.Segment
	covers   []translate.Coverage
	address  []bool
	opens    func(*fri.Transition) bool
}

func named(ds []fri.Digest, f uint32) bool {
	return slices.ContainsFunc(ds, func(d fri.Digest) bool { return d.ID == uint64(f) })
}

// tainted: a legacy record that cannot be used may have made f, or something that f was made of later.
func (n naiveClaims) tainted(f uint32, seen map[uint32]bool) bool {
	if seen[f] {
		return false
	}
	seen[f] = true
	for _, t := range n.h.Transitions {
		if !named(t.Destinations, f) {
			continue
		}
		if t.Legacy != nil && (!t.Usable() || !n.opens(t)) {
			return true
		}
		for _, s := range t.Sources {
			if n.tainted(uint32(s.ID), seen) {
				return true
			}
		}
	}
	return false
}

// unprovable: f is in no stored bitmap of the index, and got there through a transition that does not open.
func (n naiveClaims) unprovable(f uint32, name string) bool {
	for _, s := range n.segments {
		if s.Name == name && s.Bitmap.Contains(f) {
			return false
		}
	}
	for _, t := range n.h.Transitions {
		if !t.Usable() || !named(t.Destinations, f) {
			continue
		}
		if !n.opens(t) {
			return true
		}
		for _, s := range t.Sources {
			if n.unprovable(uint32(s.ID), name) {
				return true
			}
		}
	}
	return false
}

func (n naiveClaims) has(i int, f uint32) bool {
	switch {
	case !n.covers[i].Live.Contains(f):
		return false
	case n.h == nil:
		return true
	}
	everything := n.h.Broken != nil
	for _, t := range n.h.Transitions {
		bad := t.Legacy != nil && (!t.Usable() || !n.opens(t))
		everything = everything || bad && (!t.SourcesOK || len(t.Destinations) == 0)
	}
	if n.address[i] && (everything || n.tainted(f, map[uint32]bool{})) {
		return false
	}
	if everything || !n.h.Tagged {
		return true
	}
	if n.address[i] && n.unprovable(f, n.segments[i].Name) {
		return false
	}
	if n.covers[i].Direct.Contains(f) {
		return true
	}
	others := 0
	for k, s := range n.segments {
		if s.Name == n.segments[i].Name && n.covers[k].Live.Contains(f) && !n.covers[k].Direct.Contains(f) {
			others++
		}
	}
	return others < 2
}

// TestClaimsAgainstNaive compares with the rules applied fragment by fragment, over histories that are drawn.
func TestClaimsAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live := map[uint64]bool{}
		next := rapid.Uint64Range(2, 8).Draw(t, "first fragments")
		for f := range next {
			live[f] = true
		}
		all := func() (fs []uint64) {
			for f := range live {
				fs = append(fs, f)
			}
			slices.Sort(fs)
			return fs
		}
		tagged := rapid.Bool().Draw(t, "tagged")
		var content []byte
		for stamp := range rapid.IntRange(0, 5).Draw(t, "records") {
			have := all()
			from := rapid.Permutation(have).Draw(t, "sources")[:rapid.IntRange(1, min(3, len(have))).Draw(t, "how many")]
			slices.Sort(from)
			var r fritest.Record
			if tagged && rapid.Bool().Draw(t, "partition") {
				r = partition([]uint64{next, next + 1}, from...)
				live[next], live[next+1] = true, true
				next += 2
			} else {
				r = compaction(next, from...)
				live[next] = true
				next++
			}
			for i := range r.Sources { // rows that came out of a partition may be more than ten
				r.Sources[i].PhysicalRows = 10
			}
			if rapid.IntRange(0, 3).Draw(t, "spoil") == 0 {
				r.Destinations[0].PhysicalRows += 3
			}
			for _, f := range from {
				delete(live, f)
			}
			if tagged {
				content = fritest.AppendTransition(content, r)
			} else {
				content = fritest.AppendVersion(content, uint64(stamp+3), []fritest.Record{r})
			}
		}
		var h *fri.History
		if rapid.IntRange(0, 9).Draw(t, "history") > 0 {
			opt := fri.Options{FlagReader: true, FlagWriter: true}
			if tagged {
				opt.IndexVersion = 1
			}
			var err error
			if h, err = fri.Open(context.Background(), bytes.NewReader(content), opt); err != nil {
				t.Fatal(err)
			}
		}
		now := roaring.New()
		for f := range live {
			now.Add(uint32(f))
		}
		n := naiveClaims{h: h}
		for range rapid.IntRange(1, 4).Draw(t, "segments") {
			stored := rapid.SliceOf(rapid.Uint32Range(0, uint32(next))).Draw(t, "bitmap")
			state := translate.BitmapPresent
			if len(stored) == 0 {
				state = translate.BitmapWithdrawn
			}
			n.segments = append(n.segments, translate.Segment{Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"), State: state, Bitmap: roaring.BitmapOf(stored...), Usable: true})
			n.address = append(n.address, rapid.IntRange(0, 4).Draw(t, "domain") > 0)
		}
		n.covers = translate.Cover(h, now, n.segments)
		shut := rapid.SliceOfN(rapid.IntRange(0, 3), 8, 8).Draw(t, "shut")
		n.opens = func(t *fri.Transition) bool { return shut[t.Record%8] > 0 }
		claims := NewClaims(h, n.segments, n.covers, n.address, n.opens)
		for i := range n.segments {
			for f := range uint32(next) + 1 {
				if got, want := claims.Of(i).Contains(f), n.has(i, f); got != want {
					t.Fatalf("segment %d (%s, %v) of fragment %d: %v, want %v; derived %v", i, n.segments[i].Name, n.segments[i].Bitmap, f, got, want, n.covers[i].Live)
				}
			}
		}
	})
}
