package mapcsv

import "github.com/frifs/frifs/fri"

// side renders the halves of rows in any order; ascending ones of one fragment need the fewest templates.
type side struct {
	half
	frag fri.FragID
	used bool
}

// moveTo makes a the row that is put next.
func (s *side) moveTo(a fri.RowAddr) {
	at := fri.RowAddr(uint64(s.frag)<<32 + s.next - s.c>>32)
	switch {
	case a == at && s.left() > 0:
		return
	case s.used && a.Frag() == s.frag && a > at:
		s.skip(uint64(a - at))
	case s.used && a == at:
	default:
		s.used, s.frag = true, a.Frag()
		s.at(uint64(a.Offset()))
	}
	if s.left() == 0 {
		s.refill(s.frag)
	}
}
