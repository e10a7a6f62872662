package integration

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// diffOf is `frifs diff --format json`.
type diffOf struct {
	From, To  struct{ Rows uint64 }
	Fragments struct {
		Added, Removed, Changed []struct {
			Fragment uint64
			Deleted  uint64 `json:"deleted_rows"`
			Before   uint64 `json:"deleted_rows_before"`
			Live     uint64 `json:"live_rows"`
		}
	}
	Indices    struct{ Added, Removed []struct{ Name, UUID string } }
	Operations []struct {
		Version   uint64
		Operation string
	}
}

func diff(t testing.TB, table string, a, b any) (d diffOf) {
	t.Helper()
	if err := json.Unmarshal([]byte(frifs(t, "diff", "--format", "json", table, fmt.Sprint(a), fmt.Sprint(b))), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Official Lance does one thing after another to a table: diff says of each what was done, and verify finds nothing wrong
// in what it wrote.
func TestDiffAndVerifyOfOfficialWrites(t *testing.T) {
	table := filepath.Join(t.TempDir(), "t.lance")
	w := startWriter(t, table)
	rows := func(d did, v uint64) uint64 { return d.Made[v].Rows }
	first := w.do("append")
	at, have := first.Version, rows(first, first.Version)
	for _, step := range []struct{ do, operation string }{
		{"append", "Append"}, {"delete", "Delete"}, {"index", "CreateIndex"}, {"append", "Append"}, {"delete", "Delete"}, {"compact", "Rewrite"}, {"update", "Update"},
	} {
		did := w.do(step.do)
		d := diff(t, table, at, did.Version)
		now := rows(did, did.Version)
		if d.From.Rows != have || d.To.Rows != now {
			t.Errorf("%s: %d to %d rows, the writer says %d to %d", step.do, d.From.Rows, d.To.Rows, have, now)
		}
		// What came, went and was deleted accounts for every row.
		total := int64(have)
		for _, f := range d.Fragments.Added {
			total += int64(f.Live)
		}
		for _, f := range d.Fragments.Removed {
			total -= int64(f.Live)
		}
		for _, f := range d.Fragments.Changed {
			total += int64(f.Before) - int64(f.Deleted)
		}
		if total != int64(now) {
			t.Errorf("%s: the fragments make %d rows of %d, want %d", step.do, total, have, now)
		}
		ops := make([]string, len(d.Operations))
		for i, o := range d.Operations {
			ops[i] = o.Operation
		}
		if len(ops) != int(did.Version-at) || !slices.Contains(ops, step.operation) {
			t.Errorf("%s: operations %q of %d versions", step.do, ops, did.Version-at)
		}
		if step.do == "index" && (len(d.Indices.Added) == 0 || len(d.Indices.Removed) > 0) {
			t.Errorf("index: %+v", d.Indices)
		}
		at, have = did.Version, now
	}
	w.do("tag here")
	if d := diff(t, table, first.Version, "here"); d.To.Rows != have || len(d.Operations) != int(at-first.Version) {
		t.Errorf("to the tag: %+v", d)
	}
	r := command(t, "", exe, "verify", "--level", "error", table)
	if r.code != 0 || !strings.Contains(r.stdout, "nothing found") {
		t.Errorf("verify: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	// Cleanup takes files away that its versions needed no more: nothing is missing.
	w.do("cleanup 0")
	if r := command(t, "", exe, "verify", "--level", "error", table); r.code != 0 {
		t.Errorf("verify after a cleanup: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

// Out of a store, a table that lacks one file: the finding names it, and the exit code is 3.
func TestVerifyStore(t *testing.T) {
	o := startS3(t)
	table := testdata.Copy(t, "legacy/basic")
	found, err := filepath.Glob(filepath.Join(table, "_deletions", "*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("%v, %v", found, err)
	}
	o.upload(t, table, "whole.lance")
	remove(t, found[0])
	o.upload(t, table, "t.lance")
	if r := command(t, "", exe, "verify", o.uri(t, o.target, "whole.lance")); r.code != 0 {
		t.Errorf("a sound table: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	r := command(t, "", exe, "verify", "--level", "error", o.uri(t, o.target, "t.lance"))
	if r.code != 3 || !strings.Contains(r.stdout, "_deletions/"+filepath.Base(found[0])) || !strings.Contains(r.stdout, "missing_file") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}
