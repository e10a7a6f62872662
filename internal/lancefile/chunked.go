package lancefile

import (
	"context"
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/frifs/frifs/internal/pb"
)

// Limits of a chunk: values of a chunk with 16-bit words, and of any chunk (its level count is a u16).
const (
	maxSmallChunkLog    = 12
	maxSmallChunkValues = 1 << maxSmallChunkLog
	maxChunkValues      = 1<<16 - 1
)

// readAhead is how many bytes of chunks are fetched at once.
const readAhead = 1 << 20

// chunkedSpec is what a mini-block page says of itself, in either grammar.
type chunkedSpec struct {
	values, def, dictionary *pb.CompressiveEncoding
	dictItems               uint64
	buffers, items          uint64
	large                   bool // 32-bit chunk words and value sizes
	nullable                bool
}

// chunkedPage is a page of chunks: buffer 0 the chunk words, 1 the chunks, 2 the dictionary items if there is one.
type chunkedPage[T Element] struct {
	chunkedSpec
	cd *codec
}

// chunkTable says where the chunks of a page begin: value number and byte, with the totals at the end.
type chunkTable struct {
	first []uint64
	at    []uint64
}

func buildChunked[T Element](cd *codec, p *pageInfo, c chunkedSpec) (decoder[T], error) {
	want := 2
	if c.dictionary != nil {
		want = 3
	}
	if len(p.buffers) != want {
		return nil, fmt.Errorf("chunked page has %d buffers, not %d", len(p.buffers), want)
	}
	if c.items != p.length {
		return nil, fmt.Errorf("%d items in a page of %d rows", c.items, p.length)
	}
	if c.buffers == 0 || c.buffers > 2 {
		return nil, fmt.Errorf("%d value buffers in a chunk, at most 2 are used for integers", c.buffers)
	}
	bits, err := valueBits(c.values)
	if err != nil {
		return nil, err
	}
	size := width[T]()
	if c.dictionary == nil {
		if bits != 8*size {
			return nil, fmt.Errorf("values of %d bits where %d are expected", bits, 8*size)
		}
	} else {
		switch bits {
		case 8, 16, 32, 64:
		default:
			return nil, fmt.Errorf("dictionary indices of %d bits", bits)
		}
		if bits, err = valueBits(c.dictionary); err != nil {
			return nil, fmt.Errorf("dictionary: %w", err)
		}
		if bits != 8*size {
			return nil, fmt.Errorf("dictionary items of %d bits where %d are expected", bits, 8*size)
		}
		// A dictionary never has more items than the page has rows, and one more is room for a null.
		if c.dictItems > p.length+1 || c.dictItems > 1<<24 {
			return nil, fmt.Errorf("%d dictionary items for %d rows", c.dictItems, p.length)
		}
	}
	if c.def != nil {
		if bits, err = valueBits(c.def); err != nil {
			return nil, fmt.Errorf("definition levels: %w", err)
		}
		if bits != 16 {
			return nil, fmt.Errorf("definition levels of %d bits, not 16", bits)
		}
	}
	word := uint64(2)
	if c.large {
		word = 4
	}
	if n := p.buffers[0].n; n%word != 0 || (n == 0) != (p.length == 0) {
		return nil, fmt.Errorf("chunk words of %d bytes for %d rows", n, p.length)
	}
	return &chunkedPage[T]{chunkedSpec: c, cd: cd}, nil
}

// table reads the chunk words: (bytes/8 - 1) << 4 | log2(values), where the last chunk holds what is left.
func (d *chunkedPage[T]) table(ctx context.Context, c *Column[T], p *pageInfo, s *scratch[T]) (*chunkTable, error) {
	return cached(&c.cache, p.number, func() (*chunkTable, int, error) {
		b, err := piece(ctx, c, p, s, 0, 0, p.buffers[0].n)
		if err != nil {
			return nil, 0, err
		}
		t, err := parseChunks(b, d.large, p.length, p.buffers[1].n, false)
		if err != nil {
			return nil, 0, err
		}
		return t, 16 * len(t.first), nil
	})
}

// parseChunks reads chunk words, of which there is one at least, for so many items and bytes of chunks. A last chunk
// without items is an error unless empty allows it.
func parseChunks(b []byte, large bool, items, size uint64, empty bool) (*chunkTable, error) {
	word := 2
	if large {
		word = 4
	}
	n := len(b) / word
	t := &chunkTable{first: make([]uint64, n+1), at: make([]uint64, n+1)}
	for i := range n {
		w := loadWord[uint32](b[i*word:][:word])
		log := w & 15
		t.at[i+1] = t.at[i] + 8*(uint64(w>>4)+1)
		if t.at[i+1] > size {
			return nil, fmt.Errorf("chunk %d ends at byte %d of %d", i, t.at[i+1], size)
		}
		if !large && log > maxSmallChunkLog {
			return nil, fmt.Errorf("chunk %d has 2^%d values, at most %d", i, log, maxSmallChunkValues)
		}
		left := items - t.first[i]
		if i == n-1 {
			limit := uint64(maxChunkValues)
			if !large {
				limit = maxSmallChunkValues
			}
			if (left == 0 && !empty) || left > limit {
				return nil, fmt.Errorf("last chunk %d has %d values, at most %d", i, left, limit)
			}
			t.first[n] = items
			continue
		}
		if log == 0 || 1<<log > left {
			return nil, fmt.Errorf("chunk %d has 2^%d values of %d that are left", i, log, left)
		}
		t.first[i+1] = t.first[i] + 1<<log
	}
	return t, nil
}

func (d *chunkedPage[T]) read(ctx context.Context, c *Column[T], p *pageInfo, s *scratch[T], from uint64, dst []T, n *nulls) error {
	t, err := d.table(ctx, c, p, s)
	if err != nil {
		return err
	}
	var dict []T
	if d.dictionary != nil {
		if dict, err = d.items(ctx, c, p, s); err != nil {
			return err
		}
	}
	end := from + uint64(len(dst))
	k := sort.Search(len(t.first)-1, func(k int) bool { return t.first[k+1] > from })
	for done := 0; done < len(dst); {
		stop := k + 1
		for t.first[stop] < end && t.at[stop+1]-t.at[k] <= readAhead {
			stop++
		}
		b, err := piece(ctx, c, p, s, 1, t.at[k], t.at[stop]-t.at[k])
		if err != nil {
			return err
		}
		base := t.at[k]
		for ; k < stop; k++ {
			first := t.first[k]
			lo := int(from + uint64(done) - first)
			hi := int(min(t.first[k+1], end) - first)
			sub := n.at(done)
			if err := d.chunk(s, b[t.at[k]-base:t.at[k+1]-base], dict, int(t.first[k+1]-first), lo, hi, dst[done:done+hi-lo], &sub); err != nil {
				return fmt.Errorf("chunk %d @%d: %w", k, p.buffers[1].off+t.at[k], err)
			}
			n.seen += sub.seen
			done += hi - lo
		}
	}
	return nil
}

// header is a parsed chunk header.
type header struct {
	levels uint16
	def    []byte
	bufs   [2][]byte
}

// parse splits a chunk: u16 level count, u16 size of the definition levels if there are any, a size per value buffer
// (u16, or u32 in a large chunk); then the parts, each at a multiple of 8.
func (d *chunkedPage[T]) parse(b []byte) (h header, err error) {
	word := 2
	if d.large {
		word = 4
	}
	n := 2 + word*int(d.buffers)
	if d.def != nil {
		n += 2
	}
	if len(b) < n {
		return h, fmt.Errorf("%d bytes are too few for a header of %d", len(b), n)
	}
	h.levels = binary.LittleEndian.Uint16(b)
	at := 2
	pos := uint64(n)
	take := func(size uint64, what string) ([]byte, error) {
		pos = (pos + 7) &^ 7
		if pos > uint64(len(b)) || size > uint64(len(b))-pos {
			return nil, fmt.Errorf("%s of %d bytes at %d in %d bytes", what, size, pos, len(b))
		}
		part := b[pos : pos+size]
		pos += size
		return part, nil
	}
	if d.def != nil {
		size := binary.LittleEndian.Uint16(b[at:])
		at += 2
		if h.def, err = take(uint64(size), "definition levels"); err != nil {
			return h, err
		}
	}
	for i := range int(d.buffers) {
		size := loadWord[uint32](b[at:][:word])
		at += word
		if h.bufs[i], err = take(uint64(size), "value buffer"); err != nil {
			return h, err
		}
	}
	return h, nil
}

// chunk decodes values [lo, hi) of a chunk of count values into dst.
func (d *chunkedPage[T]) chunk(s *scratch[T], b []byte, dict []T, count, lo, hi int, dst []T, n *nulls) error {
	h, err := d.parse(b)
	if err != nil {
		return err
	}
	if d.def != nil {
		if int(h.levels) != count {
			return fmt.Errorf("%d definition levels for %d values", h.levels, count)
		}
		if dict != nil || hi-lo != count || !n.setPacked(d.def, h.def, count) {
			s.levels = grow(s.levels, count)
			if err := decodeWords(d.cd, d.def, h.def, s.levels); err != nil {
				return fmt.Errorf("definition levels: %w", err)
			}
			if bad := n.setLevels(s.levels[lo:hi]); bad >= 0 {
				return fmt.Errorf("value %d has definition level %d", lo+bad, s.levels[lo+bad])
			}
		}
		if n.seen > 0 && !d.nullable {
			return fmt.Errorf("%d null values in a page whose layer allows none", n.seen)
		}
	}
	bufs := h.bufs[:d.buffers]
	if dict != nil {
		return d.lookUp(s, bufs, dict, count, lo, dst)
	}
	if lo == 0 && hi == count {
		return miniBlock(d.cd, d.values, bufs, dst)
	}
	if u := d.values.GetInlineBitpacking(); u.GetUncompressedBits() == uint64(8*width[T]()) && u.GetCompression() == nil && count <= unitValues && len(bufs) == 1 {
		s.values = grow(s.values, unitValues)
		if err := unpackPart(bufs[0], (*[unitValues]T)(s.values), lo, hi); err != nil {
			return err
		}
		copy(dst, s.values[lo:hi])
		return nil
	}
	s.values = grow(s.values, count)
	if err := miniBlock(d.cd, d.values, bufs, s.values); err != nil {
		return err
	}
	copy(dst, s.values[lo:hi])
	return nil
}
