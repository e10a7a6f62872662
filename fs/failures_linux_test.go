package fs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

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
	if err := s.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if l := s.line(t); !strings.Contains(l, "Abandoned:1 Stalls:1 ") {
		t.Errorf("stats %q, want one stall", l)
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
