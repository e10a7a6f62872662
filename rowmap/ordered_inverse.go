package rowmap

import (
	"context"
	"math/bits"
	"sort"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// Inverse implements Mapping by select: rank, container, word, bit.
func (m *Ordered) Inverse(ctx context.Context, addrs []fri.RowAddr, out []fri.RowAddr, st []Status) error {
	if len(out) != len(addrs) || len(st) != len(addrs) {
		return fault.New("rowmap.Inverse", "", fault.Invalid, "%d addresses, room for %d and %d statuses", len(addrs), len(out), len(st))
	}
	slot := -1 // the container of the previous address
	for i, a := range addrs {
		p := m.byDst.find(uint32(a.Frag()))
		if p < 0 {
			return outside("destination", a, m.t.Record)
		}
		start, end := m.FirstRankOf(int(p))
		rank := start + uint64(a.Offset())
		if rank >= end {
			out[i], st[i] = 0, OutOfRange
			continue
		}
		if slot < 0 || rank < m.ranks[slot] || rank >= m.ranks[slot+1] {
			slot = m.slotOfRank(rank)
		}
		b, err := m.block(ctx, slot)
		if err != nil {
			return err
		}
		out[i], st[i] = m.rowAt(slot, b.selectRow(rank)), Moved
	}
	return nil
}

// slotOfRank returns the container that holds the survivor with this rank, which must exist.
func (m *Ordered) slotOfRank(rank uint64) int {
	return sort.Search(len(m.srcOf), func(i int) bool { return m.ranks[i+1] > rank })
}

// rowAt is the old address of a row of the container at slot.
func (m *Ordered) rowAt(slot int, row uint32) fri.RowAddr {
	i := m.srcOf[slot]
	s := &m.sources[i]
	return fri.Addr(m.t.Sources[i].Frag(), uint32(s.containers[slot-int(s.lo)].Key)<<16|row)
}

// selectRow returns the row of the survivor with this rank, which lies in the block.
func (b *OrderedBlock) selectRow(rank uint64) uint32 {
	k := uint32(rank - b.First)
	lo, hi := 0, blockWords // the last word whose rank is not above k
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		if uint32(b.Ranks[mid]) <= k {
			lo = mid
		} else {
			hi = mid
		}
	}
	return uint32(lo)<<6 | selectBit(b.Words[lo].Bits, k-uint32(b.Ranks[lo]))
}

// selectBit returns the position of the k-th (from 0) set bit of w.
func selectBit(w uint64, k uint32) uint32 {
	pos := uint32(0)
	for half := uint32(32); half > 0; half /= 2 {
		if n := uint32(bits.OnesCount64(w & (1<<half - 1))); k >= n {
			k -= n
			w >>= half
			pos += half
		}
	}
	return pos
}

// InverseRun implements Mapping: survivors in rank order.
func (m *Ordered) InverseRun(ctx context.Context, dst int, off uint64, out []fri.RowAddr) error {
	if dst < 0 || dst >= len(m.t.Destinations) {
		return fault.New("rowmap.InverseRun", "", fault.Invalid, "destination %d of %d", dst, len(m.t.Destinations))
	}
	start, end := m.FirstRankOf(dst)
	if off+uint64(len(out)) > end-start {
		return fault.New("rowmap.InverseRun", "", fault.Invalid, "rows %d to %d of fragment %d, which has %d",
			off, off+uint64(len(out)), m.t.Destinations[dst].ID, end-start)
	}
	rank := start + off
	for len(out) > 0 {
		slot := m.slotOfRank(rank)
		b, err := m.block(ctx, slot)
		if err != nil {
			return err
		}
		n := min(len(out), int(m.ranks[slot+1]-rank))
		row := b.selectRow(rank)
		base := m.rowAt(slot, 0)
		w := int(row >> 6)
		word := b.Words[w].Bits &^ (1<<(row&63) - 1)
		for i := 0; i < n; {
			if word == ^uint64(0) && n-i >= 64 {
				o := (*[64]fri.RowAddr)(out[i:])
				for k := range o {
					o[k] = base + fri.RowAddr(w<<6+k)
				}
				i, word = i+64, 0
			}
			for ; word != 0 && i < n; word &= word - 1 {
				out[i] = base + fri.RowAddr(w<<6|bits.TrailingZeros64(word))
				i++
			}
			if w++; w < blockWords {
				word = b.Words[w].Bits
			} else {
				break
			}
		}
		rank += uint64(n)
		out = out[n:]
	}
	return nil
}
