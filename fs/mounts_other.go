//go:build !linux

package fs

import (
	"os"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// mountEntry is one line of the mount table.
type mountEntry struct{ dev, path, fstype, source string }

// mountAt knows no mount table here.
func mountAt(string) (mountEntry, bool) { return mountEntry{}, false }

// place knows no mount table here: a path stands for itself.
func place(path string) string { return path }

// canWrite leaves the judgement to the system.
func canWrite(string) bool { return true }

// writable reports whether this process may write to the file, by its mode alone.
func writable(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().Perm()&0o002 != 0
}

func canRaiseReadAhead() bool { return false }

func raiseReadAhead(string, Options) {}

// waitMount waits until the mount answers.
func waitMount(s *fuse.Server) error { return s.WaitMount() }

// kernel returns nothing: only Linux has releases that matter here.
func kernel() kernelRelease { return kernelRelease{} }
