package lancefile

import (
	"context"
	"fmt"
)

// items reads and keeps the dictionary of a page.
func (d *chunkedPage[T]) items(ctx context.Context, c *Column[T], p *pageInfo, s *scratch[T]) ([]T, error) {
	v, err := cached(&c.cache, p.number, func() (*[]T, int, error) {
		b, err := piece(ctx, c, p, s, 2, 0, p.buffers[2].n)
		if err != nil {
			return nil, 0, err
		}
		items := make([]T, d.dictItems)
		if err := decodeWords(d.cd, d.dictionary, b, items); err != nil {
			return nil, 0, fmt.Errorf("dictionary of %d items: %w", d.dictItems, err)
		}
		return &items, len(items) * width[T](), nil
	})
	if err != nil {
		return nil, err
	}
	return *v, nil
}

// lookUp decodes the indices of a chunk and puts the items from value lo on into dst. The index of a null row is not
// looked at.
func (d *chunkedPage[T]) lookUp(s *scratch[T], bufs [][]byte, dict []T, count, lo int, dst []T) error {
	bits, err := valueBits(d.values)
	if err != nil {
		return err
	}
	s.index = grow(s.index, count)
	switch bits {
	case 8:
		err = widen[uint8](d.cd, d, bufs, s.index)
	case 16:
		err = widen[uint16](d.cd, d, bufs, s.index)
	case 64:
		err = widen[uint64](d.cd, d, bufs, s.index)
	default:
		err = miniBlock(d.cd, d.values, bufs, s.index)
	}
	if err != nil {
		return fmt.Errorf("dictionary indices: %w", err)
	}
	for i := range dst {
		k := s.index[lo+i]
		if uint64(k) >= uint64(len(dict)) {
			if d.def != nil && s.levels[lo+i] != 0 {
				dst[i] = 0
				continue
			}
			return fmt.Errorf("value %d has index %d in a dictionary of %d", lo+i, k, len(dict))
		}
		dst[i] = dict[k]
	}
	return nil
}

// widen decodes indices of another width than 32 bits; what does not fit becomes an index that is never valid.
func widen[I Word, T Element](cd *codec, d *chunkedPage[T], bufs [][]byte, out []uint32) error {
	t := make([]I, len(out))
	if err := miniBlock(cd, d.values, bufs, t); err != nil {
		return err
	}
	for i, v := range t {
		out[i] = uint32(min(uint64(v), 1<<32-1))
	}
	return nil
}
