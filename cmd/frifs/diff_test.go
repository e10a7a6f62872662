package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

func TestDiff(t *testing.T) {
	branchy := testdata.Dataset(t, "legacy/branchy")
	for _, tc := range []struct {
		args  []string
		wants []string
		lacks []string
	}{
		{[]string{branchy, "3", "5"}, []string{
			"from version 3  ", "to   version 5  ", "\n    4        ", " ReserveFragments ", " Rewrite ", "  + 4          223 rows\n", "  - 0          64 rows, 8 deleted\n",
			"__lance_frag_reuse", "ordered_compaction: 0 1 2 3 → 4", "  - reader deletion_files\n",
		}, []string{"schema:", "configuration:", "there is no difference", " Append "}},
		{[]string{branchy, "before", "after-1"}, []string{"from version 3  ", "to   version 5  "}, nil},
		{[]string{branchy, "5", "3"}, []string{"from version 5  ", "operations, from the older one to the newer", "  - 4          223 rows\n"}, nil},
		{[]string{branchy, "3", "3"}, []string{"there is no difference in what was compared"}, []string{"operations"}},
		{[]string{branchy, "main:3", "exp/wide:latest"}, []string{"of branch exp/wide", "base 0", "covers also"}, []string{"operations"}},
		{[]string{"--branch", "exp/wide", branchy, "6", "latest"}, []string{"from version 6 of branch exp/wide", "to   version 9 of branch exp/wide", "operations:"}, nil},
		{[]string{"--branch", "exp/wide", branchy, "before", "6"}, []string{"from version 3  ", "to   version 6 of branch exp/wide"}, nil},
	} {
		got := must(t, append([]string{"diff"}, tc.args...)...)
		for _, want := range tc.wants {
			if !strings.Contains(got, want) {
				t.Errorf("%q lacks %q:\n%s", tc.args[1:], want, got)
			}
		}
		for _, lack := range tc.lacks {
			if strings.Contains(got, lack) {
				t.Errorf("%q has %q:\n%s", tc.args[1:], lack, got)
			}
		}
	}
}

func TestDiffAsJSON(t *testing.T) {
	branchy := testdata.Dataset(t, "legacy/branchy")
	var d struct {
		From, To   struct{ Rows uint64 }
		Operations []operation
	}
	text := must(t, "diff", "--format", "json", branchy, "2", "latest")
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if len(d.Operations) != 8 || d.Operations[0].Version != 3 || *d.Operations[0].Operation != "Delete" || d.Operations[7].Version != 10 || *d.Operations[7].Rows != d.To.Rows {
		t.Errorf("operations %+v", d.Operations)
	}
	// It is the file of the tree, with one member more.
	file := must(t, "cat", branchy, "diff/2..latest/changes.json")
	if rest, ok := strings.CutPrefix(text, strings.TrimSuffix(file, "\n}\n")); !ok || !strings.HasPrefix(rest, ",\n  \"operations\": [\n    {") || !strings.HasSuffix(rest, "\n  ]\n}\n") {
		t.Errorf("it does not go on from the file of the tree: %.300q", rest)
	}
	for args, want := range map[string]string{"3 3": "[]", "3 exp/wide:9": "null"} {
		a, b, _ := strings.Cut(args, " ")
		var one struct{ Operations json.RawMessage }
		if err := json.Unmarshal([]byte(must(t, "diff", "--format", "json", branchy, a, b)), &one); err != nil || string(one.Operations) != want {
			t.Errorf("%s: %s, %v, want %s", args, one.Operations, err, want)
		}
	}
}

func TestDiffRefuses(t *testing.T) {
	branchy := testdata.Dataset(t, "legacy/branchy")
	for _, tc := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"a version that is not there", []string{branchy, "3", "77"}, 1, "version 77 is not retained; there are 10, from 1 to 10"},
		{"a name that means nothing", []string{branchy, "x", "3"}, 1, `"after-1", "before"`},
		{"a branch that is not there", []string{branchy, "nope:3", "3"}, 1, `"exp/wide"`},
		{"one version", []string{branchy, "3"}, 2, "B is missing"},
		{"none", []string{branchy}, 2, "A is missing"},
		{"three", []string{branchy, "1", "2", "3"}, 2, "unexpected"},
		{"a selector", []string{"--tag", "before", branchy, "1", "2"}, 2, "--tag has no meaning"},
		{"an empty branch", []string{"--branch", "", branchy, "1", "2"}, 2, "the name is empty"},
		{"an empty name", []string{branchy, "", "2"}, 1, ""},
		{"no dataset", []string{branchy + "/none", "1", "2"}, 1, "does not exist"},
		{"a form", []string{"--format", "csv", branchy, "1", "2"}, 2, "table"},
	} {
		if r := frifs(t, "", append([]string{"diff"}, tc.args...)...); r.code != tc.code || !strings.Contains(r.stderr, tc.says) || r.stdout != "" {
			t.Errorf("%s: exit %d, %q, %q; want %d and %q", tc.name, r.code, r.stdout, r.stderr, tc.code, tc.says)
		}
	}
	damaged := testdata.Copy(t, "legacy/branchy")
	for _, name := range []string{"4.manifest", "18446744073709551611.manifest"} {
		err := os.Truncate(filepath.Join(damaged, "_versions", name), 20)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if r := frifs(t, "", "diff", damaged, "4", "5"); r.code != 1 || !strings.Contains(r.stderr, "corrupt") {
		t.Errorf("a damaged side: exit %d, %s", r.code, r.stderr)
	}
	// Between the two, it is one line among the operations.
	if got := must(t, "diff", damaged, "3", "5"); !strings.Contains(got, "\n    4        ") || !strings.Contains(got, "corrupt") {
		t.Errorf("a damaged version between: %s", got)
	}
}

func TestDiffOfADatabase(t *testing.T) {
	db := t.TempDir()
	if err := os.Rename(testdata.Copy(t, "legacy/basic"), filepath.Join(db, "basic.lance")); err != nil {
		t.Fatal(err)
	}
	if r := frifs(t, "", "diff", db, "1", "2"); r.code == 0 || !strings.Contains(r.stderr, "There are basic") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{"plain é 表": "plain é 表", "\x1b[31mred": `\x1b[31mred`, "two\nlines": `two\nlines`, `"`: `"`} {
		if got := printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestInOrder(t *testing.T) {
	for _, n := range []int{0, 1, 7, 100} {
		for _, width := range []int{0, 1, 3, 200} {
			var got []int
			err := inOrder(n, width, func(i int) int { return i * i }, func(i, v int) error {
				if v != i*i {
					t.Errorf("%d gave %d", i, v)
				}
				got = append(got, i)
				return nil
			})
			if err != nil || len(got) != n {
				t.Errorf("%d by %d: %v, %v", n, width, got, err)
			}
		}
	}
	calls := 0
	err := inOrder(100, 4, func(i int) int { return i }, func(i, _ int) error {
		calls++
		if i == 5 {
			return os.ErrClosed
		}
		return nil
	})
	if !errors.Is(err, os.ErrClosed) || calls != 6 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
