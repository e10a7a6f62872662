package indexfile

import (
	"context"
	"io"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/addrset"
)

// setMapper translates sets one after another, and hands each on encoded. Members of small sets are translated
// together, and a large one in batches; what is kept in memory is a batch, and the set that is being written. The cells
// that it hands on are valid during the call.
type setMapper struct {
	r       Resolver
	format  addrset.Format
	without *roaring.Bitmap // destination fragments whose rows leave the sets; nil = none
	emit    func(cell []byte, null bool) error
	large   func(size int, write func(io.Writer) error) error // in place of emit for sets that take much memory; may be nil
	changed bool                                              // some address did not stay as it was

	addrs []fri.RowAddr // of the sets in queue, and then of the one that is not finished
	queue []queuedSet
	cur   addrset.Builder // what was kept so far of the first set that is not handed on
	part  bool            // that set began in a batch before
	cell  []byte          // of a small set
	a     Answers
}

// smallSet is up to how many members a set is read and written without bitmaps.
const smallSet = 1024

// largeSet is from how many bytes on a set is not put together in memory before it is written.
const largeSet = 1 << 18

// queuedSet is a set whose members end at addrs[:end], or a null.
type queuedSet struct {
	end  int
	null bool
}

// addCell takes the next set, encoded. decode gives it as a whole where it is not small.
func (m *setMapper) addCell(ctx context.Context, cell []byte, decode func() (*addrset.Set, error)) error {
	if m.addrs == nil {
		m.addrs = make([]fri.RowAddr, 0, batchRows)
	}
	if cap(m.addrs)-len(m.addrs) < smallSet {
		if err := m.flush(ctx); err != nil {
			return err
		}
	}
	if len(cell) <= 8*smallSet {
		// An error is told by decode, which knows where the cell is.
		if addrs, fits, err := addrset.AppendMembers(m.addrs, cell, m.format, smallSet); err == nil && fits {
			m.addrs = addrs
			return m.end(ctx, false)
		}
	}
	s, err := decode()
	if err != nil {
		return err
	}
	return m.add(ctx, s)
}

// add takes the next set. s is not used any more when it returns. A whole fragment stands for its rows; one whose row
// count is not known is unresolved as a whole, and leaves the set.
func (m *setMapper) add(ctx context.Context, s *addrset.Set) error {
	if m.addrs == nil {
		m.addrs = make([]fri.RowAddr, 0, batchRows)
	}
	for w := s.Members(m.r.Rows); ; {
		if len(m.addrs) == cap(m.addrs) {
			if err := m.flush(ctx); err != nil {
				return err
			}
		}
		n := w.Next(m.addrs[len(m.addrs):cap(m.addrs)])
		if n == 0 {
			m.changed = m.changed || len(w.Unknown()) > 0
			return m.end(ctx, false)
		}
		m.addrs = m.addrs[:len(m.addrs)+n]
	}
}

// end closes the set whose members were added, or takes a null.
func (m *setMapper) end(ctx context.Context, null bool) error {
	m.queue = append(m.queue, queuedSet{len(m.addrs), null})
	if len(m.queue) < batchRows {
		return nil
	}
	return m.flush(ctx)
}

// flush translates what was added, and hands on the sets that are complete.
func (m *setMapper) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(m.addrs) > 0 {
		m.a.Grow(len(m.addrs))
		if err := m.r.Resolve(ctx, m.addrs, &m.a); err != nil {
			return err
		}
	}
	pos := 0
	for _, q := range m.queue {
		kept := m.keep(pos, q.end)
		pos = q.end
		if err := m.hand(kept, q.null); err != nil {
			return err
		}
		m.part = false
	}
	if pos < len(m.addrs) {
		m.cur.Add(m.keep(pos, len(m.addrs))...)
		m.part = true
	}
	m.addrs, m.queue = m.addrs[:0], m.queue[:0]
	return nil
}

// keep gives the new addresses of addrs[from:to], in their place.
func (m *setMapper) keep(from, to int) []fri.RowAddr {
	kept := m.addrs[from:from] // what is overwritten was translated
	for i := from; i < to; i++ {
		now := m.a.New[i]
		if !m.a.Keep(i) || m.without != nil && m.without.Contains(uint32(now.Frag())) {
			m.changed = true
			continue
		}
		m.changed = m.changed || now != m.addrs[i]
		kept = append(kept, now)
	}
	return kept
}

// hand hands on the set that ends with some addresses.
func (m *setMapper) hand(last []fri.RowAddr, null bool) error {
	if null {
		return m.emit(nil, true)
	}
	if !m.part && len(last) <= smallSet {
		if !slices.IsSorted(last) {
			slices.Sort(last)
		}
		m.cell = addrset.AppendEncoded(m.cell[:0], slices.Compact(last), m.format)
		return m.emit(m.cell, false)
	}
	m.cur.Add(last...)
	s := m.cur.Set()
	size, err := addrset.EncodedSize(s, m.format)
	if err != nil {
		return err
	}
	if m.large != nil && size > largeSet && size <= maxSet {
		return m.large(int(size), func(w io.Writer) error { return addrset.Write(w, s, m.format) })
	}
	cell, err := addrset.Encode(s, m.format)
	if err != nil {
		return err
	}
	return m.emit(cell, false)
}
