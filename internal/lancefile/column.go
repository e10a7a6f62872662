package lancefile

import (
	"context"
	"fmt"
	"sort"
	"sync"

	"github.com/frifs/frifs/fault"
)

// Element is the type of a column's values.
type Element interface {
	uint16 | uint32 | ~uint64
}

// Column reads the rows of one column by range. It keeps the parsed page descriptions (some 200 bytes a page) and a
// few decoded page indexes.
type Column[T Element] struct {
	columnInfo
	pages []page[T]
	pool  sync.Pool // *scratch[T]
}

// page is a parsed page of a column.
type page[T Element] struct {
	pageInfo
	rows decoder[T]
}

// pageInfo is what a decoder needs to know of its page.
type pageInfo struct {
	number  int
	length  uint64 // rows
	buffers []span
}

// decoder decodes rows [from, from+len(dst)) of a page, which lie within it; len(dst) > 0. Null rows are marked in n,
// their slots in dst get any value.
type decoder[T Element] interface {
	read(ctx context.Context, c *Column[T], p *pageInfo, s *scratch[T], from uint64, dst []T, n *nulls) error
}

// scratch holds buffers that one read reuses.
type scratch[T Element] struct {
	bytes  []byte
	values []T
	levels []uint16
	index  []uint32
}

// OpenColumn parses the page descriptions of column i as a column of T without nesting, and checks that its pages hold
// as many rows as the file. The name of the column's field, if there is one, serves in messages; its type is not
// looked at. Errors are fault.Corrupt, fault.Unsupported ("unsupported encoding N in column X") or the reader's.
func OpenColumn[T Element](ctx context.Context, f *File, i int) (*Column[T], error) {
	if i < 0 || i >= len(f.columns) {
		return nil, fault.New("lancefile.OpenColumn", "", fault.Invalid, "column %d of %d", i, len(f.columns))
	}
	c := &Column[T]{}
	err := c.load(ctx, f, i, func(p *pageInfo, e *encoding) error {
		d, err := buildPage[T](c, p, e)
		if err != nil {
			return err
		}
		c.pages = append(c.pages, page[T]{*p, d})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if got := c.Rows(); got != f.Rows() {
		return nil, c.wrap(-1, f.columns[i].off, fmt.Errorf("its %d pages hold %d rows, the file %d", len(c.pages), got, f.Rows()))
	}
	return c, nil
}

// Read decodes rows [from, from+len(dst)) into dst and returns how many of them are null. Bit i of nullBits (bit i%64
// of word i/64) is set for each null row i of the range, whose slot in dst then holds an arbitrary value; the other
// bits are cleared, up to the end of the last word that the range needs. A nil nullBits means that a null is an error
// (fault.Corrupt). A range outside the column is fault.Invalid.
func (c *Column[T]) Read(ctx context.Context, from uint64, dst []T, nullBits []uint64) (int, error) {
	if from > c.Rows() || uint64(len(dst)) > c.Rows()-from {
		return 0, fault.New("lancefile.Read", "", fault.Invalid, "column %d has no rows [%d, %d)", c.index, from, from+uint64(len(dst)))
	}
	if nullBits != nil {
		words := (len(dst) + 63) / 64
		if len(nullBits) < words {
			return 0, fault.New("lancefile.Read", "", fault.Invalid, "%d words for %d null bits", len(nullBits), len(dst))
		}
		clear(nullBits[:words])
	}
	s, ok := c.pool.Get().(*scratch[T])
	if !ok {
		s = &scratch[T]{}
	}
	defer c.pool.Put(s)
	seen := 0
	k := sort.Search(len(c.pages), func(k int) bool { return c.starts[k+1] > from })
	for done := 0; done < len(dst); k++ {
		p := &c.pages[k]
		row := from + uint64(done) - c.starts[k]
		take := int(min(uint64(len(dst)-done), p.length-row))
		if take == 0 {
			continue
		}
		n := nulls{words: nullBits, base: done}
		if err := p.rows.read(ctx, c, &p.pageInfo, s, row, dst[done:done+take], &n); err != nil {
			return 0, c.wrap(k, firstOffset(&p.pageInfo), err)
		}
		if n.seen > 0 && nullBits == nil {
			return 0, c.wrap(k, firstOffset(&p.pageInfo), fmt.Errorf("%d null values in a column without nulls", n.seen))
		}
		seen += n.seen
		done += take
	}
	return seen, nil
}

// firstOffset is the byte of a page that messages name.
func firstOffset(p *pageInfo) uint64 {
	if len(p.buffers) > 0 {
		return p.buffers[0].off
	}
	return 0
}

// piece reads n bytes at byte off of buffer k into the scratch, valid until the next call.
func piece[T Element](ctx context.Context, c *Column[T], p *pageInfo, s *scratch[T], k int, off, n uint64) ([]byte, error) {
	b := p.buffers[k]
	if off > b.n || n > b.n-off {
		return nil, fmt.Errorf("buffer %d of %d bytes has no %d bytes at %d", k, b.n, n, off)
	}
	s.bytes = grow(s.bytes, int(n))
	return s.bytes, c.file.src.readFull(ctx, s.bytes, b.off+off)
}

// grow returns a slice of length n, with old content or not.
func grow[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n)
	}
	return s[:n]
}
