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

func TestErrnos(t *testing.T) {
	s := start(t)
	want := []syscall.Errno{0, syscall.ENOENT, syscall.ESTALE, syscall.EIO, syscall.ENOTSUP, syscall.EACCES, syscall.EINVAL,
		syscall.EFBIG, syscall.EIO, syscall.ETIMEDOUT, syscall.EINTR, syscall.EROFS}
	for kind := 1; kind < len(want); kind++ {
		name := s.path(fmt.Sprintf("bad/open-%d", kind))
		if _, err := os.Stat(name); err != nil {
			t.Errorf("stat %s: %v", name, err)
		}
		fd, err := syscall.Open(name, syscall.O_RDONLY, 0)
		if err == nil {
			syscall.Close(fd)
		}
		if !errors.Is(err, want[kind]) {
			t.Errorf("open %s: got %v, want %v", name, err, want[kind])
		}
	}
	for name, errno := range map[string]syscall.Errno{
		"bad/impossible": syscall.ENOTSUP, "bad/absent": syscall.ENOENT, "bad/panics": syscall.EIO,
		"bad/nosize": syscall.ETIMEDOUT, "absent": syscall.ENOENT, "README.txt/x": syscall.ENOTDIR,
		"plain/" + strings.Repeat("n", 256): syscall.ENAMETOOLONG,
	} {
		if _, err := os.Stat(s.path(name)); !errors.Is(err, errno) {
			t.Errorf("stat %s: got %v, want %v", name, err, errno)
		}
	}
}

// TestWhatIsMissingBelowIsNoAbsentName checks that the kernel keeps no "absent" for a name that is there, and that a
// directory that cannot be listed does not look empty.
func TestWhatIsMissingBelowIsNoAbsentName(t *testing.T) {
	s := start(t)
	if _, err := os.Stat(s.path("bad/flicker")); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("first stat: got %v, want ENOENT", err)
	}
	if _, err := os.Stat(s.path("bad/flicker")); err != nil {
		t.Errorf("second stat: %v", err)
	}
	if names, err := os.ReadDir(s.path("bad/gone")); !errors.Is(err, syscall.ESTALE) {
		t.Errorf("listing a directory whose content is gone: got %v, %v, want ESTALE", names, err)
	}
}

func TestOneBadPageIsOneBadPage(t *testing.T) {
	s := start(t)
	f, err := os.Open(s.path("bad/page"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	bad := 0
	for off := int64(0); off < 1<<20; off += 4096 {
		got, want := make([]byte, 4096), make([]byte, 4096)
		fill(want, off)
		_, err := f.ReadAt(got, off)
		switch {
		case errors.Is(err, syscall.EIO):
			bad++
			if off != 500*1024 {
				t.Errorf("the page at %d is bad too", off)
			}
		case err != nil || !bytes.Equal(got, want):
			t.Errorf("page at %d: %v", off, err)
		}
	}
	if bad != 1 {
		t.Errorf("got %d bad pages, want 1", bad)
	}
	if b, err := os.ReadFile(s.path("bad/short")); !errors.Is(err, syscall.EIO) {
		t.Errorf("a short read below: got %d bytes, %v; want EIO", len(b), err)
	}
	if fi, err := os.Stat(s.path("bad/short")); err != nil || fi.Size() != 10000 {
		t.Errorf("after it the size is %v, %v; want 10000", fi, err)
	}
}

func TestPanicCostsOneRequest(t *testing.T) {
	s := start(t)
	for range 3 {
		if _, err := os.ReadFile(s.path("bad/panic")); !errors.Is(err, syscall.EIO) {
			t.Errorf("got %v, want EIO", err)
		}
	}
	if _, err := os.ReadFile(s.path("README.txt")); err != nil {
		t.Errorf("the mount died: %v", err)
	}
}

func TestHangingReadEndsInTime(t *testing.T) {
	s := start(t) // op-timeout 2 s: 1 s inside
	begin := time.Now()
	_, err := os.ReadFile(s.path("bad/hang"))
	took := time.Since(begin)
	if !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("got %v, want ETIMEDOUT", err)
	}
	if took > 2*time.Second {
		t.Errorf("it took %v, promised are 2 s", took)
	}
	// The others go on meanwhile, and the failure is remembered.
	if _, err := os.ReadFile(s.path("README.txt")); err != nil {
		t.Error(err)
	}
	begin = time.Now()
	if _, err = os.ReadFile(s.path("bad/hang")); !errors.Is(err, syscall.ETIMEDOUT) || time.Since(begin) > time.Second {
		t.Errorf("the second read took %v: %v; want the remembered failure", time.Since(begin), err)
	}
	if n := s.freshCalls(t)["hang.reads"]; n != 1 {
		t.Errorf("two failing reads by the client made %d reads below, want 1", n)
	}
}

func TestInterruptedReadGoesOnForAMoment(t *testing.T) {
	s := start(t)
	// A read of half a second survives signals; timers of Go programs do this all the time.
	cmd := exec.Command("cat", s.path("bad/slow"))
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	_ = cmd.Process.Signal(syscall.SIGURG)
	if err := cmd.Wait(); err != nil || out.Len() != 4096 {
		t.Errorf("cat with a signal in between: %v, %d bytes", err, out.Len())
	}
	// A kill ends the client soon, although the tree does not answer for 20 s.
	cmd = exec.Command("cat", s.path("bad/hang"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	begin := time.Now()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if took := time.Since(begin); took > 1500*time.Millisecond {
		t.Errorf("kill -9 took %v", took)
	}
}

func TestLiveFilesAreFrozenPerInode(t *testing.T) {
	s := start(t)
	f, err := os.Open(s.path("calls"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	old, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	fi, err := f.Stat()
	if err != nil || fi.Size() != int64(len(old)) {
		t.Errorf("fstat %v, %v; read gave %d bytes", fi, err, len(old))
	}
	s.freshCalls(t)
	again := make([]byte, len(old)+100)
	n, _ := f.ReadAt(again, 0)
	if !bytes.Equal(again[:n], old) {
		t.Errorf("the open file changed from %q to %q", old, again[:n])
	}
}

func TestInodesAreBounded(t *testing.T) {
	s := start(t, "FRIFS_FS_TEST_INODES=500")
	for i := range 2500 {
		if _, err := os.Stat(s.path(fmt.Sprintf("trace/%d.json", i))); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	deadline := time.Now().Add(5 * time.Second)
	for {
		if err := s.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		line := s.line(t)
		if _, err := fmt.Sscanf(line, "stats {Inodes:%d", &n); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if n <= 600 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the kernel holds %d inodes, the limit is 500", n)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if b, err := os.ReadFile(s.path("trace/1.json")); err != nil || string(b) != "1.json" {
		t.Errorf("an evicted file: got %q, %v", b, err)
	}
}

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

func TestRefreshMakesTheKernelLookAgain(t *testing.T) {
	s := start(t, "FRIFS_FS_TEST_VOLATILE=1h")
	before := inoOf(t, s.path("calls"))
	if _, err := os.Stat(s.path("absent")); !errors.Is(err, syscall.ENOENT) {
		t.Fatal(err)
	}
	lookups := s.calls(t)["root.lookups"]
	for range 100 {
		if _, err := os.Stat(s.path("absent")); !errors.Is(err, syscall.ENOENT) {
			t.Fatal(err)
		}
	}
	if now := inoOf(t, s.path("calls")); now != before {
		t.Fatalf("the name expired by itself")
	}
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); inoOf(t, s.path("calls")) == before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing was looked up again")
		}
	}
	// The hundred looks at an absent name, and everything else meanwhile, were answered by the kernel.
	if n := s.calls(t)["root.lookups"] - lookups; n > 10 {
		t.Errorf("%d lookups in the tree", n)
	}
}
