package fs

import (
	"context"
	"errors"
	"sort"
	"sync/atomic"
	"syscall"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// dirInode is a directory.
type dirInode struct{ inode }

var (
	_ = (gofs.NodeLookuper)((*dirInode)(nil))
	_ = (gofs.NodeOpendirHandler)((*dirInode)(nil))
	_ = (gofs.NodeGetattrer)((*dirInode)(nil))
	_ = (gofs.NodeStatfser)((*dirInode)(nil))
	_ = (gofs.NodeOnForgetter)((*dirInode)(nil))
)

// dirNode returns the directory below: the node itself where it is known, else a stand-in that finds it when asked.
func (d *dirInode) dirNode() nodes.Dir {
	if n := d.node.Load(); n != nil {
		if dir, ok := (*n).(nodes.Dir); ok {
			return dir
		}
	}
	return lazyDir{d}
}

// lazyDir is the directory of an inode that was made from a listing.
type lazyDir struct{ d *dirInode }

func (l lazyDir) dir(ctx context.Context) (nodes.Dir, error) {
	n, err := l.d.resolve(ctx)
	if err != nil {
		return nil, err
	}
	dir, ok := n.(nodes.Dir)
	if !ok {
		return nil, fault.New("fs.lookup", "", fault.Stale, "%q is no directory any more", l.d.name)
	}
	return dir, nil
}

func (l lazyDir) Type() nodes.Type { return nodes.TypeDir }
func (l lazyDir) Ino() uint64      { return l.d.ino }
func (l lazyDir) Volatile() bool   { return true } // not known yet: the careful answer
func (l lazyDir) Attr(ctx context.Context) (nodes.Attr, error) {
	dir, err := l.dir(ctx)
	if err != nil {
		return nodes.Attr{}, err
	}
	return dir.Attr(ctx)
}

func (l lazyDir) Entries(ctx context.Context) ([]nodes.Entry, error) {
	dir, err := l.dir(ctx)
	if err != nil {
		return nil, err
	}
	return dir.Entries(ctx)
}

func (l lazyDir) Lookup(ctx context.Context, name string) (nodes.Node, error) {
	dir, err := l.dir(ctx)
	if err != nil {
		return nil, err
	}
	return dir.Lookup(ctx, name)
}

// presentError is the failure of a name that is there: what it is made from may be missing, even for a moment only, and
// the kernel must not keep the name as absent.
type presentError struct{ error }

func (e presentError) Unwrap() error { return e.error }

// Lookup finds one name. An absent name is answered ENOENT with an entry timeout, which rawFS turns into a negative
// entry for the kernel to keep.
func (d *dirInode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	if isJunk(name) {
		out.SetEntryTimeout(d.m.opt.EntryTimeout)
		return nil, syscall.ENOENT
	}
	if len(name) > 255 {
		return nil, syscall.ENAMETOOLONG
	}
	m := d.m
	path := func() string { return join(d.path(), name) }
	var node nodes.Node
	var attr nodes.Attr
	var have bool
	err := m.request(ctx, "lookup", d.ino, name, m.opt.MetadataTimeout, path, func(ctx context.Context) error {
		n, err := d.dirNode().Lookup(ctx, name)
		if err != nil {
			return err
		}
		a, ok := nodes.Attr{}, false
		if m.limit(n) == m.opt.MetadataTimeout {
			if a, err = n.Attr(ctx); err != nil {
				return presentError{err}
			}
			ok = true
		}
		node, attr, have = n, a, ok
		return nil
	})
	if err == nil && !have {
		// A C2 file: its size may take the longer bound.
		n := node
		err = m.request(ctx, "lookup", kernelIno(n.Ino()), "", m.limit(n), path, func(ctx context.Context) error {
			a, err := n.Attr(ctx)
			if err != nil {
				return presentError{err}
			}
			attr = a
			return nil
		})
	}
	volatile := d.dirNode().Volatile()
	if err != nil {
		var present presentError
		if fault.KindOf(err) == fault.NotFound && !errors.As(err, &present) {
			out.SetEntryTimeout(m.opt.entryTimeout(volatile))
		}
		return nil, errno(err)
	}
	ch, stable := m.child(ctx, d, name, node, attr)
	m.fillEntry(out, attr, volatile, stable)
	if t, ok := node.(nodes.Transient); ok && t.Transient() {
		out.SetEntryTimeout(0)
	}
	return ch, 0
}

// OpendirHandle opens the directory. The listing is made at the first readdir: where the kernel has it cached, there
// is none.
func (d *dirInode) OpendirHandle(_ context.Context, _ uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	var flags uint32
	if n := d.node.Load(); n != nil {
		if dir, ok := (*n).(nodes.Dir); ok && !dir.Volatile() {
			flags = fuse.FOPEN_CACHE_DIR | fuse.FOPEN_KEEP_CACHE
		}
	}
	d.m.inodes.opened(d.ino, 1)
	return &dirHandle{d: d}, flags, 0
}

// dirHandle is an open directory: the listing as it was at the first readdir (or the last rewind). go-fuse calls its
// methods one at a time.
type dirHandle struct {
	d      *dirInode
	list   []nodes.Entry // of the directory, without "." and ".."
	loaded bool
	pos    int // next entry: 0 ".", 1 "..", then list
	last   int // index into list of the entry given last, -1 for none
	closed atomic.Bool
}

var (
	_ = (gofs.FileReaddirenter)((*dirHandle)(nil))
	_ = (gofs.FileLookuper)((*dirHandle)(nil))
	_ = (gofs.FileSeekdirer)((*dirHandle)(nil))
	_ = (gofs.FileReleasedirer)((*dirHandle)(nil))
)

func (h *dirHandle) load(ctx context.Context) error {
	var list []nodes.Entry
	d := h.d
	err := d.m.request(ctx, "readdir", d.ino, "", d.m.opt.MetadataTimeout, d.path, func(ctx context.Context) error {
		l, err := d.dirNode().Entries(ctx)
		if err == nil {
			list = l
		}
		return err
	})
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			// The directory was there when it was opened; C libraries take ENOENT here for the end of a listing.
			err = fault.New("fs.readdir", "", fault.Stale, "%w", err)
		}
		return err
	}
	h.list, h.loaded = list, true
	return nil
}

// Readdirent gives the next entry.
func (h *dirHandle) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	if !h.loaded {
		if err := h.load(ctx); err != nil {
			return nil, errno(err)
		}
	}
	h.last = -1
	e := fuse.DirEntry{Off: uint64(h.pos) + 1, Mode: syscall.S_IFDIR}
	switch i := h.pos - 2; {
	case i == -2:
		e.Name, e.Ino = ".", h.d.ino
	case i == -1:
		e.Name, e.Ino = "..", h.d.ino
		if _, p := h.d.Parent(); p != nil {
			e.Ino = p.StableAttr().Ino
		}
	case i < len(h.list):
		h.last = i
		e.Name, e.Ino = h.list[i].Name, kernelIno(h.list[i].Ino)
		switch h.list[i].Type {
		case nodes.TypeFile:
			e.Mode = syscall.S_IFREG
		case nodes.TypeLink:
			e.Mode = syscall.S_IFLNK
		}
	default:
		return nil, 0
	}
	h.pos++
	return &e, 0
}

// Lookup serves the attributes half of READDIRPLUS. An entry whose attributes are not at hand is declined: it goes out
// as a name only, and nothing is looked up.
func (h *dirHandle) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*gofs.Inode, syscall.Errno) {
	var e *nodes.Entry
	if h.last >= 0 && h.last < len(h.list) && h.list[h.last].Name == name {
		e = &h.list[h.last]
	} else {
		// After an interrupted read the name may be one from an earlier buffer.
		i := sort.Search(len(h.list), func(i int) bool { return h.list[i].Name >= name })
		if i < len(h.list) && h.list[i].Name == name {
			e = &h.list[i]
		}
	}
	if e == nil || e.Attr == nil {
		return nil, syscall.EAGAIN
	}
	a := *e.Attr
	a.Type, a.Ino = e.Type, e.Ino
	ch, stable := h.d.m.child(ctx, h.d, name, nil, a)
	h.d.m.fillEntry(out, a, h.d.dirNode().Volatile(), stable)
	return ch, 0
}

// Seekdir implements seekdir and rewinddir. A rewind of a volatile directory lists anew.
func (h *dirHandle) Seekdir(ctx context.Context, off uint64) syscall.Errno {
	if off == 0 && h.d.dirNode().Volatile() {
		h.loaded, h.list = false, nil
	}
	if !h.loaded {
		if err := h.load(ctx); err != nil {
			return errno(err)
		}
	}
	if off > uint64(len(h.list)+2) {
		return syscall.EINVAL
	}
	h.pos, h.last = int(off), -1
	return 0
}

// Releasedir closes the handle.
func (h *dirHandle) Releasedir(context.Context, uint32) {
	if !h.closed.Swap(true) {
		h.d.m.inodes.opened(h.d.ino, -1)
	}
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
