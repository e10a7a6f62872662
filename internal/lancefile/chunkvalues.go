package lancefile

import (
	"context"
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/frifs/frifs/internal/pb"
)

// chunkedValues is a mini-block page of any type: buffer 0 the chunk words, 1 the chunks, then the dictionary items and
// the repetition index where there are any.
type chunkedValues struct {
	chunkedSpec
	nesting
	rep   *pb.CompressiveEncoding
	depth uint32 // of the repetition index
	shape shape
	cd    *codec
}

// maxValueBuffers bounds the value buffers of a chunk.
const maxValueBuffers = 8

func buildChunkedValues(cd *codec, p *pageInfo, c chunkedSpec, rep *pb.CompressiveEncoding, depth uint32, n nesting, s shape) (pageReader, error) {
	want := 2
	if c.dictionary != nil {
		want++
	}
	if depth > 0 {
		want++
	}
	switch {
	case len(p.buffers) != want:
		return nil, fmt.Errorf("chunked page has %d buffers, not %d", len(p.buffers), want)
	case n.lists == 0 && (rep != nil || depth > 0):
		return nil, fmt.Errorf("repetition in a page without lists")
	case n.lists > 0 && (rep == nil || depth == 0):
		return nil, &unknownError{what: "layout", detail: "lists without repetition levels or their index"}
	case n.lists == 0 && c.items != p.length:
		return nil, fmt.Errorf("%d items in a page of %d rows", c.items, p.length)
	case c.buffers == 0 || c.buffers > maxValueBuffers:
		return nil, fmt.Errorf("%d value buffers in a chunk, at most %d", c.buffers, maxValueBuffers)
	case depth > maxDepth:
		return nil, fmt.Errorf("repetition index of depth %d", depth)
	case c.dictionary != nil && (c.dictItems > c.items+1 || c.dictItems > 1<<24):
		return nil, fmt.Errorf("%d dictionary items for %d values", c.dictItems, c.items)
	}
	for _, e := range []*pb.CompressiveEncoding{rep, c.def} {
		if e == nil {
			continue
		}
		if bits, err := valueBits(e); err != nil {
			return nil, fmt.Errorf("levels: %w", err)
		} else if bits != 16 {
			return nil, fmt.Errorf("levels of %d bits, not 16", bits)
		}
	}
	word := uint64(2)
	if c.large {
		word = 4
	}
	if b := p.buffers[0].n; b%word != 0 || (b == 0) != (p.length == 0) {
		return nil, fmt.Errorf("chunk words of %d bytes for %d rows", b, p.length)
	}
	return &chunkedValues{chunkedSpec: c, nesting: n, rep: rep, depth: depth, shape: s, cd: cd}, nil
}

// rowIndex is the decoded index of a chunked page: where the chunks are, and for lists the number of rows that are
// complete by the end of each.
type rowIndex struct {
	chunkTable
	rows []uint64 // nil without lists
}

func (d *chunkedValues) index(ctx context.Context, c *columnInfo, p *pageInfo) (*rowIndex, error) {
	return cached(&c.cache, p.number, func() (*rowIndex, int, error) {
		b, err := c.slice(ctx, p, 0, 0, p.buffers[0].n)
		if err != nil {
			return nil, 0, err
		}
		t, err := parseChunks(b, d.large, d.items, p.buffers[1].n, d.lists > 0)
		if err != nil {
			return nil, 0, err
		}
		x := &rowIndex{chunkTable: *t}
		n := len(t.first) - 1
		if d.lists == 0 {
			return x, 16 * (n + 1), nil
		}
		k := len(p.buffers) - 1
		entry := 8 * uint64(d.depth+1)
		if p.buffers[k].n != entry*uint64(n) {
			return nil, 0, fmt.Errorf("repetition index of %d bytes for %d chunks, depth %d", p.buffers[k].n, n, d.depth)
		}
		if b, err = c.slice(ctx, p, k, 0, p.buffers[k].n); err != nil {
			return nil, 0, err
		}
		x.rows = make([]uint64, n+1)
		for i := range n {
			ends := binary.LittleEndian.Uint64(b[uint64(i)*entry:])
			if ends > p.length-x.rows[i] {
				return nil, 0, fmt.Errorf("chunk %d completes %d rows, %d are left", i, ends, p.length-x.rows[i])
			}
			x.rows[i+1] = x.rows[i] + ends
		}
		if x.rows[n] != p.length {
			return nil, 0, fmt.Errorf("chunks complete %d of %d rows", x.rows[n], p.length)
		}
		return x, 24 * (n + 1), nil
	})
}

// span returns the chunks [lo, hi) that hold rows [from, from+n), and the row that chunk lo begins with or goes on with.
func (x *rowIndex) span(from, n uint64) (lo, hi int, first uint64) {
	at := x.first
	if x.rows != nil {
		at = x.rows
	}
	last := len(at) - 1
	if x.rows == nil {
		lo = sort.Search(last, func(k int) bool { return at[k+1] > from })
		hi = sort.Search(last, func(k int) bool { return at[k+1] >= from+n }) + 1
		return lo, min(hi, last), at[lo]
	}
	// Row from begins where the row before it ends, or in the chunk after.
	if from > 0 {
		lo = sort.Search(last, func(k int) bool { return at[k+1] >= from })
	}
	hi = sort.Search(last, func(k int) bool { return at[k+1] >= from+n }) + 1
	return lo, min(hi, last), at[lo]
}

func (d *chunkedValues) read(ctx context.Context, c *columnInfo, p *pageInfo, from, n uint64) (*slots, error) {
	x, err := d.index(ctx, c, p)
	if err != nil {
		return nil, err
	}
	var dict *block
	if d.dictionary != nil {
		if dict, err = d.dict(ctx, c, p); err != nil {
			return nil, err
		}
	}
	lo, hi, first := x.span(from, n)
	out := &slots{}
	for lo < hi {
		stop := lo + 1
		for stop < hi && x.at[stop+1]-x.at[lo] <= readAhead {
			stop++
		}
		b, err := c.slice(ctx, p, 1, x.at[lo], x.at[stop]-x.at[lo])
		if err != nil {
			return nil, err
		}
		for base := x.at[lo]; lo < stop; lo++ {
			count := x.first[lo+1] - x.first[lo]
			skip, end := uint64(0), count
			if d.lists == 0 {
				skip, end = max(from, x.first[lo])-x.first[lo], min(from+n, x.first[lo+1])-x.first[lo]
			}
			if err := d.chunk(out, b[x.at[lo]-base:x.at[lo+1]-base], dict, count, skip, end); err != nil {
				return nil, fmt.Errorf("chunk %d @%d: %w", lo, p.buffers[1].off+x.at[lo], err)
			}
		}
	}
	if d.lists == 0 {
		out.levels = out.items.n
		return out, nil
	}
	skip, take, err := d.cut(out, first, from, n)
	if err != nil {
		return nil, err
	}
	out.items = out.items.slice(d.shape, skip, skip+take)
	return out, nil
}

// chunk appends values [skip, end) of a chunk of count values, and their levels; all levels where there are lists.
func (d *chunkedValues) chunk(out *slots, b []byte, dict *block, count, skip, end uint64) error {
	h, err := d.parts(b)
	if err != nil {
		return err
	}
	n := uint64(h.levels)
	if d.lists == 0 && n != count && (d.def != nil || n != 0) {
		return fmt.Errorf("%d levels for %d values", n, count)
	}
	var rep, def []uint16
	if d.rep != nil {
		rep = make([]uint16, n)
		if err := decodeWords(d.cd, d.rep, h.rep, rep); err != nil {
			return fmt.Errorf("repetition levels: %w", err)
		}
	}
	if d.def != nil {
		def = make([]uint16, n)
		if err := decodeWords(d.cd, d.def, h.def, def); err != nil {
			return fmt.Errorf("definition levels: %w", err)
		}
	}
	visible, err := d.count(rep, def)
	if err != nil {
		return err
	}
	if d.lists > 0 && visible != count {
		return fmt.Errorf("%d values, %d levels of values", count, visible)
	}
	if d.lists == 0 && def != nil {
		def = def[skip:end]
	}
	items, err := d.decode(h.bufs, dict, count, def, skip, end)
	if err != nil {
		return err
	}
	if d.rep != nil {
		out.rep = append(out.rep, rep...)
	}
	if d.def != nil {
		out.def = append(out.def, def...)
	}
	return out.items.add(d.shape, items)
}

// decode returns values [skip, end) of a chunk.
func (d *chunkedValues) decode(bufs [][]byte, dict *block, count uint64, def []uint16, skip, end uint64) (block, error) {
	if dict != nil {
		return d.lookUp(bufs, dict, count, def, skip, end)
	}
	items, err := d.cd.values(d.values, bufs, count, d.shape)
	if err != nil {
		return block{}, err
	}
	return items.slice(d.shape, skip, end), nil
}

// chunkParts is a chunk, split.
type chunkParts struct {
	levels   uint16
	rep, def []byte
	bufs     [][]byte
}

// parts splits a chunk: u16 level count, u16 sizes of repetition and definition levels where there are any, a size per
// value buffer (u16, or u32 in a large chunk); then the parts, each at a multiple of 8.
func (d *chunkedValues) parts(b []byte) (h chunkParts, err error) {
	word, pos := 2, 2
	if d.large {
		word = 4
	}
	head := 2 + word*int(d.buffers)
	for _, e := range []*pb.CompressiveEncoding{d.rep, d.def} {
		if e != nil {
			head += 2
		}
	}
	if len(b) < head {
		return h, fmt.Errorf("%d bytes are too few for a header of %d", len(b), head)
	}
	h.levels = binary.LittleEndian.Uint16(b)
	at := uint64(head)
	take := func(size int, what string) (part []byte) {
		n := uint64(loadWord[uint32](b[pos:][:size]))
		pos += size
		at = (at + 7) &^ 7
		if err == nil && (at > uint64(len(b)) || n > uint64(len(b))-at) {
			err = fmt.Errorf("%s of %d bytes at %d in %d bytes", what, n, at, len(b))
		}
		if err != nil {
			return nil
		}
		part = b[at : at+n]
		at += n
		return part
	}
	if d.rep != nil {
		h.rep = take(2, "repetition levels")
	}
	if d.def != nil {
		h.def = take(2, "definition levels")
	}
	for range d.buffers {
		h.bufs = append(h.bufs, take(word, "value buffer"))
	}
	return h, err
}
