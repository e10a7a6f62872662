package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/testdata"
)

func TestPlainDropsOperations(t *testing.T) {
	corrupt := fault.New("store.Read", "/d/x @96", fault.Corrupt, "it ends early")
	tests := []struct {
		err  error
		want string
	}{
		{errors.New("no fault"), "no fault"},
		{corrupt, "/d/x @96: corrupt: it ends early"},
		{fault.Wrap("dataset.Open", "/d", corrupt), "/d: /d/x @96: corrupt: it ends early"},
		{fault.Wrap("nodes.New", "", fault.Wrap("dataset.Open", "/d", corrupt)), "/d: /d/x @96: corrupt: it ends early"},
		{fault.Wrap("dataset.Open", "/d/x @96", corrupt), "/d/x @96: corrupt: it ends early"},
		{fmt.Errorf("%w; try again", corrupt), "/d/x @96: corrupt: it ends early; try again"},
		{errors.Join(corrupt, fault.New("op", "", fault.Denied, "no")), "/d/x @96: corrupt: it ends early\ndenied: no"},
		{fault.New("op", "p", fault.Unavailable, "%w and %w", corrupt, errors.New("more")), "p: unavailable: /d/x @96: corrupt: it ends early and more"},
		{&fault.Error{Op: "op", Kind: fault.Stale}, "not found"},
		{worded{"other words", corrupt}, "other words"},
	}
	for _, tc := range tests {
		if got := plain(tc.err); got != tc.want {
			t.Errorf("%v: got %q, want %q", tc.err, got, tc.want)
		}
	}
	cmd := &cobra.Command{}
	cmd.Flags().String("log-level", "warn", "")
	for level, want := range map[string]string{"warn": plain(corrupt), "debug": corrupt.Error()} {
		if err := cmd.Flags().Set("log-level", level); err != nil {
			t.Fatal(err)
		}
		if got := message(cmd, corrupt); got != want {
			t.Errorf("--log-level %s: got %q, want %q", level, got, want)
		}
	}
}

// TestPathsThatAreNoDirectory has every command that takes a URI say what is wrong with the path itself.
func TestPathsThatAreNoDirectory(t *testing.T) {
	dir := t.TempDir()
	file, missing := filepath.Join(dir, "file"), filepath.Join(dir, "missing")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := [][]string{
		{"ls"}, {"cat", "README.txt"}, {"stat"}, {"tree"}, {"versions"}, {"translate", "1"}, {"history"}, {"status"},
		{"mount", t.TempDir()},
	}
	for _, c := range commands {
		for uri, says := range map[string]string{
			missing:             missing + " does not exist\n",
			"file://" + missing: missing + " does not exist\n",
			file:                file + " is a file, not a directory\n",
			dir:                 "there is no _versions directory here",
		} {
			args := slices.Insert(slices.Clone(c), 1, uri)
			r := frifs(t, "", args...)
			if r.code != 1 || !strings.Contains(r.stderr, says) || strings.Contains(r.stderr, "dataset.Open") {
				t.Errorf("%v: exit %d, %q; want 1 and %q", args, r.code, r.stderr, says)
			}
		}
	}
	for path, says := range map[string]string{missing: missing + " does not exist\n", file: file + " is a file, not a directory\n"} {
		if r := frifs(t, "", "umount", path); r.code != 1 || !strings.Contains(r.stderr, says) {
			t.Errorf("umount %s: exit %d, %q; want 1 and %q", path, r.code, r.stderr, says)
		}
	}
}

// TestCatGoesOn has cat print what there is, whatever fails before or between.
func TestCatGoesOn(t *testing.T) {
	chain := testdata.Dataset(t, "tagged/chain")
	const a, b = "README.txt", "latest/version.json"
	both := must(t, "cat", chain, a, b)
	for _, paths := range [][]string{{a, "missing", b}, {"missing", a, b}, {a, b, "missing"}, {a, "latest", b, "missing"}} {
		r := frifs(t, "", append([]string{"cat", chain}, paths...)...)
		if r.code != 1 || r.stdout != both || strings.Count(r.stderr, "\n") != len(paths)-2 || !strings.Contains(r.stderr, "missing") {
			t.Errorf("%v: exit %d, %d bytes, %q", paths, r.code, len(r.stdout), r.stderr)
		}
	}
}

// TestHintAtAnOlderVersion has the commands about the newest version name another when its manifest is damaged.
func TestHintAtAnOlderVersion(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t.lance")
	if err := os.CopyFS(dir, os.DirFS(testdata.Dataset(t, "tagged/chain"))); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "_versions", "*.manifest"))
	if err != nil || len(names) != 29 {
		t.Fatalf("%d manifests, %v", len(names), err)
	}
	if err := os.Truncate(names[0], 100); err != nil { // names count down
		t.Fatal(err)
	}
	const hint = "an older version may work: --version 28"
	for _, args := range [][]string{{"translate", dir, "1"}, {"history", dir}, {"status", dir}, {"history", "--format", "json", dir}} {
		if r := frifs(t, "", args...); r.code != 1 || !strings.Contains(r.stderr, "corrupt") || !strings.Contains(r.stderr, hint) {
			t.Errorf("%v: exit %d, %q", args, r.code, r.stderr)
		}
		if r := frifs(t, "", append(args, "--version", "29")...); r.code != 1 || strings.Contains(r.stderr, hint) {
			t.Errorf("%v --version 29: exit %d, %q", args, r.code, r.stderr)
		}
		must(t, append(args, "--version", "28")...)
	}
}
