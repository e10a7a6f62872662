package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// bcachefsMagic is the type of bcachefs in statfs.
const bcachefsMagic = 0xca451a4e

// syncAll has the disk take everything written to the filesystem of f.
func syncAll(f *os.File) error { return unix.Syncfs(int(f.Fd())) }

// linkOpen makes a hard link of exactly the file that is open.
func linkOpen(f *os.File, name string) error {
	err := unix.Linkat(unix.AT_FDCWD, fdPath(f), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) { // no /proc
		return linkByPath(f, name)
	}
	return err
}

// shareBlocks makes out, of any content, share all blocks of in, which has size bytes.
func shareBlocks(out, in *os.File, size int64) error {
	if err := unix.IoctlFileClone(int(out.Fd()), int(in.Fd())); err != nil {
		return err
	}
	fi, err := out.Stat()
	if err == nil && fi.Size() != size {
		err = unix.ESTALE
	}
	return err
}

// sharesBlocks reports whether files can share blocks between two directories.
func sharesBlocks(a, b string) bool {
	var sa, sb unix.Statfs_t
	if b == "" || unix.Statfs(a, &sa) != nil || unix.Statfs(b, &sb) != nil || sa.Type != sb.Type || sa.Fsid != sb.Fsid {
		return false
	}
	switch uint32(sa.Type) {
	case unix.BTRFS_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, bcachefsMagic:
		return true
	}
	return false
}
