package fs

import (
	"context"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// inode is what directories, files and links have in common. Its node is either known when the inode is made, or
// found in the directory above when it is first needed: a listing gives attributes without looking names up.
type inode struct {
	gofs.Inode
	m      *mount
	ino    uint64
	parent nodes.Dir // nil for the root
	name   string
	stable bool // attributes never change (all but volatile directories)

	node atomic.Pointer[nodes.Node]
	attr atomic.Pointer[nodes.Attr] // kept only where stable
}

// resolve returns the node behind the inode.
func (i *inode) resolve(ctx context.Context) (nodes.Node, error) {
	if n := i.node.Load(); n != nil {
		return *n, nil
	}
	n, err := i.parent.Lookup(ctx, i.name)
	if err != nil {
		return nil, err
	}
	if kernelIno(n.Ino()) != i.ino {
		// The name has come to mean another node since it was listed.
		return nil, fault.New("fs.resolve", "", fault.Stale, "%q is another file now", i.name)
	}
	i.node.Store(&n)
	return n, nil
}

// getattr returns the attributes, within the bound for the node's cost class.
func (i *inode) getattr(ctx context.Context) (nodes.Attr, error) {
	if a := i.attr.Load(); a != nil {
		return *a, nil
	}
	limit := i.m.opt.MetadataTimeout
	if n := i.node.Load(); n != nil {
		limit = i.m.limit(*n)
	}
	var attr nodes.Attr
	err := i.m.request(ctx, "getattr", i.ino, "", limit, i.path, func(ctx context.Context) error {
		n, err := i.resolve(ctx)
		if err != nil {
			return err
		}
		a, err := n.Attr(ctx)
		if err == nil {
			attr = a
		}
		return err
	})
	if err != nil {
		return nodes.Attr{}, err
	}
	if i.stable {
		i.attr.Store(&attr)
	}
	return attr, nil
}

func (i *inode) path() string { return i.Path(nil) }

// Getattr implements fstat and stat.
func (i *inode) Getattr(ctx context.Context, _ gofs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	a, err := i.getattr(ctx)
	if err != nil {
		return errno(err)
	}
	i.m.fillAttr(&out.Attr, a)
	out.SetTimeout(i.m.opt.attrTimeout(!i.stable))
	return 0
}

// Statfs implements statfs.
func (i *inode) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	const bsize = 4096
	out.Bsize, out.Frsize, out.NameLen = bsize, bsize, 255
	out.Blocks = max(1, uint64(i.m.opt.Bytes+bsize-1)/bsize)
	out.Files = uint64(i.m.inodes.count()) + 1
	return 0
}

// OnForget is called when the kernel has dropped the inode.
func (i *inode) OnForget() { i.m.inodes.forget(i.ino) }

// fillAttr turns the tree's attributes into the kernel's. Blocks are filled too, since du reads nothing else.
func (m *mount) fillAttr(out *fuse.Attr, a nodes.Attr) {
	const blksize = 4096
	out.Mode = a.Perm & 0o7777
	switch a.Type {
	case nodes.TypeDir:
		if m.opt.DirMode != 0 {
			out.Mode = m.opt.DirMode & 0o777
		}
		if m.opt.AllowRoot && !m.opt.AllowOther && kernelIno(a.Ino) == m.root.ino {
			out.Mode &= 0o700
		}
		out.Mode |= syscall.S_IFDIR
	case nodes.TypeLink:
		out.Mode |= syscall.S_IFLNK
	default:
		if m.opt.FileMode != 0 {
			out.Mode = m.opt.FileMode & 0o777
		}
		out.Mode |= syscall.S_IFREG
	}
	out.Ino = kernelIno(a.Ino)
	out.Size = uint64(max(a.Size, 0))
	out.Blocks = (out.Size + 511) / 512
	setBlksize(out, blksize)
	out.Nlink = 1
	out.Owner = m.owner
	t := a.Mtime
	if t.IsZero() || t.Unix() < 0 {
		t = time.Unix(0, 0)
	}
	out.SetTimes(&t, &t, &t)
}

// fillEntry fills a lookup's answer.
func (m *mount) fillEntry(out *fuse.EntryOut, a nodes.Attr, volatileName, stable bool) {
	m.fillAttr(&out.Attr, a)
	out.SetEntryTimeout(m.opt.entryTimeout(volatileName))
	out.SetAttrTimeout(m.opt.attrTimeout(!stable))
}

// child makes the inode for one name of a directory. node may be nil where only a listing's attributes are known.
func (m *mount) child(ctx context.Context, dir *dirInode, name string, node nodes.Node, a nodes.Attr) (ch *gofs.Inode, stable bool) {
	parent := dir.dirNode()
	base := inode{m: m, ino: kernelIno(a.Ino), parent: parent, name: name, stable: true}
	if node != nil {
		base.node.Store(&node)
	}
	if a.Type == nodes.TypeDir {
		if d, ok := node.(nodes.Dir); !ok || d.Volatile() {
			base.stable = false
		}
	}
	if base.stable {
		base.attr.Store(&a)
	}
	var ops gofs.InodeEmbedder
	mode := uint32(syscall.S_IFREG)
	switch a.Type {
	case nodes.TypeDir:
		d := &dirInode{}
		moveInode(&d.inode, &base)
		ops, mode = d, syscall.S_IFDIR
	case nodes.TypeLink:
		l := &linkInode{}
		moveInode(&l.inode, &base)
		ops, mode = l, syscall.S_IFLNK
	default:
		f := &fileInode{}
		moveInode(&f.inode, &base)
		ops = f
	}
	stable = base.stable
	m.inodes.touch(base.ino, dir.EmbeddedInode(), dir.ino, name, a.Type == nodes.TypeDir)
	return dir.NewInode(ctx, ops, gofs.StableAttr{Mode: mode, Ino: base.ino}), stable
}

// moveInode fills a fresh inode; atomics and the embedded go-fuse inode cannot be copied.
func moveInode(dst, src *inode) {
	dst.m, dst.ino, dst.parent, dst.name, dst.stable = src.m, src.ino, src.parent, src.name, src.stable
	dst.node.Store(src.node.Load())
	dst.attr.Store(src.attr.Load())
}

// kernelIno maps the tree's inode number into what FUSE and its clients can carry: not 0 or 1, and below 2^63.
func kernelIno(ino uint64) uint64 {
	ino &= 1<<63 - 1
	if ino < 2 {
		ino += 2
	}
	return ino
}

// owner is who all nodes belong to: the one who mounts.
func owner() fuse.Owner { return fuse.Owner{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())} }

// errno maps an error to what the kernel is told. A name that is gone below an open file is stale.
func errno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	return fault.KindOf(err).Errno()
}
