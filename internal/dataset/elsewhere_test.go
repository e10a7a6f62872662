package dataset

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
)

// TestFilesAreLookedForInOtherBases: data files, deletion files and row maps that are not under their recorded base are
// found under another one, and Find says under which.
func TestFilesAreLookedForInOtherBases(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "t.lance")
	kinds := map[string]struct {
		rooted, plain string // below a dataset root, below any other base ("" = no such base holds it)
		locate        func(context.Context, *Dataset, *Manifest, *uint32) (Location, error)
	}{
		"data file": {"data/x.lance", "x.lance", func(ctx context.Context, d *Dataset, m *Manifest, id *uint32) (Location, error) {
			return d.DataFile(ctx, m, &pb.DataFile{Path: proto.String("x.lance"), BaseId: id})
		}},
		"deletion file": {"_deletions/4-9-7.arrow", "", func(ctx context.Context, d *Dataset, m *Manifest, id *uint32) (Location, error) {
			m.PB.Fragments = []*pb.DataFragment{{Id: proto.Uint64(4), DeletionFile: &pb.DeletionFile{ReadVersion: proto.Uint64(9), Id: proto.Uint64(7), BaseId: id}}}
			return d.DeletionFile(ctx, m, fragmentsOf(t, root, m)[0])
		}},
		"row map": {"_fri/map/stable_partition.lance", "_fri/map/stable_partition.lance", func(ctx context.Context, d *Dataset, m *Manifest, id *uint32) (Location, error) {
			return d.RowMap(ctx, m, "map", id)
		}},
	}
	one, none := proto.Uint32(1), (*uint32)(nil)
	for _, tt := range []struct {
		name  string
		at    []string // bases that have the file
		base  *uint32
		found string
		note  string
	}{
		{"where it is recorded", []string{"a", "b"}, one, "a", ""},
		{"in the own root", []string{"t.lance", "b"}, one, "t.lance", "recorded under base 1"},
		{"in another base", []string{"b"}, one, "b", "found under base 3"},
		{"recorded in the own root, in a base", []string{"b"}, none, "b", "found under base 3"},
		{"under a base that is no dataset root", []string{"flat"}, one, "flat", "found under base 4"},
		{"nowhere", nil, one, "", ""},
	} {
		for what, kind := range kinds {
			for _, sub := range []string{"a", "b", "flat", "t.lance"} {
				if err := os.RemoveAll(filepath.Join(top, sub)); err != nil {
					t.Fatal(err)
				}
			}
			for _, at := range tt.at {
				name := kind.rooted
				if at == "flat" {
					name = kind.plain
				}
				write(t, filepath.Join(top, at, name), []byte(at))
			}
			found := tt.found
			if kind.plain == "" && found == "flat" {
				found = ""
			}
			d, m := localDataset(t, root, &pb.Manifest{BasePaths: []*pb.BasePath{
				basePath(1, true, top+"/a"), basePath(2, true, "/far"), basePath(3, true, top+"/b"), basePath(4, false, top+"/flat")}}, Options{})
			loc, err := kind.locate(t.Context(), d, m, tt.base)
			if err != nil {
				t.Fatalf("%s %s: %v", what, tt.name, err)
			}
			f, err := loc.Find(t.Context())
			if found == "" {
				if !fault.Is(err, fault.NotFound) || !contains(err, top+"/a") || !contains(err, top+"/b") || !contains(err, "/far") {
					t.Errorf("%s %s: %v, want not_found naming what was tried", what, tt.name, err)
				}
				if _, _, err := loc.Open(t.Context()); !fault.Is(err, fault.NotFound) {
					t.Errorf("%s %s: opened: %v", what, tt.name, err)
				}
				continue
			}
			if err != nil || !strings.HasPrefix(f.URI(), filepath.Join(top, found)+"/") || f.Object.Size != int64(len(found)) ||
				f.Moved != (tt.note != "") || !strings.Contains(f.Note(), tt.note) {
				t.Errorf("%s %s: %s, moved %t, note %q, %v", what, tt.name, f.URI(), f.Moved, f.Note(), err)
				continue
			}
			at, r, err := loc.Open(t.Context())
			if err != nil || at.URI() != f.URI() {
				t.Errorf("%s %s: opened %s, %v", what, tt.name, at.URI(), err)
				continue
			}
			b, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
			if err != nil || string(b) != found {
				t.Errorf("%s %s: read %q, %v", what, tt.name, b, err)
			}
			_ = r.Close()
		}
	}
}

// fragmentsOf are the fragments of a manifest after a change of its message.
func fragmentsOf(tb testing.TB, root string, m *Manifest) []*Fragment {
	tb.Helper()
	_, again := localDataset(tb, root, m.PB, Options{})
	return again.Fragments()
}

// TestLookingElsewhereIsFreeWhereNothingIsMissing counts requests: one stat for a file that is in its place, and one for a
// missing file of a manifest without bases.
func TestLookingElsewhereIsFreeWhereNothingIsMissing(t *testing.T) {
	bases := []*pb.BasePath{basePath(0, true, "test://mem/tree/a")}
	for _, tt := range []struct {
		bases []*pb.BasePath
		name  string
		stats int
		kind  fault.Kind
	}{
		{nil, "x.lance", 1, 0},
		{nil, "gone.lance", 1, fault.NotFound},
		{bases, "x.lance", 1, 0},
		{bases, "y.lance", 2, 0},
		{bases, "gone.lance", 2, fault.NotFound},
	} {
		d, c, ref := memDataset(t, build(manifestParts{manifest: &pb.Manifest{BasePaths: tt.bases}}), Options{},
			map[string][]byte{"data/x.lance": nil, "tree/a/data/y.lance": nil})
		m, err := d.Manifest(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		loc, err := d.DataFile(t.Context(), m, &pb.DataFile{Path: proto.String(tt.name)})
		if err != nil {
			t.Fatal(err)
		}
		c.Reset()
		_, err = loc.Find(t.Context())
		if got := c.Total("Stat"); fault.KindOf(err) != tt.kind || got != tt.stats || c.Total("List") != 0 {
			t.Errorf("%s with %d bases: %v, %v; want %d stats, kind %v", tt.name, len(tt.bases), c.Calls(), err, tt.stats, tt.kind)
		}
	}
}
