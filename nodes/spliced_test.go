package nodes

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/testdata"
	"github.com/frifs/frifs/translate"
)

// right checks where the rows of the spliced tables are: offsets below 10 of fragments 0 to 3, rows 2 and 3 of fragment 0
// and one row of two others deleted, compacted into fragment 4.
func right(t *testing.T, got map[[2]uint32]string) {
	t.Helper()
	for a, want := range map[[2]uint32]string{{0, 0}: "moved 4:0", {0, 2}: "dropped", {0, 3}: "dropped", {1, 2}: "moved 4:10",
		{3, 0}: "moved 4:26", {3, 9}: "moved 4:35"} {
		if got[a] != want {
			t.Errorf("%d:%d is %q, want %q", a[0], a[1], got[a], want)
		}
	}
}

func unresolved(t *testing.T, got map[[2]uint32]string) {
	t.Helper()
	for a, o := range got {
		if o != "unresolved" {
			t.Errorf("%d:%d is %q, want unresolved", a[0], a[1], o)
		}
	}
}

func only(want map[[2]uint32]string) func(*testing.T, map[[2]uint32]string) {
	return func(t *testing.T, got map[[2]uint32]string) {
		t.Helper()
		for a, w := range want {
			if got[a] != w {
				t.Errorf("%d:%d is %q, want %q", a[0], a[1], got[a], w)
			}
		}
	}
}

// TestSplicedTables (R02, R07, R08, R24, R28, R32, R33, R44) checks the outcome, the error and the warning of each table
// that was made by hand.
func TestSplicedTables(t *testing.T) {
	dangling := only(map[[2]uint32]string{{0, 0}: "dangling", {0, 2}: "dropped"})
	reversed := only(map[[2]uint32]string{{3, 0}: "moved 4:0", {0, 0}: "moved 4:28"})
	for _, c := range []struct {
		name           string
		check          func(*testing.T, map[[2]uint32]string)
		errors         string // a part of some error's message; "" = no errors
		warnings       string // the same for warnings
		straddle, gone bool
	}{
		{name: "s_v0", check: right},
		{name: "s_v1", check: right},
		{name: "s_v1noflag", check: right, warnings: "flag"},
		{name: "s_lift", check: right},
		{name: "s_sp20", check: right},
		{name: "s_sp21", check: right},
		{name: "s_sp22", check: right},
		{name: "s_spbad", check: unresolved, errors: "size of the row map"},
		{name: "s_empty", check: unresolved, errors: "36"},
		{name: "s_emptyv1", check: unresolved, errors: "36"},
		{name: "s_dup", check: unresolved, errors: "4"},
		{name: "s_unkenv", check: right, warnings: "unknown"},
		{name: "s_fri_unk", check: unresolved, errors: "unknown field"},
		{name: "c_ext0", check: right},
		{name: "c_ext1", check: right},
		{name: "c_ext0off", check: right},
		{name: "c_ext1off", check: right},
		{name: "c_str0", check: right, straddle: true},
		{name: "c_str1", check: right, straddle: true},
		{name: "c_two", check: unresolved, errors: "two FRI entries", gone: true},
		{name: "c_v0_order", check: right},
		{name: "c_v1_order", check: right},
		{name: "c_v0_rev", check: dangling, warnings: "order"},
		{name: "c_v1_rev", check: right},
		{name: "c_v0_one", check: dangling, warnings: "chain"},
		{name: "c_v0_onerev", check: dangling, warnings: "chain"},
		{name: "c_v1_one", check: right},
		{name: "c_v1_onerev", check: right},
		{name: "c_v0_srcrev", check: reversed, warnings: "order"},
		{name: "c_v1_srcrev", check: reversed, warnings: "order"},
		{name: "p_dig0", check: right, warnings: "deleted"},
		{name: "p_dig1", check: unresolved, errors: "row counts"},
		{name: "p_tr0", check: right, warnings: "trailing"},
		{name: "p_tr1", check: unresolved, errors: "trailing"},
		{name: "p_t0", check: unresolved, warnings: "index_version 0"},
		{name: "p_v2", check: unresolved, errors: "index_version 2", gone: true},
		{name: "p_nomap", check: unresolved, errors: "no mapping"},
		{name: "p_nofile", check: unresolved, errors: "row map not found"},
		{name: "p_badid", check: unresolved, errors: "map_id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tr := openTree(t, "spliced/"+c.name, nil)
			c.check(t, outcomes(t, tr))
			h := decode[historyDoc](t, tr, "latest/fri/history.json")
			var es, ws []string
			for _, e := range h.Errors {
				es = append(es, e.Message)
			}
			for _, w := range h.Warnings {
				ws = append(ws, w.Message)
			}
			mentions(t, "errors", es, c.errors)
			if c.errors == "" || c.warnings != "" { // beside an error a warning may say what Lance does
				mentions(t, "warnings", ws, c.warnings)
			}
			if c.warnings != "" && strings.Contains(strings.Join(ws, " "), "Lance") {
				v := decode[versionDoc](t, tr, "latest/version.json")
				mentions(t, "advice", v.Advice, "Lance")
			}
			d := indexOfType(t, tr, "BTREE")
			straddle := slices.ContainsFunc(d.Warnings, func(w string) bool { return strings.Contains(w, "straddle") })
			if straddle != c.straddle || (len(d.Segments[0].Straddles) > 0) != c.straddle {
				t.Errorf("straddle: warnings %q, straddles %v", d.Warnings, d.Segments[0].Straddles)
			}
			listed := names(t, tr, "latest/fri")
			if slices.Contains(listed, "transitions") == c.gone || slices.Contains(listed, "ERROR.json") != c.gone {
				t.Errorf("fri/ lists %v", listed)
			}
		})
	}
}

func mentions(t *testing.T, what string, got []string, part string) {
	t.Helper()
	if part == "" {
		if len(got) > 0 {
			t.Errorf("%s: %q, want none", what, got)
		}
		return
	}
	for _, g := range got {
		if strings.Contains(g, part) {
			return
		}
	}
	t.Errorf("%s: %q, want one that mentions %q", what, got, part)
}

// outcomes translates all addresses of the fragments 0 to 3 through the newest version.
func outcomes(t *testing.T, tr *Tree) map[[2]uint32]string {
	t.Helper()
	x, _, err := tr.Translator(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var addrs []fri.RowAddr
	for f := range fri.FragID(4) {
		for o := range uint32(10) {
			addrs = append(addrs, fri.Addr(f, o))
		}
	}
	r := translate.Results{New: make([]fri.RowAddr, len(addrs)), Outcome: make([]translate.Outcome, len(addrs))}
	if err := x.Translate(context.Background(), addrs, &r); err != nil {
		t.Fatal(err)
	}
	got := map[[2]uint32]string{}
	for i, a := range addrs {
		s := r.Outcome[i].String()
		if r.Outcome[i].HasAddress() {
			s += " " + r.New[i].String()
		}
		got[[2]uint32{uint32(a.Frag()), a.Offset()}] = s
	}
	return got
}

// names lists a directory of the tree.
func names(t testing.TB, tr *Tree, path string) []string {
	t.Helper()
	es, err := mustDir(t, tr, path).Entries(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		out = append(out, e.Name)
	}
	return out
}

// indexOfType reads the index.json of the first index of a type.
func indexOfType(t testing.TB, tr *Tree, typ string) indexDoc {
	t.Helper()
	for _, n := range names(t, tr, "latest/indices") {
		if d := decode[indexDoc](t, tr, "latest/indices/"+n+"/index.json"); d.Type == typ {
			return d
		}
	}
	t.Fatalf("no index of type %s", typ)
	return indexDoc{}
}

// TestNewestSplicedTable checks the table that Lance itself went on with.
func TestNewestSplicedTable(t *testing.T) {
	tr := openTree(t, "spliced/w1", nil)
	only(map[[2]uint32]string{{0, 0}: "moved 6:0", {0, 5}: "dropped", {0, 6}: "dropped", {0, 7}: "moved 6:3", {1, 2}: "moved 6:8",
		{3, 9}: "moved 6:33"})(t, outcomes(t, tr))
}

func TestEverySplicedTableIsChecked(t *testing.T) {
	if n := len(testdata.Names(t, "spliced")); n != 40 {
		t.Errorf("%d spliced tables; TestSplicedTables and TestNewestSplicedTable check 40", n)
	}
}
