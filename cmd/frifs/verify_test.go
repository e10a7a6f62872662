package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/testdata"
)

// verified is what verify says of a table, as JSON.
type verified struct {
	code     int
	URI      string
	Versions int `json:"versions_checked"`
	Quick    bool
	Counts   map[string]int
	Findings []struct {
		Level, Check, Path, Message string
		Versions                    [][2]uint64
		Record                      *int
	}
}

func verify(t *testing.T, args ...string) (v verified) {
	t.Helper()
	r := frifs(t, "", append([]string{"verify", "--format", "json"}, args...)...)
	v.code = r.code
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
		t.Fatalf("%q: exit %d, %v: %s%s", args, r.code, err, r.stdout, r.stderr)
	}
	total := v.Counts["error"] + v.Counts["warning"] + v.Counts["advice"]
	if v.Findings == nil || total != len(v.Findings) || (v.code == 3) != (total > 0) || v.code != 0 && v.code != 3 {
		t.Errorf("%q: exit %d with %v, %d findings", args, v.code, v.Counts, len(v.Findings))
	}
	return v
}

// brief is the findings of a level in short, without those of equal words.
func (v verified) brief(level string) []string {
	var out []string
	for _, f := range v.Findings {
		if f.Level == level {
			out = append(out, fmt.Sprint(f.Check, " ", f.Versions))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Sound tables have no findings; recorded ones with something to say have just that.
func TestVerifyRecorded(t *testing.T) {
	for _, tc := range []struct {
		name             string
		errors, warnings []string
	}{
		{"legacy/basic", nil, nil}, {"legacy/branchy", nil, nil}, {"legacy/v20", nil, nil}, {"tagged/folded", nil, nil}, {"tagged/labels", nil, nil},
		{"legacy/deleted_fragment", nil, []string{"addresses [[5 11]]", "index [[5 11]]"}},
		{"legacy/fri_dropped", []string{"needed_but_gone [[6 6]]"}, []string{"addresses [[6 6]]"}},
		{"legacy/restored", []string{"needed_but_gone [[6 6]]"}, []string{"came_back [[9 9]]"}},
		{"tagged/stuck", nil, []string{"coverage [[10 10]]", "index [[10 10]]"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := verify(t, "--level", "warning", testdata.Dataset(t, tc.name))
			if fmt.Sprint(v.brief("error")) != fmt.Sprint(tc.errors) || fmt.Sprint(v.brief("warning")) != fmt.Sprint(tc.warnings) {
				t.Errorf("got %q and %q, want %q and %q", v.brief("error"), v.brief("warning"), tc.errors, tc.warnings)
			}
			if v.Versions < 4 || v.Quick {
				t.Errorf("%d versions", v.Versions)
			}
		})
	}
	if v := verify(t, "--quick", testdata.Dataset(t, "tagged/chain")); len(v.Findings) == 0 && v.code != 0 || !v.Quick || v.Versions != 29 {
		t.Errorf("%+v", v)
	}
}

// manifestOf is the file of a version, by either naming scheme.
func manifestOf(t testing.TB, table string, version uint64) string {
	t.Helper()
	for _, n := range []uint64{version, math.MaxUint64 - version} {
		p := filepath.Join(table, "_versions", fmt.Sprintf("%d.manifest", n))
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	t.Fatalf("there is no manifest of version %d", version)
	return ""
}

// Each kind of damage is one finding at its place, and the others are found all the same.
func TestVerifyDamage(t *testing.T) {
	old := time.Now().Add(-30 * 24 * time.Hour)
	cut := func(t testing.TB, path string) {
		t.Helper()
		fi, err := os.Stat(path)
		if err == nil {
			err = os.Truncate(path, fi.Size()/2)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(t testing.TB, path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	one := func(t testing.TB, pattern string) string {
		t.Helper()
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		return found[0]
	}
	for _, tc := range []struct {
		name, table string
		damage      func(t testing.TB, table string)
		want        string // level, check, and a part of the path
		says        string
		quick       bool // found with --quick too
	}{
		{"a manifest that is cut off", "legacy/basic", func(t testing.TB, d string) { cut(t, manifestOf(t, d, 3)) }, "error manifest versions/*/version.json", "corrupt", true},
		{"a transaction that is gone", "legacy/basic", func(t testing.TB, d string) { _ = os.RemoveAll(filepath.Join(d, "_transactions")) }, "error missing_file _transactions/", "missing", false},
		{"a data file that is gone", "legacy/basic", func(t testing.TB, d string) { _ = os.Remove(one(t, d+"/data/*")) }, "error missing_file data/", "missing", false},
		{"a data file that is cut off", "legacy/basic", func(t testing.TB, d string) { cut(t, one(t, d+"/data/*")) }, "error file_size data/", "recorded", false},
		{"an index file that is gone", "legacy/basic", func(t testing.TB, d string) { _ = os.Remove(one(t, d+"/_indices/*/page_data.lance")) }, "error missing_file _indices/", "missing", false},
		{"an index file that is no such", "legacy/basic", func(t testing.TB, d string) { put(t, one(t, d+"/_indices/*/page_data.lance"), "no file of Lance") }, "error index_files ", "page_data.lance", false},
		{"a row map that is gone", "tagged/labels", func(t testing.TB, d string) { _ = os.RemoveAll(filepath.Join(d, "_fri")) }, "error history versions/*/fri/history.json", "", true},
		{"labels of a row map that are damaged", "tagged/big", func(t testing.TB, d string) {
			f, err := os.OpenFile(one(t, d+"/_fri/*/stable_partition.lance"), os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteAt([]byte("\xff\xff\xff\xff"), 30_000)
			}
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}, "error mapping versions/*/fri/transitions/0001/mapping.csv", "labels disagree", false},
		{"a deletion file that is gone", "legacy/basic", func(t testing.TB, d string) { _ = os.Remove(one(t, d+"/_deletions/*")) }, "error missing_file _deletions/", "missing", false},
		{"a directory that no version names", "legacy/basic", func(t testing.TB, d string) {
			put(t, d+"/_indices/11111111-2222-3333-4444-555555555555/page_data.lance", "x")
		}, "warning orphan _indices/11111111", "no retained version", false},
		{"a tag of a version that is gone", "legacy/basic", func(t testing.TB, d string) { put(t, d+"/_refs/tags/old.json", `{"version":99}`) }, "warning tag tags/old", "version 99", true},
		{"a tag that is broken", "legacy/basic", func(t testing.TB, d string) { put(t, d+"/_refs/tags/bad.json", `{`) }, "error tag tags/bad", "", true},
		{"a branch without a directory", "legacy/basic", func(t testing.TB, d string) { put(t, d+"/_refs/branches/b.json", `{"parentVersion":3}`) }, "error branch branches/b", "", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			table := testdata.Copy(t, tc.table)
			before := verify(t, table)
			tc.damage(t, table)
			for _, quick := range []bool{false, true} {
				args := []string{table}
				if quick {
					args = append(args, "--quick")
				}
				v, found := verify(t, args...), false
				for _, f := range v.Findings {
					found = found || strings.HasPrefix(f.Level+" "+f.Check+" "+f.Path, tc.want) && strings.Contains(f.Message, tc.says)
				}
				if found != (tc.quick || !quick) {
					t.Errorf("quick %v: %v: %+v", quick, found, v.Findings)
				}
				if v.Versions != before.Versions {
					t.Errorf("%d versions checked, %d before", v.Versions, before.Versions)
				}
			}
		})
	}
}

func TestVerifySelects(t *testing.T) {
	table := testdata.Copy(t, "legacy/basic")
	if err := os.Truncate(manifestOf(t, table, 2), 20); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		n    int
	}{{nil, 3, 5}, {[]string{"--version", "2"}, 3, 1}, {[]string{"--version", "3"}, 0, 1}, {[]string{"--branch", "main"}, 0, 1}} {
		if v := verify(t, append(tc.args, "--level", "error", table)...); v.code != tc.code || v.Versions != tc.n {
			t.Errorf("%q: exit %d, %d versions: %+v", tc.args, v.code, v.Versions, v.Findings)
		}
	}
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{table + "/none"}, 1, "does not exist"}, {[]string{"--version", "77", table}, 1, "not retained"}, {nil, 2, "URI is missing"},
		{[]string{"--level", "none", table}, 2, "warning"}, {[]string{table, "x"}, 2, "unexpected"},
	} {
		if r := frifs(t, "", append([]string{"verify"}, tc.args...)...); r.code != tc.code || !strings.Contains(r.stderr, tc.says) {
			t.Errorf("%q: exit %d, %s", tc.args, r.code, r.stderr)
		}
	}
	clean := frifs(t, "", "verify", testdata.Dataset(t, "legacy/basic"))
	if clean.code != 0 || clean.stdout != "5 versions checked, nothing found\n" || clean.stderr != "" {
		t.Errorf("a sound table: exit %d, %q, %q", clean.code, clean.stdout, clean.stderr)
	}
	r := frifs(t, "", "verify", table)
	if r.code != 3 || !strings.Contains(r.stderr, "1 error in 5 versions") || !strings.HasPrefix(r.stdout, "level ") {
		t.Errorf("as a table: exit %d, %q, %q", r.code, r.stdout, r.stderr)
	}
}

// Branches are checked, and each table of a database.
func TestVerifyWholeDatabase(t *testing.T) {
	db := t.TempDir()
	for _, name := range []string{"basic", "branchy"} {
		if err := os.Rename(testdata.Copy(t, "legacy/"+name), filepath.Join(db, name+".lance")); err != nil {
			t.Fatal(err)
		}
	}
	v := verify(t, db)
	if v.code != 0 || v.Versions != 5+10+5 {
		t.Errorf("exit %d, %d versions: %+v", v.code, v.Versions, v.Findings)
	}
	branch := filepath.Join(db, "branchy.lance", "tree", "exp", "wide")
	if err := os.Truncate(manifestOf(t, branch, 6), 20); err != nil {
		t.Fatal(err)
	}
	v = verify(t, db, "--level", "error")
	if len(v.Findings) != 1 || v.Findings[0].Path != "tables/branchy/branches/exp%2Fwide/versions/*/version.json" || fmt.Sprint(v.Findings[0].Versions) != "[[6 6]]" {
		t.Errorf("%+v", v.Findings)
	}
}

func TestVerifyReport(t *testing.T) {
	at := func(level, line string, place int, version uint64) finding {
		return finding{Level: level, Check: "c", Path: "p", Message: "m", line: line, version: &version, place: place}
	}
	r := &verifyReport{level: levelWarning}
	for i, n := range []uint64{3, 5, 6, 9} { // 7 and 8 are retained too
		place := []int{0, 1, 2, 5}[i]
		r.note(at(levelError, "versions", place, n))
		r.note(at(levelError, "versions", place, n)) // twice in one version
	}
	r.note(at(levelError, "branches/b/versions", 0, 3))
	r.note(at(levelAdvice, "versions", 0, 3))
	r.note(finding{Level: levelWarning, Check: "orphan", Path: "x", Message: "m"})
	r.note(finding{Level: levelWarning, Check: "orphan", Path: "x", Message: "m"})
	r.Versions = 6
	if len(r.findings) != 3 || fmt.Sprint(r.findings[0].Versions) != "[[3 6] [9 9]]" || r.findings[0].runs() != "3-6 9" || r.findings[2].runs() != "-" {
		t.Errorf("%+v", r.findings)
	}
	if got := r.summary(); got != "2 errors, 1 warning in 6 versions" {
		t.Errorf("it says %q", got)
	}
	for i := range maxFindings + 10 {
		r.note(finding{Level: levelWarning, Check: "c", Path: fmt.Sprint(i), Message: "m"})
	}
	if len(r.findings) != maxFindings || r.dropped != 13 {
		t.Errorf("%d kept, %d left out", len(r.findings), r.dropped)
	}
}

// Versions that are cleaned up while the others are checked leave nothing behind.
func TestVerifyForgets(t *testing.T) {
	r := &verifyReport{level: levelAdvice, Versions: 5}
	for place, n := range []uint64{3, 4, 5, 6, 9} {
		r.note(finding{Level: levelError, Check: "c", Path: "p", Message: "m", line: "versions", version: &n, place: place})
	}
	one := uint64(4)
	r.note(finding{Level: levelError, Check: "c", Path: "p", Message: "m", line: "branches/b/versions", version: &one})
	r.note(finding{Level: levelWarning, Check: "orphan", Path: "x", Message: "m"})
	for _, step := range []struct {
		version uint64
		want    string
	}{{5, "[[3 4] [6 9]]"}, {3, "[[4 4] [6 9]]"}, {7, "[[4 4] [6 6] [8 9]]"}} {
		r.forget("versions", step.version)
		if got := fmt.Sprint(r.findings[0].Versions); got != step.want {
			t.Errorf("without %d: %s, want %s", step.version, got, step.want)
		}
	}
	for _, n := range []uint64{4, 6, 8, 9} {
		r.forget("versions", n)
	}
	if len(r.findings) != 2 || r.findings[0].line != "branches/b/versions" || r.counts[levelError] != 1 || r.summary() == "" {
		t.Errorf("%+v, %v", r.findings, r.counts)
	}
}
