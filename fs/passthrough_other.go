//go:build !linux

package fs

import "os"

// onLocalDisk reports that nothing can be passed through: only Linux can.
func onLocalDisk(*os.File) bool { return false }
