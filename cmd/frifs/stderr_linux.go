package main

import (
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// redirectStderr has the descriptor of stderr lead to f: what the runtime and other programs write there lands in the log
// that is in use.
func redirectStderr(f *os.File) error { return unix.Dup3(int(f.Fd()), 2, 0) }

// keepToOurselves marks every descriptor beyond stderr as not to be inherited: a lock or a pipe that our caller left open
// must not live on in the serving process. Kernels before 5.11 cannot do it at once, and then it is left.
func keepToOurselves() { _ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) }
