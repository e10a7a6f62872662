package lancefile

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/frifs/frifs/internal/pb"
)

// arrayPage is a page of version 2.0: a plain little-endian array, maybe with a validity bitmap.
type arrayPage[T Element] struct {
	values   int // buffer number
	validity int // buffer number, or -1
}

// buildArray builds a page of version 2.0.
func buildArray[T Element](p *pageInfo, m *pb.ArrayEncoding) (decoder[T], error) {
	if m.GetNullable() == nil {
		return buildFlat[T](p, m)
	}
	switch n := m.GetNullable(); {
	case n.GetNoNulls() != nil:
		return buildFlat[T](p, n.GetNoNulls().GetValues())
	case n.GetAllNulls() != nil:
		return allNull[T]{}, nil
	case n.GetSomeNulls() != nil:
		v, err := flatBuffer(p, n.GetSomeNulls().GetValidity(), 1)
		if err != nil {
			return nil, fmt.Errorf("validity: %w", err)
		}
		if c := n.GetSomeNulls().GetValues().GetConstant(); c != nil {
			return nil, &unknownError{what: "encoding", detail: "constant values with validity"}
		}
		d, err := flatBuffer(p, n.GetSomeNulls().GetValues(), 8*width[T]())
		if err != nil {
			return nil, err
		}
		return arrayPage[T]{values: d, validity: v}, nil
	default:
		return nil, unknownOf("nullability", n)
	}
}

func buildFlat[T Element](p *pageInfo, m *pb.ArrayEncoding) (decoder[T], error) {
	if c := m.GetConstant(); c != nil {
		if len(c.GetValue()) != width[T]() {
			return nil, fmt.Errorf("constant of %d bytes for values of %d bits", len(c.GetValue()), 8*width[T]())
		}
		return constantPage[T]{value: loadWord[T](c.GetValue()), def: -1}, nil
	}
	d, err := flatBuffer(p, m, 8*width[T]())
	if err != nil {
		return nil, err
	}
	return arrayPage[T]{values: d, validity: -1}, nil
}

// flatBuffer returns the page buffer of a flat array of the given bits per value, checked to be large enough.
func flatBuffer(p *pageInfo, m *pb.ArrayEncoding, bits int) (int, error) {
	f := m.GetFlat()
	if f == nil {
		if m.GetNullable() != nil {
			return 0, fmt.Errorf("nullable array inside a nullable array")
		}
		return 0, unknownOf("encoding", m)
	}
	if s := f.GetCompression().GetScheme(); s != "" && s != "none" {
		return 0, &unknownError{what: "encoding", detail: fmt.Sprintf("flat array compressed with %q", s)}
	}
	if f.GetBitsPerValue() != uint64(bits) {
		return 0, fmt.Errorf("flat values of %d bits where %d are expected", f.GetBitsPerValue(), bits)
	}
	if f.GetBuffer().GetBufferType() != 0 {
		return 0, &unknownError{what: "encoding", detail: fmt.Sprintf("flat array in a buffer of type %d", f.GetBuffer().GetBufferType())}
	}
	k := f.GetBuffer().GetBufferIndex()
	if uint64(k) >= uint64(len(p.buffers)) {
		return 0, fmt.Errorf("buffer %d of %d", k, len(p.buffers))
	}
	if have := p.buffers[k].n; have < bytesFor(p.length, bits) {
		return 0, fmt.Errorf("%d values of %d bits do not fit a buffer of %d bytes", p.length, bits, have)
	}
	return int(k), nil
}

// bytesFor is the size of n values of bits bits, saturated; n is at most 2^63-1.
func bytesFor(n uint64, bits int) uint64 {
	if bits == 1 {
		return (n + 7) / 8
	}
	if b := uint64(bits / 8); n <= ^uint64(0)/b {
		return n * b
	}
	return ^uint64(0)
}

func (a arrayPage[T]) read(ctx context.Context, c *Column[T], p *pageInfo, s *scratch[T], from uint64, dst []T, n *nulls) error {
	size := uint64(width[T]())
	b, err := piece(ctx, c, p, s, a.values, from*size, uint64(len(dst))*size)
	if err != nil {
		return err
	}
	loadWords(b, dst)
	if a.validity < 0 {
		return nil
	}
	first := from / 8
	last := (from + uint64(len(dst)) + 7) / 8
	if b, err = piece(ctx, c, p, s, a.validity, first, last-first); err != nil {
		return err
	}
	shift := int(from % 8)
	for i := 0; i < len(dst); i += 64 {
		m := ^bitsAt(b, i+shift)
		if left := len(dst) - i; left < 64 {
			m &= 1<<left - 1
		}
		n.setBits(i, m)
	}
	return nil
}

// bitsAt returns 64 bits of b from bit i, lowest first; bits past the end are 0. i lies within b.
func bitsAt(b []byte, i int) uint64 {
	b = b[i>>3:]
	if len(b) < 9 {
		var t [9]byte
		copy(t[:], b)
		b = t[:]
	}
	return binary.LittleEndian.Uint64(b)>>(i&7) | uint64(b[8])<<(64-i&7)
}
