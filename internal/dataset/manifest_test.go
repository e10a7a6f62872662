package dataset

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
)

func openLocal(tb testing.TB, dir string, opt Options) *Dataset {
	tb.Helper()
	st, err := store.NewLocal(dir, store.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	d, err := Open(context.Background(), st, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func versions(tb testing.TB, d *Dataset) []VersionRef {
	tb.Helper()
	l, err := d.Versions(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return l.Versions
}

func TestEveryTestTableDecodes(t *testing.T) {
	for _, family := range []string{"legacy", "tagged", "spliced"} {
		names := testdata.Names(t, family)
		if len(names) == 0 {
			t.Fatalf("no tables in %s", family)
		}
		for _, name := range names {
			dir := testdata.Dataset(t, name)
			d := openLocal(t, dir, Options{})
			refs := versions(t, d)
			entries, err := os.ReadDir(filepath.Join(dir, versionsDir))
			if err != nil {
				t.Fatal(err)
			}
			manifests := 0
			for _, e := range entries {
				if filepath.Ext(e.Name()) == ".manifest" {
					manifests++
				}
			}
			if len(refs) != manifests {
				t.Errorf("%s: %d versions, %d manifest files", name, len(refs), manifests)
			}
			for _, ref := range refs {
				m, err := d.Manifest(context.Background(), ref)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if m.IndexErr != nil || len(m.Warnings) > 0 {
					t.Errorf("%s version %d: index error %v, warnings %q", name, ref.Version, m.IndexErr, m.Warnings)
				}
				if v, _ := m.StorageVersion(); v == "" || m.WriterVersion() == "" {
					t.Errorf("%s version %d: storage version %q, writer %q", name, ref.Version, v, m.WriterVersion())
				}
				for _, x := range m.Indices {
					if x.UUIDErr != nil || x.BitmapErr != nil || x.Type == "" {
						t.Errorf("%s version %d: index %q: uuid %v, bitmap %v, type url %q", name, ref.Version, x.Name, x.UUIDErr, x.BitmapErr, x.TypeURL)
					}
				}
			}
		}
	}
}
