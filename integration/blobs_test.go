package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Large values of a blob column lie beside the data files, which no manifest says: an exported remapped dataset answers
// take_blobs as the table does, for a clone too, whose data files are the table's.
func TestRemappedBlobs(t *testing.T) {
	dir := t.TempDir()
	python(t, "", "blobs.py", "make", dir)
	table, clone := filepath.Join(dir, "t.lance"), filepath.Join(dir, "clone.lance")
	var tables []string
	for _, name := range []string{table, clone} {
		out := strings.TrimSuffix(name, ".lance") + "-copy.lance"
		frifs(t, "export", name, "latest/remapped.lance", out)
		tables = append(tables, name, out)
	}
	blobs, err := filepath.Glob(filepath.Join(tables[1], "data", "*", "*.blob"))
	if err != nil || len(blobs) < 6 {
		t.Fatalf("the copy has the blob files %q, %v", blobs, err)
	}
	for _, b := range blobs {
		rel, err := filepath.Rel(tables[1], b)
		if err != nil {
			t.Fatal(err)
		}
		if stored, err := os.ReadFile(filepath.Join(table, rel)); err != nil || string(stored) != read(t, b) {
			t.Errorf("%s differs (%v)", rel, err)
		}
	}
	lines := strings.Split(strings.TrimSpace(python(t, "", "blobs.py", append([]string{"read"}, tables...)...)), "\n")
	if len(lines) != 4 || len(lines[0]) < 1000 {
		t.Fatalf("read %q", lines)
	}
	for i, l := range lines {
		if l != lines[0] {
			t.Errorf("%s answers\n%s\nwant\n%s", tables[i], l, lines[0])
		}
	}
}
