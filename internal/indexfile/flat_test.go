package indexfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/testdata"
)

// families are the folders of test datasets whose index files official Lance described.
func families() []string { return []string{"legacy", "tagged"} }

// eachSegment visits the segments of the latest version of every dataset that are no system entries.
func eachSegment(t *testing.T, visit func(t *testing.T, w *world, ix *dataset.Index, s *Segment)) {
	for _, family := range families() {
		for _, name := range testdata.Names(t, family) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := openWorld(t, name, 0)
				for _, ix := range w.m.Indices {
					if !System(ix) {
						visit(t, w, ix, w.segment(ix))
					}
				}
			})
		}
	}
}

func TestStoredAddressesAreThoseThatLanceFound(t *testing.T) {
	eachSegment(t, func(t *testing.T, w *world, ix *dataset.Index, s *Segment) {
		if s.Domain != DomainAddress {
			return
		}
		want := expectedContents(t, w.name)[ix.UUID]
		for _, sf := range s.Files {
			how, err := s.How(sf.Path)
			if err != nil {
				t.Errorf("%s %s: %v", ix.Name, sf.Path, err)
			}
			if how != Flat && how != InPlace {
				continue
			}
			f, err := s.Open(t.Context(), sf.Path)
			if err != nil {
				t.Errorf("%s %s: %v", ix.Name, sf.Path, err)
				continue
			}
			rows, addrs := storedAddresses(t, f)
			for i := range rows {
				if rows[i] != uint64(i) {
					t.Fatalf("%s %s: entry %d has row %d", ix.Name, sf.Path, i, rows[i])
				}
			}
			if c, ok := want[sf.Path+":"+f.Addresses[0]]; ok {
				compareContent(t, ix.Name+" "+sf.Path, c, addrs)
			}
			noError(t, f.Close())
		}
	})
}

// compareContent compares the addresses of a file with what official Lance found there.
func compareContent(t *testing.T, where string, want content, addrs []fri.RowAddr) {
	t.Helper()
	if want.Entries == nil || *want.Entries != uint64(len(addrs)) {
		t.Errorf("%s: %d addresses, want %v", where, len(addrs), want.Entries)
		return
	}
	if want.SHA256 == "" {
		return
	}
	bytes := make([]byte, 0, 8*len(addrs))
	per := map[uint64]uint64{}
	for _, a := range addrs {
		bytes = binary.LittleEndian.AppendUint64(bytes, uint64(a))
		per[uint64(a.Frag())]++
	}
	if sum := sha256.Sum256(bytes); hex.EncodeToString(sum[:]) != want.SHA256 {
		t.Errorf("%s: SHA-256 %x, want %s", where, sum, want.SHA256)
	}
	for _, p := range want.PerFragment {
		if per[p[0]] != p[1] {
			t.Errorf("%s: %d addresses in fragment %d, want %d", where, per[p[0]], p[0], p[1])
		}
	}
	if len(per) != len(want.PerFragment) {
		t.Errorf("%s: addresses in %d fragments, want %d", where, len(per), len(want.PerFragment))
	}
}

// wantRemapped is what a remapped file holds in the rows from first on for stored addresses.
func wantRemapped(tb testing.TB, r Resolver, first uint64, addrs []fri.RowAddr) []fri.RowAddr {
	tb.Helper()
	a := answersFor(tb, r, addrs)
	out := make([]fri.RowAddr, len(addrs))
	for i := range addrs {
		if out[i] = fri.Addr(0xFFFFFFFE, uint32(first)+uint32(i)); a.Covered[i] && a.Outcome[i].HasAddress() {
			out[i] = a.New[i]
		}
	}
	return out
}

// reopen opens a made file as any reader of the type would.
func reopen(tb testing.TB, s *Segment, path string, c Content) *File {
	tb.Helper()
	t := *s
	t.OpenRaw = func(ctx context.Context, p string) (Reader, error) {
		if p != path {
			return s.OpenRaw(ctx, p)
		}
		return contentReader{c}, nil
	}
	f, err := t.Open(context.Background(), path)
	noError(tb, err)
	return f
}

// addressesOf reads all addresses of a made file.
func addressesOf(tb testing.TB, s *Segment, path string, c Content) []uint64 {
	tb.Helper()
	_, addrs := storedAddresses(tb, reopen(tb, s, path, c))
	out := make([]uint64, len(addrs))
	for i, a := range addrs {
		out[i] = uint64(a)
	}
	return out
}

// someAddresses lists n addresses of a file from a row on, fewer at the end.
func someAddresses(tb testing.TB, f *File, from uint64, n int) []fri.RowAddr {
	tb.Helper()
	c, err := f.Scan(context.Background(), Position{Row: from})
	noError(tb, err)
	var out []fri.RowAddr
	for len(out) < n {
		var b Batch
		noError(tb, c.Next(context.Background(), &b, min(n-len(out), 7000)))
		if len(b.Addrs) == 0 {
			break
		}
		if b.Rows[0] != from+uint64(len(out)) {
			tb.Fatalf("%s: row %d after %d rows from %d on", f.Path, b.Rows[0], len(out), from)
		}
		out = append(out, b.Addrs...)
	}
	return out
}

func TestRemappedAddressesAreTranslatedOnes(t *testing.T) {
	seen := newTally()
	eachSegment(t, func(t *testing.T, w *world, ix *dataset.Index, s *Segment) {
		if s.Domain != DomainAddress {
			return
		}
		full := w.resolver(ix)
		for _, sf := range s.Files {
			how, err := s.How(sf.Path)
			noError(t, err)
			if how != Flat && how != InPlace && how != Verbatim {
				continue
			}
			f, err := s.Open(t.Context(), sf.Path)
			noError(t, err)
			c, err := f.Remap(t.Context(), full, Options{})
			if err != nil {
				t.Errorf("%s %s: %v", ix.Name, sf.Path, err)
				continue
			}
			if c.Size() < 1<<20 {
				randomReads(t, c, wholeOf(t, c))
			}
			if how == Verbatim {
				if got, want := wholeOf(t, c), wholeOf(t, &stored{f}); !bytes.Equal(got, want) {
					t.Errorf("%s %s: a file without addresses has other bytes", ix.Name, sf.Path)
				}
				continue
			}
			seen.add("version " + f.Version)
			seen.add("type " + s.Type)
			made := reopen(t, s, sf.Path, c)
			const most = 20000
			for _, from := range []uint64{0, f.Rows / 2, max(f.Rows, most) - most} {
				addrs := someAddresses(t, f, from, most)
				got, want := someAddresses(t, made, from, most), wantRemapped(t, full, from, addrs)
				if !slices.Equal(got, want) {
					t.Errorf("%s %s: addresses from row %d on differ:\n got %v\nwant %v", ix.Name, sf.Path, from, head(got), head(want))
				}
				seen.outcomes(addrs, got)
				if len(addrs) == int(f.Rows) {
					break
				}
			}
			noError(t, c.Close())
		}
	})
	t.Cleanup(func() {
		seen.must(t, "version 2.0", "version 2.1", "version 2.2", "version 2.3", "kept", "moved", "placeholder",
			"type BTREE", "type VECTOR", "type INVERTED", "type MINHASH_LSH", "type RTREE", "type FM", "type JSON")
	})
}

// tally counts what a test over all datasets met.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func newTally() *tally { return &tally{n: map[string]int{}} }

func (y *tally) add(what string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.n[what]++
}

func (y *tally) outcomes(stored, made []fri.RowAddr) {
	for i, a := range stored[:min(len(stored), len(made))] {
		switch {
		case made[i].Frag() == PlaceholderFragment:
			y.add("placeholder")
		case a == made[i]:
			y.add("kept")
		default:
			y.add("moved")
		}
	}
}

// must fails the test if something was not met.
func (y *tally) must(t *testing.T, what ...string) {
	t.Helper()
	for _, w := range what {
		if y.n[w] == 0 {
			t.Errorf("no test data for %q: %v", w, y.n)
		}
	}
}

func head(v []fri.RowAddr) []fri.RowAddr { return v[:min(len(v), 12)] }

// randomReads compares reads at random places with the whole.
func randomReads(tb testing.TB, c Content, want []byte) {
	tb.Helper()
	rng := rand.New(rand.NewPCG(1, uint64(len(want))))
	most := min(len(want)+100, 1<<16)
	for range 20 {
		off := rng.IntN(len(want) + 9)
		n := rng.IntN(300)
		if rng.IntN(4) == 0 {
			n = rng.IntN(most)
		}
		p := bytes.Repeat([]byte{0xAA}, n)
		got, err := c.ReadAt(context.Background(), p, int64(off))
		if wantN := max(0, min(n, len(want)-off)); err != nil || got != wantN || !bytes.Equal(p[:got], want[min(off, len(want)):min(off, len(want))+got]) {
			tb.Fatalf("read of %d bytes at %d of %d: %d bytes (right: %d), %v", n, off, len(want), got, wantN, err)
		}
	}
}

func TestRemappedFilesKeepEverythingElse(t *testing.T) {
	for _, c := range []struct{ name, index, file string }{
		{"legacy/v20", "btree_id", "page_data.lance"}, {"legacy/v21", "btree_id", "page_data.lance"},
		{"legacy/v22", "btree_id", "page_data.lance"}, {"legacy/v23", "btree_id", "page_data.lance"},
		{"legacy/all_types", "ivf_pq_vec_pq", "auxiliary.idx"}, {"legacy/all_types_v20", "minhashlsh_txt_mh", "signatures.lance"},
		{"legacy/all_types_v22", "rtree_pt", "page_data.lance"},
	} {
		t.Run(c.name+" "+c.index, func(t *testing.T) {
			w := openWorld(t, c.name, 0)
			s := w.segment(w.m.IndicesNamed(c.index)[0])
			f, err := s.Open(t.Context(), c.file)
			noError(t, err)
			m, err := f.Remap(t.Context(), w.resolver(w.m.IndicesNamed(c.index)[0]), Options{})
			noError(t, err)
			made, err := lancefile.Open(t.Context(), contentReader{m}, m.Size())
			noError(t, err)
			if made.Rows() != f.Rows || made.Version().String() != f.Version || made.GlobalBuffers() != f.lance.GlobalBuffers() {
				t.Errorf("rows %d, version %s, %d buffers", made.Rows(), made.Version(), made.GlobalBuffers())
			}
			for i := range made.GlobalBuffers() {
				_, n := made.GlobalBuffer(i)
				_, old := f.lance.GlobalBuffer(i)
				a, b := make([]byte, n), make([]byte, old)
				noError(t, made.ReadGlobal(t.Context(), i, a, 0))
				noError(t, f.lance.ReadGlobal(t.Context(), i, b, 0))
				if !bytes.Equal(a, b) {
					t.Errorf("global buffer %d differs", i)
				}
			}
		})
	}
}

func TestRowIDsAreNeverTranslated(t *testing.T) {
	w := openWorld(t, "legacy/stable_ids", 0)
	kinds := map[string]int{}
	for _, ix := range w.m.Indices {
		if System(ix) {
			continue
		}
		s := w.segment(ix)
		kinds[s.Domain]++
		if s.Domain != DomainRowID {
			continue
		}
		for _, sf := range s.Files {
			f, err := s.Open(t.Context(), sf.Path)
			noError(t, err)
			if f.How != Verbatim || f.Addresses != nil {
				t.Errorf("%s %s: %v, addresses in %v", ix.Name, sf.Path, f.How, f.Addresses)
			}
			if cur, err := f.Scan(t.Context(), Position{}); cur != nil || err != nil {
				t.Errorf("%s %s: a list of addresses", ix.Name, sf.Path)
			}
			c, err := f.Remap(t.Context(), nil, Options{})
			noError(t, err)
			if got, want := wholeOf(t, c), wholeOf(t, &stored{f}); !bytes.Equal(got, want) {
				t.Errorf("%s %s: other bytes", ix.Name, sf.Path)
			}
		}
	}
	if kinds[DomainRowID] == 0 || kinds[DomainAddress] == 0 {
		t.Errorf("domains %v", kinds)
	}
}

func TestUnknownTypesAndNamesAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, typ, path, want string
	}{
		{"a type that nobody knows", "QUANTUM", "page_data.lance", "QUANTUM"},
		{"a name that is none of the type's", "BTREE", "page_data2.lance", "BTREE"},
		{"a part without a number", "BTREE", "part_x_page_data.lance", "BTREE"},
		{"a part without anything", "BTREE", "part__page_data.lance", "BTREE"},
		{"staging of an unfinished build", "INVERTED", "staging/part_0_docs.lance", "unfinished"},
		{"a shard of an unfinished build", "BITMAP", "part_4294967296_bitmap_page_lookup.lance", "unfinished"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := memSegment(c.typ, map[string][]byte{c.path: nil})
			how, err := s.How(c.path)
			if how != HowUnknown || !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %v", how, err)
			}
			if _, err := s.Open(t.Context(), c.path); !fault.Is(err, fault.Unsupported) {
				t.Errorf("open: %v", err)
			}
		})
	}
}

func TestNarrowedCoverageGivesPlaceholders(t *testing.T) {
	masked := map[string]int{}
	for name, index := range map[string]string{"legacy/multi": "btree_id", "tagged/chain": "id_btree", "legacy/v20": "btree_id", "tagged/stable2": "id_btree"} {
		w := openWorld(t, name, 0)
		ix := w.m.IndicesNamed(index)[0]
		s := w.segment(ix)
		f, err := s.Open(t.Context(), "page_data.lance")
		noError(t, err)
		_, addrs := storedAddresses(t, f)
		covered := w.covers[ix.Ordinal].Live
		if covered.IsEmpty() {
			t.Fatalf("%s: nothing is covered", name)
		}
		full := wantRemapped(t, w.resolver(ix), 0, addrs)
		for _, without := range covered.ToArray() {
			less := covered.Clone()
			less.Remove(without)
			c, err := f.Remap(t.Context(), NewResolver(w.translator(), w.live, less), Options{})
			noError(t, err)
			_, got := storedAddresses(t, reopen(t, s, "page_data.lance", c))
			for row, a := range full {
				want := a
				if uint32(a.Frag()) == without {
					want = Placeholder(uint64(row))
					masked[name]++
				}
				if got[row] != want {
					t.Fatalf("%s without fragment %d, row %d: %v, want %v", name, without, row, got[row], want)
				}
			}
		}
		if masked[name] == 0 {
			t.Errorf("%s: no address was masked", name)
		}
		seen := map[fri.RowAddr]bool{}
		for _, a := range full {
			if seen[a] {
				t.Fatalf("%s: %v twice", name, a)
			}
			seen[a] = true
		}
	}
}
