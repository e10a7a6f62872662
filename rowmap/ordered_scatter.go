package rowmap

import (
	"context"

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

func (m *Ordered) forwardDirect(ctx context.Context, sc *scatter, addrs, out []fri.RowAddr, st []Status) error {
	if len(sc.blocks) != len(m.srcOf) {
		sc.blocks = make([]*OrderedBlock, len(m.srcOf))
	}
	blocks := sc.blocks
	defer clear(blocks)
	out, st = out[:len(addrs)], st[:len(addrs)]
	for i, a := range addrs {
		p := m.bySrc.find(uint32(a >> 32))
		if p < 0 {
			return outside("source", a, m.t.Record)
		}
		s := &m.sources[p]
		off := uint64(uint32(a))
		if off >= s.rows && s.rows > 0 {
			out[i], st[i] = 0, OutOfRange
			continue
		}
		slot := s.slot(off >> 16)
		if slot < 0 {
			out[i], st[i] = 0, Dropped
			continue
		}
		b := blocks[slot]
		if b == nil {
			var err error
			if b, err = m.block(ctx, slot); err != nil {
				return err
			}
			blocks[slot] = b
		}
		row := uint32(off) & (containerRows - 1)
		w := &b.Words[row>>6]
		if w.Split() {
			out[i], st[i] = m.splitRow(b, row)
			continue
		}
		out[i], st[i] = w.row(row)
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
