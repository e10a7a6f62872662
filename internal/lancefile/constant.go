package lancefile

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/frifs/frifs/internal/pb"
)

// allNull is a page whose rows are all null.
type allNull[T Element] struct{}

func (allNull[T]) read(_ context.Context, _ *Column[T], _ *pageInfo, _ *scratch[T], _ uint64, dst []T, n *nulls) error {
	clear(dst)
	n.setRun(0, len(dst))
	return nil
}

// constantPage is a page with one value in all rows that are not null.
type constantPage[T Element] struct {
	value   T
	def     int // buffer of raw u16 definition levels, or -1
	nothing bool
}

// scalarPage is a page with one value in all rows.
func scalarPage[T Element](p *pageInfo, scalar []byte) (decoder[T], error) {
	if len(scalar) != width[T]() {
		return nil, fmt.Errorf("constant of %d bytes for values of %d bits", len(scalar), 8*width[T]())
	}
	if len(p.buffers) != 0 {
		return nil, fmt.Errorf("constant page has %d buffers", len(p.buffers))
	}
	return constantPage[T]{value: loadWord[T](scalar), def: -1}, nil
}

// buildConstant builds a constant page of the 2.1 grammar. The number of page buffers tells the form
// (docs/FORMAT.md, "Lance file"): with an inline value 0 or 2 (repetition, definition), else 0 or 2 for nulls only, 1
// or 3 for a value that is the page's first buffer.
func buildConstant[T Element](cd *codec, p *pageInfo, m *pb.PageLayout_Constant, nullable bool) (decoder[T], error) {
	count := len(p.buffers)
	if m.InlineValue == nil && count%2 == 1 && count <= 3 {
		// The value is read with each request: it is a few bytes, and such pages are not written for integers.
		if m.GetRepCompression() != nil || m.GetDefCompression() != nil {
			return nil, fmt.Errorf("compressed levels beside a value in a buffer")
		}
		if err := rawLevels(p, 1, count-1, nullable); err != nil {
			return nil, err
		}
		d := scalarBuffer[T]{constantPage[T]{def: -1}}
		if count == 3 {
			d.def = 2
		}
		return d, nil
	}
	if count != 0 && count != 2 {
		return nil, fmt.Errorf("constant page with %d buffers", count)
	}
	d := constantPage[T]{def: -1, nothing: m.InlineValue == nil}
	if m.InlineValue != nil {
		if len(m.InlineValue) != width[T]() {
			return nil, fmt.Errorf("constant of %d bytes for values of %d bits", len(m.InlineValue), 8*width[T]())
		}
		d.value = loadWord[T](m.InlineValue)
	}
	if count == 0 {
		switch {
		case m.GetDefCompression() != nil || m.GetRepCompression() != nil:
			return nil, fmt.Errorf("compressed levels without a buffer")
		case !d.nothing:
			return d, nil
		case !nullable:
			return nil, fmt.Errorf("constant page without a value whose layer allows no null")
		}
		return allNull[T]{}, nil
	}
	if m.GetDefCompression() == nil {
		if err := rawLevels(p, 0, count, nullable); err != nil {
			return nil, err
		}
		if p.buffers[1].n > 0 || p.length == 0 {
			d.def = 1
			return d, nil
		}
		if d.nothing {
			return allNull[T]{}, nil
		}
		return d, nil
	}
	return buildPackedLevels[T](cd, p, m, d, nullable)
}

// rawLevels checks the repetition buffer (k), which must be empty, and the definition buffer (k+1): empty or a u16 per
// row.
func rawLevels(p *pageInfo, k, n int, nullable bool) error {
	if n == 0 {
		return nil
	}
	if p.buffers[k].n != 0 {
		return &unknownError{what: "layout", detail: "repetition in a flat column"}
	}
	have := p.buffers[k+1].n
	if have != 0 && (have != bytesFor(p.length, 16) || !nullable) {
		return fmt.Errorf("%d bytes of definition levels for %d rows, nullable %v", have, p.length, nullable)
	}
	return nil
}

func (d constantPage[T]) read(ctx context.Context, c *Column[T], p *pageInfo, s *scratch[T], from uint64, dst []T, n *nulls) error {
	fill(dst, d.value)
	if d.def < 0 || p.buffers[d.def].n == 0 {
		return nil
	}
	b, err := piece(ctx, c, p, s, d.def, 2*from, 2*uint64(len(dst)))
	if err != nil {
		return err
	}
	s.levels = grow(s.levels, len(dst))
	loadWords(b, s.levels)
	if bad := n.setLevels(s.levels); bad >= 0 {
		return fmt.Errorf("row %d has definition level %d", from+uint64(bad), s.levels[bad])
	}
	if d.nothing && n.seen != len(dst) {
		return fmt.Errorf("%d rows of a page without a value are not null", len(dst)-n.seen)
	}
	return nil
}

// scalarBuffer is a constant page whose value stands in buffer 0: u32 number of buffers, u32 length of each, the
// buffers of a one-element array; for an integer one buffer with the value.
type scalarBuffer[T Element] struct{ constantPage[T] }

func (d scalarBuffer[T]) read(ctx context.Context, c *Column[T], p *pageInfo, s *scratch[T], from uint64, dst []T, n *nulls) error {
	size := width[T]()
	b, err := piece(ctx, c, p, s, 0, 0, min(p.buffers[0].n, uint64(8+size)))
	if err != nil {
		return err
	}
	if len(b) < 8+size || binary.LittleEndian.Uint32(b) != 1 || binary.LittleEndian.Uint32(b[4:]) != uint32(size) {
		return fmt.Errorf("constant value is not one buffer of %d bytes", size)
	}
	d.value = loadWord[T](b[8:][:size])
	return d.constantPage.read(ctx, c, p, s, from, dst, n)
}

// maxPackedLevels bounds the rows of a constant page with compressed levels: they are decoded as a whole.
const maxPackedLevels = 1 << 24

// packedLevels is a constant page whose definition levels are compressed.
type packedLevels[T Element] struct {
	constantPage[T]
	cd  *codec
	enc *pb.CompressiveEncoding
}

func buildPackedLevels[T Element](cd *codec, p *pageInfo, m *pb.PageLayout_Constant, d constantPage[T], nullable bool) (decoder[T], error) {
	if m.GetRepCompression() != nil || p.buffers[0].n != 0 {
		return nil, &unknownError{what: "layout", detail: "repetition in a flat column"}
	}
	bits, err := valueBits(m.GetDefCompression())
	switch {
	case err != nil:
		return nil, fmt.Errorf("definition levels: %w", err)
	case bits != 16:
		return nil, fmt.Errorf("definition levels of %d bits, not 16", bits)
	case !nullable:
		return nil, fmt.Errorf("definition levels in a page whose layer allows no null")
	case m.GetNumDefValues() != p.length:
		return nil, fmt.Errorf("%d definition levels for %d rows", m.GetNumDefValues(), p.length)
	case p.length > maxPackedLevels:
		return nil, &unknownError{what: "layout", detail: fmt.Sprintf("%d compressed definition levels in one page, at most %d", p.length, maxPackedLevels)}
	}
	return &packedLevels[T]{constantPage: d, cd: cd, enc: m.GetDefCompression()}, nil
}

func (d *packedLevels[T]) read(ctx context.Context, c *Column[T], p *pageInfo, s *scratch[T], from uint64, dst []T, n *nulls) error {
	set, err := cached(&c.cache, p.number, func() (*rowSet, int, error) {
		b, err := piece(ctx, c, p, s, 1, 0, p.buffers[1].n)
		if err != nil {
			return nil, 0, err
		}
		levels := make([]uint16, p.length)
		if err := decodeWords(d.cd, d.enc, b, levels); err != nil {
			return nil, 0, fmt.Errorf("definition levels: %w", err)
		}
		set := &rowSet{words: make([]uint64, (len(levels)+63)/64), nulls: true}
		all := nulls{words: set.words}
		if bad := all.setLevels(levels); bad >= 0 {
			return nil, 0, fmt.Errorf("row %d has definition level %d", bad, levels[bad])
		}
		if d.nothing && all.seen != len(levels) {
			return nil, 0, fmt.Errorf("%d rows of a page without a value are not null", len(levels)-all.seen)
		}
		return set, 8 * len(set.words), nil
	})
	if err != nil {
		return err
	}
	fill(dst, d.value)
	set.mark(from, len(dst), n)
	return nil
}
