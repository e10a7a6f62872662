//go:build !linux

package fs

// wholeLocalFile reports that nothing can be passed through: only Linux can.
func wholeLocalFile(int, int64) bool { return false }

// accepts reports that the kernel does not.
func (b *backing) accepts(int) bool { return false }
