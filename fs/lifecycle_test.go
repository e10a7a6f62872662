package fs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
)

func TestCheckMountpoint(t *testing.T) {
	dir := t.TempDir()
	mk := func(name string) string {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(p, 0o755); err != nil {
			t.Fatal(err)
		}
		return p
	}
	empty, data := mk("empty"), mk("data")
	inside := mk("data/_versions")
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(inside, link); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, mp string
		opt      Options
		kind     fault.Kind // Unknown: no error
		says     string
	}{
		{"an empty directory", empty, Options{}, fault.Unknown, ""},
		{"absent", filepath.Join(dir, "no such"), Options{}, fault.NotFound, "mkdir -p '"},
		{"a file", file, Options{}, fault.Invalid, "not a directory"},
		{"not empty", data, Options{}, fault.Invalid, "--allow-non-empty"},
		{"not empty, allowed", data, Options{AllowNonEmpty: true}, fault.Unknown, ""},
		{"the dataset itself", data, Options{SourceDir: data, AllowNonEmpty: true}, fault.Invalid, "inside the dataset"},
		{"inside the dataset", inside, Options{SourceDir: data}, fault.Invalid, "inside the dataset"},
		{"inside it through a link", link, Options{SourceDir: data}, fault.Invalid, "inside the dataset"},
		{"above the dataset", dir, Options{SourceDir: data, AllowNonEmpty: true}, fault.Invalid, "would be hidden"},
		{"beside the dataset", empty, Options{SourceDir: data}, fault.Unknown, ""},
		{"a name that begins like the dataset", mk("data2"), Options{SourceDir: data}, fault.Unknown, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := CheckMountpoint(context.Background(), tc.mp, tc.opt)
			if (err == nil) != (tc.kind == fault.Unknown) || fault.KindOf(err) != tc.kind {
				t.Fatalf("got %v, want kind %v", err, tc.kind)
			}
			if err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %q, want it to say %q", err, tc.says)
			}
		})
	}
}

func (s *server) wait(t *testing.T) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(8 * time.Second):
		t.Fatal("the server does not end")
		return nil
	}
}

func TestTermUnmounts(t *testing.T) {
	s := start(t)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.wait(t); err != nil {
		t.Errorf("exit: %v", err)
	}
	if _, ok := mountAt(s.mp); ok {
		t.Errorf("still mounted")
	}
}

func TestUnmountFromOutside(t *testing.T) {
	s := start(t)
	if err := Unmount(s.mp, false); err != nil {
		t.Fatal(err)
	}
	if err := s.wait(t); err != nil {
		t.Errorf("exit: %v", err)
	}
	if err := Unmount(s.mp, false); !fault.Is(err, fault.Invalid) {
		t.Errorf("a second time: got %v, want kind invalid", err)
	}
}

func TestBusyMountGoesOnServing(t *testing.T) {
	s := start(t)
	holder := exec.Command("sleep", "60")
	holder.Dir = s.path("plain")
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if line := s.line(t); !strings.Contains(line, "busy") || !strings.Contains(line, "sleep (pid") || !strings.Contains(line, "working directory") {
		t.Errorf("got %q, want the holder's name", line)
	}
	if _, err := os.ReadFile(s.path("README.txt")); err != nil {
		t.Errorf("the mount stopped serving: %v", err)
	}
	var busy *BusyError
	if err := Unmount(s.mp, false); !errors.As(err, &busy) || !errors.Is(err, syscall.EBUSY) {
		t.Errorf("from outside: got %v, want busy", err)
	}
	if err := Unmount(s.mp, true); err != nil {
		t.Errorf("lazily: %v", err)
	}
	if _, ok := mountAt(s.mp); ok {
		t.Errorf("still in the mount table")
	}
	_ = holder.Process.Kill()
	_ = holder.Wait()
	if err := s.wait(t); err != nil {
		t.Errorf("exit: %v", err)
	}
}

func TestStaleMountIsExplainedAndCleared(t *testing.T) {
	s := start(t)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.wait(t)
	_, err := CheckMountpoint(context.Background(), s.mp, Options{})
	if err == nil || !strings.Contains(err.Error(), "fusermount3 -u "+s.mp) {
		t.Errorf("got %v, want the command that clears it", err)
	}
	again := startAt(t, s.mp, "FRIFS_FS_TEST_FORCE=1")
	if line := again.line(t); line != "ready" {
		t.Fatalf("with --force: %s", line)
	}
	if _, err := os.ReadFile(s.path("README.txt")); err != nil {
		t.Error(err)
	}
}

func TestMountByTheHelper(t *testing.T) {
	if _, err := helper(); err != nil {
		if os.Getenv("FRIFS_CI") == "1" {
			t.Fatalf("FRIFS_CI=1 but fusermount3 is not installed: %v", err)
		}
		t.Skipf("fusermount3 is not installed: %v", err)
	}
	s := start(t, "FRIFS_FS_TEST_HELPER=1")
	if _, err := os.ReadFile(s.path("README.txt")); err != nil {
		t.Error(err)
	}
	if err := os.Remove(s.path("README.txt")); !errors.Is(err, syscall.EROFS) {
		t.Errorf("remove: got %v, want EROFS", err)
	}
	if e, ok := mountAt(s.mp); !ok || e.fstype != "fuse.frifs" || e.source != `fake,with\odd chars` {
		t.Errorf("mount table: %+v, %v", e, ok)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.wait(t); err != nil {
		t.Errorf("exit: %v", err)
	}
}

func TestNoSecondMountOverALiveOne(t *testing.T) {
	s := start(t)
	_, err := CheckMountpoint(context.Background(), s.mp, Options{AllowNonEmpty: true, Force: true})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "already mounted") {
		t.Errorf("got %v", err)
	}
}

func TestManyMounts(t *testing.T) {
	needFUSE(t)
	mp := t.TempDir()
	for range 10 {
		s := startAt(t, mp)
		if line := s.line(t); line != "ready" {
			t.Fatal(line)
		}
		if _, err := os.Stat(s.path("README.txt")); err != nil {
			t.Fatal(err)
		}
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := s.wait(t); err != nil {
			t.Fatal(err)
		}
	}
}
