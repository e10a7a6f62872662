package mapcsv

import (
	"math/bits"

	"github.com/frifs/frifs/fri"
)

// pow10 holds the powers of ten that fit in a uint64; pow10[k] is the first number with k+1 digits.
var pow10 = [20]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// width is the number of decimal digits of v; 0 has one.
func width(v uint64) int {
	k := (bits.Len64(v|1) * 1233) >> 12 // floor(log10 2 * bits): the digits of v, or one less
	if v >= pow10[min(k, 19)] && k < 20 {
		k++
	}
	return max(k, 1)
}

// sumWidths is the sum of the widths of the n consecutive numbers from lo on, in closed form: one step for each
// power of ten in between. lo+n must not exceed 2^64.
func sumWidths(lo, n uint64) uint64 {
	var sum uint64
	for n > 0 {
		w := width(lo)
		if w == 20 {
			return sum + 20*n
		}
		k := min(n, pow10[w]-lo)
		sum += uint64(w) * k
		lo, n = lo+k, n-k
	}
	return sum
}

// A half is the text `address,fragment,offset` of one row: two thirds of what a line says about one side.

// halfWidth is the length of the half of one row.
func halfWidth(f fri.FragID, off uint32) int {
	return width(uint64(fri.Addr(f, off))) + width(uint64(f)) + width(uint64(off)) + 2
}

// halfBytes is the total length of the halves of the n consecutive rows of fragment f from offset lo on.
// lo+n must not exceed 2^32.
func halfBytes(f fri.FragID, lo, n uint64) uint64 {
	return sumWidths(uint64(f)<<32+lo, n) + sumWidths(lo, n) + n*uint64(width(uint64(f))+2)
}

// widthChange is the first offset above off at which the half of a row of fragment f has another length than the
// half of the row before, or 2^32 when there is none.
func widthChange(f fri.FragID, off uint64) uint64 {
	next := uint64(maxRows)
	if w := width(off); w < 10 {
		next = pow10[w]
	}
	base := uint64(f) << 32
	if w := width(base + off); w < 20 {
		next = min(next, pow10[w]-base)
	}
	return next
}

// maxRows is the number of rows that a fragment's 32-bit offsets can tell apart.
const maxRows = 1 << 32

// tens[w] is 10 + 100 + ... + 10^(w-1): what the numbers below n, of which the largest has w digits, lack of n*w.
var tens = [11]uint64{0, 0, 10, 110, 1110, 11110, 111110, 1111110, 11111110, 111111110, 1111111110}

// sums measures the first rows of one fragment.
type sums struct {
	fixed uint64 // length of a half without its offset, as long as the address has the width of the first one
	cross uint64 // offset from which on addresses are one digit longer; 2^32 if there is none
	zero  bool   // fragment 0: the address is the offset
}

func newSums(f fri.FragID) sums {
	base := uint64(f) << 32
	s := sums{fixed: uint64(width(base) + width(uint64(f)) + 2), cross: maxRows, zero: f == 0}
	if w := width(base); w < 20 && !s.zero {
		s.cross = min(maxRows, pow10[w]-base)
	}
	if s.zero {
		s.fixed--
	}
	return s
}

// prefix is the total length of the halves of the first n rows, n <= 2^32: halfBytes in a few instructions.
func (s *sums) prefix(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	w := width(n - 1)
	offsets := n*uint64(w) - tens[w]
	t := n*s.fixed + offsets
	if n > s.cross {
		t += n - s.cross
	}
	if s.zero {
		t += offsets
	}
	return t
}
