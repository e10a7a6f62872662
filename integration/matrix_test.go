package integration

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The factors of the matrix: what integration/py/make_table.py makes tables of. A table of a group has a column, with an
// index, for each kind of that group, so that a pair with a group is a pair with each type of index in it.
var factors = [4][]string{
	{"btree", "sets", "zones", "text", "vector"},
	{"2.0", "2.1", "2.2", "2.3"},
	{"none", "before", "after", "dead", "partial", "segments", "chain", "update"},
	{"legacy", "lifted", "continued"},
}

// cell is a choice for each factor.
type cell [4]string

func (c cell) String() string { return strings.Join(c[:], "-") }

// cells lists the whole matrix, in order.
func cells() (all []cell) {
	for _, group := range factors[0] {
		for _, version := range factors[1] {
			for _, scenario := range factors[2] {
				for _, history := range factors[3] {
					all = append(all, cell{group, version, scenario, history})
				}
			}
		}
	}
	return all
}

// pair is two choices of two factors.
type pair struct {
	a, b int
	x, y string
}

func (c cell) pairs() (all []pair) {
	for a := range c {
		for b := a + 1; b < len(c); b++ {
			all = append(all, pair{a, b, c[a], c[b]})
		}
	}
	return all
}

// pairwise picks cells, always the same, until each pair of choices of two factors is in one of them.
func pairwise() (picked []cell) {
	seen, rest := map[pair]bool{}, cells()
	fresh := func(c cell) (n int) {
		for _, p := range c.pairs() {
			if !seen[p] {
				n++
			}
		}
		return n
	}
	for {
		best := slices.MaxFunc(rest, func(x, y cell) int { return fresh(x) - fresh(y) }) // the first of the best
		if fresh(best) == 0 {
			return picked
		}
		for _, p := range best.pairs() {
			seen[p] = true
		}
		picked = append(picked, best)
	}
}

func TestPairwiseHasEachPair(t *testing.T) {
	want := map[pair]bool{}
	for _, c := range cells() {
		for _, p := range c.pairs() {
			want[p] = true
		}
	}
	picked := pairwise()
	for _, c := range picked {
		for _, p := range c.pairs() {
			delete(want, p)
		}
	}
	if len(want) > 0 || len(picked) > 60 {
		t.Errorf("%d pairs are not in the %d cells", len(want), len(picked))
	}
	if fmt.Sprint(picked) != fmt.Sprint(pairwise()) {
		t.Error("another choice the second time")
	}
}

// madeTable is what make_table.py says of a table that it made.
type madeTable struct {
	Dir       string
	Rows      int
	Fragments int
	Records   int
	Tagged    bool
	Queries   int
}

// makeTables makes the tables of some cells with the newest official release: DIR/<cell>/table.lance, expected.json.
func makeTables(t testing.TB, dir string, some []cell) {
	t.Helper()
	jobs := make([]any, len(some))
	for i, c := range some {
		jobs[i] = map[string]any{"dir": filepath.Join(dir, c.String()), "group": c[0], "file_version": c[1], "scenario": c[2], "history": c[3]}
	}
	made := decode[madeTable](t, work(t, interpreter(t, newest), "make_table.py", jobs))
	if len(made) != len(some) {
		t.Fatalf("%d of %d tables were made", len(made), len(some))
	}
	for _, m := range made {
		if m.Records == 0 || m.Rows < 500 || m.Queries < 40 {
			t.Errorf("%s: %+v", m.Dir, m)
		}
	}
}

// Every type of index, file version, history of rows and form of the fragment reuse index: official Lance, which knows
// nothing of what frifs did, answers every query as a scan of all rows does.
func TestRemappedMatrix(t *testing.T) {
	needFUSE(t)
	some := pairwise()
	if everything() {
		some = cells()
	}
	const batch = 48 // mounts at once
	for part := range slices.Chunk(some, batch) {
		t.Run(part[0].String(), func(t *testing.T) {
			dir := t.TempDir()
			makeTables(t, dir, part)
			judgeCells(t, dir, part, release{name: newest})
			for _, r := range readers() {
				if everything() {
					judgeCells(t, dir, part, r)
				}
			}
		})
	}
}

// judgeCells mounts the tables of some cells that a release can read, and asks it the queries.
func judgeCells(t *testing.T, dir string, some []cell, r release) {
	t.Run(r.name, func(t *testing.T) {
		var subjects []subject
		for _, c := range some {
			if r.versions != nil && !slices.Contains(r.versions, c[1]) {
				continue
			}
			at := filepath.Join(dir, c.String())
			m := mount(t, filepath.Join(at, "table.lance"), r.flags()...)
			subjects = append(subjects, subject{
				name: c.String(), remapped: m.path("latest/remapped.lance"), table: filepath.Join(at, "table.lance"),
				expected: filepath.Join(at, "expected.json"), history: true,
			})
		}
		if len(subjects) > 0 {
			judge(t, r.name, subjects)
		}
	})
}

// flags are those that remapped.lance has to be made with for a release.
func (r release) flags() []string {
	if r.forReader {
		return []string{"--for-reader", r.name}
	}
	return nil
}
