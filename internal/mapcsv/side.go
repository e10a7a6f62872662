package mapcsv

import (
	"encoding/binary"

	"github.com/frifs/frifs/fri"
)

// side renders the halves of rows that do not follow each other. Like half it copies a template and stores digits
// over it, but the eight lowest of address and offset, computed from the address: so a template holds for up to 10^8
// rows of one fragment, whatever the gaps.
type side struct {
	tmpl [tmplLen]byte
	n    uint8 // length with the separator
	a, o uint8 // where the stored digits of address and offset go
	sh   uint8 // bits by which the digits of the offset are shifted: one below 10^7 has less than eight

	lo, rows uint64 // the template holds for the addresses lo ... lo+rows-1
	aBase    uint64 // address without its eight lowest digits
	oBase    uint64 // address whose offset has zeros for its eight lowest digits
}

// myriad2 is the number of rows that eight digits tell apart.
const myriad2 = decade * decade

// put writes the half of a row and a separator at the start of d and returns the length. Up to window bytes of d are
// overwritten.
func (s *side) put(d *[window]byte, a fri.RowAddr, sep byte) int {
	if uint64(a)-s.lo >= s.rows {
		s.refill(a)
	}
	*(*[tmplLen]byte)(d[:tmplLen]) = s.tmpl
	binary.LittleEndian.PutUint64(d[s.a:], digits8(uint64(a)-s.aBase))
	binary.LittleEndian.PutUint64(d[s.o:], digits8(uint64(a)-s.oBase)>>(s.sh&63))
	d[s.n-1] = sep
	return int(s.n)
}

// digits8 is the ASCII of a number below 10^8 with leading zeros, as a little-endian word.
func digits8(v uint64) uint64 {
	hi := uint32(v) / decade
	lo := uint32(v) - hi*decade
	return uint64(digits4[uint16(hi)]) | uint64(digits4[uint16(lo)])<<32
}

// refill makes the template for a and the rows after it.
func (s *side) refill(a fri.RowAddr) {
	addr, off := uint64(a), uint64(a.Offset())
	var text [maxHalf + 5]byte
	b := appendHalf(text[:0], a.Frag(), a.Offset())
	wa, wo := width(addr), min(width(off), 8)
	s.n = uint8(len(b) + 1)
	s.o = uint8(len(b) - wo)
	s.sh = uint8(8 * (8 - wo))
	s.lo = addr
	s.aBase = addr - addr%myriad2
	s.oBase = addr - off%myriad2
	s.rows = min(myriad2-addr%myriad2, myriad2-off%myriad2, widthChange(a.Frag(), off)-off)
	if wa < 8 { // fragment 0 only: no eight digits to replace, so every row has its own template
		s.a, s.o, s.sh, s.rows = aside, aside, 0, 1
	} else {
		s.a = uint8(wa - 8)
	}
	s.tmpl = [tmplLen]byte(text[:tmplLen])
}
