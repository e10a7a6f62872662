package store

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
)

func disk(t *testing.T, dir string, limit int64) *DiskCache {
	t.Helper()
	d, err := OpenDiskCache(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// files are the blocks below dir.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && e.Name() != "CACHEDIR.TAG" {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// whole is how many blocks below dir are complete: a file that is still written has another name.
func whole(t *testing.T, dir string) (n int) {
	t.Helper()
	for _, p := range files(t, dir) {
		if !strings.HasPrefix(filepath.Base(p), ".tmp-") {
			n++
		}
	}
	return n
}

func TestDiskBlocksOutliveTheProcess(t *testing.T) {
	dir, want := t.TempDir(), pattern(3*BlockSize+5)
	f := newFake(map[string]string{"a": want})
	f.lasting = "fake|bucket"
	for i := range 2 {
		l := NewLayer(Config{Disk: disk(t, dir, MinDiskCache)})
		r := open(t, l.wrap(f), "a")
		reads(t, r, want, 0, len(want))
		waitFor(t, func() bool { return whole(t, dir) == 4 })
		if n := f.count("read"); n != 1 {
			t.Errorf("process %d: %d reads of the store in all, want 1", i, n)
		}
		if s := l.Stats(); i == 1 && (s.DiskHits != 4 || s.DiskMisses != 0 || s.DiskCorrupt != 0) {
			t.Errorf("%+v", s)
		}
	}
	// Another store, another name, another object under this name: none of them may get these blocks.
	f.lasting = "fake|other"
	f.set("b", want, `"1"`)
	for i, name := range []string{"a", "b"} {
		reads(t, open(t, NewLayer(Config{Disk: disk(t, dir, MinDiskCache)}).wrap(f), name), want, 0, len(want))
		if n := f.count("read"); n != 2+i {
			t.Errorf("%s of another store: %d reads in all", name, n)
		}
	}
	waitFor(t, func() bool { return whole(t, dir) == 12 }) // before the directory goes
}

// waitFor polls for what happens in the background.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come")
		}
	}
}

func TestRecreatedTableNeverServesOldBytes(t *testing.T) {
	dir := t.TempDir()
	f := newFake(nil)
	f.lasting = "fake|bucket"
	l := NewLayer(Config{Disk: disk(t, dir, MinDiskCache)})
	st := l.wrap(f)
	for i := range 5 {
		data := strings.Repeat(fmt.Sprint(i), 300_000) // same name, same size
		f.set("t.lance/_versions/1.manifest", data, fmt.Sprintf("%q", fmt.Sprint("tag", i)))
		r := open(t, st, "t.lance/_versions/1.manifest")
		reads(t, r, data, 0, len(data))
		waitFor(t, func() bool { return whole(t, dir) == 2*(i+1) })
		f.set("t.lance/_versions/1.manifest", "other", `"x"`)
		// What is cached may be served to who opened it then; the rest is gone, and said to be.
		if _, err := NewLayer(Config{}).wrap(f).reader(r.Stat()).ReadAt(make([]byte, 1), 0); !fault.Is(err, fault.Stale) {
			t.Errorf("round %d: a read of the old object: %v, want stale", i, err)
		}
	}
}

func TestBrokenDiskBlocksAreMisses(t *testing.T) {
	data := []byte(pattern(BlockSize))
	for name, harm := range map[string]func(t *testing.T, path string, b []byte) []byte{
		"empty":          func(_ *testing.T, _ string, b []byte) []byte { return nil },
		"short":          func(_ *testing.T, _ string, b []byte) []byte { return b[:len(b)-1] },
		"long":           func(_ *testing.T, _ string, b []byte) []byte { return append(b, 0) },
		"zeros":          func(_ *testing.T, _ string, b []byte) []byte { return make([]byte, len(b)) },
		"a flipped bit":  func(_ *testing.T, _ string, b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"another magic":  func(_ *testing.T, _ string, b []byte) []byte { b[0] ^= 1; return b },
		"a flipped sum":  func(_ *testing.T, _ string, b []byte) []byte { b[10] ^= 1; return b },
		"another's file": func(_ *testing.T, _ string, b []byte) []byte { copy(b[8:], sum("other", 0, data)); return b },
		"a directory": func(t *testing.T, path string, b []byte) []byte {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Join(path, "x"), 0o755); err != nil {
				t.Fatal(err)
			}
			return nil
		},
		"a pipe":            instead(func(path string) error { return syscall.Mkfifo(path, 0o600) }),
		"an endless device": instead(func(path string) error { return os.Symlink("/dev/zero", path) }),
		"a dangling link":   instead(func(path string) error { return os.Symlink("nowhere", path) }),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d := disk(t, dir, MinDiskCache)
			d.put("k", 0, data)
			if got := d.get("k", 0, len(data)); !bytes.Equal(got, data) {
				t.Fatal("what was put does not come back")
			}
			path := files(t, dir)[0]
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if b = harm(t, path, b); b != nil || name == "empty" {
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := d.get("k", 0, len(data)); got != nil {
				t.Errorf("%d bytes came", len(got))
			}
			if d.corrupt.Load() != 1 {
				t.Errorf("%d counted as corrupt", d.corrupt.Load())
			}
			if name == "a directory" {
				return
			}
			d.put("k", 0, data)
			if got := d.get("k", 0, len(data)); !bytes.Equal(got, data) {
				t.Error("a broken block is not replaced")
			}
		})
	}
}

// instead puts something else in place of a block.
func instead(put func(path string) error) func(*testing.T, string, []byte) []byte {
	return func(t *testing.T, path string, _ []byte) []byte {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		return nil
	}
}

// Processes that fill a shard by turns keep it within the bound, though none knows at once what the others write.
func TestDiskBoundHoldsAmongProcesses(t *testing.T) {
	dir := t.TempDir()
	data := []byte(pattern(BlockSize))[:16<<10]
	var caches []*DiskCache
	for range 3 {
		caches = append(caches, disk(t, dir, MinDiskCache))
	}
	shard := filepath.Join(dir, diskDir, "07")
	n := 0
	for i := 0; n < 150; i++ {
		d := caches[n%len(caches)]
		if s, _ := d.place("k", int64(i)); s != 7 {
			continue
		}
		n++
		d.put("k", int64(i), data)
		var total int64
		for _, p := range files(t, shard) {
			fi, err := os.Stat(p)
			if err != nil {
				t.Fatal(err)
			}
			total += fi.Size()
		}
		if total > MinDiskCache/diskShards {
			t.Fatalf("after %d blocks the shard has %d bytes, the bound is %d", n, total, MinDiskCache/diskShards)
		}
	}
}

func TestDiskCacheKeepsItsSize(t *testing.T) {
	dir := t.TempDir()
	data := []byte(pattern(BlockSize))
	a, b := disk(t, dir, MinDiskCache), disk(t, dir, MinDiskCache) // two processes
	var wg sync.WaitGroup
	for i, d := range []*DiskCache{a, b} {
		wg.Go(func() {
			for n := range 300 { // 75 MiB each
				d.put(fmt.Sprint("object", i), int64(n), data)
				if got := d.get("object0", int64(n), len(data)); got != nil && !bytes.Equal(got, data) {
					t.Error("wrong bytes")
				}
			}
		})
	}
	wg.Wait()
	u, err := InspectDiskCache(dir)
	if err != nil || u.Bytes == 0 || u.Bytes > MinDiskCache || u.Newest.IsZero() {
		t.Errorf("%+v, %v", u, err)
	}
	if a.evicted.Load()+b.evicted.Load() == 0 {
		t.Error("nothing was evicted")
	}
	stray := filepath.Join(dir, diskDir, "00", ".tmp-123") // of a process that was killed
	mine := filepath.Join(dir, "mine")
	for _, p := range []string{stray, mine} {
		if err := os.WriteFile(p, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(stray, old, old); err != nil {
		t.Fatal(err)
	}
	cleared, err := ClearDiskCache(dir)
	if err != nil || cleared.Blocks != u.Blocks+1 {
		t.Errorf("cleared %+v, %v; there were %+v", cleared, err, u)
	}
	if left := files(t, dir); len(left) != 1 || left[0] != mine {
		t.Errorf("left: %v", left)
	}
	if a.put("k", 1, data); a.get("k", 1, len(data)) == nil {
		t.Error("a cache that was cleared is of no use to who has it open")
	}
}

func TestUnusedBlocksGoFirst(t *testing.T) {
	dir := t.TempDir()
	shard := filepath.Join(dir, "s")
	if err := os.Mkdir(shard, 0o755); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for i := range 10 {
		p := filepath.Join(shard, strings.Repeat(fmt.Sprint(i), 64))
		if err := os.WriteFile(p, make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
		at := now.Add(time.Duration((i*7)%10) * time.Minute)
		if err := os.Chtimes(p, at, at); err != nil {
			t.Fatal(err)
		}
	}
	left, kept, removed := sweep(shard, 500)
	if left != 400 || kept != 4 || removed != 6 {
		t.Errorf("%d bytes in %d blocks left, %d removed", left, kept, removed)
	}
	for _, p := range files(t, shard) {
		if i := int(filepath.Base(p)[0] - '0'); (i*7)%10 < 6 {
			t.Errorf("block %d, used %d minutes in, is still there", i, (i*7)%10)
		}
	}
}

func TestDiskCacheThatCannotBe(t *testing.T) {
	if _, err := OpenDiskCache(t.TempDir(), MinDiskCache-1); !fault.Is(err, fault.Invalid) {
		t.Errorf("too small: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDiskCache(file, MinDiskCache); err == nil {
		t.Error("a file was taken as the directory")
	}
	if _, err := InspectDiskCache(t.TempDir()); !fault.Is(err, fault.NotFound) {
		t.Errorf("no cache: %v", err)
	}
	dir := t.TempDir()
	d := disk(t, dir, MinDiskCache)
	if err := os.RemoveAll(filepath.Join(dir, diskDir)); err != nil {
		t.Fatal(err)
	}
	d.put("k", 0, []byte("x")) // a directory that vanished: nothing is kept, nothing breaks
	if d.get("k", 0, 1) != nil || d.paused.IsZero() {
		t.Error("writes to a directory that is gone go on")
	}
}
