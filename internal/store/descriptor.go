package store

import (
	"errors"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/frifs/frifs/fault"
)

// descriptor is an open regular file that any number of readers share. It is closed when its owner has let go of it and
// the last reader has come back, so that a number which the system gives to another file is never read from.
//
// It stands in for os.File, which asks the system twice more for each file that is opened: whether it can be waited for,
// and how it was opened.
type descriptor struct {
	fd    int
	users atomic.Int64 // readers at work, and the owner; 0 when it is closed
	owned atomic.Bool
}

func newDescriptor(fd int) *descriptor {
	d := &descriptor{fd: fd}
	d.users.Store(1)
	d.owned.Store(true)
	return d
}

// Close lets go of the file. Reads that are at work end as they would have. A second call is an error.
func (d *descriptor) Close() error {
	if !d.owned.CompareAndSwap(true, false) {
		return os.ErrClosed
	}
	return d.leave()
}

func (d *descriptor) leave() error {
	if d.users.Add(-1) == 0 {
		return unix.Close(d.fd)
	}
	return nil
}

// pread reads what is there at off, up to len(p) bytes; 0 at the end of the file.
func (d *descriptor) pread(p []byte, off int64) (int, error) {
	for {
		n := d.users.Load()
		if n == 0 || !d.owned.Load() {
			return 0, os.ErrClosed
		}
		if d.users.CompareAndSwap(n, n+1) {
			break
		}
	}
	defer func() { _ = d.leave() }() // only read from
	var n int
	err := again(func() (err error) {
		n, err = unix.Pread(d.fd, p, off)
		return err
	})
	return max(n, 0), err
}

// again repeats a system call that a signal broke off.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// fstat asks for the attributes of an open file.
func fstat(fd int, st *unix.Stat_t) error {
	return again(func() error { return unix.Fstat(fd, st) })
}

// regular fails for what is no regular file. Directories have an error of their own.
func regular(st *unix.Stat_t) error {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return nil
	case unix.S_IFDIR:
		return unix.EISDIR
	}
	return fault.New("", "", fault.Invalid, "not a regular file (type %#o)", st.Mode&unix.S_IFMT)
}
