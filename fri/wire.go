package fri

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
)

// Wire types of the protobuf encoding.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireStart   = 3
	wireEnd     = 4
	wireFixed32 = 5

	maxGroupDepth = 100 // nesting of unknown groups; Lance's decoder has the same limit
)

// violation is a breach of the format at byte off of the content, or of the record where a record is parsed. It is an
// error only inside the package: callers turn it into a finding.
type violation struct {
	off int64
	msg string
}

func (v *violation) Error() string { return fmt.Sprintf("byte %d: %s", v.off, v.msg) }

func violationf(off int64, format string, args ...any) error {
	return &violation{off: off, msg: fmt.Sprintf(format, args...)}
}

// ruleError is a violation that spoils the whole history: the rule it breaks, and what is wrong.
type ruleError struct {
	rule int // 0: a limit of frifs
	err  error
}

func (e *ruleError) Error() string {
	if e.rule == 0 {
		return e.err.Error()
	}
	return fmt.Sprintf("rule %d: %v", e.rule, e.err)
}

func (e *ruleError) Unwrap() error { return e.err }

// window reads a Reader through one buffer. Reading on costs large reads, so that neighbouring fields cost one; a
// read far behind the buffer is a jump over a payload and costs a small one.
type window struct {
	ctx   context.Context
	r     Reader
	size  int64 // of r
	ahead int   // bytes of a read that goes on
	gap   int64 // a read that starts further behind the buffer than this is a jump; 0: there are no jumps
	buf   []byte
	off   int64 // of buf in r
}

// jumpLen is what a jump reads at least, in bytes.
const jumpLen = 4 << 10

// peek returns the bytes [off, off+n), cut at the end of r. The slice is valid until the next peek.
func (w *window) peek(off int64, n int) ([]byte, error) { return w.peekJump(off, n, jumpLen-n) }

// peekJump is peek that reads `more` bytes behind [off, off+n) where it jumps.
func (w *window) peekJump(off int64, n, more int) ([]byte, error) {
	if off >= w.size {
		return nil, nil
	}
	n = int(min(int64(n), w.size-off))
	if at := off - w.off; at >= 0 && at+int64(n) <= int64(len(w.buf)) {
		return w.buf[at : at+int64(n)], nil
	}
	want := max(n, w.ahead)
	if w.gap > 0 && off > w.off+int64(len(w.buf))+w.gap {
		want = n + max(more, 0)
	}
	want = int(min(int64(want), w.size-off))
	if cap(w.buf) < want {
		w.buf = make([]byte, want)
	}
	w.buf = w.buf[:want]
	w.off = off
	if err := readFull(w.ctx, w.r, w.buf, off); err != nil {
		w.buf = w.buf[:0]
		return nil, err
	}
	return w.buf[:n], nil
}

// cursor walks the fields of one message, the bytes [pos, end) of the window's reader.
type cursor struct {
	w        *window
	pos, end int64
}

// field is one field of a message: for varints val is the value; for length-delimited fields [off, off+n) is the
// payload; otherwise [off, off+n) are the value's bytes.
type field struct {
	num  uint32
	typ  uint8
	key  int64 // offset of the key
	off  int64
	n    int64
	val  uint64
	next int64 // offset behind the field
}

// varint reads one varint.
func (c *cursor) varint(what string) (uint64, error) {
	b, err := c.w.peek(c.pos, int(min(binary.MaxVarintLen64, c.end-c.pos)))
	if err != nil {
		return 0, err
	}
	v, n := binary.Uvarint(b)
	switch {
	case n > 0:
		c.pos += int64(n)
		return v, nil
	case n == 0 && len(b) < binary.MaxVarintLen64:
		return 0, violationf(c.pos, "truncated %s", what)
	default:
		return 0, violationf(c.pos, "%s longer than 64 bits", what)
	}
}

// next reads one field and steps behind it; ok is false at the end of the message.
func (c *cursor) next() (f field, ok bool, err error) {
	if c.pos >= c.end {
		return field{}, false, nil
	}
	if f, err = c.head(); err != nil {
		return field{}, false, err
	}
	if err = c.value(&f, 0); err != nil {
		return field{}, false, err
	}
	f.next = c.pos
	return f, true, nil
}

// head reads a key.
func (c *cursor) head() (field, error) {
	f := field{key: c.pos}
	k, err := c.varint("key")
	if err != nil {
		return f, err
	}
	if k > math.MaxUint32 {
		return f, violationf(f.key, "bad key %d: the field number is too large", k)
	}
	f.num, f.typ = uint32(k>>3), uint8(k&7)
	if f.num == 0 {
		return f, violationf(f.key, "field number 0")
	}
	return f, nil
}

// value steps over the value of f and fills in where it lies.
func (c *cursor) value(f *field, depth int) error {
	f.off = c.pos
	switch f.typ {
	case wireVarint:
		v, err := c.varint("varint")
		if err != nil {
			return err
		}
		f.val, f.n = v, c.pos-f.off
	case wireFixed64, wireFixed32:
		f.n = 8
		if f.typ == wireFixed32 {
			f.n = 4
		}
		if f.n > c.end-c.pos {
			return violationf(f.key, "field %d needs %d bytes, %d are left", f.num, f.n, c.end-c.pos)
		}
		c.pos += f.n
	case wireBytes:
		n, err := c.varint("length")
		if err != nil {
			return err
		}
		if n > uint64(c.end-c.pos) {
			return violationf(f.key, "field %d is %d bytes long, %d are left", f.num, n, c.end-c.pos)
		}
		f.off, f.n = c.pos, int64(n)
		c.pos += f.n
	case wireStart:
		return c.group(f, depth)
	default:
		return violationf(f.key, "bad key: field %d has wire type %d", f.num, f.typ)
	}
	return nil
}

// group steps over an (obsolete) group up to its end key.
func (c *cursor) group(f *field, depth int) error {
	if depth >= maxGroupDepth {
		return violationf(f.key, "groups are nested deeper than %d", maxGroupDepth)
	}
	for {
		if c.pos >= c.end {
			return violationf(f.key, "group %d has no end", f.num)
		}
		in, err := c.head()
		if err != nil {
			return err
		}
		if in.typ == wireEnd {
			if in.num != f.num {
				return violationf(in.key, "group %d ends as group %d", f.num, in.num)
			}
			f.n = in.key - f.off
			return nil
		}
		if err := c.value(&in, depth+1); err != nil {
			return err
		}
	}
}

// sub returns a cursor over the payload of a length-delimited field.
func (c *cursor) sub(f field) *cursor { return &cursor{w: c.w, pos: f.off, end: f.off + f.n} }
