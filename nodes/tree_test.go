package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
)

// openTree makes the tree of a test dataset.
func openTree(t testing.TB, name string, change func(*Config)) *Tree {
	t.Helper()
	st, err := store.OpenURI(context.Background(), testdata.Dataset(t, name), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return openStore(t, st, name, change)
}

// openStore makes the tree of a store; name says which base paths to replace.
func openStore(t testing.TB, st store.Store, name string, change func(*Config)) *Tree {
	t.Helper()
	ctx := context.Background()
	var opt dataset.Options
	if name != "" {
		for _, r := range testdata.Rebase(t, name) {
			from, to, _ := strings.Cut(r, "=")
			opt.Rebase = append(opt.Rebase, dataset.Rebase{Old: from, New: to})
		}
	}
	ds, err := dataset.Open(ctx, st, opt)
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Dataset: ds}
	if change != nil {
		change(&cfg)
	}
	tr, err := New(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr
}

// cat reads a whole file of the tree.
func cat(t testing.TB, tr *Tree, path string) []byte {
	t.Helper()
	b, err := fs.ReadFile(FS(tr.Root()), path)
	if err != nil {
		t.Fatalf("cat %s: %v", path, err)
	}
	return b
}

// catJSON decodes a JSON file of the tree.
func catJSON(t testing.TB, tr *Tree, path string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(cat(t, tr, path), &v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v
}

// visit walks the tree below root, without links, and calls f for each entry; it does not go down where f says false.
func visit(t testing.TB, root Dir, f func(path string, d Dir, e Entry, n Node) bool) {
	t.Helper()
	var walk func(path string, d Dir)
	walk = func(path string, d Dir) {
		es, err := d.Entries(context.Background())
		if err != nil {
			t.Errorf("list %s: %v", path, err)
			return
		}
		if !slices.IsSortedFunc(es, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%s is not in byte order", path)
		}
		for _, e := range es {
			p := strings.TrimPrefix(path+"/"+e.Name, "/")
			n, err := d.Lookup(context.Background(), e.Name)
			if err != nil {
				t.Errorf("lookup of the listed %s: %v", p, err)
				continue
			}
			if sub, ok := n.(Dir); f(p, d, e, n) && ok {
				walk(p, sub)
			}
		}
	}
	walk("", root)
}

// live reports whether a path is one of a live file: its inode may differ between listing and lookup.
func isLive(path string) bool { return path == "dataset.json" || strings.HasPrefix(path, ".frifs/") }

// checkNode compares what a listing, stat and reading say about one entry.
func checkNode(t testing.TB, rng *rand.Rand, path string, e Entry, n Node) {
	t.Helper()
	ctx := context.Background()
	if n.Type() != e.Type || (n.Ino() != e.Ino && !isLive(path)) {
		t.Errorf("%s: listed as type %d inode %d, found as %d, %d", path, e.Type, e.Ino, n.Type(), n.Ino())
	}
	if ino := n.Ino(); ino < 2 || ino >= 1<<63 {
		t.Errorf("%s: inode %d", path, ino)
	}
	a, err := n.Attr(ctx)
	if err != nil {
		if fault.KindOf(err) == fault.Unknown {
			t.Errorf("stat %s: an error without a kind: %v", path, err)
		}
		return
	}
	if e.Attr != nil && *e.Attr != a {
		t.Errorf("%s: listed with %+v, stat says %+v", path, *e.Attr, a)
	}
	if a.Mtime.IsZero() || a.Ino != n.Ino() || a.Type != n.Type() {
		t.Errorf("%s: attributes %+v", path, a)
	}
	f, ok := n.(File)
	if !ok {
		return
	}
	h, err := f.Open(ctx)
	if err != nil {
		// mapping.csv is sized from the record alone; its row map is needed, and may be missing, when it is opened.
		m, ok := f.(*mapFile)
		if !ok || m.measure == nil || fault.KindOf(err) == fault.Unknown {
			t.Errorf("open %s after a good stat: %v", path, err)
		}
		return
	}
	defer h.Close()
	if a.Size > 4<<20 {
		checkPieces(t, rng, path, a.Size, h)
		return
	}
	whole := make([]byte, a.Size+10)
	m, err := h.ReadAt(ctx, whole, 0)
	if err != nil || int64(m) != a.Size {
		t.Errorf("%s: size %d, %d bytes read (%v)", path, a.Size, m, err)
		return
	}
	whole = whole[:m]
	for range 4 {
		off := rng.Int64N(a.Size + 2)
		p := make([]byte, rng.IntN(300))
		k, err := h.ReadAt(ctx, p, off)
		if err != nil || !bytes.Equal(p[:k], whole[min(off, a.Size):min(off+int64(len(p)), a.Size)]) {
			t.Errorf("%s: read of %d bytes at %d differs from the whole (%d bytes, %v)", path, len(p), off, k, err)
		}
	}
	if strings.HasSuffix(path, ".json") && !isLive(path) {
		whole = padding.ReplaceAll(whole, []byte(": $1")) // csv_offset and csv_bytes of partitions
		if want := append(indented(t, bytes.TrimSuffix(whole, []byte("\n"))), '\n'); !bytes.Equal(whole, want) {
			t.Errorf("%s is not laid out as JSON with two spaces and a newline at the end", path)
		}
	}
}

var padding = regexp.MustCompile(`: +([0-9])`)

// checkPieces compares small reads with a large one of a file that is too large to hold.
func checkPieces(t testing.TB, rng *rand.Rand, path string, size int64, h Handle) {
	t.Helper()
	ctx := context.Background()
	for range 3 {
		off := rng.Int64N(size - 100_000)
		large := make([]byte, 100_000)
		if m, err := h.ReadAt(ctx, large, off); err != nil || m != len(large) {
			t.Errorf("%s: %d bytes read at %d (%v)", path, m, off, err)
			return
		}
		k := rng.Int64N(90_000)
		small := make([]byte, 777)
		if m, err := h.ReadAt(ctx, small, off+k); err != nil || m != len(small) || !bytes.Equal(small, large[k:k+777]) {
			t.Errorf("%s: a small read at %d differs from a large one (%v)", path, off+k, err)
		}
	}
	p := make([]byte, 100)
	if m, err := h.ReadAt(ctx, p, size-40); err != nil || m != 40 {
		t.Errorf("%s: %d bytes read over the end (%v), want 40", path, m, err)
	}
}

func TestWalkEveryDataset(t *testing.T) {
	for _, family := range []string{"legacy", "tagged", "spliced"} {
		for _, name := range testdata.Names(t, family) {
			if name == "legacy/many_versions" {
				continue // TestManyVersions
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tr := openTree(t, name, func(c *Config) { c.Now = fixedNow })
				rng := rand.New(rand.NewPCG(1, 2))
				seen := map[uint64]string{}
				newest := newestOf(t, tr)
				visit(t, tr.Root(), func(path string, _ Dir, e Entry, n Node) bool {
					if old, ok := seen[n.Ino()]; ok && !isLive(path) {
						t.Errorf("%s has the inode of %s", path, old)
					}
					seen[n.Ino()] = path
					v, below, ok := strings.Cut(strings.TrimPrefix(path, "versions/"), "/")
					if !ok && v != newest && path != "versions" && n.Type() == TypeDir && rng.IntN(5) > 0 {
						return false // a few versions are enough
					}
					if v == newest || below == "" || rng.IntN(4) == 0 {
						checkNode(t, rng, path, e, n)
					}
					return true
				})
			})
		}
	}
}

func fixedNow() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// newestOf is the number of the newest version.
func newestOf(t testing.TB, tr *Tree) string {
	t.Helper()
	n, err := ResolveNoFollow(context.Background(), tr.Root(), "latest")
	if err != nil {
		t.Fatal(err)
	}
	target, err := n.(Link).Target(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(target, "versions/")
}

func TestByteOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfNDistinct(rapid.Uint64(), 0, 60, rapid.ID).Draw(t, "versions")
		for _, n := range numbers {
			numbers = append(numbers, n/10, n/1000)
		}
		slices.Sort(numbers)
		numbers = slices.Compact(numbers)
		refs := make([]dataset.VersionRef, len(numbers))
		want := make([]string, len(numbers))
		for i, n := range numbers {
			refs[i].Version, want[i] = n, strconv.FormatUint(n, 10)
		}
		slices.Sort(want)
		for k, i := range byteOrder(refs) {
			if got := strconv.FormatUint(refs[i].Version, 10); got != want[k] {
				t.Fatalf("place %d: got %s, want %s", k, got, want[k])
			}
		}
	})
}

// mustFail checks that looking a path up, or stat-ing it, fails with a kind.
func mustFail(t testing.TB, tr *Tree, path, kind string) {
	t.Helper()
	n, err := Resolve(context.Background(), tr.Root(), path)
	if err == nil {
		_, err = n.Attr(context.Background())
	}
	if err == nil || fault.KindOf(err).String() != kind {
		t.Errorf("%s: error %v, want one of kind %s", path, err, kind)
	}
}
