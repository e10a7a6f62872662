package fs

import (
	"math/bits"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// buffers lends read buffers by power-of-two size, from 4 KiB up.
type buffers struct{ pools [32]sync.Pool }

// buffer is a lent buffer and at the same time the answer to a read. It implements go-fuse's scatter-gather result,
// which is written to the kernel as it is: no copy, and no attempt to splice.
type buffer struct {
	data []byte // what the read gives
	all  []byte
	pool *sync.Pool
	iov  [1][]byte
}

func (b *buffers) get(n int) *buffer {
	class := max(12, bits.Len(uint(max(n, 1)-1)))
	pool := &b.pools[class]
	buf, ok := pool.Get().(*buffer)
	if !ok {
		buf = &buffer{all: make([]byte, 1<<class), pool: pool}
	}
	buf.data = buf.all[:n]
	return buf
}

// Bytes returns the answer.
func (b *buffer) Bytes([]byte) ([]byte, fuse.Status) { return b.data, fuse.OK }

// Slices returns the answer for writev.
func (b *buffer) Slices() ([][]byte, fuse.Status) {
	b.iov[0] = b.data
	return b.iov[:], fuse.OK
}

// Size returns the length of the answer.
func (b *buffer) Size() int { return len(b.data) }

// Done gives the buffer back.
func (b *buffer) Done() { b.pool.Put(b) }
