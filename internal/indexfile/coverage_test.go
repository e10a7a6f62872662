package indexfile

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/fritest"
	"github.com/frifs/frifs/translate"
)

// compaction moves all rows of fragments with ten rows each into one.
func compaction(to uint64, from ...uint64) fritest.Record {
	r := fritest.Record{Destinations: []fri.Digest{{ID: to, PhysicalRows: 10 * uint64(len(from))}}}
	var all []fri.RowAddr
	for _, f := range from {
		r.Sources = append(r.Sources, fri.Digest{ID: f, PhysicalRows: 10})
		for i := range uint32(10) {
			all = append(all, fri.Addr(fri.FragID(f), i))
		}
	}
	r.Survivors = fritest.Treemap(all, false)
	return r
}

func partition(to []uint64, from ...uint64) fritest.Record {
	r := fritest.Record{MapID: "3f85af69-7ecb-4b7d-b790-9143f7028f58", MapSize: 100}
	for _, f := range from {
		r.Sources = append(r.Sources, fri.Digest{ID: f, PhysicalRows: 10})
	}
	for _, f := range to {
		r.Destinations = append(r.Destinations, fri.Digest{ID: f, PhysicalRows: 10 * uint64(len(from)) / uint64(len(to))})
	}
	return r
}

func TestClaims(t *testing.T) {
	bad := compaction(10, 0, 1)
	bad.Destinations[0].PhysicalRows = 7 // the row counts differ
	tagged := func(rs ...fritest.Record) []byte {
		var b []byte
		for _, r := range rs {
			b = fritest.AppendTransition(b, r)
		}
		return b
	}
	legacy := func(groups ...fritest.Record) []byte { return fritest.AppendVersion(nil, 5, groups) }
	type seg struct {
		name   string
		stored []uint32
		rowID  bool
	}
	for _, c := range []struct {
		name    string
		version int32
		content []byte
		live    []uint32
		segs    []seg
		shut    bool // row maps do not open
		want    [][]uint32
	}{
		{"no history", 0, nil, []uint32{0, 1, 2}, []seg{{"a", []uint32{0, 1, 9}, false}}, false, [][]uint32{{0, 1}}},
		{"legacy", 0, legacy(compaction(10, 0, 1)), []uint32{2, 10}, []seg{{"a", []uint32{0, 1, 2}, false}}, false, [][]uint32{{2, 10}}},
		{"legacy, bitmap swapped already", 0, legacy(compaction(10, 0, 1)), []uint32{2, 10}, []seg{{"a", []uint32{2, 10}, false}}, false, [][]uint32{{2, 10}}},
		{"legacy, the group is invalid and the bitmap swapped", 0, legacy(bad), []uint32{2, 10}, []seg{{"a", []uint32{2, 10}, false}, {"b", []uint32{2, 10}, true}}, false, [][]uint32{{2}, {2, 10}}},
		{"legacy, what was made of an invalid group later", 0, fritest.AppendVersion(legacy(bad), 6, []fritest.Record{compaction(11, 10, 3)}), []uint32{2, 11}, []seg{{"a", []uint32{2, 11}, false}}, false, [][]uint32{{2}}},
		{"tagged", 1, tagged(compaction(10, 0, 1)), []uint32{2, 10}, []seg{{"a", []uint32{0, 1, 2}, false}}, false, [][]uint32{{2, 10}}},
		{"tagged, the row map does not open", 1, tagged(partition([]uint64{10, 11}, 0, 1)), []uint32{2, 10, 11}, []seg{{"a", []uint32{0, 1, 2}, false}}, true, [][]uint32{{2}}},
		{"tagged, built on what a row map that does not open made", 1, tagged(partition([]uint64{10, 11}, 0, 1)), []uint32{2, 10, 11}, []seg{{"a", []uint32{10, 2}, false}}, true, [][]uint32{{2, 10}}},
		{"tagged, behind a row map that does not open", 1, tagged(partition([]uint64{10, 11}, 0, 1), compaction(12, 10, 2)), []uint32{11, 12}, []seg{{"a", []uint32{0, 1, 2}, false}}, true, [][]uint32{{}}},
		{"tagged, two segments share the sources", 1, tagged(compaction(10, 0, 1)), []uint32{2, 3, 10}, []seg{{"a", []uint32{0, 2}, false}, {"a", []uint32{1, 3}, false}}, false, [][]uint32{{2}, {3}}},
		{"tagged, two indices do not share", 1, tagged(compaction(10, 0, 1)), []uint32{2, 3, 10}, []seg{{"a", []uint32{0, 1, 2}, false}, {"b", []uint32{0, 1, 3}, false}}, false, [][]uint32{{2, 10}, {3, 10}}},
		{"a broken history", 1, []byte{0xFF}, []uint32{2, 10}, []seg{{"a", []uint32{2, 10}, false}, {"b", []uint32{2, 10}, true}}, false, [][]uint32{{}, {2, 10}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h *fri.History
			if c.content != nil {
				var err error
				if h, err = fri.Open(context.Background(), bytes.NewReader(c.content), fri.Options{IndexVersion: c.version, FlagReader: true, FlagWriter: true}); err != nil {
					t.Fatal(err)
				}
			}
			var segs []translate.Segment
			var address []bool
			for _, s := range c.segs {
				segs = append(segs, translate.Segment{Name: s.name, State: translate.BitmapPresent, Bitmap: roaring.BitmapOf(s.stored...), Usable: true})
				address = append(address, !s.rowID)
			}
			covers := translate.Cover(h, roaring.BitmapOf(c.live...), segs)
			claims := NewClaims(h, segs, covers, address, func(t *fri.Transition) bool { return !c.shut || t.Partition == nil })
			for i, want := range c.want {
				if got := claims.Of(i).ToArray(); !slices.Equal(got, want) {
					t.Errorf("segment %d claims %v, want %v (derived %v)", i, got, want, covers[i].Live.ToArray())
				}
				if extra := roaring.AndNot(claims.Of(i), covers[i].Live); !extra.IsEmpty() {
					t.Errorf("segment %d claims more than is derived: %v", i, extra.ToArray())
				}
			}
			claims.Lose(0, roaring.BitmapOf(2))
			if claims.Of(0).Contains(2) {
				t.Errorf("fragment 2 is still claimed")
			}
		})
	}
}

func TestUnshare(t *testing.T) {
	segs := make([]translate.Segment, 3)
	covers := make([]translate.Coverage, 3)
	for i, b := range [][]uint32{{1, 2, 3}, {3, 4}, {3, 5}} {
		covers[i].Live = roaring.BitmapOf(b...)
	}
	claims := NewClaims(nil, segs, covers, make([]bool, 3), nil)
	if lost := claims.Unshare([]int{0, 1}); !slices.Equal(lost.ToArray(), []uint32{3}) {
		t.Errorf("gave up %v", lost.ToArray())
	}
	for i, want := range [][]uint32{{1, 2}, {4}, {3, 5}} {
		if got := claims.Of(i).ToArray(); !slices.Equal(got, want) {
			t.Errorf("segment %d claims %v, want %v", i, got, want)
		}
	}
}

// A record was lost: fragment 4 has entries, but those of the lost record's rows are not among them.
func TestUnproven(t *testing.T) {
	h, err := fri.Open(context.Background(), bytes.NewReader(fritest.AppendVersion(nil, 5, []fritest.Record{compaction(4, 2, 3)})), fri.Options{FlagReader: true, FlagWriter: true})
	if err != nil {
		t.Fatal(err)
	}
	s := NewSurvey(roaring.BitmapOf(4, 6), false)
	s.seen = roaring.BitmapOf(4, 6)
	claimed := roaring.BitmapOf(4, 5, 6)
	if got := s.Unproven(claimed, h).ToArray(); s.Suspect(claimed) || !slices.Equal(got, []uint32{5}) {
		t.Errorf("nothing astray: unproven %v", got)
	}
	s.astray = true
	if got := s.Unproven(claimed, h).ToArray(); !s.Suspect(claimed) || !slices.Equal(got, []uint32{4, 5}) {
		t.Errorf("addresses astray: unproven %v", got)
	}
}
