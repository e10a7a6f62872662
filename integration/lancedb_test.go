package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// The tables that other real readers look at: each type of index, after a legacy and after a tagged rewrite.
var lookedAt = []string{"legacy/all_types", "tagged/all_types"}

// expectedFile is the file of recorded queries of a dataset.
func expectedFile(t testing.TB, name string) string {
	family, base, _ := strings.Cut(name, "/")
	return filepath.Join(testdata.Dir(t, family), base+".expected.json")
}

// reports decodes the lines that a reader's script printed.
func reports(t testing.TB, out string) (all []report) {
	t.Helper()
	var lines []json.RawMessage
	for line := range strings.Lines(out) {
		lines = append(lines, json.RawMessage(line))
	}
	return decode[report](t, lines)
}

// LanceDB opens remapped.lance by its path, as a table of the folder that it is in, and searches it.
func TestLanceDBReads(t *testing.T) {
	for _, name := range lookedAt {
		for _, client := range []string{"python", "node"} {
			t.Run(name+"/"+client, func(t *testing.T) {
				m := mountDataset(t, name)
				args := []string{m.path("latest"), expectedFile(t, name)}
				var r result
				if client == "python" {
					r = command(t, "", interpreter(t, "lancedb"), append([]string{filepath.Join(root, "integration/py/lancedb_reads.py")}, args...)...)
				} else {
					r = command(t, "", "node", append([]string{nodeScript(t)}, args...)...)
				}
				if r.code != 0 {
					t.Fatalf("exit %d: %s", r.code, tail(r.stderr, 3000))
				}
				checks := 0
				for _, p := range reports(t, r.stdout) {
					checks += p.Checks
					for i, f := range p.Failed {
						if i < 3 {
							t.Errorf("%s (%s), %s: %s: %s", p.Index, p.Type, f.Query, f.Kind, f.Say)
						}
					}
				}
				if checks < 200 {
					t.Errorf("only %d queries", checks)
				}
			})
		}
	}
}

// nodeScript is the reader in Node; it needs the packages that `integration/venv.sh node` installs.
func nodeScript(t testing.TB) string {
	t.Helper()
	needTool(t, "node")
	dir := filepath.Join(root, "integration", "node")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "@lancedb", "lancedb")); err != nil {
		missing(t, "LanceDB for Node is not installed: integration/venv.sh node installs it")
	}
	return filepath.Join(dir, "reads.js")
}

// polars and DuckDB read it too: both through the official library, with their own filters pushed down.
func TestFramesRead(t *testing.T) {
	for _, name := range lookedAt {
		t.Run(name, func(t *testing.T) {
			m := mountDataset(t, name)
			r := command(t, "", interpreter(t, newest), filepath.Join(root, "integration/py/frames.py"), m.path("latest/remapped.lance"), expectedFile(t, name))
			if r.code != 0 {
				t.Fatalf("exit %d: %s", r.code, tail(r.stderr, 3000))
			}
			checks := map[string]int{}
			for _, p := range reports(t, r.stdout) {
				checks[p.Index] += p.Checks
				for _, f := range p.Failed {
					t.Errorf("%s, %s: %s: %s", p.Index, f.Query, f.Kind, f.Say)
				}
			}
			for _, client := range []string{"polars", "duckdb"} {
				if checks[client] < 30 {
					t.Errorf("%s was asked %d queries", client, checks[client])
				}
			}
		})
	}
}
