package translate

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/fritest"
)

// compaction is a record of fragments of ten rows without deletions: sources become destinations, all rows of the
// last one counted there.
func compaction(from, to []uint64) fritest.Record { return sized(10, from, to) }

// sized is compaction with other row counts of the sources.
func sized(n uint64, from, to []uint64) fritest.Record {
	var r fritest.Record
	var rows []fri.RowAddr
	for _, f := range from {
		r.Sources = append(r.Sources, fri.Digest{ID: f, PhysicalRows: n})
		for o := range uint32(n) {
			rows = append(rows, fri.Addr(fri.FragID(f), o))
		}
	}
	for i, f := range to {
		d := fri.Digest{ID: f, PhysicalRows: 10}
		if i == len(to)-1 {
			d.PhysicalRows = uint64(len(rows) - 10*i)
		}
		r.Destinations = append(r.Destinations, d)
	}
	r.Survivors = fritest.Treemap(rows, true)
	return r
}

func spoilt(r fritest.Record) fritest.Record {
	r.Destinations = append(r.Destinations, fri.Digest{ID: 900, PhysicalRows: 1})
	return r
}

// legacyHistory has one Version per list of groups, stamped 10, 20, and on.
func legacyHistory(t *testing.T, version int32, versions ...[]fritest.Record) *fri.History {
	t.Helper()
	var b []byte
	for i, groups := range versions {
		b = fritest.AppendVersion(b, uint64(10*(i+1)), groups)
	}
	return openHistory(t, b, version)
}

func taggedHistory(t *testing.T, records ...fritest.Record) *fri.History {
	t.Helper()
	var b []byte
	for _, r := range records {
		b = fritest.AppendTransition(b, r)
	}
	return openHistory(t, b, 1)
}

func openHistory(t *testing.T, b []byte, version int32) *fri.History {
	t.Helper()
	h, err := fri.Open(context.Background(), bytes.NewReader(b), fri.Options{IndexVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func set(f ...uint32) *roaring.Bitmap { return roaring.BitmapOf(f...) }

func seg(name string, f ...uint32) Segment {
	return Segment{Name: name, State: BitmapPresent, Bitmap: set(f...), Usable: true, DatasetVersion: 100}
}

func TestCover(t *testing.T) {
	t.Parallel()
	fold := compaction([]uint64{0, 1, 2, 3}, []uint64{4})
	fan := compaction([]uint64{0, 1}, []uint64{2, 3})
	one := [][]fritest.Record{{fold}}
	for _, c := range []struct {
		name     string
		h        *fri.History
		live     *roaring.Bitmap
		segments []Segment
		want     []string // derived coverage, straddles, orphans, excluded
	}{
		{"no history", nil, set(1, 2), []Segment{seg("a", 1, 5), {Name: "b"}},
			[]string{"{1} [] {5} {}", "unknown"}},
		{"legacy, whole group", legacyHistory(t, 0, one...), set(4, 5), []Segment{seg("a", 0, 1, 2, 3, 5)},
			[]string{"{4,5} [] {} {}"}},
		{"legacy, straddle", legacyHistory(t, 0, one...), set(4), []Segment{seg("a", 0, 1)},
			[]string{"{} [{1 [0 1] [2 3]}] {} {}"}},
		{"legacy, already swapped", legacyHistory(t, 0, one...), set(4), []Segment{seg("a", 4)},
			[]string{"{4} [] {} {}"}},
		{"legacy, spoilt group", legacyHistory(t, 0, []fritest.Record{spoilt(fold)}), set(4, 1), []Segment{seg("a", 0, 1, 2, 3)},
			[]string{"{} [] {} {}"}},
		{"legacy, orphan", legacyHistory(t, 0, one...), set(4), []Segment{seg("a", 0, 1, 2, 3, 7)},
			[]string{"{4} [] {7} {}"}},
		{"legacy, two hops in one version do not chain",
			legacyHistory(t, 0, []fritest.Record{fold, compaction([]uint64{4}, []uint64{5})}), set(5), []Segment{seg("a", 0, 1, 2, 3)},
			[]string{"{} [] {} {}"}},
		{"legacy, system index", legacyHistory(t, 0, one...), set(4), []Segment{{Name: "s", System: true, State: BitmapPresent, Bitmap: set(0, 1, 2, 3, 4)}},
			[]string{"{4} [] {} {}"}},
		{"withdrawn", taggedHistory(t, fold), set(4), []Segment{{Name: "a", State: BitmapWithdrawn, Usable: true}},
			[]string{"{} [] {} {}"}},
		{"tagged, one of two sources covers neither destination", taggedHistory(t, fan), set(2, 3), []Segment{seg("a", 0)},
			[]string{"{} [{1 [0] [1]}] {} {}"}},
		{"tagged, two segments contribute", taggedHistory(t, fan), set(2, 3), []Segment{seg("a", 0), seg("a", 1)},
			[]string{"{2,3} [] {} {1}", "{2,3} [] {} {0}"}},
		{"tagged, other index does not contribute", taggedHistory(t, fan), set(2, 3), []Segment{seg("a", 0), seg("b", 1)},
			[]string{"{} [{1 [0] [1]}] {} {}", "{} [{1 [1] [0]}] {} {}"}},
		{"tagged, direct wins", taggedHistory(t, fan), set(2, 3), []Segment{seg("a", 0, 1), seg("a", 2)},
			[]string{"{3} [] {} {2}", "{2} [] {} {0,1}"}},
		{"tagged, chain in any list order", taggedHistory(t, compaction([]uint64{2, 3}, []uint64{6}), fan), set(6), []Segment{seg("a", 0, 1)},
			[]string{"{6} [] {} {}"}},
		{"tagged, unusable segment", taggedHistory(t, fan), set(1, 2, 3), []Segment{{Name: "a", State: BitmapPresent, Bitmap: set(0, 1)}},
			[]string{"{} [] {} {}"}},
		{"tagged, spoilt record", taggedHistory(t, spoilt(fan)), set(2, 3, 8), []Segment{seg("a", 0, 1, 8)},
			[]string{"{8} [] {} {}"}},
		{"tagged, unknown record", openHistory(t, append(fritest.AppendTransition(nil, fan), 7<<3, 1), 1), set(2, 3, 8), []Segment{seg("a", 0, 1, 8)},
			[]string{"{8} [] {} {}"}},
		{"lifted", legacyHistory(t, 1, one...), set(4), []Segment{seg("a", 0, 1, 2, 3)},
			[]string{"{4} [] {} {}"}},
	} {
		for i, got := range Cover(c.h, c.live, c.segments) {
			s := fmt.Sprintf("%v %v %v %v", got.Live, got.Straddles, got.Orphaned, got.Excluded)
			if !got.Known {
				s = "unknown"
			}
			if s != c.want[i] {
				t.Errorf("%s: segment %d: %s, want %s", c.name, i, s, c.want[i])
			}
			if x := roaring.AndNot(got.Direct, got.Live); !x.IsEmpty() {
				t.Errorf("%s: segment %d: direct coverage %v is not within %v", c.name, i, got.Direct, got.Live)
			}
		}
	}
}

func TestNeededBy(t *testing.T) {
	t.Parallel()
	fold := compaction([]uint64{0, 1, 2, 3}, []uint64{4})
	again := sized(40, []uint64{4}, []uint64{5})
	at := func(s Segment, version uint64) Segment {
		s.DatasetVersion = version
		return s
	}
	absent := Segment{Name: "x", DatasetVersion: 10}
	for _, c := range []struct {
		name     string
		h        *fri.History
		live     *roaring.Bitmap
		segments []Segment
		want     []Need
	}{
		{"nobody", taggedHistory(t, fold), set(4), nil, []Need{{Seq: 1}}},
		{"legacy, disjoint", legacyHistory(t, 0, []fritest.Record{fold}), set(4), []Segment{at(seg("a", 9), 1)}, []Need{{Seq: 1}}},
		{"legacy, built at the stamp", legacyHistory(t, 0, []fritest.Record{fold}), set(4), []Segment{at(seg("a", 4), 10)},
			[]Need{{Seq: 1, Needers: []Needer{{0, ByStamp}}}}},
		{"legacy, built after it", legacyHistory(t, 0, []fritest.Record{fold}), set(4), []Segment{at(seg("a", 4), 11)}, []Need{{Seq: 1}}},
		{"legacy, names the sources", legacyHistory(t, 0, []fritest.Record{fold}), set(4), []Segment{seg("a", 0, 1, 2, 3)},
			[]Need{{Seq: 1, Needers: []Needer{{0, ByBitmap}}}}},
		{"legacy, names some", legacyHistory(t, 0, []fritest.Record{fold}), set(4), []Segment{seg("a", 0, 1)},
			[]Need{{Seq: 1, Straddles: []int{0}}}},
		{"legacy, no bitmap", legacyHistory(t, 0, []fritest.Record{fold}, []fritest.Record{again}), set(5), []Segment{absent},
			[]Need{{Seq: 1, Needers: []Needer{{0, ByStamp}}}, {Seq: 2, Needers: []Needer{{0, ByStamp}}}}},
		{"legacy, system index", legacyHistory(t, 0, []fritest.Record{fold}), set(4), []Segment{{System: true}}, []Need{{Seq: 1}}},
		{"legacy, groups share", legacyHistory(t, 0, []fritest.Record{compaction([]uint64{0}, []uint64{5}), compaction([]uint64{1}, []uint64{6})}),
			set(5, 6), []Segment{seg("a", 1)},
			[]Need{{Seq: 1, Needers: []Needer{{0, ByBitmap}}}, {Seq: 2, Needers: []Needer{{0, ByBitmap}}}}},
		{"tagged, provenance", taggedHistory(t, fold), set(4), []Segment{seg("b", 9), seg("a", 1)},
			[]Need{{Seq: 1, Needers: []Needer{{1, ByProvenance}}}}},
		{"tagged, destination directly covered", taggedHistory(t, fold), set(4), []Segment{seg("a", 1), seg("a", 4)}, []Need{{Seq: 1}}},
		{"tagged, covered by an unusable segment", taggedHistory(t, fold), set(4),
			[]Segment{seg("a", 1), {Name: "a", State: BitmapPresent, Bitmap: set(4)}}, []Need{{Seq: 1, Needers: []Needer{{0, ByProvenance}}}}},
		{"tagged, forward closure", taggedHistory(t, fold, again), set(5), []Segment{seg("a", 1)},
			[]Need{{Seq: 1, Needers: []Needer{{0, ByProvenance}}}, {Seq: 2, KeptBy: []int{1}}}},
		{"tagged, all retired downstream", taggedHistory(t, fold, again), set(5), []Segment{seg("a", 1, 5)},
			[]Need{{Seq: 1, Needers: []Needer{{0, ByProvenance}}, Resolved: true}, {Seq: 2, KeptBy: []int{1}}}},
		{"tagged, unknown record", openHistory(t, append(fritest.AppendTransition(nil, fold), 7<<3, 1), 1), set(4), nil, []Need{{Seq: 1, Unclear: true}}},
	} {
		got := NeededBy(c.h, c.live, c.segments)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		for i, n := range c.want {
			if free := len(n.Needers)+len(n.KeptBy) == 0 && !n.Unclear; got[i].Trimmable() != free {
				t.Errorf("%s: record %d trimmable %v", c.name, i+1, !free)
			}
		}
	}
}
