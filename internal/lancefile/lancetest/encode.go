package lancetest

import (
	"encoding/binary"
	"math/bits"

	"github.com/frifs/frifs/internal/pb"
)

// Words is the little-endian form of values of bitsPer bits: 8, 16, 32 or 64.
func Words(values []uint64, bitsPer int) []byte {
	b := []byte{}
	for _, v := range values {
		switch bitsPer {
		case 8:
			b = append(b, byte(v))
		case 16:
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		case 32:
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		default:
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	return b
}

// Width is the number of bits that the largest value needs.
func Width(values []uint64) int {
	w := 0
	for _, v := range values {
		w = max(w, bits.Len64(v))
	}
	return w
}

// PackUnit packs up to 1,024 values of w bits, the rest being 0, in FastLanes order with words of t bits. It goes bit
// by bit, straight from the definition of the order.
func PackUnit(values []uint64, w, t int) []byte {
	out := make([]byte, 128*w)
	lanes := 1024 / t
	order := [8]int{0, 4, 2, 6, 1, 5, 3, 7}
	for lane := range lanes {
		for row := range t {
			i := order[row/8]*16 + row%8*128 + lane
			if i >= len(values) {
				continue
			}
			for v := values[i] & (1<<w - 1); v != 0; v &= v - 1 {
				bit := row*w + bits.TrailingZeros64(v)
				word := lanes*(bit/t) + lane
				at := word*t + bit%t
				out[at/8] |= 1 << (at % 8)
			}
		}
	}
	return out
}

// PackAll packs values in units; the tail is raw words or a padded unit.
func PackAll(values []uint64, w, t int, rawTail bool) []byte {
	out := []byte{}
	for len(values) >= 1024 {
		out = append(out, PackUnit(values[:1024], w, t)...)
		values = values[1024:]
	}
	switch {
	case len(values) == 0:
	case rawTail:
		out = append(out, Words(values, t)...)
	default:
		out = append(out, PackUnit(values, w, t)...)
	}
	return out
}

// PackInline packs up to 1,024 values with their width in front.
func PackInline(values []uint64, t int) []byte {
	w := Width(values)
	return append(Words([]uint64{uint64(w)}, t), PackUnit(values, w, t)...)
}

// Runs splits values into runs of at most limit.
func Runs(values []uint64, limit uint64) (run, lengths []uint64) {
	for i, v := range values {
		if k := len(run) - 1; i > 0 && run[k] == v && lengths[k] < limit {
			lengths[k]++
			continue
		}
		run, lengths = append(run, v), append(lengths, 1)
	}
	return run, lengths
}

// RunBlock is a run-length encoded block: u64 length of the values, the values, the run lengths as bytes.
func RunBlock(values []uint64, t int) []byte {
	run, lengths := Runs(values, 255)
	v := Words(run, t)
	return append(append(Words([]uint64{uint64(len(v))}, 64), v...), Words(lengths, 8)...)
}

// Chunk is one chunk of a mini-block page.
type Chunk struct {
	Values  int
	Levels  uint16 // level count as written
	Def     []byte // nil for none
	Buffers [][]byte
}

// Chunks renders chunk words and chunk data; large selects the grammar of 2.2.
func Chunks(chunks []Chunk, large bool) (words, data []byte) {
	pad := func(b []byte) []byte {
		for len(b)%8 != 0 {
			b = append(b, 0xFE)
		}
		return b
	}
	for i, c := range chunks {
		b := binary.LittleEndian.AppendUint16(nil, c.Levels)
		if c.Def != nil {
			b = binary.LittleEndian.AppendUint16(b, uint16(len(c.Def)))
		}
		for _, v := range c.Buffers {
			if large {
				b = binary.LittleEndian.AppendUint32(b, uint32(len(v)))
			} else {
				b = binary.LittleEndian.AppendUint16(b, uint16(len(v)))
			}
		}
		b = pad(b)
		if c.Def != nil {
			b = pad(append(b, c.Def...))
		}
		for _, v := range c.Buffers {
			b = pad(append(b, v...))
		}
		log := uint32(bits.Len(uint(c.Values)) - 1)
		if i == len(chunks)-1 {
			log = 0
		}
		w := uint32(len(b)/8-1)<<4 | log
		if large {
			words = binary.LittleEndian.AppendUint32(words, w)
		} else {
			words = binary.LittleEndian.AppendUint16(words, uint16(w))
		}
		data = append(data, b...)
	}
	return words, data
}

// Flat is a flat encoding.
func Flat(bits int) *pb.CompressiveEncoding {
	return &pb.CompressiveEncoding{Compression: &pb.CompressiveEncoding_Flat_{Flat: &pb.CompressiveEncoding_Flat{BitsPerValue: uint64(bits)}}}
}

// Inline is inline bit-packing.
func Inline(bits int) *pb.CompressiveEncoding {
	return &pb.CompressiveEncoding{Compression: &pb.CompressiveEncoding_InlineBitpacking_{
		InlineBitpacking: &pb.CompressiveEncoding_InlineBitpacking{UncompressedBits: uint64(bits)}}}
}

// OutOfLine is out-of-line bit-packing to w bits.
func OutOfLine(bits, w int) *pb.CompressiveEncoding {
	return &pb.CompressiveEncoding{Compression: &pb.CompressiveEncoding_OutOfLineBitpacking_{
		OutOfLineBitpacking: &pb.CompressiveEncoding_OutOfLineBitpacking{UncompressedBits: uint64(bits), Values: Flat(w)}}}
}

// Rle is run-length encoding.
func Rle(values, lengths *pb.CompressiveEncoding) *pb.CompressiveEncoding {
	return &pb.CompressiveEncoding{Compression: &pb.CompressiveEncoding_Rle_{
		Rle: &pb.CompressiveEncoding_Rle{Values: values, RunLengths: lengths}}}
}

// General wraps an encoding in a general compression.
func General(s pb.BufferCompression_Scheme, values *pb.CompressiveEncoding) *pb.CompressiveEncoding {
	return &pb.CompressiveEncoding{Compression: &pb.CompressiveEncoding_General_{
		General: &pb.CompressiveEncoding_General{Compression: &pb.BufferCompression{Scheme: s}, Values: values}}}
}

// Constant is a constant encoding.
func Constant(v []byte) *pb.CompressiveEncoding {
	return &pb.CompressiveEncoding{Compression: &pb.CompressiveEncoding_Constant_{Constant: &pb.CompressiveEncoding_Constant{Value: v}}}
}

// Range is an arithmetic sequence of 64-bit values.
func Range(start, step uint64) *pb.CompressiveEncoding {
	return &pb.CompressiveEncoding{Compression: &pb.CompressiveEncoding_Range_{
		Range: &pb.CompressiveEncoding_Range{Bits: 64, Start: start, Step: step}}}
}

// Delta holds differences of 64-bit values.
func Delta(base uint64, deltas *pb.CompressiveEncoding) *pb.CompressiveEncoding {
	return &pb.CompressiveEncoding{Compression: &pb.CompressiveEncoding_Delta_{
		Delta: &pb.CompressiveEncoding_Delta{Bits: 64, Base: base, Deltas: deltas}}}
}
