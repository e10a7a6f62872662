package indexfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/spill"
	"github.com/frifs/frifs/translate"
)

// anySet is a real file of a type, with its segment in memory.
func anySet(tb testing.TB, typ, path string) []byte {
	tb.Helper()
	w := openWorldAt(tb, filepath.Join(unpackSets(tb), "small22.lance"), "own/small22", 15)
	for _, ix := range w.m.Indices {
		if ix.Type != typ {
			continue
		}
		r, err := w.segment(ix).OpenRaw(tb.Context(), path)
		noError(tb, err)
		defer r.Close()
		b := make([]byte, r.Size())
		noError(tb, readFull(tb.Context(), r, b, 0))
		return b
	}
	tb.Fatalf("no index of type %s", typ)
	return nil
}

// withSets replaces the sets of a file, and its global buffer 1 if global is not nil. nil stands for a null.
func withSets(tb testing.TB, stored []byte, column string, cells [][]byte, global []byte) []byte {
	tb.Helper()
	f, err := lancefile.Open(tb.Context(), bytes.NewReader(stored), int64(len(stored)))
	noError(tb, err)
	number, _, err := f.Column(column)
	noError(tb, err)
	w, err := lancefile.NewCellWriter(tb.Context(), f, number, spill.New("", 1<<30), lancefile.CellOptions{})
	noError(tb, err)
	for i := range f.Rows() {
		cell := cells[min(int(i), len(cells)-1)]
		noError(tb, w.Append(cell, cell == nil))
	}
	pages, err := w.Finish()
	noError(tb, err)
	e := lancefile.Edit{Cells: []lancefile.CellPages{pages}}
	if global != nil {
		e.Globals = map[int]lancefile.Piece{1: lancefile.Bytes(global)}
	}
	s, err := lancefile.Synthesise(tb.Context(), f, e)
	noError(tb, err)
	return wholeOf(tb, synthesised{s})
}

// fake is a Resolver of a table in which the rows of fragment 7 are gone, those of 8 unresolved, those of 9 masked, all
// others moved to fragment+100, in reverse. Fragments below 50 have 10 rows, the others are not known.
type fake struct{}

func (fake) Rows(f fri.FragID) (uint64, bool) { return 10, f < 50 }

func (fake) Resolve(_ context.Context, addrs []fri.RowAddr, a *Answers) error {
	for i, x := range addrs {
		a.New[i], a.Outcome[i], a.Covered[i] = fri.Addr(x.Frag()+100, ^x.Offset()), translate.Moved, true
		switch x.Frag() {
		case 7:
			a.Outcome[i] = translate.Dropped
		case 8:
			a.Outcome[i] = translate.Unresolved
		case 9:
			a.Covered[i] = false
		}
	}
	return nil
}

func set(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	noError(tb, err)
	return b
}

// one is the bitmap of offset 0, with its size before it.
const one = " 12000000 3a300000 01000000 0000 0000 10000000 0000 "

func TestSetsWithGapsAndWholeFragments(t *testing.T) {
	stored := anySet(t, "LABEL_LIST", "bitmap_page_lookup.lance")
	cells := [][]byte{
		nil,
		set(t, "00000000"),
		set(t, "03000000 01000000"+one+"07000000"+one+"0a000000"+one),
		set(t, "02000000 07000000 00000000 08000000"+one),                     // all gone
		set(t, "03000000 09000000"+one+"0b000000 00000000 3c000000 00000000"), // masked, whole, whole and unknown
	}
	b := withSets(t, stored, "bitmaps", cells, set(t, "02000000 02000000"+one+"03000000 00000000"))
	s := memSegment("LABEL_LIST", map[string][]byte{"bitmap_page_lookup.lance": b})
	f, err := s.Open(t.Context(), "bitmap_page_lookup.lance")
	noError(t, err)
	if got := strings.Join(f.Addresses, ", "); got != "bitmaps, global buffer 1" {
		t.Errorf("addresses are in %s", got)
	}
	c, err := f.Remap(t.Context(), fake{}, Options{})
	noError(t, err)
	got := bySet(scanFrom(t, reopened(t, s, "bitmap_page_lookup.lance", wholeOf(t, c)), Position{}, 3))
	moved := func(f fri.FragID, n uint32) (all []fri.RowAddr) {
		for o := n; o > 0; o-- {
			all = append(all, fri.Addr(f+100, ^(o-1)))
		}
		return all
	}
	for row, want := range map[uint64][]fri.RowAddr{
		0: nil, 1: nil, 2: append(moved(1, 1), moved(10, 1)...), 3: nil, 4: moved(11, 10), NoRow: append(moved(2, 1), moved(3, 10)...),
	} {
		if !slices.Equal(got[row], want) {
			t.Errorf("row %d: got %v, want %v", int64(row), got[row], want)
		}
	}
	// What a cursor cannot count, it names: the whole fragments.
	k, err := f.Scan(t.Context(), Position{})
	noError(t, err)
	for b := (Batch{}); ; {
		noError(t, k.Next(t.Context(), &b, 100))
		if len(b.Addrs) == 0 {
			break
		}
	}
	p, ok := k.(Partial)
	if !ok {
		t.Fatal("a cursor over sets is no Partial")
	}
	rows := int(f.Rows) - 4 // the last cell stands in all rows from 4 on
	want := []fri.FragID{7}
	for range rows {
		want = append(want, 11, 60)
	}
	if want = append(want, 3); !slices.Equal(p.Unknown(), want) {
		t.Errorf("unknown: got %v, want %v", p.Unknown(), want)
	}
}

func TestHostileSets(t *testing.T) {
	bitmaps := anySet(t, "LABEL_LIST", "bitmap_page_lookup.lance")
	grams := anySet(t, "NGRAM", "ngram_postings.lance")
	good := set(t, "00000000")
	huge := binary.LittleEndian.AppendUint32(nil, 1<<31)
	for _, c := range []struct {
		name, typ, path, column string
		file                    []byte
		want                    string
	}{
		{"an empty cell", "BITMAP", "bitmap_page_lookup.lance", "bitmaps", withSets(t, bitmaps, "bitmaps", [][]byte{good, {}}, nil), `column "bitmaps", row 1`},
		{"fragments that descend", "BITMAP", "bitmap_page_lookup.lance", "bitmaps",
			withSets(t, bitmaps, "bitmaps", [][]byte{set(t, "02000000 02000000 00000000 01000000 00000000")}, nil), "fragment 1 after fragment 2"},
		{"a fragment twice", "BITMAP", "bitmap_page_lookup.lance", "bitmaps",
			withSets(t, bitmaps, "bitmaps", [][]byte{set(t, "02000000 02000000"+one+"02000000"+one)}, nil), "fragment 2 after fragment 2"},
		{"2^31 containers", "BITMAP", "bitmap_page_lookup.lance", "bitmaps",
			withSets(t, bitmaps, "bitmaps", [][]byte{append(set(t, "01000000 02000000 08000000 3a300000"), huge...)}, nil), "2147483648 containers"},
		{"2^31 fragments", "BITMAP", "bitmap_page_lookup.lance", "bitmaps", withSets(t, bitmaps, "bitmaps", [][]byte{huge}, nil), "claims 2147483648 fragments"},
		{"a null set that is none", "LABEL_LIST", "bitmap_page_lookup.lance", "bitmaps",
			withSets(t, bitmaps, "bitmaps", [][]byte{good}, []byte{1}), "global buffer 1 (lance:label_list_nulls)"},
		{"a tree among treemaps", "NGRAM", "ngram_postings.lance", "posting_list", withSets(t, grams, "posting_list", [][]byte{good}, nil), "needs 8 bytes, there are 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := memSegment(c.typ, map[string][]byte{c.path: c.file})
			f, err := s.Open(t.Context(), c.path)
			noError(t, err)
			if _, err = f.Remap(t.Context(), fake{}, Options{}); fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Remap: got %v, want corrupt: %s", err, c.want)
			}
			k, err := f.Scan(t.Context(), Position{})
			noError(t, err)
			for n := 0; err == nil && n < 10000; n++ {
				b := Batch{}
				if err = k.Next(t.Context(), &b, 100); len(b.Addrs) == 0 && err == nil {
					break
				}
			}
			if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Scan: got %v, want corrupt: %s", err, c.want)
			}
		})
	}
}

func TestSetsThatCannotBeOpened(t *testing.T) {
	column := func(name, typ string) lancetest.Column { return lancetest.Column{Name: name, Type: typ} }
	for _, c := range []struct {
		name string
		file lancetest.File
		kind fault.Kind
		want string
	}{
		{"no column of sets", lancetest.File{Columns: []lancetest.Column{column("keys", "uint64")}}, fault.Corrupt, `no column "bitmaps"`},
		{"sets that are numbers", lancetest.File{Columns: []lancetest.Column{column("bitmaps", "uint64")}}, fault.Corrupt, `of type "uint64", not binary`},
		{"a null set that is the schema", lancetest.File{Columns: []lancetest.Column{column("bitmaps", "binary")},
			Metadata: map[string]string{"lance:label_list_nulls": "0"}}, fault.Corrupt, `says global buffer "0"`},
		{"a null set that is not there", lancetest.File{Columns: []lancetest.Column{column("bitmaps", "binary")},
			Metadata: map[string]string{"lance:label_list_nulls": "7"}}, fault.Corrupt, `the buffers 0 (its schema) to 0`},
		{"a null set without a number", lancetest.File{Columns: []lancetest.Column{column("bitmaps", "binary")},
			Metadata: map[string]string{"lance:label_list_nulls": "-1"}}, fault.Corrupt, `says global buffer "-1"`},
		{"2^63 rows in no page", lancetest.File{Columns: []lancetest.Column{column("bitmaps", "binary")}, Rows: 1 << 62}, fault.Corrupt, "pages hold"},
	} {
		c.file.Major, c.file.Minor = 2, 1
		s := memSegment("BITMAP", map[string][]byte{"bitmap_page_lookup.lance": c.file.Build().All()})
		if _, err := s.Open(t.Context(), "bitmap_page_lookup.lance"); fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %v: %s", c.name, err, c.kind, c.want)
		}
	}
}

// What a resolver says is wrong is told, and nothing is left in the folder.
func TestSetsThatCannotBeTranslated(t *testing.T) {
	s := memSegment("BITMAP", map[string][]byte{"bitmap_page_lookup.lance": anySet(t, "BITMAP", "bitmap_page_lookup.lance")})
	f, err := s.Open(t.Context(), "bitmap_page_lookup.lance")
	noError(t, err)
	if _, err := f.Remap(t.Context(), refusing{fake{}}, Options{}); fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "labels") {
		t.Errorf("got %v, want the resolver's error", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Remap(ctx, fake{}, Options{}); fault.KindOf(err) != fault.Cancelled {
		t.Errorf("got %v, want cancelled", err)
	}
	if _, err := f.Remap(t.Context(), fake{}, Options{SpillAbove: 10}); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("no folder and a bound of 10 bytes: got %v, want too_large", err)
	}
}

func TestRowIDSetsAreNeverTranslated(t *testing.T) {
	b := anySet(t, "BITMAP", "bitmap_page_lookup.lance")
	s := memSegment("BITMAP", map[string][]byte{"bitmap_page_lookup.lance": b})
	s.Domain = DomainRowID
	f, err := s.Open(t.Context(), "bitmap_page_lookup.lance")
	noError(t, err)
	c, err := f.Remap(t.Context(), refusing{fake{}}, Options{})
	noError(t, err)
	if !bytes.Equal(wholeOf(t, c), b) {
		t.Error("row ids were changed")
	}
}

// fuzzFile opens a file in a segment, lists its first addresses and remaps it; all may fail, with a kind.
func fuzzFile(t *testing.T, typ, path string, b []byte) {
	s := memSegment(typ, map[string][]byte{path: b})
	f, err := s.Open(t.Context(), path)
	if kinded(t, err) {
		return
	}
	if k, err := f.Scan(t.Context(), Position{}); !kinded(t, err) {
		batch := Batch{}
		for range 20 {
			if kinded(t, k.Next(t.Context(), &batch, 1000)) || len(batch.Addrs) == 0 {
				break
			}
		}
	}
	_, err = f.ZoneGaps(t.Context(), fake{})
	kinded(t, err)
	c, err := f.Remap(t.Context(), fake{}, Options{SpillAbove: 1 << 20})
	if kinded(t, err) {
		return
	}
	if c.Size() > 1<<26 {
		return
	}
	made := make([]byte, c.Size())
	if n, err := c.ReadAt(t.Context(), made, 0); !kinded(t, err) && n != len(made) {
		t.Fatalf("%d of %d bytes", n, len(made))
	}
}

// kinded reports whether there is an error, which must say what kind it is.
func kinded(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && fault.KindOf(err) == fault.Unknown {
		t.Fatalf("an error without a kind: %v", err)
	}
	return err != nil
}

// seedFiles adds the real files of some types to a corpus, and some with a byte changed.
func seedFiles(f *testing.F, types []string, hows ...How) {
	dir := unpackSets(f)
	for _, table := range []string{"small20", "small21", "small22", "small23"} {
		w := openWorldAt(f, filepath.Join(dir, table+".lance"), "own/"+table, 15)
		for _, ix := range w.m.Indices {
			kind := slices.Index(types, ix.Type)
			if kind < 0 {
				continue
			}
			addSegment(f, w.segment(ix), kind, hows)
		}
	}
}

func addSegment(f *testing.F, s *Segment, kind int, hows []How) {
	for _, x := range s.Files {
		if how, err := s.How(x.Path); err != nil || !slices.Contains(hows, how) || x.Size > 20_000 {
			continue
		}
		r, err := s.OpenRaw(f.Context(), x.Path)
		noError(f, err)
		b := make([]byte, r.Size())
		noError(f, readFull(f.Context(), r, b, 0))
		noError(f, r.Close())
		f.Add(b, uint8(kind))
		for i := 1; i < 4; i++ {
			broken := slices.Clone(b)
			broken[len(b)*i/4] ^= 0x11
			f.Add(broken, uint8(kind))
		}
	}
}

func FuzzSets(f *testing.F) {
	seedFiles(f, setTypes, Reserialised)
	paths := []string{"bitmap_page_lookup.lance", "bitmap_page_lookup.lance", "ngram_postings.lance", "nulls.lance"}
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		k := int(kind) % len(setTypes)
		fuzzFile(t, setTypes[k], paths[k], b)
	})
}

func FuzzZones(f *testing.F) {
	seedFiles(f, zoneTypes, Zones)
	paths := []string{"zonemap.lance", "bloomfilter.lance"}
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		k := int(kind) % len(zoneTypes)
		fuzzFile(t, zoneTypes[k], paths[k], b)
	})
}
