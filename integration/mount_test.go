package integration

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/testdata"
)

// mounted is a process that serves a mount.
type mounted struct {
	t    testing.TB
	dir  string // the mountpoint
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	logs *log
}

// log collects what a process writes, while it runs.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// mount mounts a dataset folder with `frifs mount` and returns once it serves. It is unmounted when the test ends.
func mount(t testing.TB, uri string, flags ...string) *mounted {
	t.Helper()
	needFUSE(t)
	dir := filepath.Join(t.TempDir(), "mnt")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	m := start(t, dir, exe, append(append([]string{"mount"}, flags...), uri, dir)...)
	m.ready()
	return m
}

// mountDataset mounts a dataset of the test data, with the --rebase that it needs.
func mountDataset(t testing.TB, name string, flags ...string) *mounted {
	t.Helper()
	return mount(t, testdata.Dataset(t, name), append(flags, rebase(t, name)...)...)
}

// rebase returns the flags that make the base paths of a test dataset readable.
func rebase(t testing.TB, name string) (flags []string) {
	for _, pair := range testdata.Rebase(t, name) {
		flags = append(flags, "--rebase", pair)
	}
	return flags
}

// start starts a process that is to mount dir.
func start(t testing.TB, dir, name string, args ...string) *mounted {
	t.Helper()
	m := &mounted{t: t, dir: dir, cmd: exec.Command(name, args...), done: make(chan struct{}), logs: new(log)}
	m.cmd.Stdout, m.cmd.Stderr = m.logs, m.logs
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = m.cmd.Wait() // the exit code is looked at through ProcessState
		close(m.done)
	}()
	t.Cleanup(m.stop)
	return m
}

// ready waits until the mount serves: README.txt at its root (docs/DESIGN.md, "Command line").
func (m *mounted) ready() {
	m.t.Helper()
	eventually(m.t, 20*time.Second, func() error {
		if m.ended(0) {
			return fmt.Errorf("the process ended with exit code %d: %s", m.cmd.ProcessState.ExitCode(), m.logs)
		}
		_, err := os.Stat(m.path("README.txt"))
		return err
	})
}

// path is a path below the mountpoint.
func (m *mounted) path(p string) string { return filepath.Join(m.dir, filepath.FromSlash(p)) }

// ended waits up to d for the process to end.
func (m *mounted) ended(d time.Duration) bool {
	select {
	case <-m.done:
		return true
	case <-time.After(d):
		return false
	}
}

func (m *mounted) signal(s os.Signal) {
	m.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		m.t.Fatal(err)
	}
}

// stop ends the process and leaves nothing mounted, whatever state the test left it in.
func (m *mounted) stop() {
	if !m.ended(0) {
		_ = m.cmd.Process.Signal(syscall.SIGTERM)
		if !m.ended(10 * time.Second) {
			m.t.Errorf("still serving 10 s after SIGTERM: %s", m.logs)
			_ = exec.Command("fusermount3", "-uz", m.dir).Run()
			if !m.ended(5 * time.Second) {
				_ = m.cmd.Process.Kill()
				<-m.done
			}
		}
	}
	if isMounted(m.t, m.dir) {
		_ = exec.Command("fusermount3", "-uz", m.dir).Run()
	}
}

// isMounted looks the folder up in the kernel's table.
func isMounted(t testing.TB, dir string) bool {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Error(err)
		return false
	}
	return strings.Contains(string(b), " "+dir+" fuse")
}

// isErrno reports whether err is, or wraps, that errno.
func isErrno(err error, want syscall.Errno) bool {
	var got syscall.Errno
	return errors.As(err, &got) && got == want
}
