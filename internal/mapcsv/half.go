package mapcsv

import (
	"encoding/binary"

	"github.com/frifs/frifs/fri"
)

const (
	// tmplLen is the room for the text of a half up to the last digits of its offset: at most 20 digits of address,
	// 10 of fragment, two commas and 6 of the offset; rounded up to a whole number of words.
	tmplLen = 40
	// maxHalf is the longest half with its separator: 20 + 1 + 10 + 1 + 10 + 1.
	maxHalf = 43
	// aside is a place behind a short half where its stale digits are put; what follows overwrites them.
	aside = tmplLen + 4
	// window is how many bytes from the start of a half must be writable: every index is a uint8 then, and the
	// compiler needs no bounds checks.
	window = 1<<8 + 8
	// decade is the number of rows that one table look-up covers.
	decade = 10000
)

// digits4 holds the four digits of 0..9999 as little-endian words of ASCII. It has 2^16 entries, so that a uint16
// needs no bounds check; those past 9999 are never reached.
var digits4 = func() (t [1 << 16]uint32) {
	for i := range decade {
		t[i] = uint32('0'+i/1000) | uint32('0'+i/100%10)<<8 | uint32('0'+i/10%10)<<16 | uint32('0'+i%10)<<24
	}
	return t
}()

// half renders the halves of consecutive rows of one fragment: a template is copied, then the four lowest digits of
// address and offset are stored over it. The template holds for at most 10,000 rows; refill makes the next one. It
// is 64 bytes, one cache line: a partition has one for each destination.
type half struct {
	tmpl [tmplLen]byte
	n    uint8 // length with the separator
	a, o uint8 // where the stored digits of address and offset go
	sh   uint8 // bits by which the digits of the offset are shifted: an offset below 1000 has less than four
	// c counts, in one word that one addition moves to the next row: the four lowest digits of the address in bits 0
	// to 15, those of the offset in bits 16 to 31, and the rows until the next refill in the upper half.
	c    uint64
	next uint64 // offset of the first row after the template's rows
}

// oneRow is what c changes by from row to row: no field overflows before the rows left are 0.
const oneRow uint64 = 1 + 1<<16 + (1<<32-1)<<32

// left is the number of rows until the next refill.
func (h *half) left() uint32 { return uint32(h.c >> 32) }

// advance moves over n rows of the template.
func (h *half) advance(n uint32) { h.c += uint64(n) * oneRow }

// at sets the state to the row at off; the template is made when the row is put.
func (h *half) at(off uint64) { h.next, h.c = off, 0 }

// off is the offset of the row that is put next.
func (h *half) off() uint64 { return h.next - h.c>>32 }

// refill makes the template for the rows of fragment f from h.next on; h.left() must be 0. A row past the last offset
// gives a template that is never put.
func (h *half) refill(f fri.FragID) {
	off := h.next
	addr := uint64(f)<<32 + off
	left := min(decade-addr%decade, decade-off%decade, widthChange(f, off)-off)
	if off >= maxRows {
		left = decade
	}
	var text [maxHalf + 5]byte
	b := appendHalf(text[:0], f, uint32(off))
	wa := width(addr)
	wo := min(width(off), 4)
	h.n = uint8(len(b) + 1)
	h.a = uint8(wa - 4)
	h.o = uint8(len(b) - wo)
	h.sh = uint8(8 * (4 - wo))
	if wa < 4 { // fragment 0 only: no four digits to replace, so every row has its own template
		left = 1
		h.a, h.o, h.sh = aside, aside, 0
	}
	h.tmpl = [tmplLen]byte(text[:tmplLen])
	h.c = left<<32 | off%decade<<16 | addr%decade
	h.next = off + left
}

// empty makes the state that of `,,`: the half of a row that has no address.
func (h *half) empty() {
	*h = half{tmpl: [tmplLen]byte{',', ','}, n: 3, a: aside, o: aside, c: decade << 32}
}

// put writes the half of the current row and a separator at the start of d, moves to the next row and returns the
// length. Up to window bytes of d are overwritten. h.left() must not be 0.
func (h *half) put(d *[window]byte, sep byte) int {
	*(*[tmplLen]byte)(d[:tmplLen]) = h.tmpl
	binary.LittleEndian.PutUint32(d[h.a:], digits4[uint16(h.c)])
	binary.LittleEndian.PutUint32(d[h.o:], digits4[uint16(h.c>>16)]>>(h.sh&31))
	d[h.n-1] = sep
	h.c += oneRow
	return int(h.n)
}

// skip moves over n rows without writing them.
func (h *half) skip(n uint64) {
	if left := h.c >> 32; n >= left {
		h.next += n - left
		h.c = 0
		return
	}
	h.advance(uint32(n))
}

// appendUint appends v in decimal.
func appendUint(b []byte, v uint64) []byte {
	var t [20]byte
	i := len(t)
	for v >= decade {
		i -= 4
		binary.LittleEndian.PutUint32(t[i:], digits4[uint16(v%decade)])
		v /= decade
	}
	w := width(v)
	d := digits4[uint16(v)] >> (8 * (4 - w))
	for k := range w {
		b = append(b, byte(d>>(8*k)))
	}
	return append(b, t[i:]...)
}

// appendHalf appends `address,fragment,offset`.
func appendHalf(b []byte, f fri.FragID, off uint32) []byte {
	b = append(appendUint(b, uint64(fri.Addr(f, off))), ',')
	b = append(appendUint(b, uint64(f)), ',')
	return appendUint(b, uint64(off))
}
