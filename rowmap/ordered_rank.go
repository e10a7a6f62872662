package rowmap

import (
	"context"
	"sort"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// Rows returns the number of survivors of the whole transition, which is the number of rows of its destinations.
func (m *Ordered) Rows() uint64 { return m.ranks[len(m.ranks)-1] }

// Total returns the number of survivors of source src.
func (m *Ordered) Total(src int) uint64 { return m.sources[src].total }

// First returns the rank of the first survivor of source src: the survivors of the sources before it.
func (m *Ordered) First(src int) uint64 { return m.sources[src].first }

// RankAtContainer returns how many survivors source src has below row key*65536. It reads nothing.
func (m *Ordered) RankAtContainer(src int, key uint64) uint64 {
	s := &m.sources[src]
	n := len(s.containers)
	if s.dense {
		return m.ranks[int(s.lo)+int(min(key, uint64(n)))] - s.first
	}
	i := sort.Search(n, func(i int) bool { return uint64(s.containers[i].Key) >= key })
	return m.ranks[int(s.lo)+i] - s.first
}

// Rank returns how many survivors source src has below row off. It reads at most one container; none where off is a
// multiple of 65,536 or past the source's end.
func (m *Ordered) Rank(ctx context.Context, src int, off uint64) (uint64, error) {
	s := &m.sources[src]
	slot := -1
	if off&(containerRows-1) != 0 && off < s.limit() {
		slot = s.slot(off >> 16)
	}
	if slot < 0 {
		return m.RankAtContainer(src, (off+containerRows-1)>>16), nil
	}
	b, err := m.block(ctx, slot)
	if err != nil {
		return 0, err
	}
	return b.RankBefore(uint32(off)&(containerRows-1)) - s.first, nil
}

// Block returns rows container*65536 ... of source src, decoded. A container without survivors gives a block of zero
// words whose First is the rank that the next survivor has.
func (m *Ordered) Block(ctx context.Context, src int, container uint64) (*OrderedBlock, error) {
	s := &m.sources[src]
	slot := s.slot(container)
	if slot >= 0 {
		return m.block(ctx, slot)
	}
	if container<<16 >= max(s.rows, 1) {
		return nil, fault.New("rowmap.Block", "", fault.Invalid, "container %d of fragment %d, which has %d rows",
			container, m.t.Sources[src].ID, s.rows)
	}
	rows := min(containerRows, s.rows-container<<16)
	return &OrderedBlock{First: s.first + m.RankAtContainer(src, container), Rows: uint32(rows)}, nil
}

// Dest returns the place of a rank: its destination's position in the recorded list, the offset there, and how many
// ranks from this one on are in the same destination. A rank that no survivor has (>= Rows) gives the end of the
// last destination that has rows, and left 0; without destinations dst is -1.
func (m *Ordered) Dest(rank uint64) (dst int, off, left uint64) {
	i := m.destAt(rank)
	if i == len(m.dests) {
		if i == 0 {
			return -1, 0, 0
		}
		d := &m.dests[i-1]
		return d.pos, d.end - d.start, 0
	}
	d := &m.dests[i]
	return d.pos, rank - d.start, d.end - rank
}

// AddressOf returns the new address of the survivor with this rank, and whether there is such a survivor.
func (m *Ordered) AddressOf(rank uint64) (fri.RowAddr, bool) {
	i := m.destAt(rank)
	if i == len(m.dests) {
		return 0, false
	}
	d := &m.dests[i]
	return fri.RowAddr(d.addr + rank - d.start), true
}

// FirstRankOf returns the ranks [start, end) that destination dst holds.
func (m *Ordered) FirstRankOf(dst int) (start, end uint64) {
	i := sort.Search(len(m.dests), func(i int) bool { return m.dests[i].pos >= dst })
	if i < len(m.dests) && m.dests[i].pos == dst {
		return m.dests[i].start, m.dests[i].end
	}
	return 0, 0
}

// Received implements Mapping.
func (m *Ordered) Received(ctx context.Context, src int, off uint64, counts []uint64) error {
	if src < 0 || src >= len(m.sources) || len(counts) != len(m.t.Destinations) {
		return fault.New("rowmap.Received", "", fault.Invalid, "source %d of %d, %d counts for %d destinations",
			src, len(m.sources), len(counts), len(m.t.Destinations))
	}
	rank, err := m.Rank(ctx, src, off)
	if err != nil {
		return err
	}
	rank += m.sources[src].first
	clear(counts)
	for _, d := range m.dests {
		if rank <= d.start {
			break
		}
		counts[d.pos] = min(rank, d.end) - d.start
	}
	return nil
}
