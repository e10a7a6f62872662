//go:build !linux

package fs

import "os"

// onLocalDisk reports that nothing can be passed through: only Linux can.
func onLocalDisk(*os.File) bool { return false }

// accepts reports that the kernel does not.
func (b *backing) accepts(int) bool { return false }
