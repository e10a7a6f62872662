package lancefile

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/frifs/frifs/internal/pb"
)

// zippedSpec is what a full-zip page says of itself, in either grammar.
type zippedSpec struct {
	values           *pb.CompressiveEncoding
	bitsRep, bitsDef uint32
	bits             uint32 // per value; 0 for variable width
	items, visible   uint64
	nullable         bool
}

// zippedPage holds, per row, a control word of control bytes (0, 1 or 2) with the definition level and the value.
type zippedPage[T Element] struct {
	control  int
	nullable bool
}

func buildZipped[T Element](p *pageInfo, z zippedSpec) (decoder[T], error) {
	f := z.values.GetFlat()
	if f == nil {
		if z.values.GetGeneral() != nil {
			return nil, &unknownError{what: "encoding", detail: "values compressed one by one"}
		}
		return nil, unknownOf("encoding", z.values)
	}
	if f.GetCompression().GetScheme() != pb.BufferCompression_UNSPECIFIED {
		return nil, &unknownError{what: "encoding", detail: "compressed flat values in a zipped page"}
	}
	size := width[T]()
	if z.bits != uint32(8*size) || f.GetBitsPerValue() != uint64(8*size) {
		return nil, fmt.Errorf("zipped values of %d bits, flat of %d, where %d are expected", z.bits, f.GetBitsPerValue(), 8*size)
	}
	if z.bitsRep != 0 {
		return nil, &unknownError{what: "layout", detail: "repetition in a flat column"}
	}
	if z.bitsDef > 16 {
		return nil, fmt.Errorf("definition levels of %d bits, at most 16", z.bitsDef)
	}
	if z.items != p.length || z.visible != p.length {
		return nil, fmt.Errorf("%d items, %d of them visible, in a page of %d rows", z.items, z.visible, p.length)
	}
	if len(p.buffers) != 1 {
		return nil, fmt.Errorf("zipped page has %d buffers, not 1", len(p.buffers))
	}
	d := zippedPage[T]{control: int(z.bitsDef+7) / 8, nullable: z.nullable}
	if need := bytesFor(p.length, 8*(size+d.control)); p.buffers[0].n < need {
		return nil, fmt.Errorf("%d zipped values take %d bytes, the buffer has %d", p.length, need, p.buffers[0].n)
	}
	return d, nil
}

func (d zippedPage[T]) read(ctx context.Context, c *Column[T], p *pageInfo, s *scratch[T], from uint64, dst []T, n *nulls) error {
	size := width[T]()
	item := size + d.control
	b, err := piece(ctx, c, p, s, 0, from*uint64(item), uint64(len(dst))*uint64(item))
	if err != nil {
		return err
	}
	if d.control == 0 {
		loadWords(b, dst)
		return nil
	}
	s.levels = grow(s.levels, len(dst))
	if d.control == 1 && size == 2 {
		// The form of row maps: three bytes a row, taken out of one word.
		for i := range dst {
			if len(b) < 4 {
				s.levels[i], dst[i] = uint16(b[0]), T(binary.LittleEndian.Uint16(b[1:3]))
				break
			}
			x := binary.LittleEndian.Uint32(b)
			s.levels[i], dst[i] = uint16(x&0xFF), T(x>>8&0xFFFF)
			b = b[3:]
		}
		return d.mark(s.levels, from, n)
	}
	if d.control == 1 {
		for i := range dst {
			s.levels[i] = uint16(b[i*item])
		}
	} else {
		for i := range dst {
			s.levels[i] = binary.LittleEndian.Uint16(b[i*item:])
		}
	}
	for i := range dst {
		dst[i] = loadWord[T](b[i*item+d.control:][:size])
	}
	return d.mark(s.levels, from, n)
}

// mark applies the definition levels of rows from on.
func (d zippedPage[T]) mark(levels []uint16, from uint64, n *nulls) error {
	if bad := n.setLevels(levels); bad >= 0 {
		return fmt.Errorf("row %d has definition level %d", from+uint64(bad), levels[bad])
	}
	if n.seen > 0 && !d.nullable {
		return fmt.Errorf("%d null values in a page whose layer allows none", n.seen)
	}
	return nil
}
