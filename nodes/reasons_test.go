package nodes

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
	"github.com/frifs/frifs/translate"
)

// TestVersionNamesBrokenRowMaps: who looks at version.json first must not read that all is well where a row map is
// missing or damaged.
func TestVersionNamesBrokenRowMaps(t *testing.T) {
	for _, tc := range []struct {
		name   string
		errors float64
	}{{"spliced/s_spbad", 1}, {"spliced/p_nofile", 1}, {"spliced/s_sp21", 0}} {
		v := catJSON(t, openTree(t, tc.name, nil), "latest/version.json")
		f := v["fri"].(map[string]any)
		if f["errors"] != tc.errors || f["unusable"] != tc.errors {
			t.Errorf("%s: errors %v, unusable %v, want %v", tc.name, f["errors"], f["unusable"], tc.errors)
		}
		if got := len(v["advice"].([]any)); got != int(tc.errors) {
			t.Errorf("%s: advice %v", tc.name, v["advice"])
		}
	}
}

// TestR51UnreadableDeletionsAreNamed: `unresolved` alone does not say that a deletion file is missing; errors.jsonl does.
func TestR51UnreadableDeletionsAreNamed(t *testing.T) {
	dir := testdata.Copy(t, "tagged/chain")
	if err := os.RemoveAll(filepath.Join(dir, "_deletions")); err != nil {
		t.Fatal(err)
	}
	st, err := store.OpenURI(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tree := openStore(t, st, "tagged/chain", nil)
	tr, _, err := tree.Translator(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := translate.Results{New: make([]fri.RowAddr, 1), Outcome: make([]translate.Outcome, 1)}
	if err := tr.Translate(t.Context(), []fri.RowAddr{fri.Addr(12, 3)}, &r); err != nil {
		t.Fatal(err)
	}
	if r.Outcome[0] != translate.Unresolved {
		t.Fatalf("outcome %v, want unresolved", r.Outcome[0])
	}
	if lines := errorLines(t, tree); !bytes.Contains(lines, []byte("_deletions/12-")) {
		t.Errorf("errors.jsonl does not name the deletion file:\n%s", lines)
	}
}

// TestRemappedFilesNeedNoDeletionFiles: an entry keeps its address whether its row is deleted or not, so the bytes are the
// same when the deletion files are gone, as they are for a moment while a version is cleaned up.
func TestRemappedFilesNeedNoDeletionFiles(t *testing.T) {
	dir := testdata.Copy(t, "tagged/chain")
	read := func() map[string][]byte {
		t.Helper()
		st, err := store.OpenURI(t.Context(), dir, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string][]byte{}
		tree := openStore(t, st, "tagged/chain", nil)
		err = fs.WalkDir(FS(tree.Root()), "latest/indices", func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.Contains(p, "/remapped/") {
				out[p] = readFile(t, mustFile(t, tree, p))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	was := read()
	if len(was) < 5 {
		t.Fatalf("only %d remapped files", len(was))
	}
	if err := os.RemoveAll(filepath.Join(dir, "_deletions")); err != nil {
		t.Fatal(err)
	}
	for p, b := range read() {
		if !bytes.Equal(b, was[p]) {
			t.Errorf("%s has other bytes without the deletion files", p)
		}
		delete(was, p)
	}
	for p := range was {
		t.Errorf("%s is gone", p)
	}
}
