package lancefile

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"sort"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fault"
)

// Element is the type of a column's values.
type Element interface {
	uint16 | uint32 | uint64
}

// Column reads the rows of one column by range. It keeps the parsed page descriptions (some 200 bytes a page) and a
// few decoded page indexes.
type Column[T Element] struct {
	file   *File
	index  int
	name   string
	starts []uint64 // first row of each page, and the row count at the end
	pages  []page[T]
	cache  pageCache

	last      *encoding // of the page before, while pages are parsed
	lastBytes []byte
	pool      sync.Pool // *scratch[T]
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
// as many rows as the file. The name of the schema's field i, if there is one, serves in messages; its type is not
// looked at. Errors are fault.Corrupt, fault.Unsupported ("unsupported encoding N in column X") or the reader's.
func OpenColumn[T Element](ctx context.Context, f *File, i int) (*Column[T], error) {
	if i < 0 || i >= len(f.columns) {
		return nil, fault.New("lancefile.OpenColumn", "", fault.Invalid, "column %d of %d", i, len(f.columns))
	}
	c := &Column[T]{file: f, index: i, starts: []uint64{0}}
	if fields := f.Fields(); i < len(fields) {
		c.name = fields[i].GetName()
	}
	meta, err := f.src.slice(ctx, f.columns[i].off, f.columns[i].n)
	if err != nil {
		return nil, err
	}
	if err := c.parse(meta); err != nil {
		return nil, err
	}
	c.last, c.lastBytes = nil, nil
	if got := c.Rows(); got != f.Rows() {
		return nil, c.wrap(-1, f.columns[i].off, fmt.Errorf("its %d pages hold %d rows, the file %d", len(c.pages), got, f.Rows()))
	}
	return c, nil
}

// parse walks over a ColumnMetadata message and builds a page of each field 2; the message is never decoded whole.
func (c *Column[T]) parse(meta []byte) error {
	base := c.file.columns[c.index].off
	for b := meta; len(b) > 0; {
		off := base + uint64(len(meta)-len(b))
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return c.wrap(-1, off, fmt.Errorf("column metadata does not decode: %w", protowire.ParseError(n)))
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return c.wrap(-1, off, fmt.Errorf("column metadata does not decode: %w", protowire.ParseError(size)))
		}
		if num == 2 && typ == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(b[n:])
			if err := c.addPage(v, off); err != nil {
				return err
			}
		}
		b = b[n+size:]
	}
	return nil
}

// addPage parses one page description, which stands at byte off.
func (c *Column[T]) addPage(b []byte, off uint64) error {
	number := len(c.pages)
	d, err := parsePage(b)
	if err != nil {
		return c.wrap(number, off, fmt.Errorf("page does not decode: %w", err))
	}
	p := page[T]{pageInfo: pageInfo{number: number, length: d.length}}
	start := c.starts[number]
	if p.length > math.MaxInt64-start {
		return c.wrap(number, off, fmt.Errorf("page of %d rows after %d rows", p.length, start))
	}
	if len(d.offsets) != len(d.sizes) {
		return c.wrap(number, off, fmt.Errorf("%d buffer offsets and %d buffer sizes", len(d.offsets), len(d.sizes)))
	}
	p.buffers = make([]span, len(d.offsets))
	for k := range p.buffers {
		s := span{d.offsets[k], d.sizes[k]}
		if s.off > c.file.src.size || s.n > c.file.src.size-s.off {
			return c.wrap(number, off, fmt.Errorf("buffer %d (%d bytes at %d) lies outside the file of %d bytes", k, s.n, s.off, c.file.src.size))
		}
		if c.file.foot.version > V20 && s.off%64 != 0 {
			return c.wrap(number, off, fmt.Errorf("buffer %d starts at %d, which is not a multiple of 64", k, s.off))
		}
		p.buffers[k] = s
	}
	if c.last == nil || !bytes.Equal(d.encoding, c.lastBytes) {
		// Pages of a column mostly say the same; what was parsed is built into each page anew.
		if c.last, err = parseEncoding(d.encoding); err != nil {
			return c.wrap(number, off, err)
		}
		c.lastBytes = d.encoding
	}
	if p.rows, err = buildPage[T](c, &p.pageInfo, c.last); err != nil {
		return c.wrap(number, off, err)
	}
	c.pages = append(c.pages, p)
	c.starts = append(c.starts, start+p.length)
	return nil
}

// wrap names column, page (unless negative) and byte in an error of decoding, which becomes fault.Corrupt or
// fault.Unsupported. Errors that have a kind keep it.
func (c *Column[T]) wrap(number int, off uint64, err error) error {
	if err == nil {
		return nil
	}
	where := fmt.Sprintf("column %d", c.index)
	if c.name != "" {
		where += fmt.Sprintf(" %q", c.name)
	}
	if number >= 0 {
		where += fmt.Sprintf(", page %d", number)
	}
	if isUnknown(err) {
		return fault.New("lancefile.Column", at(off), fault.Unsupported, "%w in %s", err, where)
	}
	kind := fault.KindOf(err)
	if kind == fault.Unknown {
		kind = fault.Corrupt
	}
	return fault.New("lancefile.Column", at(off), kind, "%s: %w", where, err)
}

// Rows returns the number of rows.
func (c *Column[T]) Rows() uint64 { return c.starts[len(c.starts)-1] }

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
