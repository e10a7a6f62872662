package store

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/frifs/frifs/fault"
)

// Opening by name is one read, which serves whoever reads that end of the object next.
func TestOpeningIsOneRead(t *testing.T) {
	const size = 3*BlockSize + 1000
	want := pattern(size)
	for _, tc := range []struct {
		name      string
		ends      int64
		off, n    int // what is read then
		more      int // reads
		wantReads []request
	}{
		{"the end", -BlockSize, size - 1000, 1000, 0, []request{{"read", "a", 0, -BlockSize}}},
		{"the start", BlockSize, 0, 5000, 0, []request{{"read", "a", 0, BlockSize}}},
		{"elsewhere", -BlockSize, 0, 10, 1, []request{{"read", "a", 0, -BlockSize}, {"read", "a", 0, BlockSize}}},
	} {
		f := newFake(map[string]string{"a": want, "empty": "", "small": want[:10]})
		f.ends = tc.ends
		l := NewLayer(Config{})
		st := l.wrap(f)
		reads(t, open(t, st, "a"), want, tc.off, tc.n)
		if !slices.Equal(f.requests, tc.wantReads) {
			t.Errorf("%s: requests %v, want %v", tc.name, f.requests, tc.wantReads)
		}
		before := f.count("read")
		reads(t, open(t, st, "small"), want, 0, 10)
		if r := open(t, st, "empty"); r.Size() != 0 {
			t.Errorf("%s: an empty object has %d bytes", tc.name, r.Size())
		}
		if n := f.count("read") - before; n != 2 || f.count("stat") != 0 {
			t.Errorf("%s: %d reads, %d stats for two small objects", tc.name, n, f.count("stat"))
		}
		if _, err := st.Open(t.Context(), "none"); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: a missing object: %v", tc.name, err)
		}
	}
}

// What the caches have is not asked for again: opening it costs one byte, in this process and in the next.
func TestOpeningWhatIsKnown(t *testing.T) {
	dir := t.TempDir()
	f := newFake(map[string]string{"a": pattern(2*BlockSize + 5)})
	f.ends, f.lasting = -BlockSize, "s"
	layer := func(cached bool) Store {
		cfg := Config{}
		if cached {
			d, err := OpenDiskCache(dir, MinDiskCache)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Disk = d
		}
		return NewLayer(cfg).wrap(f)
	}
	for i, tc := range []struct {
		st   Store
		asks []int64 // by the opens one after the other
	}{
		{layer(false), []int64{-BlockSize, -1, -1}},
		{layer(true), []int64{-BlockSize, -1}},
		{layer(true), []int64{-1, -1}},
	} {
		f.requests = nil
		for range tc.asks {
			reads(t, open(t, tc.st, "a"), pattern(2*BlockSize+5), 2*BlockSize, 5)
		}
		var asked []int64
		for _, r := range f.requests {
			asked = append(asked, r.n)
		}
		if !slices.Equal(asked, tc.asks) {
			t.Errorf("layer %d: asked for %d, want %d", i, asked, tc.asks)
		}
	}
	// A note is a guess and no more.
	last := layer(true)
	f.set("a", string(bytes.Repeat([]byte("x"), 2*BlockSize+5)), `"2"`)
	reads(t, open(t, last, "a"), string(bytes.Repeat([]byte("x"), 2*BlockSize+5)), 0, 2*BlockSize+5)
	f.set("a", "short", `"3"`)
	reads(t, open(t, last, "a"), "short", 0, 5)
	f.set("a", "", `"4"`)
	if r := open(t, layer(true), "a"); r.Size() != 0 {
		t.Errorf("%d bytes of an empty object", r.Size())
	}
}

// A read of very much takes few requests, leaves the memory cache to others, and fills the disk cache.
func TestLargeReads(t *testing.T) {
	const size = 9<<20 + 777
	want := pattern(size)
	dir := t.TempDir()
	f := newFake(map[string]string{"a": want})
	f.lasting = "s"
	var disk *DiskCache
	fresh := func() (*Layer, Store) {
		var err error
		if disk, err = OpenDiskCache(dir, 256<<20); err != nil {
			t.Fatal(err)
		}
		l := NewLayer(Config{Disk: disk, Transfer: 1 << 20, Rand: func() float64 { return 0.001 }})
		return l, l.wrap(f)
	}
	l, st := fresh()
	r := open(t, st, "a")
	reads(t, r, want, 100, size-200)
	if n := f.count("read"); n > 5 { // three pieces of at most 4 MiB, and the ends
		t.Errorf("%d reads", n)
	}
	if got := l.Stats().MemoryBytes; got > 3*BlockSize {
		t.Errorf("%d bytes of it are kept in memory", got)
	}
	_, st = fresh()
	f.requests = nil
	reads(t, open(t, st, "a"), want, 0, size)
	if n := f.count("read"); n != 0 {
		t.Errorf("%d reads with a full disk cache", n)
	}
	// A block that is missing, and one that is broken, are fetched, and no more than them.
	c := st.(*layered).reader(open(t, st, "a").Stat()).c
	_, path := disk.place(c.last, 20)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, path = disk.place(c.last, 30)
	flip(t, path, int64(diskHeader)+9)
	f.requests = nil
	reads(t, open(t, st, "a"), want, 0, size)
	if n := f.count("read"); n != 2 {
		t.Errorf("requests %v, want two", f.requests)
	}
	// Answers that are cut short are completed from where they ended.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	_, st = fresh()
	r = open(t, st, "a")
	f.requests = nil
	f.script = func(n int, _ request) reply {
		if n < 5 {
			return reply{cut: true, after: BlockSize + 5}
		}
		return reply{}
	}
	reads(t, r, want, 0, size)
	f.script = nil
	// Another object is never mixed in.
	f.set("a", pattern(size), `"2"`)
	_, st = fresh()
	r = open(t, st, "a")
	f.set("a", pattern(size), `"3"`)
	if n, err := r.ReadAt(make([]byte, size), 0); !fault.Is(err, fault.Stale) {
		t.Errorf("replaced: %d bytes, %v", n, err)
	}
}

// flip changes one byte of a file.
func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{b[0] ^ 1}, at); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", path, err))
	}
}

// Those who open the same name at once share the read; one who leaves takes it away from nobody.
func TestEqualOpensJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]string{"a": pattern(1000)})
		f.ends = -BlockSize
		f.script = func(int, request) reply { return reply{wait: 50 * time.Millisecond} }
		st := NewLayer(Config{}).wrap(f)
		first, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := st.Open(first, "a"); !fault.Is(err, fault.Cancelled) {
				t.Errorf("who left: %v", err)
			}
		})
		synctest.Wait()
		for range 5 {
			wg.Go(func() { reads(t, open(t, st, "a"), pattern(1000), 0, 1000) })
		}
		synctest.Wait()
		leave()
		wg.Wait()
		if n := f.count("read"); n != 1 {
			t.Errorf("%d reads", n)
		}
		// With nobody left the read ends.
		gone, leave := context.WithCancel(t.Context())
		wg.Go(func() { _, _ = st.Open(gone, "a") })
		synctest.Wait()
		leave()
		wg.Wait()
		synctest.Wait()
		if n := f.underWay(); n != 0 {
			t.Errorf("%d reads are under way for nobody", n)
		}
	})
}
