package lancefile

import (
	"encoding/binary"
	"fmt"

	"github.com/frifs/frifs/internal/pb"
)

// maxBufferBytes bounds what a general compression of strings may give: the content of one chunk or dictionary.
const maxBufferBytes = 64 << 20

// values decodes exactly n values of a shape from the value buffers of a chunk. One buffer, unless they are runs (2)
// or fixed-size lists with null items (validity first).
func (c *codec) values(e *pb.CompressiveEncoding, bufs [][]byte, n uint64, s shape) (block, error) {
	return c.valuesAt(e, bufs, n, s, 0)
}

func (c *codec) valuesAt(e *pb.CompressiveEncoding, bufs [][]byte, n uint64, s shape, depth int) (block, error) {
	if depth >= maxDepth {
		return block{}, fmt.Errorf("encodings nested deeper than %d", maxDepth)
	}
	if size := s.valueBytes(); n > 0 && size > readLimit/n {
		return block{}, tooLarge(size)
	}
	switch {
	case len(bufs) == 0:
		return block{}, fmt.Errorf("values without a buffer")
	case e.GetFixedSizeList() != nil:
		return c.lists(e.GetFixedSizeList(), bufs, n, s, depth)
	case s.dim > 0 && e.GetGeneral() == nil:
		// Some lists are stored as one wide value.
		b, err := c.valuesAt(e, bufs, n, shape{bits: s.bits * int(s.dim)}, depth+1)
		return b, err
	case e.GetGeneral() != nil:
		inner := e.GetGeneral().GetValues()
		limit := uint64(maxBufferBytes)
		if !s.variable {
			limit = n*s.valueBytes()*2 + n*s.valueBytes()/8 + unitValues*16 + 64
		}
		b, err := c.zstd.decompress(e.GetGeneral().GetCompression().GetScheme(), bufs[0], limit)
		if err != nil {
			return block{}, err
		}
		return c.valuesAt(inner, append([][]byte{b}, bufs[1:]...), n, s, depth+1)
	case s.variable:
		return c.strings(e, bufs, n)
	case e.GetFlat() != nil && e.GetFlat().GetCompression().GetScheme() == pb.BufferCompression_UNSPECIFIED:
		return plainValues(e.GetFlat().GetBitsPerValue(), bufs, n, s)
	}
	switch s.bits {
	case 1:
		if bits, err := valueBits(e); err != nil || bits != 8 {
			return block{}, errOr(err, unknownOf("encoding", e))
		}
		return wordValues[uint8](c, e, bufs, n)
	case 8:
		return wordValues[uint8](c, e, bufs, n)
	case 16:
		return wordValues[uint16](c, e, bufs, n)
	case 32:
		return wordValues[uint32](c, e, bufs, n)
	case 64:
		return wordValues[uint64](c, e, bufs, n)
	}
	return block{}, unknownOf("encoding", e)
}

// plainValues takes a plain array; single bits become bytes.
func plainValues(bits uint64, bufs [][]byte, n uint64, s shape) (block, error) {
	if bits != uint64(s.bits) {
		return block{}, fmt.Errorf("flat values of %d bits where %d are expected", bits, s.bits)
	}
	if len(bufs) != 1 {
		return block{}, fmt.Errorf("%d buffers for flat values", len(bufs))
	}
	b := bufs[0]
	if s.bits != 1 {
		if uint64(len(b)) != n*s.itemBytes() {
			return block{}, fmt.Errorf("%d flat values of %d bits in %d bytes", n, bits, len(b))
		}
		return block{n: n, fixed: b}, nil
	}
	if uint64(len(b)) < (n+7)/8 {
		return block{}, fmt.Errorf("%d bits in %d bytes", n, len(b))
	}
	return block{n: n, fixed: spread(b, 0, n)}, nil
}

// spread makes n bytes of the bits of b from bit from on.
func spread(b []byte, from, n uint64) []byte {
	out := make([]byte, n)
	for i := range out {
		at := from + uint64(i)
		out[i] = b[at>>3] >> (at & 7) & 1
	}
	return out
}

// wordValues decodes with the codec of machine words.
func wordValues[T Word](c *codec, e *pb.CompressiveEncoding, bufs [][]byte, n uint64) (block, error) {
	t := make([]T, n)
	if err := miniBlock(c, e, bufs, t); err != nil {
		return block{}, err
	}
	return block{n: n, fixed: wordBytes(t)}, nil
}

// wordBytes is the little-endian form of values.
func wordBytes[T Word](t []T) []byte {
	size := width[T]()
	b := make([]byte, len(t)*size)
	for i, v := range t {
		switch size {
		case 1:
			b[i] = byte(v)
		case 2:
			binary.LittleEndian.PutUint16(b[2*i:], uint16(v))
		case 4:
			binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
		default:
			binary.LittleEndian.PutUint64(b[8*i:], uint64(v))
		}
	}
	return b
}

// lists decodes fixed-size lists: the validity of the items where there may be null ones, then the items.
func (c *codec) lists(e *pb.CompressiveEncoding_FixedSizeList, bufs [][]byte, n uint64, s shape, depth int) (block, error) {
	if s.dim == 0 {
		return block{}, fmt.Errorf("fixed-size lists in a column of plain values")
	}
	if e.GetItemsPerValue() != s.dim {
		return block{}, fmt.Errorf("lists of %d items where %d are expected", e.GetItemsPerValue(), s.dim)
	}
	items := n * s.dim
	var valid []uint64
	if e.GetHasValidity() {
		if uint64(len(bufs[0])) < (items+7)/8 || len(bufs) < 2 {
			return block{}, fmt.Errorf("validity of %d items in %d bytes, %d buffers", items, len(bufs[0]), len(bufs))
		}
		valid = bitWords(bufs[0], 0, items)
		bufs = bufs[1:]
	}
	b, err := c.valuesAt(e.GetValues(), bufs, items, shape{bits: s.bits}, depth+1)
	if err != nil {
		return block{}, err
	}
	return block{n: n, fixed: b.fixed, valid: valid}, nil
}

// bitWords copies n bits of b from bit from on.
func bitWords(b []byte, from, n uint64) []uint64 {
	out := make([]uint64, (n+63)/64)
	for i := range out {
		out[i] = bitsAt(b, int(from)+64*i)
	}
	if n&63 != 0 {
		out[len(out)-1] &= 1<<(n&63) - 1
	}
	return out
}

// strings decodes values of any length from the buffer of a chunk: n+1 offsets relative to the start of the buffer,
// then the bytes.
func (c *codec) strings(e *pb.CompressiveEncoding, bufs [][]byte, n uint64) (block, error) {
	if f := e.GetFsst(); f != nil {
		b, err := c.strings(f.GetValues(), bufs, n)
		if err != nil {
			return block{}, err
		}
		t, err := parseSymbols(f.GetSymbolTable())
		if err != nil {
			return block{}, err
		}
		return t.expand(b)
	}
	v := e.GetVariable()
	if v == nil {
		return block{}, unknownOf("encoding", e)
	}
	if c.planar && v.GetOffsets().GetFlat() == nil {
		return c.apart(v, bufs, n)
	}
	bits, err := offsetBits(v)
	if err != nil {
		return block{}, err
	}
	if len(bufs) != 1 {
		return block{}, fmt.Errorf("%d buffers for values of any length", len(bufs))
	}
	b, size := bufs[0], uint64(bits/8)
	if n >= uint64(len(b))/size {
		return block{}, fmt.Errorf("%d offsets of %d bits in %d bytes", n+1, bits, len(b))
	}
	raw := offsetsOf(b[:(n+1)*size], bits)
	if raw[0] < (n+1)*size {
		return block{}, fmt.Errorf("first value at byte %d, within %d offsets of %d bits", raw[0], n+1, bits)
	}
	ends, err := checkEnds(raw, uint64(len(b)))
	return block{n: n, offsets: ends, bytes: b}, err
}

// apart decodes values of any length whose offsets are encoded: in a buffer before that of the bytes, or in the message
// alone. The first offset is that of the first byte.
func (c *codec) apart(v *pb.CompressiveEncoding_Variable, bufs [][]byte, n uint64) (block, error) {
	if v.GetValues().GetScheme() != pb.BufferCompression_UNSPECIFIED {
		return block{}, &unknownError{what: "encoding", detail: "compressed values between plain offsets"}
	}
	want := 1 + payloads(v.GetOffsets())
	if len(bufs) != want {
		return block{}, fmt.Errorf("%d buffers for values of any length, the encoding has %d", len(bufs), want)
	}
	var at []byte
	if want == 2 {
		at = bufs[0]
	}
	data := bufs[want-1]
	raw := make([]uint64, n+1)
	switch bits := encodedBits(v.GetOffsets()); bits {
	case 32:
		t := make([]uint32, n+1)
		if err := decodeWords(c, v.GetOffsets(), at, t); err != nil {
			return block{}, fmt.Errorf("offsets: %w", err)
		}
		for i, x := range t {
			raw[i] = uint64(x)
		}
	case 64:
		if err := decodeWords(c, v.GetOffsets(), at, raw); err != nil {
			return block{}, fmt.Errorf("offsets: %w", err)
		}
	default:
		return block{}, fmt.Errorf("offsets of %d bits, not 32 or 64", bits)
	}
	ends, err := checkEnds(raw, uint64(len(data)))
	return block{n: n, offsets: ends, bytes: data}, err
}

// payloads is the number of buffers that an encoding of integers takes: none where the message says all.
func payloads(e *pb.CompressiveEncoding) int {
	for range maxDepth {
		switch {
		case e.GetConstant() != nil, e.GetRange() != nil:
			return 0
		case e.GetDelta() == nil:
			return 1
		}
		e = e.GetDelta().GetDeltas()
	}
	return 1
}

// encodedBits is the width of the integers that an encoding of the planar grammar gives, or 0.
func encodedBits(e *pb.CompressiveEncoding) int {
	for range maxDepth {
		switch {
		case e.GetRange() != nil:
			return int(min(e.GetRange().GetBits(), 1<<16))
		case e.GetDelta() != nil:
			return int(min(e.GetDelta().GetBits(), 1<<16))
		case e.GetRle() != nil:
			e = e.GetRle().GetValues()
		case e.GetGeneral() != nil:
			e = e.GetGeneral().GetValues()
		case e.GetDictionary() != nil:
			e = e.GetDictionary().GetItems()
		default:
			bits, err := valueBits(e)
			if err != nil {
				return 0
			}
			return bits
		}
	}
	return 0
}

// offsetBits returns the width of the offsets: 32 or 64.
func offsetBits(v *pb.CompressiveEncoding_Variable) (int, error) {
	if v.GetValues().GetScheme() != pb.BufferCompression_UNSPECIFIED {
		return 0, &unknownError{what: "encoding", detail: "compressed values between plain offsets"}
	}
	f := v.GetOffsets().GetFlat()
	if f == nil {
		return 0, unknownOf("encoding", v.GetOffsets())
	}
	if f.GetBitsPerValue() != 32 && f.GetBitsPerValue() != 64 {
		return 0, fmt.Errorf("offsets of %d bits, not 32 or 64", f.GetBitsPerValue())
	}
	return int(f.GetBitsPerValue()), nil
}

// items decodes the dictionary of a page: n values of a shape in one buffer of their own.
func (c *codec) items(e *pb.CompressiveEncoding, b []byte, n uint64, s shape) (block, error) {
	if !s.variable {
		return c.values(e, [][]byte{b}, n, s)
	}
	if g := e.GetGeneral(); g != nil {
		var err error
		if b, err = c.zstd.decompress(g.GetCompression().GetScheme(), b, maxBufferBytes); err != nil {
			return block{}, err
		}
		e = g.GetValues()
	}
	v := e.GetVariable()
	if v == nil {
		return block{}, unknownOf("encoding", e)
	}
	if _, err := offsetBits(v); err != nil {
		return block{}, err
	}
	// A block says itself how wide its offsets are: 32 or 64 in a word of that width, then where the bytes begin.
	bits := uint64(32)
	if len(b) >= 8 && binary.LittleEndian.Uint64(b) == 64 {
		bits = 64
	} else if len(b) < 4 || binary.LittleEndian.Uint32(b) != 32 {
		return block{}, fmt.Errorf("block of %d bytes does not say the width of its offsets", len(b))
	}
	size := bits / 8
	if uint64(len(b)) < 3*size || n > (uint64(len(b))-3*size)/size {
		return block{}, fmt.Errorf("%d offsets of %d bits in %d bytes", n+1, bits, len(b))
	}
	start := offsetsOf(b[size:2*size], int(bits))[0]
	if start < (n+3)*size || start > uint64(len(b)) {
		return block{}, fmt.Errorf("values begin at byte %d of %d, after %d offsets of %d bits", start, len(b), n+1, bits)
	}
	ends, err := checkEnds(offsetsOf(b[2*size:(n+3)*size], int(bits)), uint64(len(b))-start)
	return block{n: n, offsets: ends, bytes: b[start:]}, err
}
