package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// recorded is a dataset of the test data that has recorded queries.
type recorded struct {
	name     string
	path     string // of the table
	expected string
	version  string // of its data files
	history  bool   // its newest version has a fragment reuse index
}

// recordings lists them all.
func recordings(t testing.TB) (all []recorded) {
	t.Helper()
	for _, family := range []string{"legacy", "tagged"} {
		files, err := filepath.Glob(filepath.Join(testdata.Dir(t, family), "*.expected.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			var e struct {
				Table   string
				Branch  *string
				Queries []json.RawMessage
			}
			if err := json.Unmarshal([]byte(read(t, file)), &e); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if len(e.Queries) == 0 {
				continue
			}
			r := recorded{expected: file, path: filepath.Join(filepath.Dir(file), e.Table)}
			r.name = family + "/" + strings.TrimSuffix(filepath.Base(file), ".expected.json")
			if e.Branch != nil {
				r.path = filepath.Join(r.path, "tree", filepath.FromSlash(*e.Branch))
			}
			all = append(all, r)
		}
	}
	if len(all) < 45 {
		t.Fatalf("only %d datasets have queries", len(all))
	}
	return all
}

// flags are the --rebase flags of a recording.
func (r recorded) flags(t testing.TB) []string {
	family, base, _ := strings.Cut(r.name, "/")
	base, _, _ = strings.Cut(base, ".branch-")
	return rebase(t, family+"/"+base)
}

// look fills in what the mount of a recording says about it.
func (r *recorded) look(t testing.TB, m *mounted) {
	t.Helper()
	var v struct {
		StorageVersion string `json:"storage_version"`
		FRI            struct{ Present bool }
	}
	if err := json.Unmarshal([]byte(read(t, m.path("latest/version.json"))), &v); err != nil {
		t.Fatal(err)
	}
	r.version, r.history = v.StorageVersion, v.FRI.Present
}

// Every recorded query of every table of the test data, through a mount and through an export.
func TestRemappedRecorded(t *testing.T) {
	needFUSE(t)
	var all []recorded
	var mounts, exports []subject
	dir := t.TempDir()
	for _, r := range recordings(t) {
		m := mount(t, r.path, r.flags(t)...)
		r.look(t, m)
		dest := filepath.Join(dir, r.name)
		frifs(t, append([]string{"export", r.path, "latest/remapped.lance", dest}, r.flags(t)...)...)
		all = append(all, r)
		s := subject{name: r.name, remapped: m.path("latest/remapped.lance"), table: r.path, expected: r.expected, history: r.history}
		s.unused = r.name == "legacy/fri_dropped" // nothing leads to its index's addresses any more: scans are right
		mounts = append(mounts, s)
		s.remapped = dest
		exports = append(exports, s)
	}
	t.Run("mount", func(t *testing.T) { judge(t, newest, mounts) })
	t.Run("export", func(t *testing.T) { judge(t, newest, exports) })
	for _, reader := range readers() {
		t.Run(reader.name, func(t *testing.T) {
			var some []subject
			for i, r := range all {
				if !slices.Contains(reader.versions, r.version) || !everything() && !slices.Contains([]string{"legacy/all_types", "tagged/all_types"}, r.name) {
					continue
				}
				s := mounts[i]
				if reader.forReader {
					m := mount(t, r.path, append(r.flags(t), reader.flags()...)...)
					s.remapped = m.path("latest/remapped.lance")
				}
				some = append(some, s)
			}
			judge(t, reader.name, some)
		})
	}
}

// The check can fail: a table that only lost its fragment reuse index gives wrong answers, or none, through each of its
// indices; the same table through frifs gives the right ones.
func TestUntranslatedFails(t *testing.T) {
	needFUSE(t)
	dir := t.TempDir()
	var some []cell
	for _, group := range factors[0] {
		some = append(some, cell{group, "2.1", "before", "legacy"})
	}
	makeTables(t, dir, some)
	var subjects []subject
	var forget []any
	var questions []question
	for _, c := range some {
		at := filepath.Join(dir, c.String())
		table, expected := filepath.Join(at, "table.lance"), filepath.Join(at, "expected.json")
		plain := filepath.Join(at, "untranslated.lance")
		if err := os.CopyFS(plain, os.DirFS(table)); err != nil {
			t.Fatal(err)
		}
		forget = append(forget, map[string]any{"forget": plain})
		questions = append(questions, question{Path: plain, Expected: expected})
		m := mount(t, table)
		subjects = append(subjects, subject{name: c.String(), remapped: m.path("latest/remapped.lance"), table: table, expected: expected, history: true})
	}
	judge(t, newest, subjects)
	work(t, interpreter(t, newest), "make_table.py", forget)
	indices := 0
	for _, r := range answers(t, newest, questions) {
		if r.Error != "" {
			t.Errorf("%s does not open: %s", r.Path, r.Error)
		}
		if r.Index == "" {
			continue
		}
		indices++
		if !r.Listed || len(r.Failed) == 0 {
			t.Errorf("untranslated, %s (%s) is right in all %d checks (listed: %v)", r.Index, r.Type, r.Checks, r.Listed)
		}
	}
	if indices < 40 {
		t.Errorf("only %d indices were looked at", indices)
	}
}

// An exported copy is an ordinary table: the official writer appends, updates, deletes, optimizes and compacts in it, at
// once and deferred, and every answer stays right.
func TestExportIsADataset(t *testing.T) {
	dir := t.TempDir()
	some := []cell{
		{"btree", "2.2", "chain", "legacy"}, {"sets", "2.1", "segments", "continued"}, {"zones", "2.0", "after", "lifted"},
		{"text", "2.1", "dead", "legacy"}, {"vector", "2.2", "partial", "continued"}, {"vector", "2.1", "chain", "legacy"},
	}
	makeTables(t, dir, some)
	var jobs []any
	for _, c := range some {
		at := filepath.Join(dir, c.String())
		dest := filepath.Join(at, "exported.lance")
		frifs(t, "export", filepath.Join(at, "table.lance"), "latest/remapped.lance", dest)
		jobs = append(jobs, map[string]any{"dataset": dest, "group": c[0], "file_version": c[1]})
	}
	type step struct {
		Dataset string
		Step    string
		Rows    int
		Checks  int
		Used    int
		Failed  []string
	}
	steps := map[string]int{}
	for _, s := range decode[step](t, work(t, interpreter(t, newest), "use_table.py", jobs)) {
		name := filepath.Base(filepath.Dir(s.Dataset))
		steps[name]++
		if len(s.Failed) > 0 {
			t.Errorf("%s, after %s: %d of %d checks fail, for example %s", name, s.Step, len(s.Failed), s.Checks, s.Failed[0])
		}
		if s.Checks < 40 || s.Rows == 0 || s.Step == "export" && s.Used == 0 && !strings.HasPrefix(name, "zones") {
			t.Errorf("%s, after %s: %d checks of %d rows, %d through an index", name, s.Step, s.Checks, s.Rows, s.Used)
		}
	}
	for _, c := range some {
		if steps[c.String()] < 8 {
			t.Errorf("%s: only %d steps", c, steps[c.String()])
		}
	}
}

// Every way to copy a remapped dataset out gives the same bytes, twice, and from another mount.
func TestCopiesAreEqual(t *testing.T) {
	needTool(t, "rsync", "tar", "sha256sum")
	for _, name := range []string{"legacy/all_types", "tagged/all_types2", "legacy/segments"} {
		t.Run(name, func(t *testing.T) {
			m := mountDataset(t, name)
			dst := t.TempDir()
			from := m.path("latest/remapped.lance")
			const sums = `find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum`
			want := sh(t, from, sums)
			if n := strings.Count(want, "\n"); n < 10 {
				t.Fatalf("only %d files", n)
			}
			sh(t, from, `cp -r . "$1/cp"; rsync -a ./ "$1/rsync/"; mkdir "$1/tar"; tar -cf - . | tar -xf - -C "$1/tar"`, dst)
			frifs(t, append([]string{"export", testdata.Dataset(t, name), "latest/remapped.lance", filepath.Join(dst, "export")}, rebase(t, name)...)...)
			other := mountDataset(t, name)
			for how, dir := range map[string]string{
				"the second time": from, "another mount": other.path("latest/remapped.lance"), "cp": dst + "/cp", "rsync": dst + "/rsync",
				"tar": dst + "/tar", "export": dst + "/export",
			} {
				if got := sh(t, dir, sums); got != want {
					t.Errorf("%s gives other bytes: %s", how, otherLine(got, want))
				}
			}
			sh(t, dst, `test -w cp/_versions && touch cp/_versions/x cp/data/x`) // modes that let the copy be used
		})
	}
}

// otherLine shows the first line in which two texts differ.
func otherLine(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("%q, want %q", g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}
