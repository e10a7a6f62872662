package integration

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// TestPassthroughGivesTheSameBytes reads every stored file of an index through a mount that lets the kernel read local
// files by itself, and through one that does not.
func TestPassthroughGivesTheSameBytes(t *testing.T) {
	table := testdata.Dataset(t, "tagged/chain")
	able := passthroughHere(t)
	for _, flags := range [][]string{nil, {"--no-passthrough"}} {
		t.Run(strings.Join(flags, ""), func(t *testing.T) {
			m := mount(t, table, flags...)
			files, err := filepath.Glob(m.path("latest/indices/*/*/stored/*"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no stored files: %v", err)
			}
			for _, f := range files {
				uuid := filepath.Base(filepath.Dir(filepath.Dir(f)))
				want, err := os.ReadFile(filepath.Join(table, "_indices", uuid, filepath.Base(f)))
				if err != nil {
					t.Fatal(err)
				}
				if got := read(t, f); !bytes.Equal([]byte(got), want) {
					t.Errorf("%s: %d bytes, want %d", f, len(got), len(want))
				}
				if fi, err := os.Stat(f); err != nil || fi.Size() != int64(len(want)) {
					t.Errorf("%s: %v, %v", f, fi, err)
				}
			}
			passed := metric(t, m, "frifs_mount_passthrough_opens_total")
			if want := able && flags == nil; (passed > 0) != want {
				t.Errorf("%v files were passed through; expected some: %v", passed, want)
			}
		})
	}
}

// passthroughHere reports whether frifs doctor says that the kernel reads local files by itself. A table on a network
// filesystem is never passed through.
func passthroughHere(t *testing.T) bool {
	t.Helper()
	needFUSE(t)
	for _, line := range strings.Split(command(t, "", exe, "doctor").stdout, "\n") {
		if strings.Contains(line, "passthrough of local files") {
			return strings.HasPrefix(line, "ok")
		}
	}
	t.Fatal("frifs doctor says nothing about passthrough")
	return false
}

// metric reads one figure of the mount.
func metric(t *testing.T, m *mounted, name string) float64 {
	t.Helper()
	for _, line := range strings.Split(read(t, m.path(".frifs/metrics")), "\n") {
		if v, ok := strings.CutPrefix(line, name+" "); ok {
			f, err := strconv.ParseFloat(v, 64)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
