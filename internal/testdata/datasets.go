package testdata

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Names returns the names ("<family>/<name>") of the datasets of a family, ascending. The single files of "spliced"
// (mini20.lance and others) are not among them.
func Names(tb testing.TB, family string) []string {
	tb.Helper()
	dir := Dir(tb, family)
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	var names []string
	tables := map[string]bool{} // table folders that an expectation names
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".expected.json")
		if !ok || strings.Contains(name, ".branch-") {
			continue
		}
		names = append(names, family+"/"+name)
		tables[readJSON(tb, filepath.Join(dir, e.Name())).Table] = true
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".lance"); ok && e.IsDir() && !tables[e.Name()] {
			names = append(names, family+"/"+name)
		}
	}
	slices.Sort(names)
	return names
}

// Dataset returns the folder of a dataset ("legacy/basic"), in the shared copy: it must be treated as read-only.
func Dataset(tb testing.TB, name string) string {
	tb.Helper()
	dir, base := split(tb, name)
	table := base + ".lance"
	if p := filepath.Join(dir, base+".expected.json"); exists(p) {
		table = readJSON(tb, p).Table
	}
	path := filepath.Join(dir, table)
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		tb.Fatalf("no dataset %q", name)
	}
	return path
}

// Copy returns a private writable copy of a dataset, with the times of its files kept.
func Copy(tb testing.TB, name string) string {
	tb.Helper()
	src := Dataset(tb, name)
	dst := filepath.Join(tb.TempDir(), filepath.Base(src))
	err := filepath.WalkDir(src, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, p)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		r, err := os.Open(p)
		if err != nil {
			return err
		}
		defer r.Close()
		if err := writeFile(to, r, 0o644); err != nil {
			return err
		}
		return os.Chtimes(to, st.ModTime(), st.ModTime())
	})
	if err != nil {
		tb.Fatalf("copy of %q: %v", name, err)
	}
	return dst
}

// Rebase returns the OLD=NEW pairs (--rebase) that a dataset with absolute base paths needs to be read from where the
// family is unpacked; none for the others. OLD is the folder in which the dataset was made.
func Rebase(tb testing.TB, name string) []string {
	tb.Helper()
	switch name {
	case "legacy/branchy", "legacy/clone":
		return []string{"/data/frifs1=" + Dir(tb, "legacy")}
	case "tagged/clone":
		return []string{"/data/frifs1/t=" + Dir(tb, "tagged")}
	}
	return nil
}

// split divides "family/base" and returns the family's folder and the base.
func split(tb testing.TB, name string) (dir, base string) {
	tb.Helper()
	family, base, ok := strings.Cut(name, "/")
	if !ok || base == "" || strings.Contains(base, "/") {
		tb.Fatalf("dataset name %q is not <family>/<name>", name)
	}
	return Dir(tb, family), base
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
