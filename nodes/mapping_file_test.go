package nodes

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
)

// TestAFileNeverGetsOtherLines has a row map come back after composed.csv was sized without it. Once the file has left
// the cache, it must not be served with the lines of today under the size of yesterday.
func TestAFileNeverGetsOtherLines(t *testing.T) {
	dir := testdata.Copy(t, "tagged/folded")
	st, err := store.OpenURI(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	maps := filepath.Join(dir, "_fri")
	if err := os.Rename(maps, maps+".away"); err != nil {
		t.Fatal(err)
	}
	var clk clock
	clk.advance(time.Hour)
	tr := openStore(t, st, "tagged/folded", func(c *Config) { c.Now, c.Memory = clk.now, 16 })
	const name = "latest/fri/scan/composed.csv"
	n, err := Resolve(t.Context(), tr.Root(), name)
	if err != nil {
		t.Fatal(err)
	}
	a, err := n.Attr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(maps+".away", maps); err != nil {
		t.Fatal(err)
	}
	clk.advance(time.Minute)
	// A file of another version takes the place of the first in the cache.
	if _, err := fs.Stat(FS(tr.Root()), "versions/9/fri/transitions/0001/mapping.arrow"); err != nil {
		t.Fatal(err)
	}
	h, err := n.(File).Open(t.Context())
	if err == nil {
		h.Close()
		t.Fatalf("opened with other lines than those that made %d bytes", a.Size)
	}
	if !fault.Is(err, fault.Stale) {
		t.Errorf("open: %v, want a stale file", err)
	}
	whole := openStore(t, st, "tagged/folded", nil)
	if got := cat(t, whole, name); int64(len(got)) == a.Size {
		t.Fatal("the test needs a file whose size depends on the row map")
	}
}
