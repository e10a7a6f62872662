package integration

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
)

// TestReplacedWhileOpen replaces an object between two reads of one open file: the bytes that come are those of the file
// that was opened, or none.
func TestReplacedWhileOpen(t *testing.T) {
	eachServer(t, func(t *testing.T, o *objects) {
		b := o.bucket(t)
		fill := func(c byte, n int) []byte { return bytes.Repeat([]byte{c}, n) }
		const size = 9 << 20
		for name, next := range map[string]func() error{
			"same size": func() error { return put(t.Context(), b, "t/a", fill('n', size)) },
			"shorter":   func() error { return put(t.Context(), b, "t/a", fill('n', 100)) },
			"longer":    func() error { return put(t.Context(), b, "t/a", fill('n', size+1)) },
			"removed":   func() error { return b.Delete(t.Context(), "t/a") },
		} {
			if err := put(t.Context(), b, "t/a", fill('o', size)); err != nil {
				t.Fatal(err)
			}
			st, err := store.OpenURI(t.Context(), o.uri(t, o.target, "t"), store.Options{Layer: store.NewLayer(store.Config{ReadAhead: -1})})
			if err != nil {
				t.Fatal(err)
			}
			r, err := st.Open(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			read := func(off, n int) error {
				p := make([]byte, n)
				got, err := r.ReadAt(p, int64(off))
				if !bytes.Equal(p[:got], fill('o', got)) {
					t.Errorf("%s: wrong bytes at %d", name, off)
				}
				if err == nil && got < n {
					err = fmt.Errorf("%d bytes at %d", got, off)
				}
				return err
			}
			if err := read(0, 1000); err != nil {
				t.Error(err)
			}
			if err := next(); err != nil {
				t.Fatal(err)
			}
			if err := read(10, 500); err != nil {
				t.Errorf("%s: what was read before: %v", name, err)
			}
			for _, part := range [][2]int{{4 << 20, 1000}, {0, size}, {size - 600_000, 500_000}} {
				if err := read(part[0], part[1]); !fault.Is(err, fault.Stale) {
					t.Errorf("%s: a read of %d at %d: %v, want stale", name, part[1], part[0], err)
				}
			}
			r.Close()
		}
	})
}

// edited copies a table with one byte of each manifest changed, and others of its files, sizes and names as they were.
func edited(t testing.TB, dir string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "t.lance")
	if err := os.CopyFS(out, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	changed := 0
	for _, pattern := range []string{"_versions/*.manifest", "_transactions/*", "data/*"} {
		paths, err := filepath.Glob(filepath.Join(out, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			old := bytes.Clone(b)
			switch {
			case strings.HasPrefix(pattern, "_versions"): // the name of the library that wrote it
				b = bytes.ReplaceAll(b, []byte("\x05lance\x12"), []byte("\x05LANCE\x12"))
			case strings.HasPrefix(pattern, "data"):
				b[len(b)/3] ^= 0x55
			}
			if !bytes.Equal(old, b) {
				changed++
			}
			if err := os.WriteFile(p, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if changed < 3 {
		t.Fatalf("only %d files changed", changed)
	}
	return out
}

// TestRecreatedTableReadsAsNew drops a table and makes another under its name, whose files have the same names and sizes:
// whoever opens it then sees the new one alone, from the caches of the process as from those on disk.
func TestRecreatedTableReadsAsNew(t *testing.T) {
	eachServer(t, func(t *testing.T, o *objects) {
		dir := testdata.Dataset(t, "legacy/basic")
		tables := []string{dir, edited(t, dir), dir}
		cache := t.TempDir()
		disk, err := store.OpenDiskCache(cache, store.MinDiskCache)
		if err != nil {
			t.Fatal(err)
		}
		same := store.NewLayer(store.Config{Disk: disk})
		for round, table := range tables {
			o.upload(t, table, "t.lance")
			uri := o.uri(t, o.target, "t.lance")
			shown, _, _ := strings.Cut(uri, "?")
			want := localTree(t, table)
			again, err := store.OpenDiskCache(cache, store.MinDiskCache)
			if err != nil {
				t.Fatal(err)
			}
			for who, layer := range map[string]*store.Layer{"the same process": same, "another process": store.NewLayer(store.Config{Disk: again})} {
				tree, err := openTree(t, uri, store.Options{Layer: layer})
				if err != nil {
					t.Fatal(err)
				}
				if wrong, _ := compare(t, want, walkAll(t, tree, shown), nil); wrong > 0 {
					t.Errorf("round %d, %s: %d entries are wrong", round, who, wrong)
				}
			}
		}
	})
}

// TestKilledFills kills commands that fill a cache at any moment; what is left never makes another read wrong bytes.
func TestKilledFills(t *testing.T) {
	o := startS3(t)
	b := o.bucket(t)
	dir := testdata.Dataset(t, "legacy/basic")
	o.upload(t, dir, "t.lance")
	big := make([]byte, 24<<20)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(big)
	if err := put(t.Context(), b, "big", big); err != nil {
		t.Fatal(err)
	}
	uri := o.uri(t, o.target, "t.lance")
	cache := t.TempDir()
	// Two at a time, killed after ever longer times, until some come to their end.
	var wg sync.WaitGroup
	for i := range 16 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(20+25*i)*time.Millisecond)
		wg.Go(func() {
			defer cancel()
			killed(ctx, exe, "export", "--cache-dir", cache, uri, "latest", filepath.Join(t.TempDir(), "out"))
		})
		if i%2 == 1 {
			wg.Wait()
		}
	}
	want := sh(t, root, `"$1" cat "$2" latest/manifest.json latest/fri/transitions/0001/mapping.csv`, exe, dir)
	for range 2 {
		if got := frifs(t, "cat", "--cache-dir", cache, uri, "latest/manifest.json", "latest/fri/transitions/0001/mapping.csv"); strings.TrimSuffix(got, "\n") != want {
			t.Error("wrong bytes after the cache was filled by processes that were killed")
		}
	}
	// Every block, whole or not, is right for a reader of the object itself.
	for i := range 3 {
		disk, err := store.OpenDiskCache(cache, store.MinDiskCache)
		if err != nil {
			t.Fatal(err)
		}
		st, err := store.OpenURI(t.Context(), o.uri(t, o.target, ""), store.Options{Layer: store.NewLayer(store.Config{Disk: disk})})
		if err != nil {
			t.Fatal(err)
		}
		f, err := st.Open(t.Context(), "big")
		if err != nil {
			t.Fatal(err)
		}
		p := make([]byte, len(big))
		if _, err := f.ReadAt(p, 0); err != nil || !bytes.Equal(p, big) {
			t.Errorf("read %d: wrong bytes, %v", i, err)
		}
		f.Close()
		flipAll(t, cache, i)
	}
	if left := sh(t, cache, `find . -type f -size +0 | wc -l`); left == "0" {
		t.Error("nothing is in the cache")
	}
}

// flipAll changes a byte of every third block of a cache.
func flipAll(t testing.TB, cache string, at int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(cache, "blocks-v1", "*", strings.Repeat("?", 64)))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d blocks, %v", len(paths), err)
	}
	for i := at % 3; i < len(paths); i += 3 {
		b, err := os.ReadFile(paths[i])
		if err != nil {
			t.Fatal(err)
		}
		b[(i*7919)%len(b)] ^= 1 << (i % 8)
		if err := os.WriteFile(paths[i], b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMountOutlivesItsCache harms the cache of a mount in every way while it is read: cleared, made read-only, filled up.
func TestMountOutlivesItsCache(t *testing.T) {
	o := startS3(t)
	dir := testdata.Dataset(t, "legacy/basic")
	o.upload(t, dir, "t.lance")
	uri := o.uri(t, o.target, "t.lance")
	cache := t.TempDir()
	want := sh(t, root, `"$1" cat "$2" latest/fri/transitions/0001/mapping.csv | sha256sum`, exe, dir)
	m := mount(t, uri, "--cache-dir", cache, "--memory", "1MiB")
	check := func(what string) {
		t.Helper()
		got := sh(t, m.dir, `cat latest/fri/transitions/0001/mapping.csv | sha256sum`)
		if got != want {
			t.Errorf("%s: mapping.csv differs", what)
		}
		all := sh(t, m.dir, `cd latest/indices && find . -path '*/stored/*' -type f -print0 | sort -z | xargs -0 cat | sha256sum`)
		if local := sh(t, root, `t=$(mktemp -d); "$1" export "$2" latest/indices "$t/x" >&2; cd "$t/x"; find . -path '*/stored/*' -type f -print0 | sort -z | xargs -0 cat | sha256sum; rm -rf "$t"`, exe, dir); all != local {
			t.Errorf("%s: stored files differ", what)
		}
	}
	check("at first")
	frifs(t, "cache", "clear", cache)
	check("cleared")
	sh(t, cache, `rm -rf blocks-v1/*`)
	check("its directories removed")
	sh(t, cache, `rm -rf blocks-v1; echo no directory >blocks-v1`)
	check("a file in its place")
	m.stop()
	r := command(t, "", exe, "ls", "--cache-dir", cache, uri)
	if r.code == 0 || !strings.Contains(r.stderr, "blocks-v1") {
		t.Errorf("a cache that cannot be: exit %d, %s", r.code, r.stderr)
	}
}

// TestFullCacheDisk reads with a cache on a disk that is full at once.
func TestFullCacheDisk(t *testing.T) {
	small := t.TempDir()
	if r := command(t, "", "mount", "-t", "tmpfs", "-o", "size=1m", "frifs-test", small); r.code != 0 {
		missing(t, "a small disk cannot be mounted: %s", r.stderr)
	}
	defer command(t, "", "umount", small)
	o := startS3(t)
	dir := testdata.Dataset(t, "tagged/stuck")
	o.upload(t, dir, "t.lance")
	uri := o.uri(t, o.target, "t.lance")
	b := make([]byte, 4<<20)
	if err := put(t.Context(), o.bucket(t), "big", b); err != nil {
		t.Fatal(err)
	}
	disk, err := store.OpenDiskCache(small, store.MinDiskCache)
	if err != nil {
		t.Fatal(err)
	}
	layer := store.NewLayer(store.Config{Disk: disk, Memory: 1 << 20})
	st, err := store.OpenURI(t.Context(), o.uri(t, o.target, ""), store.Options{Layer: layer})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r, err := st.Open(t.Context(), "big")
		if err != nil {
			t.Fatal(err)
		}
		for off := int64(0); off < int64(len(b)); off += 512 << 10 {
			p := bytes.Repeat([]byte{1}, 512<<10)
			if _, err := r.ReadAt(p, off); err != nil || !bytes.Equal(p, b[:len(p)]) {
				t.Fatalf("at %d: %v", off, err)
			}
		}
		r.Close()
	}
	tree, err := openTree(t, uri, store.Options{Layer: layer})
	if err != nil {
		t.Fatal(err)
	}
	compare(t, localTree(t, dir), walkAll(t, tree, "s3://bucket/t.lance"), nil)
	if left := sh(t, small, `find . -name '.tmp-*' | wc -l`); left != "0" {
		t.Errorf("%s half files are left on the full disk", left)
	}
}

// killed runs a program until it ends or ctx does, which kills it.
func killed(ctx context.Context, name string, args ...string) {
	_ = exec.CommandContext(ctx, name, args...).Run() // both ends are wanted
}
