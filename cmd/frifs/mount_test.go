package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/fs"
	"github.com/frifs/frifs/internal/testdata"
)

// needFUSE skips where this machine cannot mount; in CI that is a failure.
func needFUSE(t *testing.T) {
	t.Helper()
	if why := cannotMount(); why != "" {
		if os.Getenv("FRIFS_CI") == "1" {
			t.Fatalf("FRIFS_CI=1 but this machine cannot mount: %s", why)
		}
		t.Skipf("this machine cannot mount: %s", why)
	}
}

// process is frifs in another process. Its stderr is read line by line.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	ended bool
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asFrifs+"=1", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// mountAt starts frifs mount and waits until it serves.
func mountAt(t *testing.T, mp string, args ...string) *process {
	t.Helper()
	needFUSE(t)
	p := &process{cmd: command(t, append(append([]string{"mount"}, args...), mp)...)}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(stderr)
	t.Cleanup(func() {
		if p.ended {
			return
		}
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		if p.wait(t) != nil {
			_ = fs.Unmount(mp, true)
		}
	})
	poll(t, "README.txt", func() bool {
		_, err := os.Stat(filepath.Join(mp, "README.txt"))
		return err == nil
	})
	return p
}

func poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("frifs ended: %v", p.lines.Err())
	}
	return p.lines.Text()
}

// lineWith reads lines up to one that contains want.
func (p *process) lineWith(t *testing.T, want string) string {
	t.Helper()
	for {
		if l := p.line(t); strings.Contains(l, want) {
			return l
		}
	}
}

func (p *process) wait(t *testing.T) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { _, _ = io.Copy(io.Discard, bufScanner{p.lines}); done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		p.ended = true
		return err
	case <-time.After(15 * time.Second):
		_ = p.cmd.Process.Kill()
		t.Error("frifs does not end")
		return errors.New("does not end")
	}
}

// bufScanner drains a scanner.
type bufScanner struct{ s *bufio.Scanner }

func (b bufScanner) Read([]byte) (int, error) {
	if b.s.Scan() {
		return 0, nil
	}
	return 0, io.EOF
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func TestMountSaysWhatItServesAndStops(t *testing.T) {
	chain, mp := testdata.Dataset(t, "tagged/chain"), t.TempDir()
	p := mountAt(t, mp, chain)
	if l := p.lineWith(t, "is mounted at"); !strings.Contains(l, chain) || !strings.Contains(l, "29 versions") || !strings.Contains(l, mp) {
		t.Errorf("got %q", l)
	}
	p.lineWith(t, "frifs umount "+mp)
	want := must(t, "cat", chain, "latest/fri/history.json")
	got, err := os.ReadFile(filepath.Join(mp, "latest/fri/history.json"))
	if err != nil || string(got) != want {
		t.Errorf("the mounted file differs from frifs cat: %v", err)
	}
	p.signal(t, os.Interrupt)
	if err := p.wait(t); err != nil {
		t.Errorf("exit: %v", err)
	}
	if left, err := os.ReadDir(mp); err != nil || len(left) > 0 {
		t.Errorf("after the end: %v, %v", left, err)
	}
}

func TestBusyThenForced(t *testing.T) {
	chain, mp := testdata.Dataset(t, "legacy/basic"), t.TempDir()
	p := mountAt(t, mp, "--version", "2", chain)
	p.lineWith(t, "frifs umount")
	holder := exec.Command("sleep", "60")
	holder.Dir = filepath.Join(mp, "versions")
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()
	p.signal(t, syscall.SIGTERM)
	if l := p.lineWith(t, "busy"); !strings.Contains(l, "sleep (pid ") || !strings.Contains(l, "still serving") {
		t.Errorf("got %q, want the holder", l)
	}
	if _, err := os.ReadFile(filepath.Join(mp, "README.txt")); err != nil {
		t.Errorf("it stopped serving: %v", err)
	}
	p.signal(t, syscall.SIGTERM)
	poll(t, "the end of the mount", func() bool {
		_, err := os.Stat(filepath.Join(mp, "README.txt"))
		return errors.Is(err, os.ErrNotExist)
	})
	_ = holder.Process.Kill()
	_ = holder.Wait()
	if err := p.wait(t); err != nil {
		t.Errorf("exit: %v", err)
	}
}

func TestTheSameSignalTwiceIsOneWish(t *testing.T) {
	chain, mp := testdata.Dataset(t, "legacy/basic"), t.TempDir()
	p := mountAt(t, mp, chain)
	p.signal(t, syscall.SIGTERM)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	if err := p.wait(t); err != nil {
		t.Errorf("exit: %v", err)
	}
}

func TestUmountCommand(t *testing.T) {
	chain, mp := testdata.Dataset(t, "legacy/basic"), t.TempDir()
	p := mountAt(t, mp, chain)
	f, err := os.Open(filepath.Join(mp, "README.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := frifs(t, "", "umount", mp)
	if r.code != 1 || !strings.Contains(r.stderr, "busy") || !strings.Contains(r.stderr, "--lazy") {
		t.Errorf("while in use: exit %d, %q", r.code, r.stderr)
	}
	must(t, "umount", "--lazy", mp)
	if b, err := io.ReadAll(f); err != nil || len(b) == 0 {
		t.Errorf("the open file: %d bytes, %v", len(b), err)
	}
	f.Close()
	if err := p.wait(t); err != nil {
		t.Errorf("exit: %v", err)
	}
}

func TestKilledMountIsCleared(t *testing.T) {
	chain, mp := testdata.Dataset(t, "legacy/basic"), t.TempDir()
	p := mountAt(t, mp, chain)
	p.signal(t, syscall.SIGKILL)
	_ = p.wait(t)
	var errs bytes.Buffer
	again := command(t, "mount", chain, mp)
	again.Stderr = &errs
	if err := again.Run(); err == nil || !strings.Contains(errs.String(), "fusermount3 -u "+mp) {
		t.Errorf("a stale mount: %v, %q", err, errs.String())
	}
	mountAt(t, mp, "--force", chain)
}

func TestDemoLeavesNothingBehind(t *testing.T) {
	needFUSE(t)
	tmp := t.TempDir()
	cmd := command(t, "demo")
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	for _, want := range []string{"mounted at " + tmp, "stable_partition", "rows to fragment 10", "transition 0001"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the tour does not show %q:\n%s", want, out)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err == nil && bytes.Contains(mounts, []byte(tmp)) {
		t.Errorf("still mounted:\n%s", mounts)
	}
}
