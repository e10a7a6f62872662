package indexfile

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/testdata"
	"github.com/frifs/frifs/translate"
)

// tables opens the last version of every real dataset that has an index of one of the types, and visits its segments
// of these types that store addresses.
func tables(t *testing.T, types []string, visit func(t *testing.T, w *world, ix *dataset.Index, s *Segment, r Resolver)) {
	seen := 0
	for _, family := range []string{"legacy", "tagged", "spliced"} {
		for _, name := range testdata.Names(t, family) {
			w := openWorld(t, name, 0)
			for _, ix := range w.m.Indices {
				if domain, _ := Domain(w.m, ix); domain != DomainAddress || !slices.Contains(types, ix.Type) {
					continue
				}
				seen++
				t.Run(name+"/"+ix.Name, func(t *testing.T) { visit(t, w, ix, w.segment(ix), w.resolver(ix)) })
			}
		}
	}
	if seen < 6 {
		t.Errorf("only %d segments of type %v", seen, types)
	}
}

// reopened opens bytes as the same file of the same segment.
func reopened(tb testing.TB, s *Segment, path string, b []byte) *File {
	tb.Helper()
	again := *s
	again.OpenRaw = func(context.Context, string) (Reader, error) { return inMemory(b), nil }
	f, err := again.Open(tb.Context(), path)
	if err != nil {
		tb.Fatalf("%s cannot be opened again: %v", path, err)
	}
	return f
}

// scanFrom lists the stored addresses of a file from a position on, limit at a time.
func scanFrom(tb testing.TB, f *File, from Position, limit int) (rows []uint64, addrs []fri.RowAddr) {
	tb.Helper()
	c, err := f.Scan(tb.Context(), from)
	noError(tb, err)
	for b := (Batch{}); ; {
		noError(tb, c.Next(tb.Context(), &b, limit))
		if len(b.Addrs) == 0 {
			return rows, addrs
		}
		if len(b.Addrs) > limit || len(b.Rows) != len(b.Addrs) {
			tb.Fatalf("a batch of %d rows and %d addresses, the limit is %d", len(b.Rows), len(b.Addrs), limit)
		}
		rows, addrs = append(rows, b.Rows...), append(addrs, b.Addrs...)
	}
}

// rowsOnly hides that a resolver can answer for ranges.
type rowsOnly struct{ Resolver }

// refusing is a Resolver that fails.
type refusing struct{ Resolver }

func (refusing) Resolve(context.Context, []fri.RowAddr, *Answers) error {
	return fault.New("test", "", fault.Corrupt, "labels")
}

// unpackSets unpacks the tables of testdata/sets.tar.zst (integration/py/make_sets.py made them, and their data files were left out) into a folder.
func unpackSets(tb testing.TB) string {
	tb.Helper()
	return unpack(tb, "sets.tar.zst")
}

// unpack unpacks a file of testdata into a folder.
func unpack(tb testing.TB, name string) string {
	tb.Helper()
	r, err := os.Open(filepath.Join("testdata", name))
	noError(tb, err)
	defer r.Close()
	z, err := zstd.NewReader(r)
	noError(tb, err)
	defer z.Close()
	dir := tb.TempDir()
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		noError(tb, err)
		if h.Typeflag == tar.TypeDir {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		noError(tb, os.MkdirAll(filepath.Dir(path), 0o755))
		b, err := io.ReadAll(t)
		noError(tb, err)
		noError(tb, os.WriteFile(path, b, 0o644))
	}
}

// ownTables visits the segments of the given types in every version of the tables of testdata/sets.tar.zst, which
// compactions changed: afterwards a version has a history.
func ownTables(t *testing.T, types []string, visit func(t *testing.T, w *world, ix *dataset.Index, s *Segment, r Resolver)) {
	dir := unpackSets(t)
	for _, table := range []struct {
		name     string
		versions []uint64
	}{
		{"big", []uint64{3, 7}}, {"small20", []uint64{7, 11, 15}}, {"small21", []uint64{10, 15}}, {"small22", []uint64{10, 12, 15}}, {"small23", []uint64{13, 15}},
	} {
		for _, v := range table.versions {
			w := openWorldAt(t, filepath.Join(dir, table.name+".lance"), "own/"+table.name, v)
			for _, ix := range w.m.Indices {
				if slices.Contains(types, ix.Type) {
					t.Run(table.name+"/"+ix.Name, func(t *testing.T) { visit(t, w, ix, w.segment(ix), w.resolver(ix)) })
				}
			}
		}
	}
}

// staying is a Resolver for which every row is where it was.
type staying struct{}

func (staying) Rows(fri.FragID) (uint64, bool) { return 100, true }

func (staying) Resolve(_ context.Context, addrs []fri.RowAddr, a *Answers) error {
	copy(a.New, addrs)
	for i := range addrs {
		a.Outcome[i], a.Covered[i] = translate.Same, true
	}
	return nil
}
