package fs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/frifs/frifs/fault"
)

// BusyError says that a mount is in use and by whom.
type BusyError struct {
	Mountpoint string
	Holders    []Holder
	Err        error
}

// Error names the holders.
func (e *BusyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is busy", e.Mountpoint)
	for i, h := range e.Holders {
		sep := ": used by "
		if i > 0 {
			sep = ", "
		}
		fmt.Fprintf(&b, "%s%s (pid %d, %s)", sep, h.Command, h.PID, h.What)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *BusyError) Unwrap() error { return e.Err }

// Holder is a process that keeps a mount busy.
type Holder struct {
	PID     int
	Command string
	What    string // "working directory", "open file <path>", "mapped file <path>"
}

// Unmount unmounts. While the mount is in use it returns a *BusyError after some attempts, and goes on serving.
func (s *Server) Unmount() error {
	err := s.fuse.Unmount()
	if err == nil {
		return nil
	}
	select {
	case <-s.done:
		return nil // someone else was faster
	default:
	}
	if isBusy(err) {
		return &BusyError{Mountpoint: s.mountpoint, Holders: Holders(s.mountpoint), Err: syscall.EBUSY}
	}
	return fault.New("fs.Unmount", s.mountpoint, fault.Unavailable, "%s", strings.TrimSpace(err.Error()))
}

// UnmountLazy takes the mount out of the tree at once; it goes on serving files that are open until they are closed.
func (s *Server) UnmountLazy() error {
	select {
	case <-s.done:
		return nil
	default:
	}
	err := Unmount(s.mountpoint, true)
	if _, mounted := mountAt(s.mountpoint); err != nil && haveMountTable && !mounted {
		return nil // someone else was faster; the server ends on its own
	}
	return err
}

// Abort makes all requests that are still waiting fail. It is what remains when a lazy unmount does not end.
func (s *Server) Abort() { s.cancel() }

// Unmount unmounts the frifs mount at mountpoint, served by whatever process. lazy takes it out of the tree at once,
// even when it is busy. Works without root by fusermount3.
func Unmount(mountpoint string, lazy bool) error {
	abs, err := Mounted(mountpoint)
	if err != nil {
		return err
	}
	return unmountPath(abs, lazy)
}

// Mounted finds the frifs mount at mountpoint, served by whatever process, in the kernel's table of mounts, and returns
// its absolute path. The error is fault.Invalid where nothing of frifs is mounted. Where there is no such table it
// believes the caller.
func Mounted(mountpoint string) (string, error) {
	const op = "fs.Mounted"
	abs, err := filepath.Abs(mountpoint)
	if err != nil {
		return "", fault.Wrap(op, mountpoint, err)
	}
	// The last element may be a stale mount: only its directory can be resolved.
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(dir, filepath.Base(abs))
	}
	if _, ok := mountAt(abs); !ok {
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			abs = real
		}
	}
	e, ok := mountAt(abs)
	if !ok && haveMountTable {
		return "", fault.New(op, abs, fault.Invalid, "nothing is mounted here")
	}
	if ok && e.fstype != "fuse.frifs" {
		return "", fault.New(op, abs, fault.Invalid, "this is a mount of %s, not of frifs", e.fstype)
	}
	return abs, nil
}

// ClearStale removes a mount whose server is gone, and ends the requests that still wait for it.
func ClearStale(mountpoint string) error {
	if os.Geteuid() == 0 && forceUnmount(mountpoint) == nil {
		return nil
	}
	if err := unmountPath(mountpoint, false); err == nil {
		return nil
	}
	return unmountPath(mountpoint, true)
}

// unmountPath calls umount(2) where that is allowed, else the helper.
func unmountPath(abs string, lazy bool) error {
	const op = "fs.Unmount"
	direct := errDirectDenied
	if os.Geteuid() == 0 {
		if direct = directUnmount(abs, lazy); direct == nil {
			return nil
		}
		if isBusy(direct) {
			return &BusyError{Mountpoint: abs, Holders: Holders(abs), Err: syscall.EBUSY}
		}
	}
	bin, err := helper()
	if err != nil {
		return fault.New(op, abs, fault.Denied, "%w (and fusermount3 is not installed)", direct)
	}
	flag := "-u"
	if lazy {
		flag = "-uz"
	}
	out, err := exec.Command(bin, flag, abs).CombinedOutput()
	if err == nil {
		return nil
	}
	text := strings.TrimSpace(string(out))
	if strings.Contains(strings.ToLower(text), "busy") {
		return &BusyError{Mountpoint: abs, Holders: Holders(abs), Err: syscall.EBUSY}
	}
	return fault.New(op, abs, fault.Unavailable, "%s: %w: %s", filepath.Base(bin), err, text)
}

// isBusy recognises EBUSY, also in the text that go-fuse makes of the helper's message.
func isBusy(err error) bool {
	return err != nil && (strings.Contains(strings.ToLower(err.Error()), "busy"))
}
