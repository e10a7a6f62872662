package fs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// accepts asks the kernel whether it would read from fd by itself. go-fuse registers the descriptor again; but where
// its own attempt fails it gives up on all files, and mixes both kinds of opens of those that are open.
func (b *backing) accepts(fd int) bool {
	id, errno := b.server.RegisterBackingFd(&fuse.BackingMap{Fd: int32(fd)})
	switch errno {
	case 0:
		return b.server.UnregisterBackingFd(id) == 0
	case syscall.EPERM, syscall.ENOTTY, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.EINVAL:
		b.off.Store(true) // not this file: the kernel's age, or our rights
	}
	return false
}

// Filesystem types (statfs) that lie on this machine and that golang.org/x/sys does not name.
const (
	zfsMagic      = 0x2fc12fc1
	bcachefsMagic = 0xca451a4e
)

// wholeLocalFile reports whether fd is a regular file of size bytes, reads of which end without anyone's help: it lies on
// a filesystem of this machine.
func wholeLocalFile(fd int, size int64) bool {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != size {
		return false
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return false
	}
	switch uint32(fs.Type) { // its width differs between architectures
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC, unix.SQUASHFS_MAGIC, zfsMagic, bcachefsMagic:
		return true
	}
	return false
}
