package fs

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// FUSE passthrough: the kernel reads an open file from the file of this machine that holds its bytes, without asking
// this process. Rules:
//
//   - An inode is either passed through or served by us, decided at its first open and for good: the kernel answers
//     EIO to an open of the other kind while one is open.
//   - What is passed through is a whole regular file on a local filesystem. Reads of a network filesystem could hang
//     beyond any bound of ours.
//   - The descriptor given to the kernel is the file that the tree has verified at this open: same file, size and time
//     before and after.
//   - Where the kernel or the rights do not allow it, or refuse one file, we serve from pooled buffers.

// How an inode is read; the zero value is for one that was never opened.
const (
	wayOpen    int32 = iota
	wayServe         // by requests to this process
	wayThrough       // by the kernel itself
)

// backing hands descriptors to the kernel.
type backing struct {
	off    atomic.Bool // switched off, or not possible on this mount
	passed atomic.Int64
	server *fuse.Server // set before the first request is served
}

// localOpen is a descriptor of the file that may hold a node's bytes, with what it was when it was opened.
type localOpen struct {
	file *os.File
	path string
	info os.FileInfo
}

func (l *localOpen) close() {
	if l != nil {
		_ = l.file.Close() // only read from
	}
}

// openLocal opens the file of this machine that n says to be the same as; nil where there is none that can be passed
// through.
func openLocal(ctx context.Context, n any, size int64) *localOpen {
	lf, ok := n.(nodes.LocalFile)
	if !ok {
		return nil
	}
	path, off, ok := lf.LocalPath(ctx)
	if !ok || off != 0 {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() != size || !onLocalDisk(f) {
		_ = f.Close() // only read from
		return nil
	}
	return &localOpen{f, path, info}
}

// unchanged reports whether the path still leads to the descriptor's file, and the file is as it was.
func (l *localOpen) unchanged() bool {
	now, err := os.Stat(l.path)
	return err == nil && os.SameFile(now, l.info) && now.Size() == l.info.Size() && now.ModTime().Equal(l.info.ModTime())
}

// openBoth opens the file of the tree and, where the inode may be passed through, the file below it. The latter comes
// first and is compared afterwards, so that what the tree verifies in between is what the kernel will read.
func (f *fileInode) openBoth(ctx context.Context, file nodes.File, size int64) (nodes.Handle, *localOpen, error) {
	way := f.way.Load()
	if way == wayServe || (way == wayOpen && f.m.backing.off.Load()) {
		h, err := file.Open(ctx)
		return h, nil, err
	}
	local := openLocal(ctx, file, size)
	h, err := file.Open(ctx)
	if err == nil && local == nil {
		if local = openLocal(ctx, h, size); local != nil {
			// Only the handle knows the place: verify once more, now that it is open.
			var again nodes.Handle
			if again, err = file.Open(ctx); err == nil {
				err = again.Close()
			}
			if err != nil {
				err = errors.Join(err, h.Close())
			}
		}
	}
	if err != nil {
		local.close()
		return nil, nil, err
	}
	if local != nil && !local.unchanged() {
		local.close()
		local = nil
	}
	return h, local, nil
}

// decide settles how the inode is read, given what could be opened. It returns the descriptor to pass, nil for none.
func (f *fileInode) decide(local *localOpen) (*localOpen, error) {
	if f.way.Load() == wayOpen {
		way := wayServe
		if local != nil && f.m.backing.accepts(int(local.file.Fd())) {
			way = wayThrough
		}
		f.way.CompareAndSwap(wayOpen, way)
	}
	if f.way.Load() == wayServe {
		local.close()
		return nil, nil
	}
	if local == nil {
		return nil, fault.New("fs.open", "", fault.Stale, "the file was replaced while it was opened")
	}
	return local, nil
}

// PassthroughFd gives go-fuse the descriptor that the kernel shall read from.
func (h *fileHandle) PassthroughFd() (int, bool) {
	if h.local == nil {
		return -1, false
	}
	return int(h.local.file.Fd()), true
}
