package mapcsv

import (
	"context"
	"slices"
	"sync"

	"github.com/frifs/frifs/fault"
)

// File is a file that is computed when it is read. Size is exact and never changes. ReadAt fills p unless the file
// ends before; a read at or past the end gives 0 and no error. Both are safe for concurrent use.
type File interface {
	Size(ctx context.Context) (int64, error)
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
}

// body is a text of lines without its header line.
type body interface {
	// length is the exact length in bytes.
	length(ctx context.Context) (int64, error)
	// open returns a reader at the line that holds byte off, and the position of that byte in the line. off is below
	// the length.
	open(ctx context.Context, off int64) (r lineReader, skip int, err error)
}

// lineReader writes line after line.
type lineReader interface {
	// fill writes whole lines from the start of dst: as long as there are lines and at least room bytes of dst are
	// left. It returns their total length: 0 only at the end of the text. What lies in dst behind them is garbage.
	fill(ctx context.Context, dst []byte) (int, error)
}

// text is a File made of a header and a body. It keeps the readers of the last reads, each at the offset where its
// read ended, so that a sequential read continues where it was.
type text struct {
	header string
	body   body
	idle   int // readers kept

	mu      sync.Mutex // guards cursors; not held while reading
	cursors []*cursor  // oldest first
}

// idleReaders is the number of readers that a text keeps where one needs little memory.
const idleReaders = 8

func newText(header string, b body) *text { return &text{header: header, body: b, idle: idleReaders} }

// Size returns the exact size in bytes.
func (t *text) Size(ctx context.Context) (int64, error) {
	n, err := t.body.length(ctx)
	if err != nil {
		return 0, err
	}
	return n + int64(len(t.header)), nil
}

// ReadAt reads len(p) bytes at off; see File.
func (t *text) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fault.New("mapcsv.ReadAt", "", fault.Invalid, "negative offset %d", off)
	}
	size, err := t.Size(ctx)
	if err != nil {
		return 0, err
	}
	if off >= size {
		return 0, nil
	}
	p = p[:min(int64(len(p)), size-off)]
	n := 0
	if off < int64(len(t.header)) {
		n = copy(p, t.header[off:])
	}
	if n == len(p) {
		return n, nil
	}
	at := off + int64(n-len(t.header))
	c := t.take(at)
	if c == nil {
		if c, err = t.seek(ctx, at); err != nil {
			return n, err
		}
	}
	k, err := c.read(ctx, p[n:])
	if err != nil {
		return n + k, err
	}
	t.give(c)
	return n + k, nil
}

// take removes the reader that stands at byte at of the body; nil if there is none.
func (t *text) take(at int64) *cursor {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, c := range t.cursors {
		if c.next == at {
			t.cursors = slices.Delete(t.cursors, i, i+1)
			return c
		}
	}
	return nil
}

// give keeps a reader for the next read, in place of the oldest.
func (t *text) give(c *cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.cursors) >= t.idle {
		if r, ok := t.cursors[0].r.(interface{ release() }); ok {
			r.release()
		}
		t.cursors = slices.Delete(t.cursors, 0, 1)
	}
	t.cursors = append(t.cursors, c)
}

// seek makes a reader at byte at of the body.
func (t *text) seek(ctx context.Context, at int64) (*cursor, error) {
	r, skip, err := t.body.open(ctx, at)
	if err != nil {
		return nil, err
	}
	c := &cursor{r: r, next: at}
	if skip > 0 {
		if err := c.refill(ctx); err != nil {
			return nil, err
		}
		if c.lo = skip; skip >= c.hi {
			return nil, fault.New("mapcsv.seek", "", fault.Corrupt, "byte %d lies %d bytes into a line, but only %d follow",
				at, skip, c.hi)
		}
	}
	return c, nil
}

// cursor is a line reader with the rest of what it wrote last.
type cursor struct {
	r      lineReader
	next   int64 // byte of the body that is read next
	buf    [2 * room]byte
	lo, hi int // unread part of buf
}

// refill writes the next lines into buf.
func (c *cursor) refill(ctx context.Context) error {
	n, err := c.r.fill(ctx, c.buf[:])
	if err != nil {
		return err
	}
	if n == 0 {
		return fault.New("mapcsv.read", "", fault.Corrupt, "the lines end at byte %d, before the computed size", c.next)
	}
	c.lo, c.hi = 0, n
	return nil
}

// read fills p; the body must have that many bytes left. Lines go straight into p, only its last bytes through buf.
func (c *cursor) read(ctx context.Context, p []byte) (int, error) {
	n := 0
	for n < len(p) {
		k := 0
		switch {
		case c.lo < c.hi:
			k = copy(p[n:], c.buf[c.lo:c.hi])
			c.lo += k
		case len(p)-n >= room:
			var err error
			if k, err = c.r.fill(ctx, p[n:]); err != nil {
				return n, err
			}
			if k == 0 {
				return n, c.refill(ctx) // at the end, or an error
			}
		default:
			if err := c.refill(ctx); err != nil {
				return n, err
			}
		}
		n += k
		c.next += int64(k)
	}
	return n, nil
}
