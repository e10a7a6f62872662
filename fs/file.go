package fs

import (
	"context"
	"sync/atomic"
	"syscall"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// fileInode is a regular file.
type fileInode struct {
	inode
	way atomic.Int32 // how it is read: wayOpen, wayServe or wayThrough
}

// linkInode is a symbolic link.
type linkInode struct{ inode }

var (
	_ = (gofs.NodeOpener)((*fileInode)(nil))
	_ = (gofs.NodeGetattrer)((*fileInode)(nil))
	_ = (gofs.NodeOnForgetter)((*fileInode)(nil))
	_ = (gofs.NodeReadlinker)((*linkInode)(nil))
	_ = (gofs.NodeGetattrer)((*linkInode)(nil))
)

// Readlink returns the target.
func (l *linkInode) Readlink(ctx context.Context) ([]byte, syscall.Errno) {
	var target string
	err := l.m.request(ctx, "readlink", l.ino, "", l.m.opt.MetadataTimeout, l.path, func(ctx context.Context) error {
		n, err := l.resolve(ctx)
		if err != nil {
			return err
		}
		link, ok := n.(nodes.Link)
		if !ok {
			return fault.New("fs.readlink", "", fault.Stale, "%q is no link any more", l.name)
		}
		t, err := link.Target(ctx)
		if err == nil {
			target = t
		}
		return err
	})
	if err != nil {
		return nil, errno(err)
	}
	return []byte(target), 0
}

// Open opens a file for reading. The kernel keeps its pages: an inode number never gets other content.
func (f *fileInode) Open(ctx context.Context, flags uint32) (gofs.FileHandle, uint32, syscall.Errno) {
	if flags&(syscall.O_WRONLY|syscall.O_RDWR|syscall.O_TRUNC|syscall.O_APPEND|syscall.O_CREAT) != 0 {
		return nil, 0, syscall.EROFS
	}
	var fh *fileHandle
	err := f.m.request(ctx, "open", f.ino, "", f.m.opt.OpTimeout, f.path, func(ctx context.Context) error {
		n, err := f.resolve(ctx)
		if err != nil {
			return err
		}
		file, ok := n.(nodes.File)
		if !ok {
			return fault.New("fs.open", "", fault.Stale, "%q is no file any more", f.name)
		}
		a, err := n.Attr(ctx)
		if err != nil {
			return err
		}
		h, err := file.Open(ctx)
		if err != nil {
			return err
		}
		fd, err := f.decide(f.descriptor(h, a.Size))
		if err == nil && ctx.Err() != nil {
			err = fault.Wrap("fs.open", "", ctx.Err()) // the request is over: nobody will close the handle
		}
		if err != nil {
			_ = h.Close()
			return err
		}
		fh = &fileHandle{f: f, h: h, size: a.Size, fd: fd}
		return nil
	})
	if err != nil {
		return nil, 0, errno(err)
	}
	if fh.fd != none {
		f.m.backing.passed.Add(1)
	}
	return fh, fuse.FOPEN_KEEP_CACHE | fuse.FOPEN_NOFLUSH, 0
}

// fileHandle is an open file; concurrent reads are the rule.
type fileHandle struct {
	f    *fileInode
	h    nodes.Handle
	size int64
	fd   int // what the kernel reads by itself, a descriptor of h; none where reads come here
}

var (
	_ = (gofs.FileReader)((*fileHandle)(nil))
	_ = (gofs.FilePassthroughFder)((*fileHandle)(nil))
	_ = (gofs.FileReleaser)((*fileHandle)(nil))
)

// Read generates bytes straight into a buffer of our own, which goes back to its pool after the kernel has been
// answered. go-fuse's buffer dest is not used: work that is left behind at the time bound still writes to its
// buffer, and dest would by then belong to another request.
func (h *fileHandle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	begin := time.Now()
	buf, err := h.read(ctx, len(dest), off)
	if h.f.m.opt.OnRead != nil {
		a := Access{Time: begin, Path: h.f.path(), Offset: off, Asked: len(dest), Took: time.Since(begin), Err: err}
		if buf != nil {
			a.Given = buf.Size()
		}
		h.f.m.opt.OnRead(a)
	}
	switch {
	case err != nil:
		return nil, errno(err)
	case buf == nil:
		return fuse.ReadResultData(nil), 0
	}
	return buf, 0
}

// read fills a buffer with up to want bytes from off on; nil where there are none.
func (h *fileHandle) read(ctx context.Context, want int, off int64) (*buffer, error) {
	m := h.f.m
	if off < 0 {
		return nil, fault.New("fs.read", "", fault.Invalid, "negative offset %d", off)
	}
	if off >= h.size || want == 0 {
		return nil, nil
	}
	if rest := h.size - off; int64(want) > rest {
		want = int(rest)
	}
	key := failureKey{ino: h.f.ino, op: "read"}
	if err := m.memory.recall(key, off, off+int64(want)); err != nil {
		return nil, err
	}
	buf := m.buffers.get(want)
	var got int
	finished, err := m.runner.run(ctx, "read", h.f.path, m.opt.OpTimeout/2, func(ctx context.Context) error {
		n, err := h.h.ReadAt(ctx, buf.data, off)
		got = n
		return err
	})
	if !finished {
		// buf and got still belong to the worker.
		m.memory.read(key, off, want, 0, err)
		m.failed("read", h.f.path, err)
		return nil, err
	}
	if err == nil && got < want {
		// Never short before the end: the kernel would shrink the file for good.
		err = fault.New("fs.read", "", fault.Corrupt, "%d of %d bytes at offset %d; the size is %d", got, want, off, h.size)
	}
	if fault.Is(err, fault.NotFound) {
		// It was there when the file was opened.
		err = fault.New("fs.read", "", fault.Stale, "%w", err)
	}
	if err != nil {
		buf.Done()
		m.memory.read(key, off, want, max(got, 0), err)
		m.failed("read", h.f.path, err)
		return nil, err
	}
	return buf, nil
}

// Release closes the handle.
func (h *fileHandle) Release(context.Context) syscall.Errno {
	if err := h.h.Close(); err != nil {
		h.f.m.opt.Logger.Debug("close failed", "path", h.f.path(), "error", err)
	}
	return 0
}
