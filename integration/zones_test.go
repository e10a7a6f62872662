package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// zoned is what check_zones.py says of a zone map or bloom filter in a remapped dataset.
type zoned struct {
	Table                string
	Version              int
	Index                string
	Live, Covered        []uint32
	Checks, Used, Pruned int
	Faults               []string
}

// Official Lance queries zone maps and bloom filters with many zones in each fragment, some of which compactions divided,
// through the remapped datasets of several versions: each answer is right, and where coverage stays the index is used and
// leaves rows unread, as on a table that nothing happened to.
func TestOfficialLanceQueriesRemappedZones(t *testing.T) {
	dir := t.TempDir()
	python(t, "", "make_sets.py", dir)
	var jobs []any
	job := func(table string, version int, remapped, index, column string, rows int, sorted bool) {
		jobs = append(jobs, map[string]any{"table": filepath.Join(dir, table+".lance"), "version": version, "remapped": remapped, "index": index,
			"column": column, "zone_rows": rows, "sorted": sorted})
	}
	both := func(table string, version int, remapped string) {
		job(table, version, remapped, "zonemap_num", "num", 20, true)
		job(table, version, remapped, "bloomfilter_bf", "bf", 20, false)
	}
	export := func(table string, version int) string {
		dest := filepath.Join(dir, fmt.Sprintf("%s-%d", table, version))
		frifs(t, "export", filepath.Join(dir, table+".lance"), fmt.Sprintf("versions/%d/remapped.lance", version), dest)
		return dest
	}
	for _, version := range []int{3, 6, 7} {
		job("big", version, export("big", version), "zonemap_id", "id", 1000, true)
	}
	for _, table := range []string{"small20", "small21", "small22", "small23"} {
		for _, version := range []int{8, 11, 13, 15} { // before a compaction, after it, after the next one, at the end
			both(table, version, export(table, version))
		}
	}
	whole, part, none := 0, 0, 0
	answers := decode[zoned](t, work(t, interpreter(t, newest), "check_zones.py", jobs))
	if len(answers) != len(jobs) {
		t.Fatalf("%d answers to %d jobs", len(answers), len(jobs))
	}
	for _, a := range answers {
		name := fmt.Sprintf("%s, version %d, %s", filepath.Base(a.Table), a.Version, a.Index)
		for _, f := range a.Faults {
			t.Errorf("%s: %s", name, f)
		}
		switch {
		case a.Checks < 15:
			t.Errorf("%s: %d checks", name, a.Checks)
		case len(a.Covered) == 0:
			none++
		case a.Used < a.Checks-2 || a.Pruned < 8: // IS NOT NULL and perhaps != are no questions for such an index
			t.Errorf("%s: of %d checks %d use the index, and %d of those for one value read few rows", name, a.Checks, a.Used, a.Pruned)
		case len(a.Covered) < len(a.Live):
			part++
		default:
			whole++
		}
	}
	t.Logf("all fragments covered: %d, some: %d, none: %d", whole, part, none)
	if whole == 0 || part == 0 || none == 0 {
		t.Error("each must be met")
	}
}

// The check can fail: without a fragment reuse index nothing translates the zones.
func TestUntranslatedZonesFail(t *testing.T) {
	dir := t.TempDir()
	python(t, "", "make_sets.py", dir)
	plain := filepath.Join(dir, "big.lance")
	truth := filepath.Join(dir, "truth.lance")
	frifs(t, "export", plain, "latest/remapped.lance", truth)
	py := interpreter(t, newest)
	work(t, py, "make_table.py", []any{map[string]any{"forget": plain}})
	answers := decode[zoned](t, work(t, py, "check_zones.py", []any{map[string]any{"table": truth, "version": 7, "remapped": plain,
		"index": "zonemap_id", "column": "id", "zone_rows": 1000, "sorted": true}}))
	if len(answers) != 1 || len(answers[0].Faults) < 10 || !strings.Contains(answers[0].Faults[0], "index used: True") {
		t.Errorf("got %+v, want wrong answers", answers)
	}
}
