package indexfile

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
)

var zoneTypes = []string{"ZONEMAP", "BLOOMFILTER"}

// zonesOf reads all zones and the null set of a file.
func zonesOf(t *testing.T, f *File) (zones []zone, nulls []fri.RowAddr) {
	t.Helper()
	z, ok := f.body.(*zonesFile)
	if !ok {
		t.Fatalf("%s is no file of zones", f.Path)
	}
	if err := z.each(t.Context(), func(_ uint64, x zone) error { zones = append(zones, x); return nil }); err != nil {
		t.Fatal(err)
	}
	_, nulls = scanFrom(t, f, Position{Row: NoRow}, 1000)
	return zones, nulls
}

// wantZones translates zones row by row, the slow way.
func wantZones(t *testing.T, r Resolver, in []zone) (out []zone, gaps []fri.FragID) {
	t.Helper()
	divided := map[fri.FragID]bool{}
	for _, x := range in {
		offsets := map[fri.FragID][]uint64{}
		var addrs []fri.RowAddr
		for k := range x.rows {
			addrs = append(addrs, fri.Addr(x.frag, uint32(x.start+k)))
		}
		a := answersFor(t, r, addrs)
		for i := range addrs {
			if a.Keep(i) {
				offsets[a.New[i].Frag()] = append(offsets[a.New[i].Frag()], uint64(a.New[i].Offset()))
			}
		}
		y := zone{PlaceholderFragment, x.start, x.rows}
		for f, o := range offsets {
			if len(offsets) > 1 {
				divided[f] = true
				continue
			}
			y = zone{f, slices.Min(o), slices.Max(o) - slices.Min(o) + 1}
		}
		out = append(out, y)
	}
	for i := range out {
		if divided[out[i].frag] {
			out[i].frag = PlaceholderFragment
		}
	}
	for f := range divided {
		gaps = append(gaps, f)
	}
	slices.Sort(gaps)
	return out, gaps
}

// checkZones remaps a file of zones and compares it with the slow way.
func checkZones(t *testing.T, s *Segment, path string, r Resolver) (stored, now []zone, gaps []fri.FragID) {
	t.Helper()
	f, err := s.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	stored, nulls := zonesOf(t, f)
	rows, first := scanFrom(t, f, Position{}, 3)
	for i, x := range stored {
		if rows[i] != uint64(i) || first[i] != fri.Addr(x.frag, uint32(x.start)) {
			t.Fatalf("entry %d: row %d, %v; want the first row of %v", i, rows[i], first[i], x)
		}
	}
	if !slices.Equal(first[len(stored):], nulls) || slices.ContainsFunc(rows[len(stored):], func(r uint64) bool { return r != NoRow }) {
		t.Errorf("the null set of %d rows does not follow the zones", len(nulls))
	}
	want, wantGaps := wantZones(t, r, stored)
	if gaps, err = f.ZoneGaps(t.Context(), r); err != nil || !slices.Equal(gaps, wantGaps) {
		t.Errorf("gaps: got %v, %v, want %v", gaps, err, wantGaps)
	}
	c, err := f.Remap(t.Context(), r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	g := reopened(t, s, path, wholeOf(t, c))
	now, nowNulls := zonesOf(t, g)
	if !slices.Equal(now, want) {
		t.Errorf("zones:\n got %v\nwant %v", now, want)
	}
	var wantNulls []fri.RowAddr
	a := answersFor(t, r, nulls)
	for i := range nulls {
		if a.Keep(i) && !slices.Contains(wantGaps, a.New[i].Frag()) {
			wantNulls = append(wantNulls, a.New[i])
		}
	}
	slices.Sort(wantNulls)
	if !slices.Equal(nowNulls, wantNulls) {
		t.Errorf("null rows: got %v, want %v", nowNulls, wantNulls)
	}
	return stored, now, gaps
}

func TestRealZones(t *testing.T) {
	tables(t, zoneTypes, func(t *testing.T, _ *world, _ *dataset.Index, s *Segment, r Resolver) {
		for _, f := range s.Files {
			if stored, _, _ := checkZones(t, s, f.Path, r); len(stored) == 0 {
				t.Errorf("%s has no zones", f.Path)
			}
			checkZones(t, s, f.Path, rowsOnly{r})
		}
	})
}

func TestOwnZones(t *testing.T) {
	var moved, divided, gone int
	ownTables(t, zoneTypes, func(t *testing.T, _ *world, _ *dataset.Index, s *Segment, r Resolver) {
		for _, f := range s.Files {
			stored, now, gaps := checkZones(t, s, f.Path, r)
			if len(stored) < 40 {
				t.Errorf("%s has only %d zones", f.Path, len(stored))
			}
			divided += len(gaps)
			for i := range now {
				switch {
				case now[i].frag == PlaceholderFragment:
					gone++
				case now[i] != stored[i]:
					moved++
				}
			}
		}
	})
	if moved == 0 || divided == 0 || gone == 0 {
		t.Errorf("%d zones moved, %d are gone, %d fragments were divided into: each must be met", moved, gone, divided)
	}
}

// A range is answered as its rows are, one by one.
func TestResolveZone(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tables(t, []string{"BTREE", "ZONEMAP"}, func(t *testing.T, w *world, _ *dataset.Index, _ *Segment, r Resolver) {
		for _, src := range w.translator().Sources() {
			if src.Rows == 0 || src.Rows > 5000 {
				continue
			}
			for range 3 {
				from := random.Uint64N(src.Rows)
				in := zone{src.Frag, from, 1 + random.Uint64N(src.Rows-from+2)}
				got, err := resolveZone(t.Context(), r, in)
				noError(t, err)
				want, err := resolveZone(t.Context(), rowsOnly{r}, in)
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("%v: got %v, want %v, %v", in, got, want, err)
				}
			}
		}
	})
}
