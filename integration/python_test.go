package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// python runs a script of integration/py in the environment that `make test` makes.
func python(t testing.TB, stdin, script string, args ...string) string {
	t.Helper()
	py := filepath.Join(root, "integration", ".venv", "bin", "python")
	if _, err := os.Stat(py); err != nil {
		missing(t, "there are no Python clients: make venv installs them")
	}
	r := command(t, stdin, py, append([]string{filepath.Join(root, "integration", "py", script)}, args...)...)
	if r.code != 0 {
		t.Fatalf("%s %q: exit %d: %s", script, args, r.code, r.stderr)
	}
	return r.stdout
}

// Every library reads both files of a mount, and all of them see the same rows.
func TestPythonClientsReadMappings(t *testing.T) {
	for _, c := range []struct{ name, transition string }{
		{"legacy/basic", "0001"},
		{"legacy/external", "0001"},
		{"legacy/group_all_deleted", "0001"},
		{"tagged/chain", "0004"},
		{"tagged/fanout", "0001"},
		{"tagged/fanout", "0002"},
		{"tagged/labels23", "0007"},
	} {
		t.Run(c.name+"/"+c.transition, func(t *testing.T) {
			m := mountDataset(t, c.name)
			dir := "latest/fri/transitions/" + c.transition
			var got struct {
				Views  map[string][]json.Number
				Schema [][]any
			}
			if err := json.Unmarshal([]byte(python(t, "", "mapping.py", m.path(dir+"/mapping.csv"), m.path(dir+"/mapping.arrow"))), &got); err != nil {
				t.Fatal(err)
			}
			want := viewOf(t, m.path(dir+"/mapping.csv"))
			if len(got.Views) != 9 {
				t.Errorf("got %d views, want 9", len(got.Views))
			}
			for client, v := range got.Views {
				if fmt.Sprint(v) != fmt.Sprint(want) {
					t.Errorf("%s sees %v, the bytes say %v", client, v, want)
				}
			}
			if s := fmt.Sprint(got.Schema); s != "[[old_row_addr uint64 false] [old_fragment uint32 false] [old_offset uint32 false] [new_row_addr uint64 true] [new_fragment uint32 true] [new_offset uint32 true]]" {
				t.Errorf("schema %s", s)
			}
		})
	}
}

// viewOf computes what integration/py/mapping.py prints for each library.
func viewOf(t testing.TB, path string) [5]uint64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var v [5]uint64
	s := bufio.NewScanner(f)
	s.Scan() // the header
	num := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for s.Scan() {
		c := strings.Split(s.Text(), ",")
		v[0]++
		v[2] += num(c[0])
		if c[3] == "" {
			v[1]++
			continue
		}
		v[3] += num(c[3])
		v[4] += num(c[5])
	}
	return v
}

// The official reader and frifs agree on where an address leads, wherever both have an answer: for legacy histories
// (it has none for tagged ones), address by address, and on those that were never a row's.
func TestSameAsOfficialReader(t *testing.T) {
	questions, asked := strings.Builder{}, map[string]string{} // all in one run: the library takes seconds to load
	for _, name := range testdata.Names(t, "legacy") {
		if !testdata.HasExpected(t, name) || name == "legacy/lookalike" { // the official reader refuses that table
			continue
		}
		var addrs strings.Builder
		every := uint64(1)
		if name == "legacy/external" {
			every = 7
		}
		for r := range testdata.Expected(t, name) {
			if r.Old%every == 0 {
				fmt.Fprintln(&addrs, r.Old)
			}
		}
		asked[name] = addrs.String()
		fmt.Fprintf(&questions, "dataset %s\n%s", testdata.Dataset(t, name), addrs.String())
	}
	answers := map[string][]string{}
	for part := range strings.SplitSeq(strings.TrimPrefix(python(t, questions.String(), "remap.py"), "dataset "), "\ndataset ") {
		path, lines, _ := strings.Cut(part, "\n")
		answers[path] = strings.Split(lines, "\n")
	}
	for name, addrs := range asked {
		t.Run(name, func(t *testing.T) {
			official := answers[testdata.Dataset(t, name)]
			r := command(t, addrs, exe, append([]string{"translate", testdata.Dataset(t, name), "--from-file", "-"}, rebase(t, name)...)...)
			if r.code != 0 {
				t.Fatalf("translate: exit %d: %s", r.code, r.stderr)
			}
			ours := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")[1:]
			if len(official) > 0 && official[0] == "no index" {
				for _, line := range ours {
					if o := strings.Split(line, ",")[1]; o != "same" && o != "deleted_now" && o != "dangling" {
						t.Fatalf("without an index: %s", line)
					}
				}
				return
			}
			if n := len(official); n == len(ours)+1 && official[n-1] == "" { // the end of the last answer
				official = official[:n-1]
			}
			if len(official) != len(ours) || len(ours) == 0 {
				t.Fatalf("%d answers of the official reader, %d of ours", len(official), len(ours))
			}
			for i, line := range ours {
				c := strings.Split(line, ",")
				switch {
				case c[1] == "dropped" && official[i] == "":
				case c[1] == "dangling" && official[i] != "": // it gives the address in the fragment that is gone
				case c[2] != "" && c[2] == official[i]:
				default:
					t.Fatalf("%s: the official reader says %q", line, official[i])
				}
			}
		})
	}
}
