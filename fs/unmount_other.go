//go:build !linux

package fs

import (
	"errors"
	"syscall"
)

// haveMountTable says that mountAt knows nothing here.
const haveMountTable = false

var errDirectDenied = errors.New("only root may call unmount(2)")

func directUnmount(abs string, lazy bool) error {
	flags := 0
	if lazy {
		flags = 0x80000 // MNT_FORCE
	}
	return syscall.Unmount(abs, flags)
}

// Holders is known on Linux only.
func Holders(string) []Holder { return nil }
