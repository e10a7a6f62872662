package rowmap

import (
	"context"
	"unsafe"

	"github.com/frifs/frifs/fri"
)

// forwardScattered maps a batch whose neighbours mostly lie in different containers. Where all decoded containers
// fit into half of the cache, each address goes straight to its word; else the batch is sorted by container, so that
// each container is read once for it and none is held longer than it is used.
func (m *Ordered) forwardScattered(ctx context.Context, addrs, out []fri.RowAddr, st []Status) error {
	sc := m.scratch.scatter()
	defer m.scratch.putScatter(sc)
	if int64(len(m.srcOf))*blockBytes <= m.blocks.c.budget/2 {
		return m.forwardDirect(ctx, sc, addrs, out, st)
	}
	return m.forwardSorted(ctx, sc, addrs, out, st)
}

// phaseRows is how many scattered addresses go through the phases of forwardDirect together.
const phaseRows = 256

// forwardDirect works in phases: find the words, load them, compute. The loads then do not wait for each other, which
// is what prefetching would give.
func (m *Ordered) forwardDirect(ctx context.Context, sc *scatter, addrs, out []fri.RowAddr, st []Status) error {
	if len(sc.blocks) != len(m.srcOf) {
		sc.blocks = make([]*OrderedBlock, len(m.srcOf))
	}
	defer clear(sc.blocks)
	var at [phaseRows]*OrderedWord
	var words [phaseRows]OrderedWord
	for len(addrs) > 0 {
		n := min(len(addrs), phaseRows)
		odd := false // an address is out of range
		for k, a := range addrs[:n] {
			p := m.bySrc.find(uint32(a >> 32))
			if p < 0 {
				return outside("source", a, m.t.Record)
			}
			s := &m.sources[p]
			off := uint64(uint32(a))
			slot := s.slot(off >> 16)
			if slot < 0 || off >= s.rows {
				odd = odd || s.rows > 0 && off >= s.rows
				at[k] = &noSurvivors.Words[0]
				continue
			}
			b := sc.blocks[slot]
			if b == nil {
				var err error
				if b, err = m.block(ctx, slot); err != nil {
					return err
				}
				sc.blocks[slot] = b
			}
			at[k] = b.word(uint32(off))
		}
		load(&words, at[:n])
		if answer(&words, addrs[:n], out, st) || odd {
			if err := m.exceptions(ctx, addrs[:n], out, st); err != nil {
				return err
			}
		}
		addrs, out, st = addrs[n:], out[n:], st[n:]
	}
	return nil
}

// load fetches the words. This loop and that of answer have functions of their own, so that their few variables stay
// in registers.
//
//go:noinline
func load(words *[phaseRows]OrderedWord, at []*OrderedWord) {
	for k, w := range at[:min(len(at), phaseRows)] {
		words[k] = *w
	}
}

// answer computes the answers and reports whether a word is split.
//
//go:noinline
func answer(words *[phaseRows]OrderedWord, addrs, out []fri.RowAddr, st []Status) bool {
	addrs = addrs[:min(len(addrs), phaseRows)]
	out, st = out[:len(addrs)], st[:len(addrs)]
	split := false
	for k, a := range addrs {
		w := &words[k]
		split = split || w.Split()
		out[k], st[k] = w.row(uint32(a))
	}
	return split
}

// word returns the word of a row, without the load that the check of b against nil would cost: here that is the first
// touch of the block's memory, and as slow as the one that is wanted.
func (b *OrderedBlock) word(row uint32) *OrderedWord {
	return (*OrderedWord)(unsafe.Add(unsafe.Pointer(b), unsafe.Offsetof(b.Words)+uintptr(row>>6&(blockWords-1))*unsafe.Sizeof(OrderedWord{})))
}

// exceptions answers anew the addresses that are out of range or in a split word.
func (m *Ordered) exceptions(ctx context.Context, addrs, out []fri.RowAddr, st []Status) error {
	for k, a := range addrs {
		b, limit, err := m.lookup(ctx, a)
		if err != nil {
			return err
		}
		row := uint32(a) & (containerRows - 1)
		if row >= limit || b.Words[row>>6].Split() {
			out[k], st[k] = m.slowRow(b, limit, row)
		}
	}
	return nil
}

func (m *Ordered) forwardSorted(ctx context.Context, sc *scatter, addrs, out []fri.RowAddr, st []Status) error {
	sc.slots = resize(sc.slots, len(addrs))
	sc.order = resize(sc.order, len(addrs))
	sc.starts = resize(sc.starts, len(m.srcOf)+1)
	clear(sc.starts)
	n := 0
	for i, a := range addrs {
		p := m.bySrc.find(uint32(a >> 32))
		if p < 0 {
			return outside("source", a, m.t.Record)
		}
		s := &m.sources[p]
		off := uint64(uint32(a))
		sc.slots[i] = -1
		if off >= s.rows && s.rows > 0 {
			out[i], st[i] = 0, OutOfRange
			continue
		}
		slot := s.slot(off >> 16)
		if slot < 0 {
			out[i], st[i] = 0, Dropped
			continue
		}
		sc.slots[i] = int32(slot)
		sc.starts[slot+1]++
		n++
	}
	for k := 1; k < len(sc.starts); k++ {
		sc.starts[k] += sc.starts[k-1]
	}
	// After the distribution starts[k] is where slot k's positions end, so they begin where those of k-1 end.
	for i, slot := range sc.slots {
		if slot >= 0 {
			sc.order[sc.starts[slot]] = int32(i)
			sc.starts[slot]++
		}
	}
	for k := 0; k < n; {
		slot := sc.slots[sc.order[k]]
		b, err := m.block(ctx, int(slot))
		if err != nil {
			return err
		}
		for end := int(sc.starts[slot]); k < end; k++ {
			i := sc.order[k]
			row := uint32(addrs[i]) & (containerRows - 1)
			w := &b.Words[row>>6]
			if w.Split() {
				out[i], st[i] = m.splitRow(b, row)
				continue
			}
			out[i], st[i] = w.row(row)
		}
	}
	return nil
}

func resize(s []int32, n int) []int32 {
	if cap(s) < n {
		return make([]int32, n)
	}
	return s[:n]
}
