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

func TestExitCodesAndMessages(t *testing.T) {
	chain := testdata.Dataset(t, "tagged/chain")
	tests := []struct {
		name string
		args []string
		code int
		says string // on stderr
	}{
		{"help", nil, 0, ""},
		{"release", []string{"--version"}, 0, ""},
		{"unknown command", []string{"mont"}, 2, `unknown command "mont"; did you mean frifs mount or frifs umount?`},
		{"another word", []string{"list"}, 2, `did you mean frifs ls?`},
		{"release as a command", []string{"version"}, 2, `did you mean frifs --version or frifs versions?`},
		{"nothing like a command", []string{"xyzzyxyzzy"}, 2, "unknown command \"xyzzyxyzzy\"\n"},
		{"an empty command", []string{""}, 2, "unknown command \"\"\n"},
		{"help", []string{"help"}, 0, ""},
		{"help of a command", []string{"help", "mount"}, 0, ""},
		{"help of an alias", []string{"help", "unmount"}, 0, ""},
		{"help of help", []string{"help", "help"}, 0, ""},
		{"help of no command", []string{"help", "statu"}, 2, `unknown command "statu"; did you mean frifs stat or frifs status?`},
		{"help of two", []string{"help", "ls", "cat"}, 2, `unexpected argument "cat"`},
		{"no URI", []string{"ls"}, 2, "ls: URI is missing (usage: frifs ls URI [PATH])"},
		{"no mountpoint", []string{"mount", chain}, 2, "mount: MOUNTPOINT is missing (usage: frifs mount URI MOUNTPOINT)"},
		{"no URI to translate", []string{"translate"}, 2, "translate: URI is missing"},
		{"no shell", []string{"completion"}, 2, "completion: SHELL is missing (usage: frifs completion bash|zsh|fish|powershell)"},
		{"one argument", []string{"doctor", "x", "y"}, 2, `unexpected argument "y"`},
		{"unknown flag", []string{"ls", "--colour", chain}, 2, "unknown flag: --colour"},
		{"too few arguments", []string{"cat", chain}, 2, "cat: PATH is missing (usage: frifs cat URI PATH...)"},
		{"too many arguments", []string{"ls", chain, "a", "b"}, 2, `unexpected argument "b"`},
		{"no dataset", []string{"ls", t.TempDir()}, 1, "no _versions directory"},
		{"no such directory", []string{"ls", "/no/such/dir"}, 1, "/no/such/dir does not exist"},
		{"no such scheme", []string{"ls", "gopher://x/y"}, 1, "gopher"},
		{"no such path", []string{"cat", chain, "latest/nothing"}, 1, "not found"},
		{"a directory", []string{"cat", chain, "latest"}, 1, "is a directory"},
		{"negative length", []string{"cat", "--length", "-5", chain, "README.txt"}, 2, "negative"},
		{"no such version", []string{"ls", "--version", "99", chain}, 1, "version 99 is not retained"},
		{"no version at all", []string{"ls", "--version", "new", chain}, 2, "not a version number"},
		{"before the first version", []string{"ls", "--asof", "1999-01-01", chain}, 1, "no version is as old"},
		{"not a time", []string{"ls", "--asof", "then", chain}, 2, "is not a time"},
		{"both selectors", []string{"ls", "--asof", "2026-12-01", "--version", "3", chain}, 2, "exclude each other"},
		{"rebase", []string{"ls", "--rebase", "x", chain}, 2, "is not OLD=NEW"},
		{"format", []string{"versions", "--format", "xml", chain}, 2, "none of table, json, csv"},
		{"translate without addresses", []string{"translate", chain}, 2, "no address given: pass ADDR... or --from-file"},
		{"translate with both", []string{"translate", chain, "--from-file", "-", "1"}, 2, "not both"},
		{"translate a word", []string{"translate", chain, "1", "one"}, 2, `address 2: "one" is no decimal number`},
		{"trace as csv", []string{"translate", "--trace", "--format", "csv", chain, "1"}, 2, "no csv form"},
		{"no such address file", []string{"translate", chain, "--from-file", "/no/such"}, 1, "no such file"},
		{"umount nothing", []string{"umount", t.TempDir()}, 2, "nothing is mounted"},
		{"mount nowhere", []string{"mount", chain, filepath.Join(t.TempDir(), "mnt")}, 1, "mkdir -p"},
		{"mount into the dataset", []string{"mount", chain, filepath.Join(chain, "data")}, 2, "inside the dataset"},
		{"unknown shell", []string{"completion", "ksh"}, 2, "ksh"},
		{"demo without and with a mount", []string{"demo", "--no-mount", "--stay"}, 2, "--no-mount"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			r := frifs(t, "", tc.args...)
			if r.code != tc.code || !strings.Contains(r.stderr, tc.says) {
				t.Errorf("got exit %d, stderr %q; want %d and %q", r.code, r.stderr, tc.code, tc.says)
			}
			if tc.code != 0 && r.stdout != "" {
				t.Errorf("a failed command printed on stdout: %q", r.stdout)
			}
			if n := strings.Count(r.stderr, "\n"); n > 2 {
				t.Errorf("an error of %d lines:\n%s", n, r.stderr)
			}
		})
	}
}

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
		{wordedError{"other words", corrupt}, "other words"},
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
