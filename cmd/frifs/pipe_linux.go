package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// growPipe enlarges the buffer of a pipe on w to one write of cat, so that the reader is woken less often. It does
// nothing for anything else, and where the kernel says no.
func growPipe(w io.Writer) {
	f, ok := w.(*os.File)
	if !ok {
		return
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, catBuffer)
	})
}
