package rowmap

import (
	"context"
	"math/bits"
	"sort"
	"unsafe"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

const (
	containerRows = 1 << 16 // rows that one container of the survivor bitmap spans
	blockWords    = containerRows / 64
	maxU32        = 1<<32 - 1
)

// Ordered is the mapping of an ordered compaction: the survivors of the sources, in recorded source order and by
// ascending offset within each, are the rows of the destinations in recorded order (docs/FORMAT.md, "Survivor
// bitmap"). A rank is the position of a survivor in that stream, counted over the whole transition.
//
// Opening sums up container headers; payloads are read when one of their rows is asked for.
type Ordered struct {
	t       *fri.Transition
	sources []orderedSource
	dests   []destRange // destinations with at least one row, by first rank
	bySrc   fragIndex
	near    []nearSource // by fragment id from bySrc.min on, where the ids lie close together
	byDst   fragIndex
	ranks   []uint64 // rank of the first survivor of each container, in list order of sources; then the total
	srcOf   []int32  // the source of each container
	blocks  *table[OrderedBlock]
	scratch scratchPool
}

// orderedSource is one source: containers [lo, hi) of the flat list are its own.
type orderedSource struct {
	containers []fri.Container
	rows       uint64 // physical rows; 0 = unknown
	first      uint64 // rank of its first survivor
	total      uint64 // its survivors
	lo         int32
	dense      bool // container number k of the list has key k
}

// nearSource is what finding a row's container takes, side by side in memory.
type nearSource struct {
	limit uint64 // offsets from here on are out of range; 0 where the fragment is no source
	lo    int32
	n     uint32 // container k is at slot lo+k up to n; 0 where it has to be searched for
}

func (s *orderedSource) near() nearSource {
	x := nearSource{limit: s.limit(), lo: s.lo}
	if s.dense {
		x.n = uint32(len(s.containers))
	}
	return x
}

// destRange is a destination that holds the ranks [start, end).
type destRange struct {
	start, end uint64
	addr       uint64 // address of its first row
	pos        int    // position in the recorded list
}

// NewOrdered prepares the mapping of t, an ordered compaction with survivors. It reads no payload. The record's own
// rules are checked by package fri; what arithmetic here relies on is checked again and is an error of kind corrupt.
func NewOrdered(t *fri.Transition, opt Options) (*Ordered, error) {
	const op = "rowmap.NewOrdered"
	if t.Survivors == nil {
		return nil, fault.New(op, "", fault.Invalid, "record %d has no survivor bitmap", t.Record)
	}
	if err := checkDigests(op, t); err != nil {
		return nil, err
	}
	m := &Ordered{t: t, bySrc: newFragIndex(t.Sources), byDst: newFragIndex(t.Destinations)}
	var rank, rows uint64
	for i, d := range t.Sources {
		s := orderedSource{rows: d.PhysicalRows, first: rank, lo: int32(len(m.ranks)), dense: true}
		if fs, ok := t.Survivors.Fragment(d.Frag()); ok {
			s.containers = fs.Containers
		}
		for k, c := range s.containers {
			base := uint64(c.Key) << 16
			if base >= d.PhysicalRows || uint64(c.Card) > min(containerRows, d.PhysicalRows-base) {
				return nil, fault.New(op, "", fault.Corrupt,
					"record %d: container %d of fragment %d has %d survivors, but the fragment has %d rows",
					t.Record, c.Key, d.ID, c.Card, d.PhysicalRows)
			}
			s.dense = s.dense && int(c.Key) == k
			m.ranks = append(m.ranks, rank)
			m.srcOf = append(m.srcOf, int32(i))
			rank += uint64(c.Card)
		}
		s.total = rank - s.first
		m.sources = append(m.sources, s)
	}
	m.ranks = append(m.ranks, rank)
	if n := t.Survivors.Total(); n != rank {
		return nil, fault.New(op, "", fault.Corrupt, "record %d: %d survivors lie in fragments that are no sources", t.Record, n-rank)
	}
	for i, d := range t.Destinations {
		if d.PhysicalRows > 0 {
			m.dests = append(m.dests, destRange{rows, rows + d.PhysicalRows, uint64(fri.Addr(d.Frag(), 0)), i})
		}
		rows += d.PhysicalRows
	}
	if rows != rank {
		return nil, fault.New(op, "", fault.Corrupt, "record %d: survivors %d, destinations hold %d", t.Record, rank, rows)
	}
	m.near = make([]nearSource, len(m.bySrc.dense))
	for i, p := range m.bySrc.dense {
		if p >= 0 {
			m.near[i] = m.sources[p].near()
		}
	}
	m.blocks = newTable[OrderedBlock](opt.Cache, len(m.srcOf))
	return m, nil
}

// checkDigests tests what all mappings rely on: ids and row counts fit u32, and no id stands twice on one side.
func checkDigests(op string, t *fri.Transition) error {
	for side, ds := range [2][]fri.Digest{t.Sources, t.Destinations} {
		seen := make(map[uint64]struct{}, len(ds))
		for _, d := range ds {
			name := [2]string{"source", "destination"}[side]
			if d.ID > maxU32 || d.PhysicalRows > maxU32 {
				return fault.New(op, "", fault.Corrupt, "record %d: %s fragment %d with %d rows is over the limit of 2^32-1",
					t.Record, name, d.ID, d.PhysicalRows)
			}
			if _, ok := seen[d.ID]; ok {
				return fault.New(op, "", fault.Corrupt, "record %d: %s fragment %d is listed twice", t.Record, name, d.ID)
			}
			seen[d.ID] = struct{}{}
		}
	}
	return nil
}

// Sources returns the source digests in recorded order.
func (m *Ordered) Sources() []fri.Digest { return m.t.Sources }

// Destinations returns the destination digests in recorded order.
func (m *Ordered) Destinations() []fri.Digest { return m.t.Destinations }

// OrderedWord is 64 rows of a source: Bits has a one for each survivor, Base is the new address of the first of them.
// Where the survivors of the word fall into two or more destinations, Base is no address: Split says so.
type OrderedWord struct{ Bits, Base uint64 }

// Split reports whether Base may not be used for this word's survivors; AddressOf has to be asked for each rank.
func (w *OrderedWord) Split() bool { return w.Base>>32 == maxU32 }

// splitBase marks a word whose survivors fall into several destinations. A destination with the reserved fragment id
// 2^32-1, which only a broken record can name, is treated like a split.
const splitBase = ^uint64(0)

// OrderedBlock is a decoded container: 65,536 consecutive rows of one source. Word i holds the rows from 64*i on. It
// is shared and must not be changed.
type OrderedBlock struct {
	Words [blockWords]OrderedWord
	Ranks [blockWords]uint16 // survivors of this container before the word
	First uint64             // rank, in the transition, of the container's first survivor
	Count uint32             // survivors of the container
	Rows  uint32             // rows that exist: 65,536, or fewer in the last container of a source

	AnySplit bool // a word is split
}

const blockBytes = int64(unsafe.Sizeof(OrderedBlock{}))

// noSurvivors stands for a container that the bitmap does not have. It is never written.
var noSurvivors = new(OrderedBlock)

// RankBefore returns the rank, in the transition, of the first survivor at or after row (0 ... 65,535) of the block.
func (b *OrderedBlock) RankBefore(row uint32) uint64 {
	w := &b.Words[row>>6&(blockWords-1)]
	return b.First + uint64(b.Ranks[row>>6&(blockWords-1)]) + uint64(bits.OnesCount64(w.Bits&(1<<(row&63)-1)))
}

// slot finds the container of key in source s, as a number in the flat list; -1 when the bitmap does not have it.
func (s *orderedSource) slot(key uint64) int {
	if s.dense {
		if key < uint64(len(s.containers)) {
			return int(s.lo) + int(key)
		}
		return -1
	}
	i := sort.Search(len(s.containers), func(i int) bool { return uint64(s.containers[i].Key) >= key })
	if i < len(s.containers) && uint64(s.containers[i].Key) == key {
		return int(s.lo) + i
	}
	return -1
}

// block returns the decoded container at a slot.
func (m *Ordered) block(ctx context.Context, slot int) (*OrderedBlock, error) {
	if b := m.blocks.peek(slot); b != nil {
		return b, nil
	}
	return m.blocks.get(ctx, slot, func(ctx context.Context) (*OrderedBlock, int64, error) {
		b, err := m.decode(ctx, slot)
		return b, blockBytes, err
	})
}

// decode reads a container and prepares its words: the new address that each word's survivors start at.
func (m *Ordered) decode(ctx context.Context, slot int) (*OrderedBlock, error) {
	src := &m.sources[m.srcOf[slot]]
	c := src.containers[slot-int(src.lo)]
	words := m.scratch.words()
	defer m.scratch.putWords(words)
	if err := m.t.Survivors.Load(ctx, c, words); err != nil {
		return nil, fault.Wrap("rowmap.Ordered", "", err)
	}
	b := &OrderedBlock{First: m.ranks[slot], Rows: uint32(min(containerRows, src.rows-uint64(c.Key)<<16))}
	rank := b.First
	di := m.destAt(rank)
	var delta, end uint64 // address = rank + delta, up to rank end
	if di < len(m.dests) {
		delta, end = m.dests[di].addr-m.dests[di].start, m.dests[di].end
	}
	for i, w := range words {
		n := uint64(bits.OnesCount64(w))
		b.Ranks[i] = uint16(rank - b.First)
		b.Words[i] = OrderedWord{w, rank + delta}
		if rank+n > end && n > 0 {
			if rank == end && di+1 < len(m.dests) {
				di++
				delta, end = m.dests[di].addr-m.dests[di].start, m.dests[di].end
				b.Words[i].Base = rank + delta
			}
			if rank+n > end {
				b.Words[i].Base = splitBase
				for di+1 < len(m.dests) && rank+n > end {
					di++
					delta, end = m.dests[di].addr-m.dests[di].start, m.dests[di].end
				}
			}
		}
		b.AnySplit = b.AnySplit || b.Words[i].Split()
		rank += n
	}
	b.Count = uint32(rank - b.First)
	if b.Count != c.Card {
		return nil, fault.New("rowmap.Ordered", "", fault.Corrupt, "record %d: container %d at byte %d holds %d survivors, its header says %d",
			m.t.Record, c.Key, c.Off, b.Count, c.Card)
	}
	if b.Rows < containerRows && b.RankBefore(b.Rows) != rank {
		return nil, fault.New("rowmap.Ordered", "", fault.Corrupt, "record %d: a survivor of fragment %d lies past its %d rows",
			m.t.Record, m.t.Sources[m.srcOf[slot]].ID, src.rows)
	}
	return b, nil
}

// destAt returns the number, among the non-empty destinations, of the one that holds rank; their count at the total.
func (m *Ordered) destAt(rank uint64) int {
	return sort.Search(len(m.dests), func(i int) bool { return m.dests[i].end > rank })
}

var _ Mapping = (*Ordered)(nil)
