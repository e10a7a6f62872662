package fs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestMountServesTheTree(t *testing.T) {
	s := start(t)
	b, err := os.ReadFile(s.path("README.txt"))
	if err != nil || string(b) != "this mount is a fake\n" {
		t.Fatalf("README.txt: got %q, %v", b, err)
	}
	if b, err = os.ReadFile(s.path("link")); err != nil || string(b) != "this mount is a fake\n" {
		t.Errorf("through the link: got %q, %v", b, err)
	}
	if target, err := os.Readlink(s.path("link")); err != nil || target != "README.txt" {
		t.Errorf("readlink: got %q, %v", target, err)
	}
	if b, err = os.ReadFile(s.path("handy/sub/deep")); err != nil || string(b) != "deep\n" {
		t.Errorf("handy/sub/deep: got %q, %v", b, err)
	}
	e, ok := mountAt(s.mp)
	if !ok || e.fstype != "fuse.frifs" || e.source != `fake,with\odd chars` {
		t.Errorf("mount table: got %+v, %v; want fuse.frifs of the source", e, ok)
	}
}

func TestStatIsExact(t *testing.T) {
	s := start(t)
	tests := []struct {
		name string
		size int64
		mode uint32
		ino  string
	}{
		{"README.txt", 21, syscall.S_IFREG | 0o444, "README.txt"},
		{"big.bin", bigSize, syscall.S_IFREG | 0o444, "big.bin"},
		{"huge.bin", 1 << 62, syscall.S_IFREG | 0o444, "huge.bin"},
		{"link", 10, syscall.S_IFLNK | 0o777, "link"},
		{"plain", 0, syscall.S_IFDIR | 0o555, "plain"},
		{".", 0, syscall.S_IFDIR | 0o555, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var st syscall.Stat_t
			if err := syscall.Lstat(s.path(tc.name), &st); err != nil {
				t.Fatal(err)
			}
			if st.Size != tc.size || st.Mode != tc.mode || st.Nlink != 1 || st.Blocks != (tc.size+511)/512 || st.Blksize != 4096 {
				t.Errorf("got size %d mode %o nlink %d blocks %d blksize %d", st.Size, st.Mode, st.Nlink, st.Blocks, st.Blksize)
			}
			if want := kernelIno(fakeIno(tc.ino)); st.Ino != want {
				t.Errorf("ino: got %d, want %d", st.Ino, want)
			}
			for _, ts := range []syscall.Timespec{st.Mtim, st.Ctim, st.Atim} {
				if ts.Nano() != fakeTime.UnixNano() {
					t.Errorf("times: got %v, want %v", time.Unix(0, ts.Nano()), fakeTime)
				}
			}
			if int(st.Uid) != os.Getuid() {
				t.Errorf("uid: got %d, want %d", st.Uid, os.Getuid())
			}
		})
	}
}

func TestReadsAtAnyOffset(t *testing.T) {
	s := start(t)
	f, err := os.Open(s.path("big.bin"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	check := func(off int64, n int) {
		t.Helper()
		got := make([]byte, n)
		k, err := f.ReadAt(got, off)
		want := make([]byte, max(0, min(int64(n), bigSize-off)))
		fill(want, off)
		if k != len(want) || !bytes.Equal(got[:k], want) {
			t.Fatalf("%d bytes at %d: got %d bytes (%v), equal %v", n, off, k, err, bytes.Equal(got[:k], want))
		}
		if k < n && !errors.Is(err, io.EOF) {
			t.Fatalf("%d bytes at %d: got error %v, want EOF", n, off, err)
		}
	}
	check(0, 1)
	check(bigSize-1, 1)
	check(bigSize-1, 10)
	check(bigSize, 10)
	check(bigSize+100000, 10)
	check(0, 3<<20)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(g)))
			for range 30 {
				check(r.Int64N(bigSize), 1+r.IntN(200_000))
			}
		})
	}
	wg.Wait()
	out, err := exec.Command("tail", "-c", "5", s.path("huge.bin")).Output()
	want := make([]byte, 5)
	fill(want, 1<<62-5)
	if err != nil || !bytes.Equal(out, want) {
		t.Errorf("tail of 2^62 bytes: got %x, %v; want %x", out, err, want)
	}
}

func TestListingMakesNoLookups(t *testing.T) {
	s := start(t)
	for _, dir := range []string{"plain", "handy"} {
		before := s.freshCalls(t)
		out, err := exec.Command("ls", "-f", s.path(dir)).Output()
		if err != nil {
			t.Fatal(err)
		}
		want := manySize + 2
		if dir == "handy" {
			want++
		}
		if n := strings.Count(string(out), "\n"); n != want {
			t.Errorf("ls -f %s: got %d names, want %d (with . and ..)", dir, n, want)
		}
		after := s.freshCalls(t)
		if n := after[dir+".lookups"] - before[dir+".lookups"]; n != 0 {
			t.Errorf("ls -f %s made %d lookups, want 0", dir, n)
		}
	}
	// Where attributes are at hand and fit the first buffer, ls -l makes no lookups either; and the kernel keeps the
	// listing of a directory that cannot change.
	for range 3 {
		if out, err := exec.Command("ls", "-l", s.path("few")).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	after := s.freshCalls(t)
	if n := after["few.lookups"]; n != 0 {
		t.Errorf("ls -l few made %d lookups, want 0", n)
	}
	if n := after["few.entries"]; n > 2 {
		t.Errorf("three times ls -l few made %d listings", n)
	}
}

func TestFindAndDirectoryInodes(t *testing.T) {
	s := start(t)
	entries, err := os.ReadDir(s.path("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if e.Type() != info.Mode().Type() {
			t.Errorf("%s: readdir says %v, stat says %v", e.Name(), e.Type(), info.Mode().Type())
		}
	}
	out, err := exec.Command("find", s.mp, "-name", "f0299?").Output()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(out), "\n"); n != 20 {
		t.Errorf("find: got %d names, want 20", n)
	}
	// ls -i shows the listing's numbers, stat the lookup's.
	out, err = exec.Command("ls", "-i1", "-f", s.path("plain")).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		var ino uint64
		var name string
		if _, err := fmt.Sscan(l, &ino, &name); err != nil {
			t.Fatal(err)
		}
		if i > 50 {
			break
		}
		if name == ".." {
			continue
		}
		if want := inoOf(t, s.path("plain/"+name)); ino != want {
			t.Errorf("%s: readdir ino %d, stat ino %d", name, ino, want)
		}
	}
}

func TestNothingCanBeChanged(t *testing.T) {
	for _, env := range []string{"FRIFS_FS_TEST_RW=", "FRIFS_FS_TEST_RW=1"} {
		t.Run(env, func(t *testing.T) {
			s := start(t, env)
			f, d, n := s.path("README.txt"), s.path("plain"), s.path("new")
			tests := []struct {
				name string
				do   func() error
			}{
				{"unlink", func() error { return syscall.Unlink(f) }},
				{"rmdir", func() error { return syscall.Rmdir(d) }},
				{"mkdir", func() error { return syscall.Mkdir(n, 0o755) }},
				{"create", func() error {
					fd, err := syscall.Open(n, syscall.O_CREAT|syscall.O_RDWR, 0o644)
					syscall.Close(fd)
					return err
				}},
				{"open for writing", func() error { fd, err := syscall.Open(f, syscall.O_WRONLY, 0); syscall.Close(fd); return err }},
				{"open with truncation", func() error {
					fd, err := syscall.Open(f, syscall.O_RDONLY|syscall.O_TRUNC, 0)
					syscall.Close(fd)
					return err
				}},
				{"rename", func() error { return syscall.Rename(f, n) }},
				{"symlink", func() error { return syscall.Symlink("x", n) }},
				{"link", func() error { return syscall.Link(f, n) }},
				{"mknod", func() error { return syscall.Mknod(n, syscall.S_IFREG|0o644, 0) }},
				{"chmod", func() error { return syscall.Chmod(f, 0o777) }},
				{"chown", func() error { return syscall.Chown(f, 1, 1) }},
				{"truncate", func() error { return syscall.Truncate(f, 0) }},
				{"utimes", func() error { return syscall.Utimes(f, make([]syscall.Timeval, 2)) }},
			}
			for _, tc := range tests {
				if err := tc.do(); !errors.Is(err, syscall.EROFS) {
					t.Errorf("%s: got %v, want EROFS", tc.name, err)
				}
			}
			if _, err := os.Stat(f); err != nil {
				t.Errorf("after all this: %v", err)
			}
		})
	}
}

// TestWhatIsMissingBelowIsNoAbsentName checks that the kernel keeps no "absent" for a name that is there, and that a
// directory that cannot be listed does not look empty.
func TestStatfs(t *testing.T) {
	s := start(t)
	var st syscall.Statfs_t
	if err := syscall.Statfs(s.mp, &st); err != nil {
		t.Fatal(err)
	}
	if st.Bsize != 4096 || st.Namelen != 255 || st.Files == 0 || st.Blocks == 0 {
		t.Errorf("got %+v", st)
	}
}

func TestJunkNamesAreCheap(t *testing.T) {
	s := start(t)
	before := s.freshCalls(t)["root.lookups"]
	for i := range 50 {
		for _, n := range []string{".DS_Store", ".git", ".Trash-1000", fmt.Sprintf("._f%d", i), ".Spotlight-V100"} {
			if _, err := os.Stat(s.path(n)); !errors.Is(err, syscall.ENOENT) {
				t.Fatalf("%s: %v", n, err)
			}
		}
	}
	if n := s.freshCalls(t)["root.lookups"] - before; n > 10 {
		t.Errorf("junk names made %d lookups in the tree", n)
	}
}
