package fri_test

import (
	"strings"
	"testing"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/testdata"
)

// TestSpliced opens every hand-made FRI entry and compares what is usable, what is an error and what is a warning with
// the table of testdata/README.md. What only a row-map file can show (s_spbad, p_nofile) is not this package's.
func TestSpliced(t *testing.T) {
	const (
		legacyOC = "1 legacy ordered_compaction"
		taggedOC = "1 tagged ordered_compaction"
		taggedSP = "1 tagged stable_partition"
	)
	type want struct {
		records  []string // "<record> <form> <kind>" in the order of application, "!" in front where unusable
		errors   []string // a part of each error, in order
		warnings []string // a part of each warning, in order
		broken   bool
		opaque   bool
	}
	good0, good1 := want{records: []string{legacyOC}}, want{records: []string{taggedOC}}
	partition := want{records: []string{taggedSP}}
	hops := []string{"1 legacy ordered_compaction", "2 legacy ordered_compaction"}
	reversed := []string{"2 legacy ordered_compaction", "1 legacy ordered_compaction"}
	const refuses = "Lance refuses the whole history because of record"
	tests := map[string]want{
		"s_v0": good0, "s_v1": good1, "s_lift": good0,
		"s_v1noflag": {records: []string{taggedOC}, warnings: []string{"flag missing"}},
		"s_sp20":     partition, "s_sp21": partition, "s_sp22": partition, "s_spbad": partition, "p_nofile": partition,
		"s_empty": {records: []string{"!1 legacy invalid"}, errors: []string{"survivors 0, destination holds 36"},
			warnings: []string{refuses}},
		"s_emptyv1": {records: []string{"!1 legacy invalid"}, errors: []string{"survivors 0, destination holds 36"},
			warnings: []string{refuses}},
		"s_dup": {records: []string{"!1 tagged invalid", "!2 tagged invalid"}, errors: []string{
			"duplicate producer for fragment 4: records 1 and 2", "consumer for fragment 0", "consumer for fragment 1", "and 1 more",
			"duplicate producer for fragment 4: records 1 and 2", "consumer for fragment 0", "consumer for fragment 1", "and 1 more",
		}, warnings: []string{refuses}},
		"s_unkenv": {records: []string{taggedOC}, warnings: []string{"1 unknown field in the content (field 7)"}, opaque: true},
		"s_fri_unk": {records: []string{"!1 tagged unsupported"}, errors: []string{"unknown field 9 in the transition"},
			warnings: []string{"use no user index"}},
		"c_ext0": good0, "c_ext0off": good0, "c_ext1": good1, "c_ext1off": good1, "c_str0": good0, "c_str1": good1,
		"c_two":       {broken: true, errors: []string{"two FRI entries"}},
		"c_v0_order":  {records: hops},
		"c_v1_order":  {records: hops},
		"c_v0_rev":    {records: hops, warnings: []string{"list order differs from dependency order: record 1"}},
		"c_v1_rev":    {records: reversed},
		"c_v0_one":    {records: hops, warnings: []string{"chained inside version 1: record 1 (group 1) produces fragment 100"}},
		"c_v0_onerev": {records: hops, warnings: []string{"chained inside version 1: record 2 (group 2) produces fragment 100"}},
		"c_v1_one":    {records: hops},
		"c_v1_onerev": {records: reversed},
		"c_v0_srcrev": {records: []string{legacyOC}, warnings: []string{"rank follows the list order"}},
		"c_v1_srcrev": {records: []string{legacyOC}, warnings: []string{"rank follows the list order"}},
		"p_dig0":      {records: []string{legacyOC}, warnings: []string{"fragment 0 says 0, its survivors leave 2"}},
		"p_dig1": {records: []string{"!1 legacy invalid"}, errors: []string{"row counts differ: sources have 40 live rows, destination " +
			"holds 36 rows", "fragment 0 has 8", "fragment 1 has 9", "fragment 2 has 9"}, warnings: []string{refuses}},
		"p_tr0":   {records: []string{legacyOC}, warnings: []string{"1 byte behind the survivor bitmap (trailing bytes"}},
		"p_tr1":   {records: []string{"!1 legacy invalid"}, errors: []string{"trailing bytes"}, warnings: []string{refuses}},
		"p_t0":    {records: []string{"!1 tagged ordered_compaction"}, warnings: []string{"1 transition under index_version 0"}},
		"p_v2":    {broken: true, errors: []string{"index_version 2"}},
		"p_nomap": {records: []string{"!1 tagged invalid"}, errors: []string{"no mapping"}, warnings: []string{refuses}},
		"p_badid": {records: []string{"!1 tagged invalid"}, errors: []string{`map_id "../x"`}, warnings: []string{refuses}},
		"w1":      {records: []string{taggedOC, "2 tagged ordered_compaction"}},
	}
	for _, name := range testdata.Names(t, "spliced") {
		short := strings.TrimPrefix(name, "spliced/")
		t.Run(short, func(t *testing.T) {
			w, ok := tests[short]
			if !ok {
				t.Fatal("no expectation for this dataset")
			}
			dir := testdata.Dataset(t, name)
			h := openManifest(t, dir, newest(t, dir), nil)
			if h == nil {
				t.Fatal("no FRI entry found")
			}
			var records []string
			for _, tr := range h.Transitions {
				s := describe(tr)
				if !tr.Usable() {
					s = "!" + s
				}
				records = append(records, s)
			}
			if got, want := strings.Join(records, "; "), strings.Join(w.records, "; "); got != want {
				t.Errorf("records: got %s, want %s", got, want)
			}
			if (h.Broken != nil) != w.broken || h.Opaque != w.opaque {
				t.Errorf("broken %v, opaque %v; want %v, %v", h.Broken, h.Opaque, w.broken, w.opaque)
			}
			compareFindings(t, "errors", h.Errors, w.errors)
			compareFindings(t, "warnings", h.Warnings, w.warnings)
			if t.Failed() {
				t.Log(dump(h))
			}
			for f := range fri.FragID(4) {
				usable := len(h.Consumer(f)) > 0
				if want := w.records != nil && !strings.HasPrefix(w.records[0], "!"); usable != want {
					t.Errorf("Consumer(%d) usable: got %v, want %v", f, usable, want)
				}
				if !usable && !h.Unresolvable(f) {
					t.Errorf("fragment %d is neither mapped nor unresolvable", f)
				}
			}
		})
	}
}

func describe(t *fri.Transition) string {
	return strings.Join([]string{string(rune('0' + t.Record)), t.Form.String(), t.Kind.String()}, " ")
}

func compareFindings(t *testing.T, what string, got []fri.Finding, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d %s, want %d", len(got), what, len(want))
		return
	}
	for i := range got {
		if !strings.Contains(got[i].Message, want[i]) {
			t.Errorf("%s[%d]: got %q, want a part %q", what, i, got[i].Message, want[i])
		}
	}
}
