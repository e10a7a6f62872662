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
	h := sha256.New()
	per := map[uint64]uint64{}
	for _, a := range addrs {
		_ = binary.Write(h, binary.LittleEndian, uint64(a))
		per[uint64(a.Frag())]++
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want.SHA256 {
		t.Errorf("%s: SHA-256 %s, want %s", where, got, want.SHA256)
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

// wantRemapped is what a remapped file holds for stored addresses.
func wantRemapped(tb testing.TB, r Resolver, addrs []fri.RowAddr) []uint64 {
	tb.Helper()
	a := answersFor(tb, r, addrs)
	out := make([]uint64, len(addrs))
	for i := range addrs {
		if out[i] = uint64(fri.Addr(0xFFFFFFFE, uint32(i))); a.Covered[i] && a.Outcome[i].HasAddress() {
			out[i] = uint64(a.New[i])
		}
	}
	return out
}

// addressesOf reads the addresses of a made file as any reader of the type would.
func addressesOf(tb testing.TB, s *Segment, path string, b []byte) []uint64 {
	tb.Helper()
	t := *s
	t.OpenRaw = func(ctx context.Context, p string) (Reader, error) {
		if p != path {
			return s.OpenRaw(ctx, p)
		}
		return inMemory(b), nil
	}
	f, err := t.Open(context.Background(), path)
	noError(tb, err)
	_, addrs := storedAddresses(tb, f)
	out := make([]uint64, len(addrs))
	for i, a := range addrs {
		out[i] = uint64(a)
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
			_, addrs := storedAddresses(t, f)
			c, err := f.Remap(t.Context(), full, Options{})
			if err != nil {
				t.Errorf("%s %s: %v", ix.Name, sf.Path, err)
				continue
			}
			b := wholeOf(t, c)
			randomReads(t, c, b)
			if how != Verbatim {
				seen.add("version " + f.Version)
				seen.add("type " + s.Type)
			}
			if how == Verbatim {
				if stored := wholeOf(t, &stored{f}); !bytes.Equal(b, stored) {
					t.Errorf("%s %s: a file without addresses has other bytes", ix.Name, sf.Path)
				}
			} else if got, want := addressesOf(t, s, sf.Path, b), wantRemapped(t, full, addrs); !slices.Equal(got, want) {
				t.Errorf("%s %s: addresses differ:\n got %v\nwant %v", ix.Name, sf.Path, head(got), head(want))
			} else {
				seen.outcomes(addrs, got)
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

func (y *tally) outcomes(stored []fri.RowAddr, made []uint64) {
	for i, a := range stored {
		switch {
		case fri.RowAddr(made[i]).Frag() == PlaceholderFragment:
			y.add("placeholder")
		case uint64(a) == made[i]:
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

func head(v []uint64) []uint64 { return v[:min(len(v), 12)] }

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
