package addrset

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
)

// Members walks over the addresses of a set, ascending. It is not safe for concurrent use.
type Members struct {
	set     *Set
	rows    RowCount
	next    int // entry after the current one
	unknown []fri.FragID

	frag   fri.FragID
	it     offsets // of the current entry, if it has a bitmap
	left   uint64  // values of it that were not given yet
	at, to uint64  // of a whole fragment: the next offset, and its row count
	buf    []uint32
}

// Members returns a walk over the set. rows, which may be nil, tells how many rows a whole fragment has; one of which
// that is not known is passed over, and named by Unknown.
func (s *Set) Members(rows RowCount) *Members { return &Members{set: s, rows: rows} }

// Unknown returns the whole fragments that were passed over so far.
func (m *Members) Unknown() []fri.FragID { return m.unknown }

// Skip passes over n addresses, or over all if there are fewer. It looks at headers, and at most at one container's
// payload. It may be called before the first Next only.
func (m *Members) Skip(n uint64) {
	for n > 0 && m.next < len(m.set.Entries) {
		e := &m.set.Entries[m.next]
		k, ok := e.rows(m.rows)
		switch {
		case !ok:
			m.unknown = append(m.unknown, e.Frag)
		case n < k:
			m.enter(e, n)
			m.next++
			return
		}
		n -= k
		m.next++
	}
}

// enter makes e the current entry, from its member skip on.
func (m *Members) enter(e *Entry, skip uint64) {
	m.frag = e.Frag
	if e.Whole {
		m.it = nil
		m.to, _ = e.rows(m.rows)
		m.at = skip
		return
	}
	m.it, m.at, m.to = e.Bitmap.ManyIterator(), 0, 0
	m.left = e.Bitmap.GetCardinality() - skip
	if skip == 0 {
		return
	}
	if v, err := e.Bitmap.Select(uint32(skip)); err == nil {
		it := e.Bitmap.Iterator()
		it.AdvanceIfNeeded(v)
		m.it = rest{it}
	}
}

// offsets walks over the values of a bitmap.
type offsets interface {
	NextMany(dst []uint32) int
}

// rest is a walk that started within a bitmap: the iterators that fill slices cannot be advanced.
type rest struct{ it roaring.IntPeekable }

func (r rest) NextMany(dst []uint32) int {
	n := 0
	for n < len(dst) && r.it.HasNext() {
		dst[n] = r.it.Next()
		n++
	}
	return n
}

// Next fills dst with the next addresses and returns how many there were: 0 at the end, or if dst is empty.
func (m *Members) Next(dst []fri.RowAddr) int {
	n := 0
	for n < len(dst) {
		k := m.fill(dst[n:])
		if n += k; k > 0 {
			continue
		}
		if m.next == len(m.set.Entries) {
			break
		}
		e := &m.set.Entries[m.next]
		m.next++
		switch _, ok := e.rows(m.rows); {
		case !ok:
			m.unknown = append(m.unknown, e.Frag)
		case !e.empty():
			m.enter(e, 0)
		}
	}
	return n
}

// maxBuf is how many offsets are taken from a bitmap at a time.
const maxBuf = 1024

// fill takes addresses of the current entry.
func (m *Members) fill(dst []fri.RowAddr) int {
	if m.it == nil {
		n := int(min(uint64(len(dst)), m.to-m.at))
		for i := range n {
			dst[i] = fri.Addr(m.frag, uint32(m.at)+uint32(i))
		}
		m.at += uint64(n)
		return n
	}
	if m.left == 0 {
		m.it = nil
		return 0
	}
	k := int(min(m.left, maxBuf, uint64(len(dst))))
	if len(m.buf) < k {
		m.buf = make([]uint32, k)
	}
	n := m.it.NextMany(m.buf[:k])
	for i, v := range m.buf[:n] {
		dst[i] = fri.Addr(m.frag, v)
	}
	m.left -= uint64(n)
	return n
}
