package mapcsv

import (
	"sort"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// spans lays fragments one behind the other: the rows of a side of a transition in recorded order. Fragments without
// rows have no span.
type spans struct {
	list  []span
	rows  uint64 // total
	bytes uint64 // total of the halves
}

// span is one fragment: its rows have the positions [start, end), and bytes is the total of the halves before.
type span struct {
	start, end uint64
	bytes      uint64
	frag       fri.FragID
	pos        int // in the recorded list
	sums       sums
}

// maxBytes bounds sums of bytes, so that they cannot overflow.
const maxBytes = 1 << 62

// newSpans refuses more than 2^32 rows for a fragment and files that no offset could address.
func newSpans(ds []fri.Digest) (spans, error) {
	var s spans
	for i, d := range ds {
		if d.ID > 1<<32-1 || d.PhysicalRows > maxRows {
			return s, fault.New("mapcsv", "", fault.Corrupt, "fragment %d with %d rows has no row addresses", d.ID, d.PhysicalRows)
		}
		if d.PhysicalRows == 0 {
			continue
		}
		s.list = append(s.list, span{s.rows, s.rows + d.PhysicalRows, s.bytes, d.Frag(), i, newSums(d.Frag())})
		p := &s.list[len(s.list)-1]
		s.rows += d.PhysicalRows
		s.bytes += p.sums.prefix(d.PhysicalRows)
		if s.bytes > maxBytes {
			return s, fault.New("mapcsv", "", fault.TooLarge, "the rows up to fragment %d take more than 2^62 bytes", d.ID)
		}
	}
	return s, nil
}

// at returns the number of the span that holds a position; the number of spans when it is past the last.
func (s *spans) at(pos uint64) int {
	return sort.Search(len(s.list), func(i int) bool { return s.list[i].end > pos })
}

// prefix is the total length of the halves of the positions below pos.
func (s *spans) prefix(pos uint64) uint64 {
	i := s.at(pos)
	if i == len(s.list) {
		return s.bytes
	}
	p := &s.list[i]
	return p.bytes + p.sums.prefix(pos-p.start)
}
