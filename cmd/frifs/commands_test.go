package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/testdata"
)

func TestHelpHasAnExample(t *testing.T) {
	for _, c := range newRoot().Commands() {
		if c.Name() == "help" || c.Hidden {
			continue
		}
		if c.Example == "" || c.Short == "" {
			t.Errorf("%s: no example or no description", c.Name())
		}
		if out := must(t, c.Name(), "--help"); !strings.Contains(out, "Example") {
			t.Errorf("%s --help shows no example", c.Name())
		}
	}
	if out := must(t, "--version"); !strings.HasPrefix(out, "frifs ") || strings.Count(out, "\n") != 1 {
		t.Errorf("--version: %q", out)
	}
	if help := must(t, "completion", "--help"); !strings.Contains(help, "bash-completion") {
		t.Errorf("completion --help does not name bash-completion:\n%s", help)
	}
	if byWord, byFlag := must(t, "help", "umount"), must(t, "umount", "--help"); byWord != byFlag {
		t.Errorf("help umount:\n%s\numount --help:\n%s", byWord, byFlag)
	}
	if out := must(t, "completion", "bash"); !strings.Contains(out, "frifs") {
		t.Errorf("completion bash: %q", out)
	}
}

func TestSelectRefs(t *testing.T) {
	branchy := testdata.Dataset(t, "legacy/branchy")
	if got := must(t, "ls", branchy, "tags"); got != "after-1\nbefore\n" {
		t.Errorf("tags: %q", got)
	}
	if got := must(t, "ls", "--tag", "before", branchy, "versions"); got != "3\n" {
		t.Errorf("--tag lists versions %q", got)
	}
	if got := must(t, "stat", branchy, "tags/before"); !strings.Contains(got, "target:   ../versions/3\n") || strings.Contains(got, "dangling") {
		t.Errorf("stat of a tag: %q", got)
	}
	latest := strings.TrimSpace(must(t, "ls", "--branch", "exp/wide", branchy, "versions"))
	if got := must(t, "cat", "--branch", "exp/wide", "--version", latest, branchy, "latest/version.json"); !strings.Contains(got, `"branch": "exp/wide"`) {
		t.Errorf("version.json of the branch: %s", got)
	}
	for _, args := range [][]string{{"--tag", "before", "--version", "3"}, {"--tag", "before", "--asof", "2026-12-01"}, {"--tag", ""}, {"--branch", ""},
		{"--base", "0"}, {"--base", "x=/y"}, {"--base", "0="}, {"--base", "4294967296=/y"}} {
		if r := frifs(t, "", append([]string{"ls", branchy}, args...)...); r.code != 2 {
			t.Errorf("%q: exit %d, %s, want 2", args, r.code, r.stderr)
		}
	}
	if r := frifs(t, "", "ls", "--tag", "nope", branchy); r.code != 1 || !strings.Contains(r.stderr, `"after-1", "before"`) {
		t.Errorf("no such tag: exit %d, %s", r.code, r.stderr)
	}
	cleaned := testdata.Copy(t, "legacy/cleanup")
	if err := os.WriteFile(filepath.Join(cleaned, "_refs", "tags", "old.json"), []byte(`{"version":1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := must(t, "stat", cleaned, "tags/old"); !strings.Contains(got, "dangling:") || !strings.Contains(got, "version 1 is not retained") {
		t.Errorf("stat of a tag whose version was cleaned up: %q", got)
	}
}

func TestBaseOverride(t *testing.T) {
	clone := testdata.Dataset(t, "legacy/clone")
	if got := must(t, "cat", clone, "latest/scan/files.json"); !strings.Contains(got, `"kind": "denied"`) {
		t.Errorf("without --base: %s", got)
	}
	got := must(t, "cat", "--base", "0="+testdata.Dataset(t, "legacy/clone_source"), clone, "latest/scan/files.json")
	if !strings.Contains(got, `"missing": 0,`) || strings.Contains(got, `"kind": "denied"`) {
		t.Errorf("with --base: %s", got)
	}
}

func TestDatabaseRoot(t *testing.T) {
	db := t.TempDir()
	for _, name := range []string{"legacy/basic", "tagged/chain"} {
		src := testdata.Copy(t, name)
		if err := os.Rename(src, filepath.Join(db, filepath.Base(src))); err != nil {
			t.Fatal(err)
		}
	}
	if got := must(t, "ls", db, "tables"); got != "basic\nchain\n" {
		t.Errorf("ls: %q", got)
	}
	whole := must(t, "cat", filepath.Join(db, "chain.lance"), "latest/fri/scan/composed.csv")
	if got := must(t, "cat", db, "tables/chain/latest/fri/scan/composed.csv"); got != whole || len(whole) < 100 {
		t.Errorf("a file of a table, through its database: %d bytes, want %d", len(got), len(whole))
	}
	if got := must(t, "stat", db, "tables/basic/latest"); !strings.Contains(got, "target:   versions/") {
		t.Errorf("stat: %q", got)
	}
	if got := must(t, "tree", db, "tables/basic/versions"); !strings.Contains(got, "manifest.json") {
		t.Errorf("tree: %q", got)
	}
	want := "frifs: " + db + ": invalid: this is a directory of tables: name one of them, such as " + filepath.Join(db, "basic.lance") + ". There are basic, chain\n"
	for _, args := range [][]string{{"history"}, {"status"}, {"versions"}, {"versions", "--format", "json"}, {"translate"}, {"diff"}} {
		args = append(args, db)
		switch args[0] {
		case "translate":
			args = append(args, "0")
		case "diff":
			args = append(args, "1", "2")
		}
		if r := frifs(t, "", args...); r.code != 2 || r.stderr != want || r.stdout != "" {
			t.Errorf("%q: exit %d: %s%s; want 2 and %s", args, r.code, r.stdout, r.stderr, want)
		}
	}
	if r := frifs(t, "", "ls", "--tag", "x", db); r.code != 2 || !strings.Contains(r.stderr, "basic.lance") {
		t.Errorf("--tag in a database: exit %d: %s", r.code, r.stderr)
	}
}

func TestLs(t *testing.T) {
	chain := testdata.Dataset(t, "tagged/chain")
	if got, want := must(t, "ls", chain), ".frifs\nREADME.txt\nbranches\ndataset.json\nlatest\ntags\nversions\n"; got != want {
		t.Errorf("ls: got %q, want %q", got, want)
	}
	if got := must(t, "ls", "--version", "12", chain, "versions"); got != "12\n" {
		t.Errorf("a pinned tree lists %q", got)
	}
	if got := must(t, "ls", chain, "latest/version.json"); got != "latest/version.json\n" {
		t.Errorf("ls of a file: %q", got)
	}
	long := must(t, "ls", "-l", chain)
	if !strings.Contains(long, "latest -> versions/29") || !strings.HasPrefix(long, "dr-xr-xr-x ") {
		t.Errorf("ls -l:\n%s", long)
	}
	// Every path of ls -R can be resolved again, and tree names the same ones.
	all := must(t, "ls", "-R", chain, "latest/fri")
	dir, n := "", 0
	for _, line := range strings.Split(strings.TrimSpace(all), "\n") {
		if d, ok := strings.CutSuffix(line, ":"); ok {
			dir = d
			continue
		}
		if line == "" {
			continue
		}
		n++
		must(t, "stat", chain, dir+"/"+line)
	}
	drawn := must(t, "tree", "--depth", "0", chain, "latest/fri")
	if got := strings.Count(drawn, "── "); got != n || n < 10 {
		t.Errorf("ls -R shows %d names, tree %d", n, got)
	}
}

func TestCatRanges(t *testing.T) {
	chain := testdata.Dataset(t, "tagged/chain")
	const path = "latest/manifest.json"
	whole := must(t, "cat", chain, path)
	if !json.Valid([]byte(whole)) || !strings.HasSuffix(whole, "\n") {
		t.Fatalf("not JSON: %.80q", whole)
	}
	tests := []struct {
		offset, length string
		want           string
	}{
		{"0", "1", whole[:1]},
		{"10", "100", whole[10:110]},
		{"100", "", whole[100:]},
		{"-7", "", whole[len(whole)-7:]},
		{"-7", "3", whole[len(whole)-7 : len(whole)-4]},
		{"0", "0", ""},
		{"5", "99999999999", whole[5:]},
		{"99999999999", "5", ""},
		{"-99999999999", "5", whole[:5]},
	}
	for _, tc := range tests {
		args := []string{"cat", "--offset", tc.offset}
		if tc.length != "" {
			args = append(args, "--length", tc.length)
		}
		if got := must(t, append(args, chain, path)...); got != tc.want {
			t.Errorf("offset %s, length %s: got %d bytes, want %d", tc.offset, tc.length, len(got), len(tc.want))
		}
	}
	if two := must(t, "cat", chain, "README.txt", path); !strings.HasSuffix(two, whole) || len(two) <= len(whole) {
		t.Errorf("two files: got %d bytes", len(two))
	}
}

func TestStat(t *testing.T) {
	chain := testdata.Dataset(t, "tagged/chain")
	var s statOutput
	if err := json.Unmarshal([]byte(must(t, "stat", "--format", "json", chain, "latest/version.json")), &s); err != nil {
		t.Fatal(err)
	}
	if want := int64(len(must(t, "cat", chain, "latest/version.json"))); s.Size != want || s.Type != "file" || s.Mode != "0444" || s.Inode == "0" {
		t.Errorf("got %+v, want size %d", s, want)
	}
	if out := must(t, "stat", chain, "latest"); !strings.Contains(out, "target:   versions/29\n") || !strings.Contains(out, "type:     link\n") {
		t.Errorf("stat of a link:\n%s", out)
	}
}

func TestVersionsAndHistory(t *testing.T) {
	chain := testdata.Dataset(t, "tagged/chain")
	csv := strings.Split(strings.TrimSpace(must(t, "versions", "--format", "csv", chain)), "\n")
	if len(csv) != 30 {
		t.Fatalf("got %d lines, want a header and 29 versions", len(csv))
	}
	records := 0
	for i, line := range csv[1:] {
		cells := strings.Split(line, ",")
		if len(cells) != 11 {
			t.Fatalf("line %d: %d cells: %s", i+2, len(cells), line)
		}
		if cells[7] != "" {
			records += int(cells[7][0] - '0')
		}
	}
	if records != 5 {
		t.Errorf("%d records came in, want 5", records)
	}
	var list []versionLine
	if err := json.Unmarshal([]byte(must(t, "versions", "--format", "json", chain)), &list); err != nil || len(list) != 29 {
		t.Fatalf("json: %d versions, %v", len(list), err)
	}
	if v := list[11]; v.Version != 12 || v.Remap == nil || *v.Remap != "deferred_v0" || *v.Operation != "Rewrite" {
		t.Errorf("version 12: %+v", v)
	}
	if table := must(t, "versions", chain); strings.Count(table, "\n") != 30 || !strings.Contains(table, "deferred_tagged") {
		t.Errorf("table:\n%s", table)
	}
	if got, want := must(t, "history", "--format", "json", chain), must(t, "cat", chain, "latest/fri/history.json"); got != want {
		t.Errorf("history --format json is not the file")
	}
	hist := strings.Split(strings.TrimSpace(must(t, "history", "--format", "csv", chain)), "\n")
	if len(hist) != 6 || !strings.Contains(hist[4], "stable_partition,7 8 3,10 11 12,744,724,20") {
		t.Errorf("history:\n%s", strings.Join(hist, "\n"))
	}
	if !strings.HasSuffix(hist[0], ",error,record") || !strings.HasSuffix(hist[3], ",,2") || !strings.HasPrefix(hist[3], "3,") {
		t.Errorf("history as csv does not end in the record in wire order:\n%s\n%s", hist[0], hist[3])
	}
	if head := strings.Fields(must(t, "history", chain)); len(head) < 2 || head[0] != "seq" || head[1] != "record" {
		t.Errorf("history as a table begins with %q", head)
	}
	if out := must(t, "history", "--version", "1", chain); !strings.Contains(out, "no fragment reuse index") {
		t.Errorf("history of version 1: %q", out)
	}
}

func TestStatus(t *testing.T) {
	tests := []struct {
		table string
		args  []string
		code  int
		out   string
		err   string
	}{
		{"tagged/chain", nil, 0, "5 records, 5 pending", ""},
		{"tagged/chain", []string{"--check"}, 3, "catching up is due: by number", "5 pending"},
		{"tagged/chain", []string{"--check", "--version", "11"}, 0, "no fragment reuse index", ""},
		{"tagged/chain", []string{"--format", "table"}, 0, "since_is  note\n", ""},
		{"tagged/chain", []string{"--format", "csv"}, 0, "seq,id,needed,needed_by,since_version,since,age,note\n1,", ""},
	}
	for _, tc := range tests {
		r := frifs(t, "", append(append([]string{"status"}, tc.args...), testdata.Dataset(t, tc.table))...)
		if r.code != tc.code || !strings.Contains(r.stdout, tc.out) || !strings.Contains(r.stderr, tc.err) {
			t.Errorf("%s %v: exit %d\n%s%s", tc.table, tc.args, r.code, r.stdout, r.stderr)
		}
	}
	chain := testdata.Dataset(t, "tagged/chain")
	if got, want := must(t, "status", "--format", "json", chain), must(t, "cat", chain, "latest/fri/status.json"); got != want {
		t.Errorf("status --format json is not the file")
	}
}

func TestStatusFindings(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	five, past, future := 5, "2026-11-30T00:00:00.5Z", "2026-12-02T00:00:00Z"
	tests := []struct {
		name   string
		s      statusDoc
		errors int
		want   int
	}{
		{"nothing", statusDoc{}, 0, 0},
		{"not yet", statusDoc{DueAt: &future, Pending: &five}, 0, 0},
		{"by age", statusDoc{DueAt: &past}, 0, 1},
		{"by count and age", statusDoc{DueAt: &past, DueByCount: true, Pending: &five}, 0, 2},
		{"errors", statusDoc{}, 2, 1},
		{"broken", statusDoc{Error: json.RawMessage(`{"message": "two entries"}`)}, 1, 1},
	}
	for _, tc := range tests {
		if got := tc.s.findings(now, tc.errors); len(got) != tc.want {
			t.Errorf("%s: got %q, want %d", tc.name, got, tc.want)
		}
	}
}

func TestTranslateAnswersEveryAddress(t *testing.T) {
	for _, name := range []string{"legacy/basic", "legacy/multi", "tagged/chain", "tagged/clone"} {
		t.Run(name, func(t *testing.T) {
			args := []string{"translate", testdata.Dataset(t, name), "--from-file", "-"}
			for _, r := range testdata.Rebase(t, name) {
				args = append(args, "--rebase", r)
			}
			var in, want strings.Builder
			want.WriteString("row_addr,outcome,new_row_addr\n")
			for row := range testdata.Expected(t, name) {
				outcome, addr := testdata.Want(row)
				fmt.Fprintln(&in, row.Old)
				fmt.Fprintf(&want, "%d,%s,", row.Old, outcome)
				if addr != nil {
					fmt.Fprint(&want, *addr)
				}
				want.WriteByte('\n')
			}
			r := frifs(t, in.String(), args...)
			if r.code != 0 {
				t.Fatalf("exit %d: %s", r.code, r.stderr)
			}
			got, wanted := strings.Split(r.stdout, "\n"), strings.Split(want.String(), "\n")
			if len(got) != len(wanted) {
				t.Fatalf("got %d lines, want %d", len(got), len(wanted))
			}
			for i := range got {
				if got[i] != wanted[i] {
					t.Fatalf("line %d: got %q, want %q", i+1, got[i], wanted[i])
				}
			}
		})
	}
}

func TestTranslateForms(t *testing.T) {
	chain := testdata.Dataset(t, "tagged/chain")
	// Order and duplicates are kept, and both forms of an address mean the same.
	want := "row_addr,outcome,new_row_addr\n4294967313,moved,55834574978\n425201762305,dangling,\n4294967313,moved,55834574978\n"
	if got := must(t, "translate", chain, "1:17", "99:1", "4294967313"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := must(t, "translate", "--inverse", chain, "55834574978"); got != "row_addr,outcome,old_row_addr\n55834574978,moved,4294967313\n" {
		t.Errorf("inverse: %q", got)
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(must(t, "translate", "--format", "json", chain, "1:17", "99:1")), &list); err != nil || len(list) != 2 {
		t.Fatalf("json: %v, %v", list, err)
	}
	if list[0]["new_row_addr"] != "55834574978" || list[0]["new_fragment"] != 13.0 || list[1]["new_row_addr"] != nil {
		t.Errorf("json: %v", list)
	}
	if err := json.Unmarshal([]byte(must(t, "translate", "--trace", "--format", "json", chain, "1:17")), &list); err != nil || len(list[0]["hops"].([]any)) != 4 {
		t.Errorf("trace as json: %v, %v", list, err)
	}
	if out := must(t, "translate", "--trace", "--inverse", chain, "13:130"); !strings.Contains(out, "transition 0005: 13:130 → 10:130") || !strings.Contains(out, "at first 4294967313 (1:17)") {
		t.Errorf("trace back:\n%s", out)
	}
	if out := must(t, "translate", "--format", "table", chain, "1:17"); !strings.Contains(out, "55834574978 (13:130)") {
		t.Errorf("table:\n%s", out)
	}
	// What stands before a bad line is answered, and the line is named.
	r := frifs(t, "1\n2\nthree\n", "translate", chain, "--from-file", "-")
	if r.code != 2 || !strings.Contains(r.stderr, `stdin, line 3: "three"`) || strings.Count(r.stdout, "\n") != 3 {
		t.Errorf("a bad line: exit %d, %q, %q", r.code, r.stdout, r.stderr)
	}
	if r := frifs(t, "", "translate", "--format", "json", chain, "--from-file", "-"); r.code != 0 || r.stdout != "[]\n" {
		t.Errorf("no address: exit %d, %q", r.code, r.stdout)
	}
	// In an old version the row is where it was.
	if got := must(t, "translate", "--version", "5", chain, "1:17"); !strings.HasSuffix(got, "\n4294967313,same,4294967313\n") {
		t.Errorf("in version 5: %q", got)
	}
}

func TestADamagedVersionIsOneLine(t *testing.T) {
	dir := testdata.Copy(t, "tagged/chain")
	names, err := filepath.Glob(filepath.Join(dir, "_versions", "*.manifest"))
	if err != nil || len(names) != 29 {
		t.Fatalf("%d manifests, %v", len(names), err)
	}
	if err := os.Truncate(names[7], 100); err != nil {
		t.Fatal(err)
	}
	r := frifs(t, "", "versions", "--format", "json", dir)
	var list []versionLine
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil || len(list) != 29 || r.code != 1 {
		t.Fatalf("exit %d, %d versions, %v", r.code, len(list), err)
	}
	bad := 0
	for _, v := range list {
		if v.Error != nil {
			bad++
		}
	}
	if bad != 1 {
		t.Errorf("%d versions have errors, want 1", bad)
	}
}

// closedPipe is a stdout whose reader has gone.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

func TestAClosedPipeIsQuiet(t *testing.T) {
	chain := testdata.Dataset(t, "tagged/chain")
	for _, args := range [][]string{
		{"cat", chain, "latest/manifest.json"}, {"ls", chain}, {"tree", chain}, {"versions", chain}, {"stat", chain},
		{"translate", chain, "1"}, {"history", chain},
	} {
		var errs strings.Builder
		if code := run(t.Context(), args, strings.NewReader(""), closedPipe{}, &errs); code != 0 || errs.Len() > 0 {
			t.Errorf("%s: exit %d, %q", args[0], code, errs.String())
		}
	}
}

func TestDemoWithoutAMount(t *testing.T) {
	withTools := must(t, "demo", "--no-mount")
	for _, want := range []string{"stable_partition", "rows to fragment 10", "frifs translate --trace demo.lance 1:17", "transition 0001: 1:17 → 6:"} {
		if !strings.Contains(withTools, want) {
			t.Errorf("the tour does not show %q:\n%s", want, withTools)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if got := must(t, "demo", "--no-mount"); got != withTools {
		t.Errorf("without jq and awk the tour differs:\n%s\nwith them:\n%s", got, withTools)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "frifs-demo-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
