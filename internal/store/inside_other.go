//go:build !linux

package store

import "golang.org/x/sys/unix"

// openInside has no answer: the system has no call for it.
func openInside(_, _ string, _ int) (fd int, ok bool) { return -1, false }

// statInside has no answer: the system has no call for it.
func statInside(_, _ string) (st unix.Stat_t, ok bool) { return st, false }

// openResolved opens a path whose links have been resolved.
func openResolved(path string, flags int) (fd int, err error) { return openNoFollow(path, flags) }
