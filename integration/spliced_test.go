package integration

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// What becomes of the addresses (fragment:offset) that a spliced table is asked for.
type probes map[string]answer

// moved is an answer with an address.
func moved(fragment, offset uint64) answer {
	return answer{"moved", fmt.Sprint(fragment<<32 | offset)}
}

// right is the truth for the table that all spliced tables are made of: four fragments of ten rows, four rows deleted,
// compacted into fragment 4, with ranks in the list order of the sources.
func right(order ...uint64) probes {
	deleted := []string{"0:2", "0:3", "1:7", "2:5"}
	p, rank := probes{}, uint64(0)
	for _, f := range order {
		for o := range uint64(10) {
			a := fmt.Sprintf("%d:%d", f, o)
			if slices.Contains(deleted, a) {
				p[a] = answer{"dropped", ""}
				continue
			}
			p[a] = moved(4, rank)
			rank++
		}
	}
	return p
}

// all gives every address of the four sources the same outcome.
func all(outcome string) probes {
	p := right(0, 1, 2, 3)
	for a := range p {
		p[a] = answer{outcome, ""}
	}
	return p
}

func TestSplicedTables(t *testing.T) {
	truth, unresolved := right(0, 1, 2, 3), all("unresolved")
	dangling := all("dangling")
	for a, x := range truth {
		if x.outcome == "dropped" {
			dangling[a] = x
		}
	}
	const warning, failure = "warnings", "errors"
	type says struct{ where, text string } // text is a regular expression
	for _, c := range []struct {
		names  []string
		probes probes
		says   []says
	}{
		{names: []string{"s_v0", "s_v1", "s_lift", "s_sp20", "s_sp21", "s_sp22", "c_ext0", "c_ext1", "c_ext0off", "c_ext1off", "c_v0_order", "c_v1_order", "c_v1_rev", "c_v1_one", "c_v1_onerev"}, probes: truth},
		{[]string{"s_v1noflag"}, truth, []says{{warning, `flag`}}},
		{[]string{"s_spbad"}, unresolved, []says{{failure, `999`}, {failure, `476`}}},
		{[]string{"s_empty", "s_emptyv1"}, unresolved, []says{{failure, `survivors`}, {failure, `36`}}},
		{[]string{"s_dup"}, unresolved, []says{{failure, `"record":\s*1`}, {failure, `"record":\s*2`}}},
		{[]string{"s_unkenv"}, with(truth, "100:0", answer{"unresolved", ""}), []says{{warning, `field 7`}}},
		{[]string{"s_fri_unk"}, unresolved, []says{{failure, `field 9`}}},
		{[]string{"c_str0", "c_str1"}, truth, nil}, // the straddle is named in index.json: TestR02
		{[]string{"c_two"}, unresolved, []says{{failure, `two FRI entries`}}},
		{[]string{"c_v0_rev"}, dangling, []says{{warning, `order`}}},
		{[]string{"c_v0_one", "c_v0_onerev"}, dangling, []says{{warning, `chain`}}},
		{[]string{"c_v0_srcrev", "c_v1_srcrev"}, right(3, 2, 1, 0), []says{{warning, `order`}}},
		{[]string{"p_dig0"}, truth, []says{{warning, `deleted|row`}}},
		{[]string{"p_tr0"}, truth, []says{{warning, `trailing|after`}}},
		{[]string{"p_dig1"}, unresolved, []says{{failure, `row`}}},
		{[]string{"p_tr1"}, unresolved, []says{{failure, `trailing|after`}}},
		{[]string{"p_t0"}, unresolved, []says{{warning, `index_version 0`}}},
		{[]string{"p_v2"}, unresolved, []says{{failure, `index_version 2`}}},
		{[]string{"p_nomap"}, unresolved, []says{{failure, `no mapping`}}},
		{[]string{"p_nofile"}, unresolved, []says{{failure, `stable_partition\.lance`}}},
		{[]string{"p_badid"}, unresolved, []says{{failure, `map_id`}}},
		{[]string{"w1"}, probes{
			"0:0": moved(6, 0), "0:5": {"dropped", ""}, "0:6": {"dropped", ""}, "0:7": moved(6, 3), "1:2": moved(6, 8), "3:9": moved(6, 33), "5:0": moved(6, 34),
		}, nil},
	} {
		for _, name := range c.names {
			t.Run(name, func(t *testing.T) {
				dataset := "spliced/" + name
				var addrs []uint64
				var asked []string
				for a := range c.probes {
					asked = append(asked, a)
				}
				slices.Sort(asked)
				for _, a := range asked {
					var f, o uint64
					if _, err := fmt.Sscanf(a, "%d:%d", &f, &o); err != nil {
						t.Fatal(err)
					}
					addrs = append(addrs, f<<32|o)
				}
				for i, got := range ask(t, dataset, addrs) {
					if want := c.probes[asked[i]]; got != want {
						t.Errorf("(%s): got %v, want %v", asked[i], got, want)
					}
				}
				live := uint64(4)
				if name == "w1" {
					live = 6
				}
				if got := ask(t, dataset, []uint64{live << 32, live<<32 | 30}); got[0] != (answer{"same", fmt.Sprint(live << 32)}) || got[1].outcome != "same" {
					t.Errorf("the live fragment: %v", got)
				}
				var h struct{ Errors, Warnings []json.RawMessage }
				if err := json.Unmarshal([]byte(frifs(t, "cat", testdata.Dataset(t, dataset), "latest/fri/history.json")), &h); err != nil {
					t.Fatal(err)
				}
				for _, s := range c.says {
					list := h.Errors
					if s.where == warning {
						list = h.Warnings
					}
					if !slices.ContainsFunc(list, func(m json.RawMessage) bool { return regexp.MustCompile(s.text).Match(m) }) {
						t.Errorf("no entry of %s matches %q: %s", s.where, s.text, list)
					}
				}
				if failed := slices.ContainsFunc(c.says, func(s says) bool { return s.where == failure }); failed != (len(h.Errors) > 0) {
					t.Errorf("errors: %s", h.Errors)
				}
				if len(c.says) == 0 && !regexp.MustCompile(`^(w1|c_str.)$`).MatchString(name) && len(h.Warnings) > 0 {
					t.Errorf("a table that is right has warnings: %s", h.Warnings)
				}
			})
		}
	}
}

// with adds one probe to a copy.
func with(p probes, addr string, a answer) probes {
	q := probes{addr: a}
	for k, v := range p {
		q[k] = v
	}
	return q
}
