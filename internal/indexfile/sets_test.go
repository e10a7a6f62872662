package indexfile

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
)

var setTypes = []string{"BITMAP", "LABEL_LIST", "NGRAM", "RTREE"}

// setFiles are the files of a segment that hold sets.
func setFiles(s *Segment) (paths []string) {
	for _, f := range s.Files {
		if how, err := s.How(f.Path); err == nil && how == Reserialised {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// bySet groups the addresses of a file by row.
func bySet(rows []uint64, addrs []fri.RowAddr) map[uint64][]fri.RowAddr {
	sets := map[uint64][]fri.RowAddr{}
	for i, row := range rows {
		sets[row] = append(sets[row], addrs[i])
	}
	return sets
}

// checkSets remaps a file of sets and compares each member with its translation.
func checkSets(t *testing.T, s *Segment, path string, r Resolver, o Options) (stored, made int64) {
	t.Helper()
	f, err := s.Open(t.Context(), path)
	noError(t, err)
	rows, addrs := scanFrom(t, f, Position{}, 1000)
	if rows2, addrs2 := scanFrom(t, f, Position{}, 1<<20); !slices.Equal(rows, rows2) || !slices.Equal(addrs, addrs2) {
		t.Errorf("%s: the limit changes what is listed", path)
	}
	checkSeeks(t, f, rows, addrs)
	a := answersFor(t, r, addrs)
	want := map[uint64][]fri.RowAddr{}
	for i := range addrs {
		if a.Keep(i) {
			want[rows[i]] = append(want[rows[i]], a.New[i])
		}
	}
	c, err := f.Remap(t.Context(), r, o)
	noError(t, err)
	defer c.Close()
	b := wholeOf(t, c)
	randomReads(t, c, b)
	g := reopened(t, s, path, b)
	if g.Rows != f.Rows || !slices.Equal(g.Columns, f.Columns) {
		t.Errorf("%s: %d rows and columns %v, want %d and %v", path, g.Rows, g.Columns, f.Rows, f.Columns)
	}
	got := bySet(scanFrom(t, g, Position{}, 1000))
	for row, x := range want {
		slices.Sort(x)
		if !slices.Equal(got[row], x) {
			t.Fatalf("%s, row %d:\n got %v\nwant %v", path, row, got[row], x)
		}
	}
	for row, x := range got {
		if len(want[row]) == 0 {
			t.Fatalf("%s, row %d: got %v, want none", path, row, x)
		}
	}
	sameNulls(t, f, g)
	return f.raw.Size(), c.Size()
}

// sameNulls checks that a remapped file has its nulls in the same rows.
func sameNulls(t *testing.T, f, g *File) {
	t.Helper()
	nulls := func(f *File) (rows []uint64) {
		x := f.body.(*setsFile)
		noError(t, x.cells.Read(t.Context(), 0, x.cells.Rows(), func(row uint64, _ []byte, null bool) error {
			if null {
				rows = append(rows, row)
			}
			return nil
		}))
		return rows
	}
	if a, b := nulls(f), nulls(g); !slices.Equal(a, b) {
		t.Errorf("rows with a null: got %v, want %v", b, a)
	}
}

// checkSeeks starts at random places.
func checkSeeks(t *testing.T, f *File, rows []uint64, addrs []fri.RowAddr) {
	t.Helper()
	if len(addrs) == 0 {
		return
	}
	random := rand.New(rand.NewPCG(1, uint64(len(addrs))))
	for range 6 {
		i := random.IntN(len(addrs))
		first := slices.Index(rows, rows[i])
		c, err := f.Scan(t.Context(), Position{rows[i], uint64(i - first)})
		noError(t, err)
		if p := c.Position(); p != (Position{rows[i], uint64(i - first)}) {
			t.Fatalf("position %v, want row %d, member %d", p, rows[i], i-first)
		}
		b, at := Batch{}, i
		for ; at < min(i+2000, len(addrs)); at += len(b.Addrs) {
			noError(t, c.Next(t.Context(), &b, 300))
			if len(b.Addrs) == 0 || !slices.Equal(b.Addrs, addrs[at:at+len(b.Addrs)]) || !slices.Equal(b.Rows, rows[at:at+len(b.Addrs)]) {
				t.Fatalf("from address %d on: got %d addresses, not those that were listed", at, len(b.Addrs))
			}
		}
		p := c.Position()
		if _, again := scanFrom(t, f, p, 5000); !slices.Equal(again, addrs[at:]) {
			t.Fatalf("from %v on: %d addresses, want %d", p, len(again), len(addrs)-at)
		}
	}
	c, err := f.Scan(t.Context(), Position{NoRow, 1 << 40})
	noError(t, err)
	b := Batch{}
	if noError(t, c.Next(t.Context(), &b, 10)); len(b.Addrs) != 0 {
		t.Errorf("%d addresses past the end", len(b.Addrs))
	}
}

func TestRealSets(t *testing.T) {
	tables(t, setTypes, func(t *testing.T, w *world, ix *dataset.Index, s *Segment, r Resolver) {
		for _, path := range setFiles(s) {
			checkSets(t, s, path, r, Options{})
		}
	})
}

func TestOwnSets(t *testing.T) {
	nulls := 0
	ownTables(t, setTypes, func(t *testing.T, w *world, ix *dataset.Index, s *Segment, r Resolver) {
		for _, path := range setFiles(s) {
			stored, made := checkSets(t, s, path, r, Options{SpillDir: t.TempDir(), SpillAbove: 1})
			if made > stored+stored/8+4096 {
				t.Errorf("%s: %d bytes were made of %d", path, made, stored)
			}
			f, err := s.Open(t.Context(), path)
			noError(t, err)
			if path == "nulls.lance" {
				_, addrs := everyAddress(t, f)
				nulls += len(addrs)
			}
		}
	})
	if nulls == 0 {
		t.Error("no R-tree has a null box")
	}
}

func everyAddress(t *testing.T, f *File) ([]uint64, []fri.RowAddr) {
	return scanFrom(t, f, Position{}, 1000)
}

// What official Lance found in the files of the real tables.
func TestSetsAreThoseThatLanceFound(t *testing.T) {
	checked := 0
	tables(t, setTypes, func(t *testing.T, w *world, ix *dataset.Index, s *Segment, _ Resolver) {
		if strings.HasPrefix(w.name, "spliced/") {
			return
		}
		for where, want := range expectedContents(t, w.name)[ix.UUID] {
			path, _, _ := strings.Cut(where, ":")
			if want.Keys == nil {
				continue
			}
			f, err := s.Open(t.Context(), path)
			noError(t, err)
			if f.Rows != *want.Keys {
				t.Errorf("%s: %d rows, want %d", where, f.Rows, *want.Keys)
			}
			found := map[uint64]uint64{}
			rows, addrs := everyAddress(t, f)
			for i, a := range addrs {
				if rows[i] != NoRow {
					found[uint64(a.Frag())]++
				}
			}
			checked++
			for _, x := range want.PerFragment {
				if found[x[0]] != x[1] {
					t.Errorf("%s, fragment %d: %d members, want %d", where, x[0], found[x[0]], x[1])
				}
				delete(found, x[0])
			}
			if len(found) > 0 {
				t.Errorf("%s: members in %v", where, found)
			}
		}
	})
	if checked < 10 {
		t.Errorf("only %d files were compared", checked)
	}
}

func TestSetsWithoutAChangeAreTheStoredOnes(t *testing.T) {
	tables(t, []string{"BITMAP"}, func(t *testing.T, w *world, ix *dataset.Index, s *Segment, _ Resolver) {
		f, err := s.Open(t.Context(), "bitmap_page_lookup.lance")
		noError(t, err)
		stored := make([]byte, f.raw.Size())
		noError(t, readFull(t.Context(), f.raw, stored, 0))
		c, err := f.Remap(t.Context(), staying{}, Options{})
		noError(t, err)
		defer c.Close()
		if !bytes.Equal(wholeOf(t, c), stored) {
			t.Error("other bytes, although no row moved")
		}
	})
}

// TestAFewAddressesCostFewSets asks for one address at places of real files: no more than a set or two is decoded for it,
// and more and more for those who go on.
func TestAFewAddressesCostFewSets(t *testing.T) {
	looked := 0
	tables(t, setTypes, func(t *testing.T, w *world, ix *dataset.Index, s *Segment, r Resolver) {
		for _, path := range setFiles(s) {
			f, err := s.Open(t.Context(), path)
			noError(t, err)
			for row := uint64(0); row < f.Rows; row += f.Rows/3 + 1 {
				c, err := f.Scan(t.Context(), Position{Row: row})
				noError(t, err)
				sets, ok := c.(*setCursor)
				if !ok {
					continue
				}
				var b Batch
				noError(t, c.Next(t.Context(), &b, 1))
				if len(b.Addrs) == 1 && b.Rows[0] == row {
					if looked++; len(sets.ahead) > 0 {
						t.Errorf("%s: %d sets were decoded after that of row %d", path, len(sets.ahead), row)
					}
				}
				reads := sets.rows
				for len(b.Addrs) > 0 {
					noError(t, c.Next(t.Context(), &b, 1000))
				}
				if sets.rows < reads || sets.rows > aheadRows {
					t.Errorf("%s: a read takes %d rows at the end, %d at first", path, sets.rows, reads)
				}
			}
			noError(t, f.Close())
		}
	})
	if looked == 0 {
		t.Error("no set was looked at")
	}
}
