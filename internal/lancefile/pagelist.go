package lancefile

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fault"
)

// columnInfo is what any reader of a column knows of it: where it is, how its rows are spread over pages, and the page
// indexes decoded last.
type columnInfo struct {
	file   *File
	index  int
	name   string
	starts []uint64 // first row of each page, and the row count at the end
	cache  pageCache
}

// Rows returns the number of rows.
func (c *columnInfo) Rows() uint64 { return c.starts[len(c.starts)-1] }

// load walks over the ColumnMetadata message of column i and calls build for each page, field 2; the message is never
// decoded whole. Errors of build are named after column and page.
func (c *columnInfo) load(ctx context.Context, f *File, i int, build func(p *pageInfo, e *encoding) error) error {
	c.file, c.index, c.starts = f, i, []uint64{0}
	c.name = f.columnName(i)
	meta, err := f.src.slice(ctx, f.columns[i].off, f.columns[i].n)
	if err != nil {
		return err
	}
	base := f.columns[i].off
	var last *encoding // pages of a column mostly say the same; what was parsed is built into each page anew
	var lastBytes []byte
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
			number := len(c.starts) - 1
			p, enc, err := c.page(v, number)
			if err != nil {
				return c.wrap(number, off, err)
			}
			if last == nil || !bytes.Equal(enc, lastBytes) {
				if last, err = parseEncoding(enc); err != nil {
					return c.wrap(number, off, err)
				}
				lastBytes = enc
			}
			if err := build(p, last); err != nil {
				return c.wrap(number, off, err)
			}
			c.starts = append(c.starts, c.starts[number]+p.length)
		}
		b = b[n+size:]
	}
	return nil
}

// page parses one page description and returns it with its encoding message.
func (c *columnInfo) page(b []byte, number int) (*pageInfo, []byte, error) {
	d, err := parsePage(b)
	if err != nil {
		return nil, nil, fmt.Errorf("page does not decode: %w", err)
	}
	p := &pageInfo{number: number, length: d.length}
	if start := c.starts[number]; p.length > math.MaxInt64-start {
		return nil, nil, fmt.Errorf("page of %d rows after %d rows", p.length, start)
	}
	if len(d.offsets) != len(d.sizes) {
		return nil, nil, fmt.Errorf("%d buffer offsets and %d buffer sizes", len(d.offsets), len(d.sizes))
	}
	p.buffers = make([]span, len(d.offsets))
	for k := range p.buffers {
		s := span{d.offsets[k], d.sizes[k]}
		if s.off > c.file.src.size || s.n > c.file.src.size-s.off {
			return nil, nil, fmt.Errorf("buffer %d (%d bytes at %d) lies outside the file of %d bytes", k, s.n, s.off, c.file.src.size)
		}
		if c.file.foot.version > V20 && s.off%64 != 0 {
			return nil, nil, fmt.Errorf("buffer %d starts at %d, which is not a multiple of 64", k, s.off)
		}
		p.buffers[k] = s
	}
	return p, d.encoding, nil
}

// wrap names column, page (unless negative) and byte in an error of decoding, which becomes fault.Corrupt or
// fault.Unsupported. Errors that have a kind keep it.
func (c *columnInfo) wrap(number int, off uint64, err error) error {
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

// slice reads n bytes at byte off of buffer k of a page into a new slice.
func (c *columnInfo) slice(ctx context.Context, p *pageInfo, k int, off, n uint64) ([]byte, error) {
	b := p.buffers[k]
	if off > b.n || n > b.n-off {
		return nil, fmt.Errorf("buffer %d of %d bytes has no %d bytes at %d", k, b.n, n, off)
	}
	return c.file.src.slice(ctx, b.off+off, n)
}
