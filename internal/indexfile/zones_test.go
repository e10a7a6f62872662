package indexfile

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/translate"
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

// madeZones is a file of zones, with columns of a type.
func madeZones(typ string, zones []zone, metadata map[string]string, globals ...lancetest.Buffer) []byte {
	f := lancetest.File{Major: 2, Minor: 1, Rows: uint64(len(zones)), Metadata: metadata, Globals: globals}
	for i, name := range zoneColumns() {
		var b []byte
		for _, x := range zones {
			v := [3]uint64{uint64(x.frag), x.start, x.rows}[i]
			if typ == "uint32" {
				b = binary.LittleEndian.AppendUint32(b, uint32(v))
			} else {
				b = binary.LittleEndian.AppendUint64(b, v)
			}
		}
		bits := len(b) / len(zones) * 8
		f.Columns = append(f.Columns, lancetest.Column{Name: name, Type: typ, Pages: []lancetest.Page{{
			Rows: uint64(len(zones)), Buffers: []lancetest.Buffer{lancetest.Bytes(b)}, Encoding: fullZip(bits, len(zones)),
		}}})
	}
	return f.Build().All()
}

// fullZip is a page of plain values.
func fullZip(bits, rows int) *pb.PageLayout {
	width := uint32(bits)
	return &pb.PageLayout{Layout: &pb.PageLayout_FullZipLayout{FullZipLayout: &pb.PageLayout_FullZip{
		BitsPerValue: &width, NumItems: uint32(rows), NumVisibleItems: uint32(rows),
		ValueCompression: lancetest.Flat(bits), Layers: []pb.RepDefLayer{pb.RepDefLayer_REPDEF_ALL_VALID_ITEM},
	}}}
}

// byZone is a Resolver for which fragment 1 was divided into 11 and 12, 2 and 3 were joined to 13, 4 is gone, and all
// else stays. Fragments have 100 rows.
type byZone struct{}

func (byZone) Rows(fri.FragID) (uint64, bool) { return 100, true }

func (byZone) Resolve(_ context.Context, addrs []fri.RowAddr, a *Answers) error {
	for i, x := range addrs {
		a.New[i], a.Outcome[i], a.Covered[i] = x, translate.Same, true
		o := x.Offset()
		if o >= 100 {
			a.Outcome[i], a.Covered[i] = translate.OutOfRange, false
			continue
		}
		switch x.Frag() {
		case 1:
			a.Outcome[i] = translate.Moved
			if a.New[i] = fri.Addr(11, o); o >= 50 {
				a.New[i] = fri.Addr(12, o-50)
			}
		case 2, 3:
			a.New[i], a.Outcome[i] = fri.Addr(13, o/2+uint32(x.Frag()-2)*50), translate.Moved
			if o%2 == 1 {
				a.Outcome[i] = translate.Dropped
			}
		case 4:
			a.Outcome[i], a.Covered[i] = translate.Dangling, false
		}
	}
	return nil
}

func TestMadeZones(t *testing.T) {
	stored := []zone{
		{1, 0, 20}, {1, 20, 20}, {1, 40, 20}, {1, 60, 40}, // the third is divided: 11 and 12 are not covered
		{2, 0, 1}, {2, 1, 1}, {2, 1, 9}, {3, 90, 10}, {4, 0, 100}, {5, 30, 7}, {5, 90, 100}, {5, 3, 0},
	}
	gone := func(x zone) zone { return zone{PlaceholderFragment, x.start, x.rows} }
	want := []zone{
		gone(zone{0, 0, 20}), gone(zone{0, 20, 20}), gone(stored[2]), gone(zone{0, 10, 40}),
		{13, 0, 1}, gone(stored[5]), {13, 1, 4}, {13, 95, 5}, gone(stored[8]), stored[9], {5, 90, 10}, gone(stored[11]),
	}
	nulls := set(t, "03000000 01000000"+one+"02000000"+one+"04000000"+one)
	s := memSegment("ZONEMAP", map[string][]byte{
		"zonemap.lance": madeZones("uint64", stored, map[string]string{"null_bitmap": "1"}, lancetest.Bytes(nulls)),
	})
	_, now, gaps := checkZones(t, s, "zonemap.lance", byZone{})
	if !slices.Equal(now, want) {
		t.Errorf("got %v\nwant %v", now, want)
	}
	if !slices.Equal(gaps, []fri.FragID{11, 12}) {
		t.Errorf("gaps %v", gaps)
	}
}

func TestHostileZones(t *testing.T) {
	wrong := func(m map[string]string) []byte { return madeZones("uint64", []zone{{1, 0, 5}}, m) }
	for _, c := range []struct {
		name string
		file []byte
		kind fault.Kind
		want string
	}{
		{"more rows than a fragment has", madeZones("uint64", []zone{{1, 0, 5}, {1, 1, 1 << 32}}, nil), fault.Corrupt, "row 1: 4294967296 rows from 1 on of fragment 1"},
		{"a sum that overflows", madeZones("uint64", []zone{{1, 5, ^uint64(0)}}, nil), fault.Corrupt, "row 0: 18446744073709551615 rows from 5 on"},
		{"a start past the end", madeZones("uint64", []zone{{1, 1 << 33, 0}}, nil), fault.Corrupt, "row 0: 0 rows from 8589934592 on"},
		{"columns of u32", madeZones("uint32", []zone{{1, 0, 5}}, nil), fault.Unsupported, "only u64 columns are replaced"},
		{"columns of another type", madeZones("int64", []zone{{1, 0, 5}}, nil), fault.Unsupported, `of type "int64"`},
		{"columns of 0.35.0", idsFile(1, nil, map[string][]uint64{"fragment_id": {1}, "zone_start": {0}, "zone_size": {5}}, "fragment_id", "zone_start", "zone_size").Build().All(),
			fault.Unsupported, "with a column zone_size"},
		{"no lengths", idsFile(1, nil, map[string][]uint64{"fragment_id": {1}, "zone_start": {0}}, "fragment_id", "zone_start").Build().All(), fault.Corrupt, `no column "zone_length"`},
		{"a null set that is not there", wrong(map[string]string{"null_bitmap": "3"}), fault.Corrupt, `null_bitmap says global buffer "3"`},
		{"a null set without a number", wrong(map[string]string{"null_bitmap": "x"}), fault.Corrupt, `null_bitmap says global buffer "x"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := memSegment("BLOOMFILTER", map[string][]byte{"bloomfilter.lance": c.file})
			f, err := s.Open(t.Context(), "bloomfilter.lance")
			if err == nil {
				_, err = f.Remap(t.Context(), byZone{}, Options{})
			}
			if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %v: %s", err, c.kind, c.want)
			}
		})
	}
	// A fragment id is 32 bits wide.
	b := madeZones("uint64", []zone{{1, 0, 5}}, nil)
	b[4] = 1
	s := memSegment("ZONEMAP", map[string][]byte{"zonemap.lance": b})
	f, err := s.Open(t.Context(), "zonemap.lance")
	noError(t, err)
	if _, err := f.ZoneGaps(t.Context(), byZone{}); fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "of fragment 4294967297") {
		t.Errorf("a fragment id of 33 bits: %v", err)
	}
	k, err := f.Scan(t.Context(), Position{})
	noError(t, err)
	if err := k.Next(t.Context(), &Batch{}, 10); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("its scan: %v", err)
	}
	// Columns of u32 are listed, and stay where nothing moved.
	s = memSegment("ZONEMAP", map[string][]byte{"zonemap.lance": madeZones("uint32", []zone{{5, 0, 5}, {6, 1, 2}}, nil)})
	if _, now, _ := checkZones(t, s, "zonemap.lance", byZone{}); !slices.Equal(now, []zone{{5, 0, 5}, {6, 1, 2}}) {
		t.Errorf("zones of u32: %v", now)
	}
}
