package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
	"github.com/frifs/frifs/nodes"
)

// openTree opens the tree of a dataset in this process, for comparison.
func openTree(t *testing.T, uri string) *source {
	t.Helper()
	tg := target{memory: defaultMemory, opTimeout: defaultOpTimeout}
	cmd := newLsCmd()
	cmd.SetContext(t.Context())
	s, err := tg.source(cmd, uri)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// sameTree compares what was exported to dir with the tree at path, file by file, and returns how many files there are.
func sameTree(t *testing.T, s *source, path, dir string) (files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		at := joinPath(path, filepath.ToSlash(rel))
		n, err := nodes.ResolveNoFollow(t.Context(), s.root, at)
		if err != nil {
			t.Errorf("%s was made of nothing: %v", p, err)
			return nil
		}
		a, err := n.Attr(t.Context())
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		if l, ok := n.(nodes.Link); ok && fi.Mode()&fs.ModeSymlink != 0 {
			want, err := l.Target(t.Context())
			if got, rerr := os.Readlink(p); err != nil || rerr != nil || got != want {
				t.Errorf("%s: leads to %q, want %q (%v, %v)", p, got, want, err, rerr)
			}
			return nil
		}
		if uint32(fi.Mode().Perm()) != a.Perm || !fi.ModTime().Equal(a.Mtime) {
			t.Errorf("%s: mode %o of %v, want %o of %v", p, fi.Mode().Perm(), fi.ModTime(), a.Perm, a.Mtime)
		}
		if d.IsDir() {
			return nil
		}
		files++
		want, err := readNode(t.Context(), s.root, at)
		if err != nil {
			return err
		}
		if got, err := os.ReadFile(p); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, want %d (%v)", p, len(got), len(want), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestExportCopiesATree(t *testing.T) {
	chain := testdata.Dataset(t, "tagged/chain")
	s := openTree(t, chain)
	dest := filepath.Join(t.TempDir(), "a", "b", "copy")
	r := frifs(t, "", "export", chain, "versions/29/fri", dest)
	if r.code != 0 || r.stdout != "" || !strings.Contains(r.stderr, "exported ") || strings.Count(r.stderr, "\n") != 1 {
		t.Fatalf("exit %d, %q, %q", r.code, r.stdout, r.stderr)
	}
	n := sameTree(t, s, "versions/29/fri", dest)
	if listed := strings.Count(must(t, "tree", "--depth", "0", chain, "versions/29/fri"), "."); n < 5 || n > listed {
		t.Errorf("%d files were exported", n)
	}
	// The same again is refused, and done over with --force.
	if r := frifs(t, "", "export", chain, "versions/29/fri", dest); r.code != 1 || !strings.Contains(r.stderr, "--force") {
		t.Errorf("into what is not empty: exit %d, %q", r.code, r.stderr)
	}
	must(t, "export", "--force", chain, "versions/29/fri", dest)
	sameTree(t, s, "versions/29/fri", dest)
}

func TestExportOfOneFile(t *testing.T) {
	chain, dir := testdata.Dataset(t, "tagged/chain"), t.TempDir()
	want := must(t, "cat", chain, "latest/version.json")
	must(t, "export", chain, "latest/version.json", dir)
	must(t, "export", chain, "/latest/version.json/", filepath.Join(dir, "v.json"))
	for _, name := range []string{"version.json", "v.json"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if r := frifs(t, "", "export", chain, "latest/version.json", dir); r.code != 1 || !strings.Contains(r.stderr, "--force") {
		t.Errorf("over a file: exit %d, %q", r.code, r.stderr)
	}
	must(t, "export", "--force", chain, "latest/fri/history.json", filepath.Join(dir, "v.json"))
	if got, err := os.ReadFile(filepath.Join(dir, "v.json")); err != nil || string(got) != must(t, "cat", chain, "latest/fri/history.json") {
		t.Errorf("--force: %q, %v", got, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 2 {
		t.Errorf("left in the directory: %v, %v", names, err)
	}
}

func TestExportKeepsLinksInsideAndFollowsOthers(t *testing.T) {
	chain, dir := testdata.Dataset(t, "legacy/basic"), t.TempDir()
	all := filepath.Join(dir, "all")
	must(t, "export", chain, "", all)
	target, err := os.Readlink(filepath.Join(all, "latest"))
	if err != nil || target != "versions/"+filepath.Base(target) {
		t.Fatalf("latest leads to %q, %v", target, err)
	}
	got, err := os.ReadFile(filepath.Join(all, "latest/version.json"))
	if err != nil || string(got) != must(t, "cat", chain, "latest/version.json") {
		t.Errorf("through the link: %v", err)
	}
	// A PATH that is a link means what it leads to.
	must(t, "export", chain, "latest", filepath.Join(dir, "latest"))
	if fi, err := os.Lstat(filepath.Join(dir, "latest")); err != nil || !fi.IsDir() {
		t.Errorf("latest: %v, %v", fi, err)
	}
}

// TestPlanOfLinks plans trees in memory whose links lead everywhere.
func TestPlanOfLinks(t *testing.T) {
	root := memDir{
		"a": memDir{
			"file": memFile("x"), "up": memLink("../b/file"), "beside": memLink("file"), "deep": memLink("../a/sub/f"),
			"sub": memDir{"f": memFile("f"), "back": memLink("../file")}, "gone": memLink("nothing"), "far": memLink("../nothing"),
			"dir": memLink("../b"), "abs": memLink("/etc/passwd"),
		},
		"b":    memDir{"file": memFile("y"), "in": memLink("file"), "out": memLink("../a/file")},
		"loop": memDir{"l": memLink("../loop")},
		"to":   memLink("a"),
	}
	tests := []struct {
		name, path, want string
	}{
		{"all of it", "", "d: d:a d:a/sub d:b d:loop f:a/file f:a/sub/f f:b/file l:a/abs l:a/beside l:a/deep l:a/dir l:a/far l:a/gone l:a/sub/back l:a/up l:b/in l:b/out l:loop/l l:to"},
		{"a part", "a", "d: d:dir d:sub f:deep f:dir/file f:dir/out f:file f:sub/f f:up l:abs l:beside l:dir/in l:far l:gone l:sub/back"},
		{"a part through a link", "to/sub", "d: f:back f:f"},
		{"in a circle", "loop", "d:"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var errs bytes.Buffer
			e := export{path: tc.path, src: &source{root: root}, stderr: &errs}
			e.told.begin(&errs)
			n, err := nodes.Resolve(t.Context(), root, tc.path)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := e.plan(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			if got := plan.String(); got != tc.want {
				t.Errorf("got  %s\nwant %s\n%s", got, tc.want, errs.String())
			}
		})
	}
}

func TestExportRefusesTheDataset(t *testing.T) {
	table := testdata.Copy(t, "legacy/basic")
	before, err := os.ReadDir(table)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(table, link); err != nil {
		t.Fatal(err)
	}
	for _, dest := range []string{table, filepath.Join(table, "x/y"), filepath.Join(link, "x")} {
		if r := frifs(t, "", "export", "--force", table, "latest", dest); r.code != 1 || !strings.Contains(r.stderr, "inside the dataset") {
			t.Errorf("%s: exit %d, %q", dest, r.code, r.stderr)
		}
	}
	if after, err := os.ReadDir(table); err != nil || len(after) != len(before) {
		t.Errorf("the dataset was written to: %v, %v", after, err)
	}
}

func TestExportGoesOn(t *testing.T) {
	chain := testdata.Dataset(t, "tagged/chain")
	s := openTree(t, chain)
	const path = "versions/29/fri/transitions"
	dest := filepath.Join(t.TempDir(), "copy")
	must(t, "export", chain, path, dest)
	// As a killed run leaves it: a journal, some files, a part with a right beginning, a leftover, a line cut off.
	e := export{src: s, path: path, dest: dest, stderr: os.Stderr, jobs: 2}
	e.told.begin(os.Stderr)
	n, err := nodes.Resolve(t.Context(), s.root, path)
	if err != nil {
		t.Fatal(err)
	}
	if e.log, err = openJournal(dest, e.header(n), true); err != nil {
		t.Fatal(err)
	}
	plan, err := e.plan(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	var whole exportItem
	for i, it := range plan.files {
		fi, err := os.Stat(e.place(it.rel))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasSuffix(it.rel, "mapping.csv") && whole.rel == "":
			whole = it
			b, err := os.ReadFile(e.place(it.rel))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(e.place(it.rel)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(partName(e.place(it.rel), it.node.Ino()), b[:len(b)/2], 0o600); err != nil {
				t.Fatal(err)
			}
		case i%3 == 0:
			e.log.add(it, fi)
		case i%3 == 1:
			// Done, but another file by now.
			e.log.add(it, fi)
			if err := os.WriteFile(e.place(it.rel)+".x", []byte("changed"), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(e.place(it.rel)+".x", e.place(it.rel)); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.log.close()
	f, err := os.OpenFile(filepath.Join(dest, journalName), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"path":"0001/mapp`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	stale := partName(e.place("0001/mapping.csv"), 1)
	if err := os.WriteFile(stale, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := frifs(t, "", "export", chain, "versions/28", dest)
	if other.code != 1 || !strings.Contains(other.stderr, "unfinished export of") {
		t.Errorf("another export: exit %d, %q", other.code, other.stderr)
	}
	r := frifs(t, "", "export", chain, path, dest)
	if r.code != 0 || !strings.Contains(r.stderr, " there before") {
		t.Fatalf("exit %d, %q", r.code, r.stderr)
	}
	if n := sameTree(t, s, path, dest); n != len(plan.files) {
		t.Errorf("%d files, want %d", n, len(plan.files))
	}
}

func TestExportsDoNotMix(t *testing.T) {
	dir := t.TempDir()
	head := journalHeader{Version: journalVersion, URI: "u", Path: "p", Content: "1"}
	j, err := openJournal(dir, head, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openJournal(dir, head, true); err == nil || !strings.Contains(err.Error(), "another frifs export") {
		t.Errorf("two at a time: %v", err)
	}
	j.close()
	changed := head
	changed.Content = "2"
	if _, err := openJournal(dir, changed, false); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("of other content: %v", err)
	}
	if j, err = openJournal(dir, head, false); err != nil {
		t.Fatal(err)
	}
	if err := j.finish(nil); err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Errorf("left: %v, %v", names, err)
	}
}

func TestExportHardLinks(t *testing.T) {
	table := testdata.Copy(t, "tagged/chain")
	s := openTree(t, table)
	dest := filepath.Join(filepath.Dir(table), "linked")
	r := frifs(t, "", "export", "--link", table, "latest/indices", dest)
	if !strings.Contains(r.stderr, " hard-linked") {
		t.Fatalf("exit %d, %q", r.code, r.stderr)
	}
	linked := 0
	_ = filepath.WalkDir(dest, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.Contains(p, "/stored/") {
			return err
		}
		rel, _ := filepath.Rel(dest, p)
		n, err := nodes.Resolve(t.Context(), s.root, "latest/indices/"+rel)
		if err != nil {
			t.Error(err)
			return nil
		}
		orig, _, _ := n.(nodes.LocalFile).LocalPath(t.Context())
		a, aerr := os.Stat(orig)
		b, berr := os.Stat(p)
		if aerr != nil || berr != nil || !os.SameFile(a, b) {
			t.Errorf("%s is no link of %s", p, orig)
		}
		linked++
		return nil
	})
	if linked == 0 {
		t.Error("nothing was linked")
	}
	// Across filesystems files are copied, and that is said.
	far, err := os.MkdirTemp("/dev/shm", "frifs-export-") //nolint:usetesting // on another filesystem
	if err != nil {
		return // no second filesystem
	}
	defer os.RemoveAll(far)
	if a, b := devOf(t, far), devOf(t, dest); a == b {
		return
	}
	r = frifs(t, "", "export", "--link", table, "latest/indices", far)
	if !strings.Contains(r.stderr, "another filesystem") || strings.Contains(r.stderr, "hard-linked") {
		t.Errorf("across filesystems: exit %d, %q", r.code, r.stderr)
	}
}

func devOf(t *testing.T, path string) uint64 {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return uint64(st.Dev) //nolint:unconvert // 32 bits elsewhere
}
