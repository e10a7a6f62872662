package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestRefsThatLanceWrites mounts a database with branches of branches, tags on them and clones of clones, made by Lance,
// and again after it was moved.
func TestRefsThatLanceWrites(t *testing.T) {
	needFUSE(t)
	makers := []string{newest}
	if everything() {
		makers = append(makers, "12.0.0") // records a wrong base for the indices of branches of branches
	}
	for _, maker := range makers {
		t.Run(maker, func(t *testing.T) {
			t.Parallel()
			top := filepath.Join(t.TempDir(), "made")
			if err := os.MkdirAll(top, 0o755); err != nil {
				t.Fatal(err)
			}
			r := command(t, "", interpreter(t, maker), filepath.Join(root, "integration", "py", "make_refs.py"), top)
			var want struct {
				Versions, Rows map[string]uint64
			}
			if err := json.Unmarshal([]byte(r.stdout), &want); err != nil {
				t.Fatalf("%v: %s%s", err, r.stdout, r.stderr)
			}
			tag := filepath.Join(top, "cleaned.lance", "_refs", "tags", "gone.json")
			if err := os.MkdirAll(filepath.Dir(tag), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(tag, []byte(`{"branch":null,"version":1,"manifestSize":500}`), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(top, "c2.lance", ".lance-deregistered"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			checkRefs(t, top, want.Versions, want.Rows, true)
			checkDenied(t, top)
			moved := filepath.Join(t.TempDir(), "moved")
			if err := os.Rename(top, moved); err != nil {
				t.Fatal(err)
			}
			checkRefs(t, moved, want.Versions, want.Rows, false)
		})
	}
}

// checkRefs mounts the database at top. Clones dangle after a move, branches do not.
func checkRefs(t *testing.T, top string, versions, rows map[string]uint64, clones bool) {
	t.Helper()
	m := mount(t, top)
	if got := sh(t, m.dir, "ls tables"); got != "c1\nc_far\ncleaned\nt" { // c2 was taken out of the catalog
		t.Errorf("tables: %q", got)
	}
	table := m.path("tables/t")
	for branch, dir := range map[string]string{"": "", "dev/one": "branches/dev%2Fone/", "dev/one/two": "branches/dev%2Fone%2Ftwo/"} {
		var doc struct {
			Branch  *string
			Version uint64 `json:"dataset_version"`
			Rows    uint64
		}
		if err := json.Unmarshal([]byte(read(t, filepath.Join(table, dir, "latest/version.json"))), &doc); err != nil {
			t.Fatal(err)
		}
		got := ""
		if doc.Branch != nil {
			got = *doc.Branch
		}
		if got != branch || doc.Version != versions[branch] || doc.Rows != rows[branch] {
			t.Errorf("%q: %+v of branch %q, want version %d with %d rows", branch, doc, got, versions[branch], rows[branch])
		}
		files := read(t, filepath.Join(table, dir, "latest/scan/files.json"))
		if !strings.Contains(files, `"missing": 0,`) {
			t.Errorf("%q: files are missing: %s", branch, files)
		}
		// A copy of the remapped dataset holds the files of all bases: Lance reads it, with its index.
		copied := filepath.Join(t.TempDir(), "copy.lance")
		sh(t, table, "cp -r \"$1\" \"$2\"", filepath.Join(table, dir, "latest/remapped.lance"), copied)
		count := command(t, "", interpreter(t, newest), "-c", `import sys, lance
d = lance.dataset(sys.argv[1])
print(d.count_rows(), d.to_table(filter="id = 7").num_rows, "ScalarIndexQuery" in d.scanner(filter="id = 7").explain_plan())`, copied)
		if want := strconv.FormatUint(rows[branch], 10) + " 1 True"; strings.TrimSpace(count.stdout) != want {
			t.Errorf("%q: the copy has %q, want %q; %s", branch, count.stdout, want, count.stderr)
		}
	}
	for tag, target := range map[string]string{
		"on-main":   "../versions/1",
		"on-branch": "../branches/dev%2Fone/versions/" + strconv.FormatUint(versions["dev/one"], 10),
	} {
		p := filepath.Join(table, "tags", tag)
		if got, err := os.Readlink(p); err != nil || got != target {
			t.Errorf("%s leads to %q, %v, want %q", tag, got, err, target)
		}
		read(t, filepath.Join(p, "manifest.json"))
	}
	gone := m.path("tables/cleaned/tags/gone")
	if _, err := os.Lstat(gone); err != nil {
		t.Errorf("a dangling tag: %v", err)
	}
	if _, err := os.Stat(gone); !isErrno(err, syscall.ENOENT) {
		t.Errorf("following a dangling tag: %v, want ENOENT", err)
	}
	if got := frifs(t, "stat", top, "tables/cleaned/tags/gone"); !strings.Contains(got, "version 1 is not retained") {
		t.Errorf("frifs stat of a dangling tag: %s", got)
	}
	if marked := sh(t, m.dir, `jq -r '.tables[] | select(.deregistered) | .name' dataset.json`); marked != "c2" {
		t.Errorf("deregistered tables: %q, want c2", marked)
	}
	read(t, m.path("tables/c2/ERROR.json"))
	second := read(t, m.path("tables/c2/latest/scan/files.json"))
	if whole := strings.Contains(second, `"missing": 0,`); whole != clones {
		t.Errorf("the clone of a clone is whole: %v, want %v: %s", whole, clones, second)
	}
	if orphans := frifs(t, "cat", filepath.Join(top, "t.lance"), ".frifs/orphans.json"); strings.Contains(orphans, `"orphan": true`) || !strings.Contains(orphans, `"complete": true`) {
		t.Errorf("orphans: %s", orphans)
	}
}

// checkDenied looks at a clone of a table outside of the allowed roots: its own files are served, the others are refused,
// unless the user says where they may be.
func checkDenied(t *testing.T, top string) {
	t.Helper()
	m := mount(t, top)
	clone := m.path("tables/c_far/latest")
	var doc struct {
		Files []struct {
			Kind, Path string
			Base       *int `json:"base_id"`
			Error      *struct{ Kind, Message string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(clone, "scan/files.json"))), &doc); err != nil {
		t.Fatal(err)
	}
	own, refused := 0, 0
	for _, f := range doc.Files {
		p := filepath.Join(clone, "remapped.lance", f.Path)
		if f.Kind == "index" {
			p = sh(t, clone, `ls -d indices/*/*/stored`)
			p = filepath.Join(clone, p, filepath.Base(f.Path))
		} else if f.Kind != "data" {
			continue
		}
		if f.Base == nil {
			read(t, p)
			own++
			continue
		}
		refused++
		if f.Error == nil || f.Error.Kind != "denied" || !strings.Contains(f.Error.Message, "--allow-base "+top+"-far/s.lance") {
			t.Errorf("%s: %+v, want it denied, and what to do", f.Path, f.Error)
		}
		if _, err := os.ReadFile(p); !isErrno(err, syscall.EACCES) {
			t.Errorf("%s: %v, want EACCES", p, err)
		}
	}
	if own != 1 || refused != 3 {
		t.Errorf("%d files of its own, %d refused", own, refused)
	}
	args := []string{"-c", `import sys, lance
for p in sys.argv[1:]:
    d = lance.dataset(p)
    print(d.count_rows(), d.to_table(filter="id = 3").num_rows, d.to_table(filter="id = 6").num_rows)`}
	want := ""
	for _, flag := range []string{"--allow-base=" + top + "-far", "--base=0=" + top + "-far/s.lance", "--rebase=" + top + "-far=" + top + "-far"} {
		copied := filepath.Join(t.TempDir(), "copy.lance")
		frifs(t, "export", flag, filepath.Join(top, "c_far.lance"), "latest/remapped.lance", copied)
		args = append(args, copied)
		want += "8 1 1\n"
	}
	if count := command(t, "", interpreter(t, newest), args...); count.stdout != want {
		t.Errorf("the copies have %q, want %q; %s", count.stdout, want, count.stderr)
	}
}
