package lancefile

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/pb"
)

// unknownError is an encoding, layout or layer that this package does not decode. It becomes fault.Unsupported.
type unknownError struct {
	what   string // "encoding", "layout", ...
	number int
	detail string
}

func (e *unknownError) Error() string {
	if e.detail != "" {
		return fmt.Sprintf("unsupported %s: %s", e.what, e.detail)
	}
	return fmt.Sprintf("unsupported %s %d", e.what, e.number)
}

// unknownOf names the alternative of a oneof of m that the caller does not decode: one that is known elsewhere, or one
// that came out as an unknown field.
func unknownOf(what string, m proto.Message) error {
	r := m.ProtoReflect()
	for i := range r.Descriptor().Oneofs().Len() {
		if f := r.WhichOneof(r.Descriptor().Oneofs().Get(i)); f != nil {
			return &unknownError{what: what, number: int(f.Number())}
		}
	}
	num, _, n := protowire.ConsumeTag(r.GetUnknown())
	if n < 0 {
		return fmt.Errorf("%s missing", what)
	}
	return &unknownError{what: what, number: int(num)}
}

// codec decodes the values of one CompressiveEncoding tree in a given grammar.
type codec struct {
	zstd    *zstdPool
	version Version
	planar  bool // Range and Delta are allowed
}

// valueBits returns the width of the values that an encoding gives.
func valueBits(e *pb.CompressiveEncoding) (int, error) {
	for range maxDepth {
		switch {
		case e.GetFlat() != nil:
			return int(min(e.GetFlat().GetBitsPerValue(), 1<<16)), nil
		case e.GetInlineBitpacking() != nil:
			return int(min(e.GetInlineBitpacking().GetUncompressedBits(), 1<<16)), nil
		case e.GetOutOfLineBitpacking() != nil:
			return int(min(e.GetOutOfLineBitpacking().GetUncompressedBits(), 1<<16)), nil
		case e.GetConstant() != nil:
			return 8 * len(e.GetConstant().GetValue()), nil
		case e.GetRle() != nil:
			e = e.GetRle().GetValues()
		case e.GetGeneral() != nil:
			e = e.GetGeneral().GetValues()
		case e.GetByteStreamSplit() != nil:
			e = e.GetByteStreamSplit().GetValues()
		case e.GetRange() != nil: // known, but not where values or levels stand
			return 0, &unknownError{what: "encoding", number: 14}
		case e.GetDelta() != nil:
			return 0, &unknownError{what: "encoding", number: 15}
		default:
			return 0, unknownOf("encoding", e)
		}
	}
	return 0, fmt.Errorf("encodings nested deeper than %d", maxDepth)
}

// maxDepth bounds the nesting of encodings; writers nest two or three.
const maxDepth = 8

// decodeWords decodes exactly len(out) values from one buffer.
func decodeWords[T Word](c *codec, e *pb.CompressiveEncoding, b []byte, out []T) error {
	return blockAt(c, e, b, out, 0)
}

func blockAt[T Word](c *codec, e *pb.CompressiveEncoding, b []byte, out []T, depth int) error {
	size := width[T]()
	switch {
	case depth >= maxDepth:
		return fmt.Errorf("encodings nested deeper than %d", maxDepth)
	case e.GetFlat() != nil:
		f := e.GetFlat()
		if err := wantBits("flat", f.GetBitsPerValue(), size); err != nil {
			return err
		}
		if f.GetCompression().GetScheme() != pb.BufferCompression_UNSPECIFIED {
			var err error
			if b, err = c.zstd.decompress(f.GetCompression().GetScheme(), b, uint64(len(out)*size)); err != nil {
				return err
			}
		}
		if len(b) != len(out)*size {
			return fmt.Errorf("%d flat values of %d bits in %d bytes", len(out), 8*size, len(b))
		}
		loadWords(b, out)
		return nil
	case e.GetConstant() != nil:
		return constantBlock(e.GetConstant().GetValue(), b, out)
	case e.GetInlineBitpacking() != nil:
		p := e.GetInlineBitpacking()
		if err := wantBits("bit-packed", p.GetUncompressedBits(), size); err != nil {
			return err
		}
		if p.GetCompression().GetScheme() != pb.BufferCompression_UNSPECIFIED {
			return &unknownError{what: "encoding", detail: "compressed inline bit-packing"}
		}
		return unpackInline(b, out)
	case e.GetOutOfLineBitpacking() != nil:
		w, err := packedWidth(e.GetOutOfLineBitpacking(), size)
		if err != nil {
			return err
		}
		return unpackAll(b, w, out)
	case e.GetRle() != nil:
		if len(b) < 8 {
			return fmt.Errorf("run-length block of %d bytes has no header", len(b))
		}
		n := binary.LittleEndian.Uint64(b)
		if b = b[8:]; n > uint64(len(b)) {
			return fmt.Errorf("run values of %d bytes in a block of %d", n, len(b))
		}
		return runs(c, e.GetRle(), b[:n], b[n:], out, false, depth)
	case e.GetGeneral() != nil:
		inner := e.GetGeneral().GetValues()
		b, err := c.zstd.decompress(e.GetGeneral().GetCompression().GetScheme(), b, encodedLimit(inner, len(out), size))
		if err != nil {
			return err
		}
		return blockAt(c, inner, b, out, depth+1)
	case c.planar && e.GetRange() != nil:
		return rangeBlock(e.GetRange(), b, out)
	case c.planar && e.GetDelta() != nil:
		return deltaBlock(c, e.GetDelta(), b, out, depth)
	case c.planar && e.GetDictionary() != nil:
		return dictionaryBlock(c, e.GetDictionary(), b, out, depth)
	case e.GetByteStreamSplit() != nil:
		return splitBlock(c, e.GetByteStreamSplit(), b, out, depth)
	}
	return unknownOf("encoding", e)
}

// splitBlock joins values whose bytes stand apart: all first bytes, then all second ones.
func splitBlock[T Word](c *codec, e *pb.CompressiveEncoding_ByteStreamSplit, b []byte, out []T, depth int) error {
	apart := make([]T, len(out))
	if err := blockAt(c, e.GetValues(), b, apart, depth+1); err != nil {
		return err
	}
	bytes, size := wordBytes(apart), width[T]()
	for i := range out {
		v := T(0)
		for k := range size {
			v |= T(bytes[k*len(out)+i]) << (8 * k)
		}
		out[i] = v
	}
	return nil
}

// dictionaryBlock decodes a dictionary in one buffer: u64 length of the indices, u64 length of the items, both.
func dictionaryBlock[T Word](c *codec, d *pb.CompressiveEncoding_Dictionary, b []byte, out []T, depth int) error {
	if len(b) < 16 {
		return fmt.Errorf("dictionary block of %d bytes has no header", len(b))
	}
	n, m := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if b = b[16:]; n > uint64(len(b)) || m != uint64(len(b))-n {
		return fmt.Errorf("indices of %d bytes and items of %d in a block of %d", n, m, len(b))
	}
	if uint64(d.GetNumDictionaryItems()) > uint64(len(out)) {
		return fmt.Errorf("dictionary of %d items for %d values", d.GetNumDictionaryItems(), len(out))
	}
	items := make([]T, d.GetNumDictionaryItems())
	if err := blockAt(c, d.GetItems(), b[n:], items, depth+1); err != nil {
		return fmt.Errorf("dictionary items: %w", err)
	}
	index := make([]uint32, len(out))
	if err := blockAt(c, d.GetIndices(), b[:n], index, depth+1); err != nil {
		return fmt.Errorf("dictionary indices: %w", err)
	}
	for i, k := range index {
		if uint64(k) >= uint64(len(items)) {
			return fmt.Errorf("value %d has index %d in a dictionary of %d", i, k, len(items))
		}
		out[i] = items[k]
	}
	return nil
}

// encodedLimit bounds the uncompressed size of n values of an encoding: twice the plain size and a header, which no
// encoding of integers exceeds, bit-packed units and run lengths included.
func encodedLimit(e *pb.CompressiveEncoding, n, size int) uint64 {
	if e.GetFlat() != nil {
		return uint64(n * size)
	}
	return uint64(n)*uint64(size+4) + uint64(size*unitValues) + 16
}

func wantBits(what string, got uint64, size int) error {
	if got != uint64(8*size) {
		return fmt.Errorf("%s values of %d bits where %d are expected", what, got, 8*size)
	}
	return nil
}

// packedWidth returns the packed bits per value of an out-of-line encoding. Width 0 is an empty Flat message.
func packedWidth(p *pb.CompressiveEncoding_OutOfLineBitpacking, size int) (int, error) {
	if err := wantBits("bit-packed", p.GetUncompressedBits(), size); err != nil {
		return 0, err
	}
	f := p.GetValues().GetFlat()
	if f == nil {
		return 0, unknownOf("encoding", p.GetValues())
	}
	if f.GetCompression().GetScheme() != pb.BufferCompression_UNSPECIFIED {
		return 0, &unknownError{what: "encoding", detail: "compressed out-of-line bit-packing"}
	}
	if f.GetBitsPerValue() > uint64(8*size) {
		return 0, fmt.Errorf("bit-packed values of %d bits do not fit %d", f.GetBitsPerValue(), 8*size)
	}
	return int(f.GetBitsPerValue()), nil
}

// constantBlock fills out with a scalar of at most width[T]() bytes; an absent scalar is 0.
func constantBlock[T Word](scalar, b []byte, out []T) error {
	if len(b) != 0 {
		return fmt.Errorf("constant values with a buffer of %d bytes", len(b))
	}
	if len(scalar) > width[T]() {
		return fmt.Errorf("constant of %d bytes for values of %d bits", len(scalar), 8*width[T]())
	}
	fill(out, loadWord[T](scalar))
	return nil
}

func fill[T Word](out []T, v T) {
	for i := range out {
		out[i] = v
	}
}

// miniBlock decodes exactly len(out) values from the value buffers of one chunk.
func miniBlock[T Word](c *codec, e *pb.CompressiveEncoding, bufs [][]byte, out []T) error {
	want := 1
	inner := e
	if g := e.GetGeneral(); g != nil {
		inner = g.GetValues()
	}
	if inner.GetRle() != nil {
		want = 2
	}
	if len(bufs) != want {
		return fmt.Errorf("%d value buffers, the encoding has %d", len(bufs), want)
	}
	b := bufs[0]
	if g := e.GetGeneral(); g != nil {
		var err error
		if b, err = c.zstd.decompress(g.GetCompression().GetScheme(), b, encodedLimit(inner, len(out), width[T]())); err != nil {
			return err
		}
	}
	if r := inner.GetRle(); r != nil {
		return runs(c, r, b, bufs[1], out, true, 1)
	}
	return blockAt(c, inner, b, out, 1)
}

// rangeBlock computes start + i*step.
func rangeBlock[T Word](r *pb.CompressiveEncoding_Range, b []byte, out []T) error {
	if len(b) != 0 {
		return fmt.Errorf("range with a buffer of %d bytes", len(b))
	}
	if err := wantBits("range", r.GetBits(), width[T]()); err != nil {
		return err
	}
	if n := uint64(len(out)); n > 1 {
		hi, span := bits.Mul64(n-1, r.GetStep())
		last, carry := bits.Add64(r.GetStart(), span, 0)
		if hi != 0 || carry != 0 || last > uint64(^T(0)) {
			return fmt.Errorf("range of %d values from %d by %d overflows", n, r.GetStart(), r.GetStep())
		}
	}
	for i := range out {
		out[i] = T(r.GetStart() + uint64(i)*r.GetStep())
	}
	return nil
}

// deltaBlock adds up differences: one value less than out has.
func deltaBlock[T Word](c *codec, d *pb.CompressiveEncoding_Delta, b []byte, out []T, depth int) error {
	if err := wantBits("delta", d.GetBits(), width[T]()); err != nil {
		return err
	}
	child := d.GetDeltas()
	switch {
	case child.GetConstant() != nil, child.GetRange() != nil, child.GetFlat() != nil,
		child.GetOutOfLineBitpacking() != nil, child.GetInlineBitpacking() != nil:
	case child.GetDelta() != nil, child.GetGeneral() != nil, child.GetRle() != nil:
		return fmt.Errorf("differences in an encoding that may not stand there")
	default:
		return unknownOf("encoding", child)
	}
	if len(out) == 0 {
		return fmt.Errorf("differences for no values")
	}
	if err := blockAt(c, child, b, out[1:], depth+1); err != nil {
		return fmt.Errorf("differences: %w", err)
	}
	out[0] = T(d.GetBase())
	for i := 1; i < len(out); i++ {
		v := out[i-1] + out[i]
		if v < out[i-1] {
			return fmt.Errorf("value %d overflows", i)
		}
		out[i] = v
	}
	return nil
}
