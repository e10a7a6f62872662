package lancefile

import (
	"encoding/binary"
	"math/bits"
)

// Word is the type of a decoded value. The element of a column is at least 16 bits wide; uint8 serves run lengths.
type Word interface {
	uint8 | uint16 | uint32 | ~uint64
}

// width is the size of T in bytes.
func width[T Word]() int { return bits.Len64(uint64(^T(0))) / 8 }

// loadWords decodes len(out) little-endian values from b, which holds at least that many.
func loadWords[T Word](b []byte, out []T) {
	switch width[T]() {
	case 1:
		for i := range out {
			out[i] = T(b[i])
		}
	case 2:
		b = b[:2*len(out)]
		i := 0
		for ; i+4 <= len(out); i += 4 {
			x := binary.LittleEndian.Uint64(b[2*i:])
			o := out[i : i+4 : i+4]
			o[0], o[1], o[2], o[3] = T(x), T(x>>16), T(x>>32), T(x>>48)
		}
		for ; i < len(out); i++ {
			out[i] = T(binary.LittleEndian.Uint16(b[2*i:]))
		}
	case 4:
		for i := range out {
			out[i] = T(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case 8:
		for i := range out {
			out[i] = T(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
}

// loadWord decodes one little-endian value from b, which has exactly width[T]() bytes.
func loadWord[T Word](b []byte) T {
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return T(v)
}

// word decodes value i of an array.
func word[T Word](b []byte, i int) T {
	switch width[T]() {
	case 1:
		return T(b[i])
	case 2:
		return T(binary.LittleEndian.Uint16(b[2*i:]))
	case 4:
		return T(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return T(binary.LittleEndian.Uint64(b[8*i:]))
}
