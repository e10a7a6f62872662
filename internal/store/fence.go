package store

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/frifs/frifs/fault"
)

// fence keeps paths below one directory, symbolic links resolved. The root itself may be reached through links.
type fence struct {
	root string // real path, links resolved
}

// newFence makes the fence around dir, which must exist.
func newFence(dir string) (*fence, error) {
	target, err := evalLinks(dir)
	if err != nil {
		return nil, err
	}
	return &fence{target}, nil
}

// evalLinks resolves the links of a path. Where a link becomes something else between being seen and being read, the
// system calls that an invalid argument; the path is walked again then.
func evalLinks(p string) (target string, err error) {
	for range 100 {
		if target, err = filepath.EvalSymlinks(p); !errors.Is(err, syscall.EINVAL) {
			break
		}
	}
	return target, err
}

// resolve returns the real path of p, or fault.Denied if that is not below the fence.
func (f *fence) resolve(p string) (string, error) {
	target, err := evalLinks(p)
	if err != nil {
		return "", err
	}
	if !Within(f.root, target) {
		return "", fault.New("store.resolve", p, fault.Denied,
			"a symbolic link leaves the root %s: links to the outside are followed with --follow-symlinks only", f.root)
	}
	return target, nil
}

// Within reports whether the cleaned path p is root or lies below it, by whole path elements.
func Within(root, p string) bool {
	if p == root {
		return true
	}
	sep := string(filepath.Separator)
	return strings.HasPrefix(p, strings.TrimSuffix(root, sep)+sep)
}

// kindOfOS classifies an error of the operating system.
func kindOfOS(err error) fault.Kind {
	if k := fault.KindOf(err); k != fault.Unknown {
		return k
	}
	for _, c := range []struct {
		errno error
		kind  fault.Kind
	}{
		{fs.ErrNotExist, fault.NotFound},
		{syscall.ENOTDIR, fault.NotFound},
		{syscall.ENAMETOOLONG, fault.NotFound},
		{fs.ErrPermission, fault.Denied},
		{syscall.ELOOP, fault.Denied},
		{syscall.EISDIR, fault.Invalid},
		{syscall.EINVAL, fault.Invalid},
		{syscall.ESTALE, fault.Stale},
		{syscall.ETIMEDOUT, fault.TimedOut},
		{syscall.EINTR, fault.Cancelled},
	} {
		if errors.Is(err, c.errno) {
			return c.kind
		}
	}
	return fault.Unavailable
}
