package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/frifs/frifs/fault"
)

// planted makes a directory with files and links, reached by a link, and one outside of it.
func planted(t *testing.T) (root, linked, outside string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, outside = filepath.Join(top, "r", "root"), filepath.Join(top, "outside")
	for name, data := range map[string]string{
		"r/root/a": "inside", "r/root/d/b": "inside", "r/root/d/e/c": "inside", "r/root.x/a": "outside", "outside/a": "outside", "outside/d/b": "outside",
	} {
		if err := os.MkdirAll(filepath.Join(top, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"rel": "d/b", "abs": filepath.Join(root, "d/b"), "dir": "d/e", "d/up": "../a", "d/self": "../../root/a", "chain": "dir/c",
		"out": outside, "out-a": filepath.Join(outside, "a"), "out-rel": "../../outside/a", "beside": "../root.x/a", "d/deep": "../out/d",
		"gone": "nothing", "out-gone": filepath.Join(outside, "nothing"), "loop": "loop", "parent": "..",
	} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	linked = filepath.Join(top, "linked")
	if err := os.Symlink("r", linked); err != nil {
		t.Fatal(err)
	}
	return root, filepath.Join(linked, "root"), outside
}

// TestBothWaysToOpenAgree has the kernel keep paths inside the root, and has us do it by walking the links: with the root
// by its real path and by one with a link.
func TestBothWaysToOpenAgree(t *testing.T) {
	ctx := t.Context()
	root, linked, _ := planted(t)
	kind := map[string]fault.Kind{
		"out/a": fault.Denied, "out-a": fault.Denied, "out-rel": fault.Denied, "beside": fault.Denied, "d/deep/b": fault.Denied, "parent/root/a": fault.Unknown,
		"gone": fault.NotFound, "out-gone": fault.NotFound, "no": fault.NotFound, "a/x": fault.NotFound, "d": fault.Invalid, "out": fault.Invalid, "dir": fault.Invalid,
		"loop": fault.Unknown,
	}
	for _, base := range []string{root, linked} {
		for _, name := range []string{"a", "d/b", "d/e/c", "rel", "abs", "dir/c", "d/up", "d/self", "chain",
			"out/a", "out-a", "out-rel", "beside", "d/deep/b", "parent/root/a", "gone", "out-gone", "no", "a/x", "d", "out", "dir", "loop"} {
			var told [2]string
			for i, walk := range []bool{false, true} {
				st := &local{root: base, fence: base, walk: walk}
				b, err := st.ReadRange(ctx, name, 0, 10)
				want, listed := kind[name]
				if err == nil && string(b) != "inside" {
					t.Errorf("%s, walk %t: %q was read", name, walk, b)
				}
				if name == "out" { // a directory that may not be looked into
					want = fault.Denied
				}
				if listed != (err != nil) && want != fault.Unknown || want != fault.Unknown && !fault.Is(err, want) {
					t.Errorf("%s, walk %t: %v, want kind %v", name, walk, err, want)
				}
				o, serr := st.Stat(ctx, name)
				l, lerr := st.List(ctx, name)
				told[i] = fmt.Sprintln(string(b), err, o, serr, l, lerr)
			}
			if told[0] != told[1] {
				t.Errorf("%s below %s:\nby the kernel %sby walking %s", name, base, told[0], told[1])
			}
		}
	}
}

// TestTheKernelIsAsked makes sure that the comparison above compares two things.
func TestTheKernelIsAsked(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // there is one way only
	}
	root, linked, _ := planted(t)
	if _, ok := statInside(root, filepath.Join(root, "a")); !ok {
		t.Log("the kernel has no openat2 here, or a sandbox forbids it")
		return
	}
	for _, tt := range []struct {
		root, name string
		ok         bool
	}{
		{root, "", true}, {root, "d/b", true}, {root, "rel", true}, {root, "d/up", true}, {root, "d/self", false}, {root, "abs", false}, {root, "out-a", false},
		{linked, "", true}, {linked, "d/b", true}, {linked, "dir/c", true}, {linked, "out/a", false}, {linked, "parent/root/a", false},
	} {
		if _, ok := statInside(tt.root, filepath.Join(tt.root, tt.name)); ok != tt.ok {
			t.Errorf("%s below %s: %t, want %t", tt.name, tt.root, ok, tt.ok)
		}
	}
}

// TestLinksThatChangeMeanwhile replaces a directory by a link to the outside and back, while files below it are opened:
// what is outside is never read.
func TestLinksThatChangeMeanwhile(t *testing.T) {
	ctx := t.Context()
	root, linked, outside := planted(t)
	swap := filepath.Join(root, "swap")
	var end atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end.Store(true)
	wg.Go(func() {
		for !end.Load() {
			_ = os.Symlink(outside, swap)
			_ = os.Remove(swap)
			_ = os.Rename(filepath.Join(root, "d"), swap)
			_ = os.Rename(swap, filepath.Join(root, "d"))
		}
	})
	for _, base := range []string{root, linked} {
		for _, walk := range []bool{false, true} {
			st := &local{root: base, fence: base, walk: walk}
			for range 2000 {
				b, err := st.ReadRange(ctx, "swap/b", 0, 10)
				if err == nil && string(b) != "inside" {
					t.Fatalf("walk %t: %q was read through a link that leads out", walk, b)
				}
				if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Denied) {
					t.Fatalf("walk %t: %v", walk, err)
				}
			}
		}
	}
}

// TestReadsOutliveClose closes readers while others read: a read gives the right bytes or says that the file is closed,
// also when the number of the descriptor has gone to another file.
func TestReadsOutliveClose(t *testing.T) {
	dir := t.TempDir()
	names := []string{"x", "y", "z"}
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(dir, n), []byte(strings.Repeat(n, 100)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	st := &local{root: dir, fence: dir}
	var wg sync.WaitGroup
	for i := range 300 {
		name := names[i%len(names)]
		r, err := st.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			wg.Go(func() {
				p := make([]byte, 100)
				for {
					n, err := r.ReadAtContext(context.Background(), p, 0)
					if errors.Is(err, os.ErrClosed) {
						return
					}
					if err != nil || n != 100 || string(p) != strings.Repeat(name, 100) {
						t.Errorf("%s: %q, %v", name, p[:n], err)
						return
					}
				}
			})
		}
		runtime.Gosched()
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := r.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("a second close: %v", err)
		}
	}
	wg.Wait()
}
