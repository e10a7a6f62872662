package indexfile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/translate"
)

// oldFTS visits the two full-text segments of testdata/legacy_fts.tar.zst (integration/py/make_legacy_fts.py).
func oldFTS(tb testing.TB, visit func(w *world, ix *dataset.Index, s *Segment)) {
	tb.Helper()
	w := openWorldAt(tb, filepath.Join(unpack(tb, "legacy_fts.tar.zst"), "fts.lance"), "own/fts", 0)
	n := 0
	for _, ix := range w.m.Indices {
		if !System(ix) {
			n++
			visit(w, ix, w.segment(ix))
		}
	}
	if n != 2 {
		tb.Errorf("%d indices", n)
	}
}

// readPostings reads a file of postings whole, in the order of its rows.
func readPostings(tb testing.TB, f *File) (all []posting) {
	tb.Helper()
	p := f.body.(*postingsFile)
	ids, frequencies := make([]fri.RowAddr, f.Rows), make([]uint32, f.Rows)
	noError(tb, p.read(tb.Context(), 0, ids))
	_, err := p.frequencies.Read(tb.Context(), 0, frequencies, nil)
	noError(tb, err)
	for i := range ids {
		all = append(all, posting{addr: uint64(ids[i]), frequency: frequencies[i]})
	}
	if p.positions != nil {
		a, err := p.readPositions(tb.Context(), 0, f.Rows)
		noError(tb, err)
		for i := range all {
			all[i].positions = a.Child.Fixed[4*a.Offsets[i] : 4*a.Offsets[i+1]]
		}
	}
	return all
}

// wantPostings translates all postings at once and sorts those of each token.
func wantPostings(tb testing.TB, r Resolver, starts []uint64, in []posting) []posting {
	tb.Helper()
	out := slices.Clone(in)
	var addrs []fri.RowAddr
	for _, p := range in {
		addrs = append(addrs, fri.RowAddr(p.addr))
	}
	a := answersFor(tb, r, addrs)
	for i := range out {
		if out[i].addr = uint64(Placeholder(uint64(i))); a.Keep(i) {
			out[i].addr = uint64(a.New[i])
		}
	}
	for i := 1; i < len(starts); i++ {
		slices.SortStableFunc(out[starts[i-1]:starts[i]], func(a, b posting) int { return cmp.Compare(a.addr, b.addr) })
	}
	return out
}

// checkPostings remaps a file and compares every row. It returns how many rows are placeholders, and how many have
// another place than before.
func checkPostings(t *testing.T, s *Segment, r Resolver, o Options) (gone, moved int) {
	t.Helper()
	f, err := s.Open(t.Context(), "invert.lance")
	noError(t, err)
	starts, err := f.body.(*postingsFile).starts()
	noError(t, err)
	stored := readPostings(t, f)
	want := wantPostings(t, r, starts, stored)
	c, err := f.Remap(t.Context(), r, o)
	noError(t, err)
	defer c.Close()
	made := wholeOf(t, c)
	randomReads(t, c, made)
	g := reopened(t, s, "invert.lance", made)
	for i, p := range readPostings(t, g) {
		if p.addr != want[i].addr || p.frequency != want[i].frequency || !bytes.Equal(p.positions, want[i].positions) {
			t.Fatalf("row %d: got %v of frequency %x at %v, want %v of frequency %x at %v",
				i, fri.RowAddr(p.addr), p.frequency, p.positions, fri.RowAddr(want[i].addr), want[i].frequency, want[i].positions)
		}
		if fri.RowAddr(p.addr).Frag() == PlaceholderFragment {
			gone++
		} else if p.frequency != stored[i].frequency || !bytes.Equal(p.positions, stored[i].positions) {
			moved++
		}
	}
	again, err := g.body.(*postingsFile).starts()
	if noError(t, err); !slices.Equal(again, starts) {
		t.Errorf("offsets %v, want %v", again, starts)
	}
	return gone, moved
}

func TestRealPostings(t *testing.T) {
	positions := 0
	oldFTS(t, func(w *world, ix *dataset.Index, s *Segment) {
		if s.Type != "INVERTED" || s.Domain != DomainAddress {
			t.Fatalf("type %q, domain %s", s.Type, s.Domain)
		}
		gone, moved := checkPostings(t, s, w.resolver(ix), Options{})
		if gone == 0 || moved == 0 {
			t.Errorf("%s: %d rows are gone, %d have another place", ix.Name, gone, moved)
		}
		f, err := s.Open(t.Context(), "invert.lance")
		noError(t, err)
		if f.body.(*postingsFile).positions != nil {
			positions++
		}
		rows, addrs := everyAddress(t, f)
		for i, p := range readPostings(t, f) {
			if addrs[i] != fri.RowAddr(p.addr) || rows[i] != uint64(i) {
				t.Fatalf("row %d: listed %v as row %d, want %v", i, addrs[i], rows[i], fri.RowAddr(p.addr))
			}
		}
		stored := make([]byte, f.raw.Size())
		noError(t, readFull(t.Context(), f.raw, stored, 0))
		c, err := f.Remap(t.Context(), staying{}, Options{})
		noError(t, err)
		defer c.Close()
		if !bytes.Equal(wholeOf(t, c), stored) {
			t.Errorf("%s: other bytes, although no row moved", ix.Name)
		}
	})
	if positions != 1 {
		t.Errorf("%d indices have positions", positions)
	}
}

// madePostings makes a file of version 2.0, in which row i has the address addr(i) and count(i) positions; starts are the
// offsets.
func madePostings(rows int, addr func(i int) uint64, starts []int, count func(i int) int, change func(*lancetest.File)) []byte {
	var ids, frequencies, ends, items []byte
	for i := range rows {
		ids = binary.LittleEndian.AppendUint64(ids, addr(i))
		frequencies = binary.LittleEndian.AppendUint32(frequencies, uint32(i))
		for k := range count(i) {
			items = binary.LittleEndian.AppendUint32(items, uint32(i+k<<20))
		}
		ends = binary.LittleEndian.AppendUint64(ends, uint64(len(items)/4))
	}
	flat := func(bits uint64) *pb.ArrayEncoding {
		return &pb.ArrayEncoding{ArrayEncoding: &pb.ArrayEncoding_Nullable_{Nullable: &pb.ArrayEncoding_Nullable{Nullability: &pb.ArrayEncoding_Nullable_NoNulls_{
			NoNulls: &pb.ArrayEncoding_Nullable_NoNulls{Values: &pb.ArrayEncoding{ArrayEncoding: &pb.ArrayEncoding_Flat_{
				Flat: &pb.ArrayEncoding_Flat{BitsPerValue: bits, Buffer: &pb.ArrayEncoding_Buffer{}}}}}}}}}
	}
	n := uint64(len(items) / 4)
	list := &pb.ArrayEncoding{ArrayEncoding: &pb.ArrayEncoding_List_{List: &pb.ArrayEncoding_List{Offsets: flat(64), NumItems: n, NullOffsetAdjustment: n + 1}}}
	pages := func(rows uint64, b []byte, e *pb.ArrayEncoding) []lancetest.Page {
		return []lancetest.Page{{Rows: rows, Buffers: []lancetest.Buffer{lancetest.Bytes(b)}, Encoding: e}}
	}
	field := func(id, parent int32, name, typ string) *pb.FileField {
		return &pb.FileField{Id: id, ParentId: parent, Name: name, LogicalType: typ, Encoding: 1}
	}
	offsets := make([]string, len(starts))
	for i, s := range starts {
		offsets[i] = strconv.Itoa(s)
	}
	f := lancetest.File{Major: 0, Minor: 3, Rows: uint64(rows), Metadata: map[string]string{"offsets": "[" + strings.Join(offsets, ",") + "]"},
		Fields: []*pb.FileField{field(0, -1, "_rowid", "uint64"), field(1, -1, "_frequency", "float"), field(2, -1, "_position", "list"), field(3, 2, "item", "int32")},
		Columns: []lancetest.Column{{Pages: pages(uint64(rows), ids, flat(64))}, {Pages: pages(uint64(rows), frequencies, flat(32))},
			{Pages: pages(uint64(rows), ends, list)}, {Pages: pages(n, items, flat(32))}}}
	if change != nil {
		change(&f)
	}
	return f.Build().All()
}

// oldSegment is a full-text segment in memory whose postings are b.
func oldSegment(b []byte) *Segment {
	return memSegment("INVERTED", map[string][]byte{"invert.lance": b, "docs.lance": nil, "tokens.lance": nil})
}

// scattering is a Resolver under which rows land anywhere in fragment 1000, each in a place of its own, but for every
// seventh, which is gone.
type scattering struct{}

func (scattering) Rows(fri.FragID) (uint64, bool) { return 0, false }

func (scattering) Resolve(_ context.Context, addrs []fri.RowAddr, a *Answers) error {
	for i, x := range addrs {
		a.New[i], a.Outcome[i], a.Covered[i] = fri.Addr(1000, x.Offset()*0x9E3779B1), translate.Moved, true
		if x.Offset()%7 == 0 {
			a.Outcome[i], a.Covered[i] = translate.Dropped, false
		}
	}
	return nil
}

// Postings of any length, from none to many batches, some of them with equal addresses.
func TestMadePostings(t *testing.T) {
	const rows = 2*postingRows + 100
	for _, c := range []struct {
		name   string
		addr   func(i int) uint64
		starts []int
		count  func(i int) int
	}{
		{"one token", func(i int) uint64 { return uint64(i) }, []int{0}, func(i int) int { return i % 3 }},
		{"small and large ones", func(i int) uint64 { return uint64(i % 20_000) }, []int{0, 0, 5, 7, 7, 900, 1000, 20_000, rows - 3, rows, rows}, func(i int) int { return i % 3 }},
		{"none with positions", func(i int) uint64 { return uint64(i / 2) }, []int{0, 100}, func(int) int { return 0 }},
		{"long lists", func(i int) uint64 { return uint64(i) }, []int{0, 10}, func(i int) int { return 1 + i%1000*(i%1009/1008) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := oldSegment(madePostings(rows, c.addr, c.starts, c.count, nil))
			for _, r := range []Resolver{scattering{}, shifting{}} {
				checkPostings(t, s, r, Options{SpillDir: t.TempDir(), SpillAbove: 1})
			}
			f, err := s.Open(t.Context(), "invert.lance")
			noError(t, err)
			defer f.Close()
			if _, err := f.Remap(t.Context(), scattering{}, Options{SpillAbove: 1000}); fault.KindOf(err) != fault.TooLarge {
				t.Errorf("without a folder to spill to: %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := f.Remap(ctx, scattering{}, Options{SpillDir: t.TempDir()}); err == nil {
				t.Error("a cancelled context has no effect")
			}
		})
	}
}

func TestBadPostings(t *testing.T) {
	meta := func(key, value string) func(*lancetest.File) {
		return func(f *lancetest.File) { f.Metadata = map[string]string{key: value} }
	}
	for _, c := range []struct {
		name   string
		change func(*lancetest.File)
		kind   fault.Kind
		say    string
	}{
		{"no offsets", meta("max_scores", "[1]"), fault.Corrupt, "no offsets"},
		{"offsets of another form", meta("offsets", `{"a":1}`), fault.Corrupt, "offsets in the schema metadata"},
		{"negative offsets", meta("offsets", "[0,-1]"), fault.Corrupt, "offsets in the schema metadata"},
		{"offsets that do not begin with 0", meta("offsets", "[1,2]"), fault.Corrupt, "begin with row 1"},
		{"no token", meta("offsets", "[]"), fault.Corrupt, "begin with row 10"},
		{"offsets that descend", meta("offsets", "[0,5,4]"), fault.Corrupt, "token 2 begin with row 4, after row 5"},
		{"offsets past the end", meta("offsets", "[0,11]"), fault.Corrupt, "token 2 begin with row 10, after row 11"},
		{"a newer version", func(f *lancetest.File) { f.Major, f.Minor = 2, 1 }, fault.Unsupported, "in file version 2.1"},
		{"no frequencies", func(f *lancetest.File) { f.Fields, f.Columns = f.Fields[:1], f.Columns[:1] }, fault.Corrupt, `no column "_frequency"`},
		{"frequencies of another type", func(f *lancetest.File) { f.Fields[1].LogicalType = "uint32" }, fault.Unsupported, `column "_frequency" of type "uint32"`},
		{"a column more", func(f *lancetest.File) { f.Fields[2].Name = "_impact" }, fault.Unsupported, `column "_impact" of type "list"`},
		{"no addresses", func(f *lancetest.File) { f.Fields[0].Name = "id" }, fault.Corrupt, `no column "_rowid"`},
		{"a list past its items", func(f *lancetest.File) { f.Columns[3].Pages[0].Rows = 3 }, fault.Corrupt, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := madePostings(10, func(i int) uint64 { return uint64(i) }, []int{0, 4}, func(int) int { return 1 }, c.change)
			f, err := oldSegment(b).Open(t.Context(), "invert.lance")
			if err == nil {
				defer f.Close()
				_, err = f.Remap(t.Context(), scattering{}, Options{})
			}
			if fault.KindOf(err) != c.kind || !strings.Contains(fmt.Sprint(err), c.say) {
				t.Errorf("got %v (%v), want %v with %q", err, fault.KindOf(err), c.kind, c.say)
			}
		})
	}
}

// A null has no place among positions.
func TestNullPositions(t *testing.T) {
	b := madePostings(4, func(i int) uint64 { return uint64(i) }, []int{0}, func(int) int { return 1 }, func(f *lancetest.File) {
		l := f.Columns[2].Pages[0].Encoding.(*pb.ArrayEncoding).GetList()
		f.Columns[2].Nullable = true
		l.NumItems, l.NullOffsetAdjustment = 4, 1 // the ends 2, 3 and 4 are now those of nulls
	})
	f, err := oldSegment(b).Open(t.Context(), "invert.lance")
	noError(t, err)
	defer f.Close()
	if _, err := f.Remap(t.Context(), scattering{}, Options{}); !kinded(t, err) {
		t.Error("no error")
	}
}

func FuzzPostings(f *testing.F) {
	oldFTS(f, func(_ *world, _ *dataset.Index, s *Segment) { addSegment(f, s, 0, []How{Reserialised, Flat}) })
	f.Add(madePostings(9, func(i int) uint64 { return uint64(i % 4) }, []int{0, 3, 3}, func(i int) int { return i % 2 }, nil), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, _ uint8) {
		s := oldSegment(b)
		x, err := s.Open(t.Context(), "invert.lance")
		if kinded(t, err) {
			return
		}
		c, err := x.Remap(t.Context(), fake{}, Options{SpillAbove: 1 << 20})
		if kinded(t, err) || c.Size() > 1<<26 {
			return
		}
		defer c.Close()
		made := make([]byte, c.Size())
		if n, err := c.ReadAt(t.Context(), made, 0); !kinded(t, err) && n != len(made) {
			t.Fatalf("%d of %d bytes", n, len(made))
		}
	})
}

// BenchmarkRemapPostings translates 3,000,000 postings of one token, with a position each.
func BenchmarkRemapPostings(b *testing.B) {
	const rows = 3_000_000
	content := madePostings(rows, func(i int) uint64 { return uint64(i) }, []int{0}, func(int) int { return 1 }, nil)
	for _, c := range []struct {
		name string
		r    Resolver
	}{{"in order", shifting{}}, {"in any order", scattering{}}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f, err := oldSegment(content).Open(b.Context(), "invert.lance")
				noError(b, err)
				x, err := f.Remap(b.Context(), c.r, Options{SpillDir: b.TempDir()})
				noError(b, err)
				noError(b, x.Close())
			}
			b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
