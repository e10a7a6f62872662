package fs

import (
	"os"

	"golang.org/x/sys/unix"
)

// Filesystem types (statfs) that lie on this machine and that golang.org/x/sys does not name.
const (
	zfsMagic      = 0x2fc12fc1
	bcachefsMagic = 0xca451a4e
)

// onLocalDisk reports whether reads of the file end without anyone's help: it lies on a filesystem of this machine.
func onLocalDisk(f *os.File) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return false
	}
	switch uint32(st.Type) { // its width differs between architectures
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.F2FS_SUPER_MAGIC,
		unix.OVERLAYFS_SUPER_MAGIC, unix.SQUASHFS_MAGIC, zfsMagic, bcachefsMagic:
		return true
	}
	return false
}
