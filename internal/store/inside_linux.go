package store

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// openInside opens path, which lies below root by its name, in one walk of the kernel that fails where a symbolic link
// leaves root. ok is false where that was not possible, for whatever reason: the slow way tells why, or knows better, as
// for links with an absolute target.
//
// Most paths have no links at all, also not above root: the kernel is asked for that first. Else root is opened with
// the links that lead to it, and the rest is walked below it.
func openInside(root, path string, flags int) (fd int, ok bool) {
	fd, err := openat2(unix.AT_FDCWD, path, flags, unix.RESOLVE_NO_SYMLINKS)
	if err == nil {
		return fd, true
	}
	rest, below := strings.CutPrefix(path, root)
	if !errors.Is(err, unix.ELOOP) || !below {
		return -1, false
	}
	if rest = strings.TrimLeft(rest, "/"); rest == "" {
		rest = "."
	}
	var dir int
	if err := again(func() (err error) {
		dir, err = unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	}); err != nil {
		return -1, false
	}
	defer func() { _ = unix.Close(dir) }() // nothing was written
	fd, err = openat2(dir, rest, flags, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS)
	return fd, err == nil
}

// statInside is openInside for the attributes of a file of any kind. It opens nothing that could notice.
func statInside(root, path string) (st unix.Stat_t, ok bool) {
	fd, ok := openInside(root, path, unix.O_PATH)
	if !ok {
		return st, false
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	return st, fstat(fd, &st) == nil
}

// openResolved opens a path whose links have been resolved. One that came in between is not followed.
func openResolved(path string, flags int) (fd int, err error) {
	fd, err = openat2(unix.AT_FDCWD, path, flags, unix.RESOLVE_NO_SYMLINKS)
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM), errors.Is(err, unix.EINVAL), errors.Is(err, unix.E2BIG):
		return openNoFollow(path, flags) // the kernel is older than 5.6, or a sandbox does not know the call
	}
	return fd, err
}

func openat2(dir int, path string, flags int, resolve uint64) (fd int, err error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: resolve}
	err = again(func() (err error) {
		fd, err = unix.Openat2(dir, path, &how)
		return err
	})
	return fd, err
}
