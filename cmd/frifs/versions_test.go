package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// The time of a version that the table prints, given to --asof, names that version or a later one of the same time.
func TestTimesOfVersionsCanBeCopied(t *testing.T) {
	chain := testdata.Dataset(t, "tagged/chain")
	lines := strings.Split(strings.TrimSpace(must(t, "versions", chain)), "\n")[1:]
	for _, i := range []int{0, 1, 12, len(lines) - 1} {
		cells := strings.Fields(lines[i])
		got := must(t, "versions", "--asof", cells[1], "--format", "csv", chain)
		if rows := strings.Split(strings.TrimSpace(got), "\n"); len(rows) != 2 || !strings.HasPrefix(rows[1], cells[0]+",") {
			t.Errorf("--asof %s: %s, want version %s", cells[1], got, cells[0])
		}
	}
	r := frifs(t, "", "versions", "--asof", "1999-01-01", chain)
	first := strings.Fields(lines[0])[1]
	if r.code != 1 || !strings.Contains(r.stderr, "; version 1 is of "+strings.TrimSuffix(first, "Z")) {
		t.Errorf("before all: exit %d, %q; want the time %s", r.code, r.stderr, first)
	}
	for in, want := range map[string]string{
		"2026-11-30T05:03:51.844873449Z": "2026-11-30T05:03:51.844873449Z",
		"2026-11-30T05:03:51.840000000Z": "2026-11-30T05:03:51.84Z",
		"2026-11-30T05:03:50.000000000Z": "2026-11-30T05:03:50Z",
		"2026-11-30T05:03:50Z":           "2026-11-30T05:03:50Z",
		"?":                              "?",
	} {
		if got := trimTime(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// Of a branch, versions lists all; a selector beside it leaves one.
func TestVersionsOfABranch(t *testing.T) {
	branchy := testdata.Dataset(t, "legacy/branchy")
	count := func(args ...string) int {
		t.Helper()
		out := must(t, append([]string{"versions", "--format", "csv"}, append(args, branchy)...)...)
		return strings.Count(out, "\n") - 1
	}
	if all, main := count(), count("--branch", "main"); all != main || all < 2 {
		t.Errorf("the main line has %d versions, and %d by name", all, main)
	}
	branches := strings.Fields(must(t, "ls", branchy, "branches"))
	if len(branches) == 0 {
		t.Fatal("there is no branch")
	}
	most := 0
	for _, b := range branches {
		numbers := strings.Fields(must(t, "ls", branchy, "branches/"+b+"/versions"))
		most = max(most, len(numbers))
		if got := count("--branch", b); got != len(numbers) {
			t.Errorf("branch %s: %d lines for %d versions", b, got, len(numbers))
		}
		if got := count("--branch", b, "--version", numbers[0]); got != 1 {
			t.Errorf("a version of branch %s: %d lines", b, got)
		}
	}
	if most < 2 {
		t.Errorf("no branch has more than %d versions", most)
	}
	if r := frifs(t, "", "versions", "--branch", "nosuch", branchy); r.code != 1 || !strings.Contains(r.stderr, `there is no branch "nosuch"`) {
		t.Errorf("no such branch: exit %d, %q", r.code, r.stderr)
	}
}

// What a refresh says is true whatever changed beside the newest number.
func TestRefreshInWords(t *testing.T) {
	number := func(n uint64) *uint64 { return &n }
	for _, tc := range []struct {
		r    refreshed
		want string
	}{
		{refreshed{Latest: number(3), Before: number(2), Changed: true}, "version 3 is the newest; it was version 2"},
		{refreshed{Latest: number(3), Before: number(3)}, "version 3 is the newest; nothing has changed"},
		{refreshed{Latest: number(3), Before: number(3), Changed: true}, "version 3 is the newest still, but the versions have changed: manifests were replaced, or older versions came or went"},
		{refreshed{Pinned: number(3)}, "pinned to version 3"},
		{refreshed{}, "no version is the newest; nothing has changed"},
	} {
		if got := tc.r.String(); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestHelpOfDefaultsAndWidth(t *testing.T) {
	if got := must(t, "cat", "--help"); !strings.Contains(got, "number of bytes (default to the end)\n") {
		t.Errorf("cat --help: %s", got)
	}
	for _, c := range newRoot().Commands() {
		for _, line := range strings.Split(c.Long, "\n") {
			if len([]rune(line)) > 105 {
				t.Errorf("%s: a line of %d characters: %s", c.Name(), len(line), line)
			}
		}
	}
}

func TestOmissionsOfListings(t *testing.T) {
	chain := testdata.Dataset(t, "tagged/chain")
	for _, args := range [][]string{{"ls", chain}, {"ls", chain, "latest"}, {"tree", chain, "latest/fri"}, {"stat", chain, "latest"}, {"cat", chain, "README.txt"}} {
		r := frifs(t, "", append([]string{args[0], "--omit-index", "nosuch"}, args[1:]...)...)
		if r.code != 0 || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, `has no index of the name or type "nosuch"`) {
			t.Errorf("%q: exit %d, %q", args, r.code, r.stderr)
		}
		r = frifs(t, "", append([]string{args[0], "--omit-index", "BTREE"}, args[1:]...)...)
		if r.code != 0 || r.stderr != "" {
			t.Errorf("%q with an index that is there: exit %d, %q", args, r.code, r.stderr)
		}
	}
	if r := frifs(t, "", "ls", "--omit-index", "nosuch", filepath.Dir(chain)); r.code != 0 {
		t.Errorf("a database: exit %d, %q", r.code, r.stderr)
	}
}
