package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// The official release that writes tables here, and that has to read all that frifs serves.
const newest = "14.0.2"

// release is an official Lance reader. What is before "13" refuses tagged tables, and all below are asked to read
// remapped.lance only.
type release struct {
	name      string
	versions  []string // data file versions that it reads; nil for all
	forReader bool     // some types of index make all its queries fail: mount with --for-reader
}

var (
	upTo22 = []string{"2.0", "2.1", "2.2"}
	upTo21 = []string{"2.0", "2.1"}
)

// readers returns the older releases: in CI two, with FRIFS_MATRIX=all (`make test-matrix`) all of them.
func readers() []release {
	some := []release{{"7.1.0", upTo22, false}, {"4.0.2", upTo22, false}}
	if everything() {
		return append(some, release{"12.0.0", upTo22, false}, release{"1.0.4", upTo21, true}, release{"0.39.0", upTo21, true})
	}
	return some
}

// everything reports whether the whole matrix is asked for.
func everything() bool { return os.Getenv("FRIFS_MATRIX") == "all" }

// interpreter is the Python of a reader: of a release of pylance, or "lancedb".
func interpreter(t testing.TB, name string) string {
	t.Helper()
	env, install := ".venv-"+name, "integration/venv.sh "+name
	if name == newest {
		env, install = ".venv", "make venv"
	}
	py := filepath.Join(root, "integration", env, "bin", "python")
	if _, err := os.Stat(py); err != nil {
		missing(t, "there is no Python environment of %s: %s makes it", name, install)
	}
	return py
}

// question is a job for integration/py/check_remapped.py.
type question struct {
	Path     string   `json:"path"`
	Expected string   `json:"expected"`
	Only     []string `json:"only,omitempty"`
	Skip     []string `json:"skip,omitempty"`
	MustUse  bool     `json:"must_use"`
}

// report is what a reader made of one index of one dataset, or of a whole dataset (Done, or Error).
type report struct {
	Path   string
	Error  string
	Done   bool
	Index  string
	Type   string
	Checks int
	OK     int
	Used   int
	Listed bool
	Unused bool // and it had to be used
	Failed []failure
}

// failure is one query that a reader did not answer rightly.
type failure struct {
	Check int
	Kind  string // wrong or error
	Query string
	Say   string
}

// work runs a script that takes jobs as lines of JSON, in two processes at once, and returns the lines that it printed.
// A process that fails, fails the test.
func work(t testing.TB, python, script string, jobs []any) (lines []json.RawMessage) {
	t.Helper()
	const wide = 2
	var mu sync.Mutex
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	for part := range min(wide, len(jobs)) {
		var in bytes.Buffer
		for i := part; i < len(jobs); i += wide {
			b, err := json.Marshal(jobs[i])
			if err != nil {
				t.Fatal(err)
			}
			in.Write(append(b, '\n'))
		}
		wg.Go(func() {
			cmd := exec.CommandContext(ctx, python, filepath.Join(root, "integration", "py", script), "-")
			cmd.Env = append(os.Environ(), "LANCE_LOG=error", "RUST_BACKTRACE=0", "PYTHONDONTWRITEBYTECODE=1")
			var out, errs bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &errs
			err := cmd.Run()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("%s: %v: %s", script, err, tail(errs.String(), 3000))
			}
			s := bufio.NewScanner(&out)
			s.Buffer(nil, 1<<24)
			for s.Scan() {
				lines = append(lines, slices.Clone(s.Bytes()))
			}
			if err := s.Err(); err != nil {
				t.Errorf("%s: %v", script, err)
			}
		})
	}
	wg.Wait()
	return lines
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// decode reads lines of JSON into values.
func decode[T any](t testing.TB, lines []json.RawMessage) (out []T) {
	t.Helper()
	for _, line := range lines {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out = append(out, v)
	}
	return out
}

// answers asks a reader many questions; reports come in no order.
func answers(t testing.TB, reader string, questions []question) []report {
	t.Helper()
	jobs := make([]any, len(questions))
	for i, q := range questions {
		jobs[i] = q
	}
	all := decode[report](t, work(t, interpreter(t, reader), "check_remapped.py", jobs))
	finished := map[string]bool{}
	for _, r := range all {
		finished[r.Path] = finished[r.Path] || r.Done || r.Error != ""
	}
	for _, q := range questions {
		if !finished[q.Path] {
			t.Errorf("pylance %s did not come to an end with %s", reader, q.Path)
		}
	}
	return all
}

// subject is a dataset that is looked at: where its remapped form can be opened, and the table that it was made from.
type subject struct {
	name     string
	remapped string // a directory: below a mount, or exported
	table    string // the dataset itself, as it is stored
	expected string // the recorded queries
	history  bool   // the table has a fragment reuse index
	unused   bool   // the indices cannot be used, and need not be
}

// judge asks a reader the recorded queries of all subjects. Every answer has to be right, and the newest release has to
// use the indices. What another reader gets wrong is its own fault, if it gets the same query wrong in the same way on
// a control table that never saw a rewrite (docs/FORMAT.md, "Remapped datasets"); judge makes that table. Where there is no
// history, the remapped dataset is the table itself, and that is the control.
func judge(t testing.TB, reader string, subjects []subject) {
	t.Helper()
	questions, by := make([]question, 0, len(subjects)), map[string]subject{}
	for _, s := range subjects {
		questions = append(questions, question{Path: s.remapped, Expected: s.expected, MustUse: reader == newest && !s.unused})
		by[s.remapped] = s
	}
	var suspects []report
	right, checks := 0, 0
	for _, r := range answers(t, reader, questions) {
		right, checks = right+r.OK, checks+r.Checks
		if r.Unused {
			t.Errorf("%s: pylance %s does not use %s (%s), listed: %v", by[r.Path].name, reader, r.Index, r.Type, r.Listed)
		}
		if r.Error != "" {
			t.Errorf("%s: pylance %s cannot open it: %s", by[r.Path].name, reader, r.Error)
		}
		if len(r.Failed) > 0 {
			suspects = append(suspects, r)
		}
	}
	t.Logf("pylance %s: %d of %d answers right in %d datasets", reader, right, checks, len(subjects))
	if checks == 0 {
		t.Errorf("pylance %s was asked nothing", reader)
	}
	if len(suspects) > 0 {
		excuse(t, reader, suspects, by)
	}
}

// excuse makes a control table for each index that was answered wrongly, and reports what is no fault of the reader's own.
func excuse(t testing.TB, reader string, suspects []report, by map[string]subject) {
	t.Helper()
	dir := t.TempDir()
	var jobs []any
	questions := make([]question, len(suspects))
	for i, r := range suspects {
		s := by[r.Path]
		control := filepath.Join(dir, fmt.Sprint(i))
		questions[i] = question{Path: filepath.Join(control, "table.lance"), Expected: s.expected, Only: []string{r.Index}}
		if !s.history {
			questions[i].Path = s.table
			continue
		}
		jobs = append(jobs, map[string]any{"dir": control, "control": s.remapped, "index": r.Index, "expected": s.expected})
	}
	work(t, interpreter(t, newest), "make_table.py", jobs)
	own := map[string]map[string]bool{} // path and index -> failed checks and their kinds
	for _, r := range answers(t, reader, questions) {
		failed := map[string]bool{}
		for _, f := range r.Failed {
			failed[fmt.Sprint(f.Check, f.Kind)] = true
		}
		if r.Index != "" {
			own[r.Path+"\x00"+r.Index] = failed
		}
	}
	excused, example := map[string]int{}, map[string]string{}
	for i, r := range suspects {
		ours := 0
		for _, f := range r.Failed {
			if own[questions[i].Path+"\x00"+r.Index][fmt.Sprint(f.Check, f.Kind)] {
				key := r.Type + ": " + f.Kind
				excused[key]++
				example[key] = f.Query + ": " + f.Say
				continue
			}
			if ours++; ours <= 3 {
				t.Errorf("%s: pylance %s, %s (%s): %s: %s: %s", by[r.Path].name, reader, r.Index, r.Type, f.Query, f.Kind, f.Say)
			}
		}
		if ours > 3 {
			t.Errorf("%s: pylance %s, %s: %d of %d queries fail, and not on a control table", by[r.Path].name, reader, r.Index, ours, r.Checks)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(excused)) {
		t.Logf("pylance %s fails %d times on untouched control tables too: %s, for example %s", reader, excused[k], k, example[k])
	}
}
