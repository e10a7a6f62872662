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
		flags = mntForce
	}
	return syscall.Unmount(abs, flags)
}

// mntForce is MNT_FORCE of the BSDs.
const mntForce = 0x80000

func forceUnmount(abs string) error { return syscall.Unmount(abs, mntForce) }

// Holders is known on Linux only.
func Holders(string) []Holder { return nil }
