package lancefile

import (
	"context"
	"fmt"
	"strings"

	"github.com/frifs/frifs/internal/pb"
)

// values decodes values [from, from+n) of an encoding of version 2.0 and which of them are valid (nil: all).
func (r *arrayReader) values(ctx context.Context, p *arrayValues, e *pb.ArrayEncoding, s shape, from, n uint64, depth int) (block, []uint64, error) {
	if depth >= maxDepth {
		return block{}, nil, fmt.Errorf("encodings nested deeper than %d", maxDepth)
	}
	if size := max(s.valueBytes(), 1); n > CellLimit/size {
		return block{}, nil, tooLarge(n * size)
	}
	depth++
	switch {
	case e.GetNullable() != nil:
		return r.nullable(ctx, p, e.GetNullable(), s, from, n, depth)
	case s.none():
		return block{}, nil, fmt.Errorf("values in a column of nulls")
	case e.GetConstant() != nil:
		if !s.variable && uint64(len(e.GetConstant().GetValue())) != s.valueBytes() {
			return block{}, nil, fmt.Errorf("constant of %d bytes for values of %d", len(e.GetConstant().GetValue()), s.valueBytes())
		}
		b, err := repeat(s, n, e.GetConstant().GetValue())
		return b, nil, err
	case s.variable:
		return r.strings(ctx, p, e, from, n, depth)
	case s.dim > 0:
		l := e.GetFixedSizeList()
		if l == nil {
			return block{}, nil, unknownOf("encoding", e)
		}
		if uint64(l.GetDimension()) != s.dim {
			return block{}, nil, fmt.Errorf("lists of %d items where %d are expected", l.GetDimension(), s.dim)
		}
		if from > (1<<62)/s.dim {
			return block{}, nil, fmt.Errorf("list %d of %d items", from, s.dim)
		}
		b, valid, err := r.values(ctx, p, l.GetItems(), shape{bits: s.bits}, from*s.dim, n*s.dim, depth)
		return block{n: n, fixed: b.fixed, valid: valid}, nil, err
	case e.GetFixedSizeList() != nil && s.bits%8 == 0 && uint64(s.bits/8) == uint64(e.GetFixedSizeList().GetDimension()):
		// Fixed-size binary values are lists of bytes.
		b, _, err := r.values(ctx, p, e.GetFixedSizeList().GetItems(), shape{bits: 8}, from*uint64(s.bits/8), n*uint64(s.bits/8), depth)
		return block{n: n, fixed: b.fixed}, nil, err
	case e.GetFlat() == nil:
		return block{}, nil, unknownOf("encoding", e)
	case e.GetFlat().GetBitsPerValue() != uint64(s.bits):
		return block{}, nil, fmt.Errorf("flat values of %d bits where %d are expected", e.GetFlat().GetBitsPerValue(), s.bits)
	case s.bits == 1:
		b, err := r.bits(ctx, p, e, from, n)
		if err != nil {
			return block{}, nil, err
		}
		return block{n: n, fixed: spread(b, from%8, n)}, nil, nil
	}
	b, err := r.flat(ctx, p, e.GetFlat(), from, n, s.itemBytes())
	return block{n: n, fixed: b}, nil, err
}

// bits reads the bytes of a bitmap that hold bits [from, from+n).
func (r *arrayReader) bits(ctx context.Context, p *arrayValues, e *pb.ArrayEncoding, from, n uint64) ([]byte, error) {
	f := e.GetFlat()
	if f == nil {
		return nil, unknownOf("encoding", e)
	}
	if f.GetBitsPerValue() != 1 {
		return nil, fmt.Errorf("bitmap of %d bits per value", f.GetBitsPerValue())
	}
	return r.flat(ctx, p, f, from/8, (from+n+7)/8-from/8, 1)
}

func (r *arrayReader) nullable(ctx context.Context, p *arrayValues, e *pb.ArrayEncoding_Nullable, s shape, from, n uint64, depth int) (block, []uint64, error) {
	switch {
	case e.GetNoNulls() != nil:
		return r.values(ctx, p, e.GetNoNulls().GetValues(), s, from, n, depth)
	case e.GetAllNulls() != nil:
		b, err := nullBlock(s, n)
		return b, make([]uint64, (n+63)/64), err
	case e.GetSomeNulls() != nil:
		m, err := r.bits(ctx, p, e.GetSomeNulls().GetValidity(), from, n)
		if err != nil {
			return block{}, nil, fmt.Errorf("validity: %w", err)
		}
		b, inner, err := r.values(ctx, p, e.GetSomeNulls().GetValues(), s, from, n, depth)
		valid := bitWords(m, from%8, n)
		for i := range inner {
			valid[i] &= inner[i]
		}
		return b, valid, err
	}
	return block{}, nil, unknownOf("nullability", e)
}

// strings decodes values of any length.
func (r *arrayReader) strings(ctx context.Context, p *arrayValues, e *pb.ArrayEncoding, from, n uint64, depth int) (block, []uint64, error) {
	switch {
	case e.GetBinary() != nil:
		return r.binary(ctx, p, e.GetBinary(), from, n, depth)
	case e.GetFsst() != nil:
		t, err := parseSymbols(e.GetFsst().GetSymbolTable())
		if err != nil {
			return block{}, nil, err
		}
		b, valid, err := r.values(ctx, p, e.GetFsst().GetBinary(), shape{variable: true}, from, n, depth)
		if err != nil {
			return block{}, nil, err
		}
		b, err = t.expand(b)
		return b, valid, err
	case e.GetFixedSizeBinary() != nil:
		w := uint64(e.GetFixedSizeBinary().GetByteWidth())
		if w > maxValueBytes || n > readLimit/max(w, 1) || from > 1<<32 {
			return block{}, nil, tooLarge(n * w)
		}
		b, _, err := r.values(ctx, p, e.GetFixedSizeBinary().GetBytes(), shape{bits: 8}, from*w, n*w, depth)
		if err != nil {
			return block{}, nil, err
		}
		out := block{n: n, bytes: b.fixed, offsets: make([]int, n+1)}
		for i := range out.offsets {
			out.offsets[i] = i * int(w)
		}
		return out, nil, nil
	case e.GetDictionary() != nil:
		return r.dictionary(ctx, p, e.GetDictionary(), from, n, depth)
	}
	return block{}, nil, unknownOf("encoding", e)
}

// binary decodes values from their ends and their bytes.
func (r *arrayReader) binary(ctx context.Context, p *arrayValues, e *pb.ArrayEncoding_Binary, from, n uint64, depth int) (block, []uint64, error) {
	ends, valid, err := r.cumulative(ctx, p, e.GetIndices(), from, n, e.GetNullAdjustment(), 1<<62)
	if err != nil {
		return block{}, nil, err
	}
	size := ends[n] - ends[0]
	if size > readLimit && (n > 1 || size > CellLimit) {
		return block{}, nil, tooLarge(size)
	}
	b, _, err := r.values(ctx, p, e.GetBytes(), shape{bits: 8}, ends[0], size, depth)
	if err != nil {
		return block{}, nil, fmt.Errorf("bytes: %w", err)
	}
	out := block{n: n, bytes: b.fixed, offsets: make([]int, n+1)}
	for i, v := range ends {
		out.offsets[i] = int(v - ends[0])
	}
	return out, valid, nil
}

// dictionary decodes indices and looks them up. In a column of strings index 0 is a null and the first item is 1; in a
// column whose type is a dictionary the first item is 0, and one of them may be null.
func (r *arrayReader) dictionary(ctx context.Context, p *arrayValues, e *pb.ArrayEncoding_Dictionary, from, n uint64, depth int) (block, []uint64, error) {
	index, err := r.ends(ctx, p, e.GetIndices(), from, n)
	if err != nil {
		return block{}, nil, fmt.Errorf("indices: %w", err)
	}
	s := shape{variable: true}
	count := uint64(e.GetNumDictionaryItems())
	if n == 0 {
		count = 0
	}
	items, valid, err := r.values(ctx, p, e.GetItems(), s, 0, count, depth)
	if err != nil {
		return block{}, nil, fmt.Errorf("dictionary of %d items: %w", count, err)
	}
	first := uint64(1)
	if strings.HasPrefix(r.field.pb.GetLogicalType(), "dict:") {
		first = 0
	}
	out := block{offsets: make([]int, 1, n+1)}
	var some []uint64
	for i, v := range index {
		if v >= items.n+first {
			return block{}, nil, fmt.Errorf("value %d has index %d in a dictionary of %d", from+uint64(i), v, items.n)
		}
		if v < first || !bit(valid, v-first) {
			if some == nil {
				some = setBits(nil, 0, n)
			}
			some[i>>6] &^= 1 << (i & 63)
			out.offsets = append(out.offsets, len(out.bytes))
			out.n++
			continue
		}
		if err := out.add(s, items.slice(s, v-first, v-first+1)); err != nil {
			return block{}, nil, err
		}
	}
	return out, some, nil
}
