package integration

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropPages has the kernel forget what it has read of an open file.
func dropPages(f *os.File) error { return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
