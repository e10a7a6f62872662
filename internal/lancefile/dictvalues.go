package lancefile

import (
	"context"
	"fmt"

	"github.com/frifs/frifs/internal/pb"
)

// dict reads and keeps the dictionary of a page.
func (d *chunkedValues) dict(ctx context.Context, c *columnInfo, p *pageInfo) (*block, error) {
	return cached(&c.cache, p.number, func() (*block, int, error) {
		b, err := c.slice(ctx, p, 2, 0, p.buffers[2].n)
		if err != nil {
			return nil, 0, err
		}
		items, err := d.cd.items(d.dictionary, b, d.dictItems, d.shape)
		if err != nil {
			return nil, 0, fmt.Errorf("dictionary of %d items: %w", d.dictItems, err)
		}
		return &items, len(items.fixed) + len(items.bytes) + 8*len(items.offsets), nil
	})
}

// lookUp decodes the indices of a chunk of count values and returns the items of values [skip, end). def has the
// levels of those, or is nil; the index of a null value is not looked at.
func (d *chunkedValues) lookUp(bufs [][]byte, dict *block, count uint64, def []uint16, skip, end uint64) (block, error) {
	index, err := d.cd.indices(d.values, bufs, count)
	if err != nil {
		return block{}, fmt.Errorf("dictionary indices: %w", err)
	}
	out := block{}
	null, err := nullBlock(d.shape, 1)
	if err != nil {
		return block{}, err
	}
	k := 0 // level of the next value
	for i := skip; i < end; i++ {
		for def != nil && k < len(def) && def[k] > d.visible {
			k++
		}
		isNull := def != nil && k < len(def) && def[k] != 0
		k++
		item := null
		if index[i] < dict.n {
			item = dict.slice(d.shape, index[i], index[i]+1)
		} else if !isNull {
			return block{}, fmt.Errorf("value %d has index %d in a dictionary of %d", i, index[i], dict.n)
		}
		if err := out.add(d.shape, item); err != nil {
			return block{}, err
		}
	}
	return out, nil
}

// indices decodes count dictionary indices of any width.
func (c *codec) indices(e *pb.CompressiveEncoding, bufs [][]byte, count uint64) ([]uint64, error) {
	bits, err := valueBits(e)
	if err != nil {
		return nil, err
	}
	switch bits {
	case 8:
		return widened[uint8](c, e, bufs, count)
	case 16:
		return widened[uint16](c, e, bufs, count)
	case 32:
		return widened[uint32](c, e, bufs, count)
	case 64:
		return widened[uint64](c, e, bufs, count)
	}
	return nil, fmt.Errorf("indices of %d bits", bits)
}

func widened[T Word](c *codec, e *pb.CompressiveEncoding, bufs [][]byte, count uint64) ([]uint64, error) {
	t := make([]T, count)
	if err := miniBlock(c, e, bufs, t); err != nil {
		return nil, err
	}
	out := make([]uint64, count)
	for i, v := range t {
		out[i] = uint64(v)
	}
	return out, nil
}
