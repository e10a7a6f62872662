package lancefile

import (
	"encoding/binary"
	"fmt"

	"github.com/frifs/frifs/fault"
)

// block is a run of decoded values: n values of equal width side by side in fixed, or n values between n+1 offsets into
// bytes. A bit is a byte, 0 or 1.
type block struct {
	n       uint64
	fixed   []byte
	offsets []int // nil for fixed width
	bytes   []byte
	valid   []uint64 // of the items of fixed-size lists, by item; nil: all valid
}

// readLimit bounds the bytes that one read may decode; a single cell may be larger.
const readLimit = 256 << 20

func tooLarge(n uint64) error {
	return fault.New("lancefile.Read", "", fault.TooLarge, "%d bytes in one read, at most %d: read fewer rows at once", n, uint64(readLimit))
}

// slice returns values [lo, hi) of b, which shares its memory.
func (b *block) slice(s shape, lo, hi uint64) block {
	out := block{n: hi - lo}
	if b.offsets != nil {
		out.offsets = b.offsets[lo : hi+1]
		out.bytes = b.bytes
		return out
	}
	w := s.valueBytes()
	out.fixed = b.fixed[lo*w : hi*w]
	if b.valid != nil {
		d := max(s.dim, 1)
		out.valid = sliceBits(b.valid, lo*d, (hi-lo)*d)
	}
	return out
}

// add appends a block of the same shape.
func (b *block) add(s shape, x block) error {
	if size := uint64(len(b.fixed)+len(b.bytes)) + uint64(len(x.fixed)); size > readLimit {
		return tooLarge(size)
	}
	if s.variable {
		if b.offsets == nil {
			b.offsets = append(make([]int, 0, x.n+1), 0)
		}
		if x.n == 0 {
			return nil
		}
		from, to := x.offsets[0], x.offsets[x.n]
		if size := uint64(len(b.bytes) + to - from); size > readLimit {
			return tooLarge(size)
		}
		shift := len(b.bytes) - from
		for _, o := range x.offsets[1 : x.n+1] {
			b.offsets = append(b.offsets, o+shift)
		}
		b.bytes = append(b.bytes, x.bytes[from:to]...)
		b.n += x.n
		return nil
	}
	d := max(s.dim, 1)
	if x.valid != nil || b.valid != nil {
		b.valid = addBits(b.valid, b.n*d, x.valid, x.n*d)
	}
	b.fixed = append(b.fixed, x.fixed...)
	b.n += x.n
	return nil
}

// cell returns value i of a block of variable width.
func (b *block) cell(i uint64) []byte {
	return b.bytes[b.offsets[i]:b.offsets[i+1]:b.offsets[i+1]]
}

// repeat makes a block of n times the same value.
func repeat(s shape, n uint64, value []byte) (block, error) {
	if uint64(len(value)) > 0 && n > readLimit/uint64(len(value)) {
		return block{}, tooLarge(n * uint64(len(value)))
	}
	if n > readLimit/8 { // the room for offsets and validity
		return block{}, tooLarge(8 * n)
	}
	b := block{n: n}
	all := make([]byte, 0, n*uint64(len(value)))
	for range n {
		all = append(all, value...)
	}
	if !s.variable {
		b.fixed = all
		return b, nil
	}
	b.bytes, b.offsets = all, make([]int, n+1)
	for i := range b.offsets {
		b.offsets[i] = i * len(value)
	}
	return b, nil
}

// checkEnds turns n+1 raw offsets into ints, checked to ascend and to end within size.
func checkEnds(raw []uint64, size uint64) ([]int, error) {
	out := make([]int, len(raw))
	last := uint64(0)
	for i, o := range raw {
		if o < last || o > size {
			return nil, fmt.Errorf("offset %d is %d after %d, in %d bytes", i, o, last, size)
		}
		last = o
		out[i] = int(o)
	}
	return out, nil
}

// offsetsOf decodes little-endian offsets of 32 or 64 bits.
func offsetsOf(b []byte, bits int) []uint64 {
	out := make([]uint64, len(b)/(bits/8))
	for i := range out {
		if bits == 32 {
			out[i] = uint64(binary.LittleEndian.Uint32(b[4*i:]))
		} else {
			out[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
	}
	return out
}

// sliceBits returns n bits of b from bit from on, in new words.
func sliceBits(b []uint64, from, n uint64) []uint64 {
	out := make([]uint64, (n+63)/64)
	for i := range out {
		w, sh := from>>6+uint64(i), from&63
		x := b[w] >> sh
		if sh > 0 && w+1 < uint64(len(b)) {
			x |= b[w+1] << (64 - sh)
		}
		out[i] = x
	}
	if n&63 != 0 {
		out[len(out)-1] &= 1<<(n&63) - 1
	}
	return out
}

// addBits appends n bits of x (nil: all set) to a's first have bits (nil: all set).
func addBits(a []uint64, have uint64, x []uint64, n uint64) []uint64 {
	if a == nil {
		a = setBits(nil, 0, have)
	}
	if x == nil {
		return setBits(a, have, n)
	}
	for i := uint64(0); i < n; i += 64 {
		v := x[i>>6]
		if left := n - i; left < 64 {
			v &= 1<<left - 1
		}
		at := have + i
		for uint64(len(a)) <= at>>6 {
			a = append(a, 0)
		}
		a[at>>6] |= v << (at & 63)
		if hi := v >> (64 - at&63); at&63 > 0 && hi != 0 {
			a = append(a, hi)
		}
	}
	return a
}

// setBits appends n set bits to a's first have bits.
func setBits(a []uint64, have, n uint64) []uint64 {
	for i := have; i < have+n; {
		for uint64(len(a)) <= i>>6 {
			a = append(a, 0)
		}
		stop := min(have+n, (i>>6+1)<<6)
		a[i>>6] |= ^uint64(0) >> (64 - (stop - i)) << (i & 63)
		i = stop
	}
	return a
}

// bit reports bit i of b; nil: all set.
func bit(b []uint64, i uint64) bool { return b == nil || b[i>>6]>>(i&63)&1 != 0 }

// nullBlock makes a block of n slots without a value.
func nullBlock(s shape, n uint64) (block, error) {
	return repeat(s, n, make([]byte, s.valueBytes()))
}
