package fs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/nodes"
)

func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// TestInvalidate: with names that the kernel may keep for an hour, only notices let it see what changed.
func TestInvalidate(t *testing.T) {
	s := start(t, "FRIFS_FS_TEST_VOLATILE=1h")
	link := func() string {
		target, err := os.Readlink(s.path("moving"))
		if err != nil {
			t.Error(err)
		}
		return target
	}
	if link() != "generation-0" || exists(s.path("late")) || !exists(s.path("passing")) || !exists(s.path("vol/0")) || exists(s.path("vol/1")) {
		t.Fatal("the first generation is not what it should be")
	}
	held, err := os.Open(s.path("passing"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	var before syscall.Stat_t
	if err := syscall.Fstat(int(held.Fd()), &before); err != nil {
		t.Fatal(err)
	}

	// A look-up in the same directory is under way meanwhile: neither may wait for the other for ever.
	slow := make(chan bool, 1)
	go func() { slow <- exists(s.path("slow")) }()
	time.Sleep(100 * time.Millisecond)
	if err := s.cmd.Process.Signal(syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if got := link(); got != "generation-1" {
			return fmt.Errorf("the link leads to %s", got)
		}
		for path, want := range map[string]bool{"late": true, "passing": false, "vol/0": false, "vol/1": true} {
			if exists(s.path(path)) != want {
				return fmt.Errorf("%s: is there: %v", path, !want)
			}
		}
		return nil
	})
	if <-slow {
		t.Error("slow is there")
	}
	if b, err := io.ReadAll(held); err != nil || string(b) != "passing\n" {
		t.Errorf("the open file gives %q, %v", b, err)
	}
	var after syscall.Stat_t
	if err := syscall.Fstat(int(held.Fd()), &after); err != nil || after.Ino != before.Ino || after.Size != before.Size {
		t.Errorf("the open file is another one: %v, %v", after, err)
	}
}

// TestOneNameInEachDirectory: a notice of one name in all directories leaves what the kernel has of their others.
func TestOneNameInEachDirectory(t *testing.T) {
	s := start(t, "FRIFS_FS_TEST_VOLATILE=1h")
	read := func(name string) string {
		b, err := os.ReadFile(s.path("many/one/" + name))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	for range 2 {
		if read("about") != "0" || read("kept") != "1" {
			t.Fatal("the kernel does not keep the names")
		}
	}
	for _, sig := range []os.Signal{syscall.SIGUSR2, syscall.SIGHUP} {
		if err := s.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error {
			if got := read("about"); got != "1" {
				return fmt.Errorf("about is of generation %s", got)
			}
			return nil
		})
		if got := read("kept"); got != "1" {
			t.Errorf("kept was looked up again: %s", got)
		}
	}
}

// TestNoticesSettle: who waits for notices waits for all that were there before, and for no more.
func TestNoticesSettle(t *testing.T) {
	n := newNotices()
	if n.pending() != nil {
		t.Error("there is something to wait for")
	}
	n.add([]nodes.Name{{Name: "a"}})
	first := n.pending()
	if got := n.take(); len(got) != 1 {
		t.Errorf("took %v", got)
	}
	if n.pending() != first {
		t.Error("what is being told is not waited for")
	}
	n.add([]nodes.Name{{Name: "b"}})
	second := n.pending()
	if second == first {
		t.Error("what came later is not waited for")
	}
	n.done()
	<-first
	select {
	case <-second:
		t.Error("the second was told with the first")
	default:
	}
	n.take()
	n.done()
	<-second
	if n.pending() != nil {
		t.Error("there is something to wait for at the end")
	}
}

// TestTransientNames: a name whose looking up does something is never kept, however long others are.
func TestTransientNames(t *testing.T) {
	s := start(t, "FRIFS_FS_TEST_VOLATILE=1h")
	var last string
	for range 3 {
		b, err := os.ReadFile(s.path("asked"))
		if err != nil {
			t.Fatal(err)
		}
		if string(b) == last {
			t.Errorf("the same answer again: %s", b)
		}
		last = string(b)
	}
}

// TestNoticeStorm: notices while many clients look names up and list, and while the mount ends.
func TestNoticeStorm(t *testing.T) {
	s := start(t, "FRIFS_FS_TEST_VOLATILE=1h")
	stop := make(chan struct{})
	done := make(chan error, 8)
	for range cap(done) {
		go func() {
			for {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				if _, err := os.Readlink(s.path("moving")); err != nil {
					done <- err
					return
				}
				exists(s.path("late"))
				if _, err := filepath.Glob(s.path("vol/*")); err != nil {
					done <- err
					return
				}
				if _, err := os.ReadDir(s.mp); err != nil {
					done <- err
					return
				}
			}
		}()
	}
	for range 300 {
		for _, sig := range []os.Signal{syscall.SIGUSR2, syscall.SIGHUP} {
			if err := s.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Millisecond)
	}
	var told int
	eventually(t, func() error {
		if err := s.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			return err
		}
		line := s.line(t)
		if i := strings.Index(line, "Notices:"); i >= 0 {
			if _, err := fmt.Sscanf(line[i:], "Notices:%d", &told); err != nil {
				return err
			}
		}
		if told < 10 {
			return fmt.Errorf("%s: only %d notices", line, told)
		}
		return nil
	})
	close(stop)
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	// The mount ends amid notices: the clean-up of start checks that it does.
	for range 50 {
		_ = s.cmd.Process.Signal(syscall.SIGUSR2)
	}
}

func TestNoticesAreBounded(t *testing.T) {
	n := newNotices()
	names := make([]nodes.Name, maxNotices)
	for i := range names {
		names[i] = nodes.Name{Dir: "versions", Name: fmt.Sprint(i)}
	}
	n.add(names)
	n.add(names)
	if got := n.take(); len(got) != maxNotices {
		t.Errorf("%d names wait", len(got))
	}
	n.add(names)
	n.add([]nodes.Name{{Name: "latest"}})
	if got := n.take(); len(got) != 1 || !got[everything] {
		t.Errorf("%d names wait, want the one that stands for all", len(got))
	}
	if got := n.take(); len(got) != 0 {
		t.Errorf("%d names are left", len(got))
	}
}
