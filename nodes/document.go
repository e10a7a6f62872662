package nodes

import (
	"context"
	"sort"
	"sync/atomic"
)

const (
	checkpointBytes = 1 << 20 // a rendered document has a checkpoint about every MiB
	keepBytes       = 1 << 20 // documents up to this size are kept as bytes
)

// piece is a run of n consecutive parts of a document; part i is appended by fn(e, i) and by nothing else, so that
// rendering can start at any part.
type piece struct {
	n     int
	depth int
	first bool // part 0 is the first in its container
	fn    func(e *enc, i int)
}

// document is text as an ordered list of parts that render independently. Parts must be pure functions of immutable
// data: rendering twice gives the same bytes.
type document struct {
	pieces   []piece
	costlyID bool // parts hold fixed-width values that cost reading: do not read them to learn the size
}

// cursor is a place in a document: the part to render next, and the byte where it starts.
type cursor struct {
	piece, part int
	off         int64
}

// walk renders parts from c on, handing each chunk of text to emit until it returns false or the document ends. The
// chunk is only valid during the call.
func (d *document) walk(ctx context.Context, c *cursor, sizing bool, emit func(b []byte) bool) error {
	e := &enc{ctx: ctx, sizing: sizing, b: make([]byte, 0, 4096)}
	for n := 0; c.piece < len(d.pieces); c.piece, c.part = c.piece+1, 0 {
		p := &d.pieces[c.piece]
		for c.part < p.n {
			if n++; n&255 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			e.b, e.depth, e.first = e.b[:0], p.depth, p.first && c.part == 0
			p.fn(e, c.part)
			if e.err != nil {
				return e.err
			}
			c.part++
			c.off += int64(len(e.b))
			if !emit(e.b) {
				return nil
			}
		}
	}
	return nil
}

// rendered is a document with its size and checkpoints, and its bytes when it is small.
type rendered struct {
	doc    *document
	size   int64
	points []cursor
	// bytes is the whole text of a small document. Where parts cost reading it is set by the first read.
	bytes atomic.Pointer[[]byte]
}

// render makes the counting pass.
func (d *document) render(ctx context.Context) (*rendered, error) {
	r := &rendered{doc: d, points: []cursor{{}}}
	var (
		c    cursor
		keep = make([]byte, 0, 1024)
	)
	err := d.walk(ctx, &c, d.costlyID, func(b []byte) bool {
		if !d.costlyID && c.off <= keepBytes {
			keep = append(keep, b...)
		}
		if c.off-r.points[len(r.points)-1].off >= checkpointBytes {
			r.points = append(r.points, c)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	r.size = c.off
	if !d.costlyID && r.size <= keepBytes {
		r.bytes.Store(&keep)
	}
	return r, nil
}

// cost is what the rendered document holds in memory, roughly, in bytes.
func (r *rendered) cost() int64 {
	return min(r.size, keepBytes) + int64(len(r.doc.pieces))*64 + int64(len(r.points))*24 + 256
}

// readAt fills p from off on, starting at start or at the nearest checkpoint, and returns the place where a reader that
// goes on sequentially should start, with the text already rendered behind it.
func (r *rendered) readAt(ctx context.Context, p []byte, off int64, at *tail) (n int, err error) {
	if off >= r.size || len(p) == 0 {
		return 0, nil
	}
	if b, err := r.whole(ctx); b != nil || err != nil {
		return copy(p, b[min(off, int64(len(b))):]), err
	}
	var c cursor
	if at != nil && at.from() <= off && off-at.from() < checkpointBytes && at.next.off > 0 {
		c = at.next
		if off < c.off {
			n = copy(p, at.text[off-at.from():])
		}
		if n == len(p) {
			at.text = at.text[off+int64(n)-at.from():]
			return n, nil
		}
	} else {
		i := sort.Search(len(r.points), func(i int) bool { return r.points[i].off > off }) - 1
		c = r.points[i]
	}
	var rest []byte
	err = r.doc.walk(ctx, &c, false, func(b []byte) bool {
		start := c.off - int64(len(b))
		if skip := off + int64(n) - start; skip > 0 {
			if skip >= int64(len(b)) {
				return true
			}
			b = b[skip:]
		}
		m := copy(p[n:], b)
		n += m
		if n == len(p) {
			rest = append(rest, b[m:]...)
			return false
		}
		return true
	})
	if err != nil {
		return 0, err
	}
	if at != nil {
		at.next, at.text = c, rest
	}
	return n, nil
}

// whole returns the text of a small document, rendering it if that was put off; nil for a large one.
func (r *rendered) whole(ctx context.Context) ([]byte, error) {
	if b := r.bytes.Load(); b != nil {
		return *b, nil
	}
	if r.size > keepBytes {
		return nil, nil
	}
	b := make([]byte, 0, r.size)
	err := r.doc.walk(ctx, &cursor{}, false, func(part []byte) bool {
		b = append(b, part...)
		return true
	})
	if err != nil {
		return nil, err
	}
	r.bytes.Store(&b)
	return b, nil
}

// tail is where a sequential reader stands: text ends at next.off and was rendered already.
type tail struct {
	next cursor
	text []byte
}

func (t *tail) from() int64 { return t.next.off - int64(len(t.text)) }
