package fs

import (
	"context"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Every changing request is refused here, besides the kernel's refusal by the mount option ro: without these methods
// go-fuse lets unlink and rmdir "succeed".

var (
	_ = (gofs.NodeSetattrer)((*inode)(nil))
	_ = (gofs.NodeWriter)((*inode)(nil))
	_ = (gofs.NodeAllocater)((*inode)(nil))
	_ = (gofs.NodeSetxattrer)((*inode)(nil))
	_ = (gofs.NodeRemovexattrer)((*inode)(nil))
	_ = (gofs.NodeCreater)((*dirInode)(nil))
	_ = (gofs.NodeTmpfiler)((*dirInode)(nil))
	_ = (gofs.NodeMkdirer)((*dirInode)(nil))
	_ = (gofs.NodeMknoder)((*dirInode)(nil))
	_ = (gofs.NodeSymlinker)((*dirInode)(nil))
	_ = (gofs.NodeLinker)((*dirInode)(nil))
	_ = (gofs.NodeUnlinker)((*dirInode)(nil))
	_ = (gofs.NodeRmdirer)((*dirInode)(nil))
	_ = (gofs.NodeRenamer)((*dirInode)(nil))
)

const erofs = syscall.EROFS

func (i *inode) Setattr(context.Context, gofs.FileHandle, *fuse.SetAttrIn, *fuse.AttrOut) syscall.Errno {
	return erofs
}

func (i *inode) Write(context.Context, gofs.FileHandle, []byte, int64) (uint32, syscall.Errno) {
	return 0, erofs
}

func (i *inode) Allocate(context.Context, gofs.FileHandle, uint64, uint64, uint32) syscall.Errno {
	return erofs
}

func (i *inode) Setxattr(context.Context, string, []byte, uint32) syscall.Errno { return erofs }

func (i *inode) Removexattr(context.Context, string) syscall.Errno { return erofs }

func (d *dirInode) Create(context.Context, string, uint32, uint32, *fuse.EntryOut) (*gofs.Inode, gofs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, erofs
}

func (d *dirInode) Tmpfile(context.Context, uint32, uint32, *fuse.EntryOut) (*gofs.Inode, gofs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, erofs
}

func (d *dirInode) Mkdir(context.Context, string, uint32, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, erofs
}

func (d *dirInode) Mknod(context.Context, string, uint32, uint32, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, erofs
}

func (d *dirInode) Symlink(context.Context, string, string, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, erofs
}

func (d *dirInode) Link(context.Context, gofs.InodeEmbedder, string, *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	return nil, erofs
}

func (d *dirInode) Unlink(context.Context, string) syscall.Errno { return erofs }

func (d *dirInode) Rmdir(context.Context, string) syscall.Errno { return erofs }

func (d *dirInode) Rename(context.Context, string, gofs.InodeEmbedder, string, uint32) syscall.Errno {
	return erofs
}
