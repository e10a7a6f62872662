package dataset

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// rebaseOf turns the OLD=NEW pairs of the test data into options.
func rebaseOf(tb testing.TB, name string) Options {
	tb.Helper()
	var opt Options
	for _, pair := range testdata.Rebase(tb, name) {
		var i int
		for i = 0; i < len(pair) && pair[i] != '='; i++ {
		}
		opt.Rebase = append(opt.Rebase, Rebase{pair[:i], pair[i+1:]})
	}
	return opt
}

func TestDeletionsOfEveryTestTable(t *testing.T) {
	ctx := context.Background()
	files := 0
	for _, family := range []string{"legacy", "tagged", "spliced"} {
		for _, name := range testdata.Names(t, family) {
			d := openLocal(t, testdata.Dataset(t, name), rebaseOf(t, name))
			refs := versions(t, d)
			for i, ref := range refs {
				if i < len(refs)-20 {
					continue
				}
				m, err := d.Manifest(ctx, ref)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range m.Fragments() {
					bm, err := d.Deletions(ctx, m, f)
					if err != nil {
						t.Errorf("%s version %d fragment %d: %v", name, ref.Version, f.ID, err)
						continue
					}
					if (bm == nil) != (f.DeletionFile() == nil) {
						t.Errorf("%s version %d fragment %d: bitmap %v for deletion file %v", name, ref.Version, f.ID, bm, f.DeletionFile())
					}
					if bm != nil {
						files++
						if f.DeletedRows == nil || bm.GetCardinality() != *f.DeletedRows {
							t.Errorf("%s version %d fragment %d: %d rows", name, ref.Version, f.ID, bm.GetCardinality())
						}
					}
				}
			}
		}
	}
	if files < 100 {
		t.Errorf("only %d deletion files were read", files)
	}
}

// TestFragmentsMatchExpectation compares operations and fragments of every listed version with the expectation files.
func TestFragmentsMatchExpectation(t *testing.T) {
	ctx := context.Background()
	checked := 0
	for _, family := range []string{"legacy", "tagged"} {
		for _, name := range testdata.Names(t, family) {
			if !testdata.HasExpected(t, name) {
				continue
			}
			b, err := os.ReadFile(filepath.Join(testdata.Dir(t, family), filepath.Base(name)+".expected.json"))
			if err != nil {
				t.Fatal(err)
			}
			var want struct {
				Versions []struct {
					Version   uint64
					Operation string
					Fragments json.RawMessage // [[id, physical, deleted]], or an object where sampled
				}
			}
			if err := json.Unmarshal(b, &want); err != nil {
				t.Fatal(err)
			}
			d := openLocal(t, testdata.Dataset(t, name), Options{})
			l, err := d.Versions(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range want.Versions {
				ref, ok := l.Find(w.Version)
				if !ok {
					continue
				}
				m, err := d.Manifest(ctx, ref)
				if err != nil {
					t.Fatal(err)
				}
				if tx, err := d.Transaction(ctx, m); err != nil || w.Operation != "" && tx.Operation != w.Operation {
					t.Errorf("%s version %d: operation %q (%v), want %q", name, w.Version, tx.Operation, err, w.Operation)
				}
				var fragments [][3]uint64
				if json.Unmarshal(w.Fragments, &fragments) != nil {
					continue
				}
				checked++
				if len(fragments) != len(m.Fragments()) {
					t.Errorf("%s version %d: %d fragments, want %d", name, w.Version, len(m.Fragments()), len(fragments))
					continue
				}
				for i, f := range m.Fragments() {
					if got := [3]uint64{uint64(f.ID), *f.PhysicalRows, *f.DeletedRows}; got != fragments[i] {
						t.Errorf("%s version %d: fragment %d, want %d", name, w.Version, got, fragments[i])
					}
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d versions had fragments to compare", checked)
	}
}
