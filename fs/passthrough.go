package fs

import (
	"sync/atomic"

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
//   - The descriptor given to the kernel is the one that the tree has opened and verified at this open.
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

// none stands for no descriptor.
const none = -1

// descriptor returns the descriptor of the file of this machine that holds the bytes of h, all of them and no others, if
// the kernel may be left to read them; else none. It lives as long as h.
func (f *fileInode) descriptor(h nodes.Handle, size int64) int {
	if way := f.way.Load(); way == wayServe || (way == wayOpen && f.m.backing.off.Load()) {
		return none
	}
	lh, ok := h.(nodes.LocalHandle)
	if !ok {
		return none
	}
	fd, ok := lh.Fd()
	if !ok || !wholeLocalFile(fd, size) {
		return none
	}
	return fd
}

// decide settles how the inode is read, given the descriptor that there is. It returns the one to pass on, if any.
func (f *fileInode) decide(fd int) (int, error) {
	if f.way.Load() == wayOpen {
		way := wayServe
		if fd != none && f.m.backing.accepts(fd) {
			way = wayThrough
		}
		f.way.CompareAndSwap(wayOpen, way)
	}
	if f.way.Load() == wayServe {
		return none, nil
	}
	if fd == none {
		return none, fault.New("fs.open", "", fault.Stale, "the file was replaced while it was opened")
	}
	return fd, nil
}

// PassthroughFd gives go-fuse the descriptor that the kernel shall read from.
func (h *fileHandle) PassthroughFd() (int, bool) { return h.fd, h.fd != none }
