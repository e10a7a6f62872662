package rowmap

import (
	"context"
	"slices"
	"unsafe"

	"github.com/frifs/frifs/fri"
)

// farRows is how many addresses go through the phases of forwardFar together.
const farRows = 256

// beyond stands for the word of a row that is out of range. Being split, it sends the row to exceptions.
var beyond = &OrderedWord{Base: splitBase}

// forwardFar maps at most farRows addresses in any order, which stand at position base of the caller's. It works in
// phases: find the words, load them, compute. The loads then do not wait for each other, which is what prefetching
// would give.
//
// Where all decoded containers fit into half of the cache, those that are not at hand are decoded at once. Else their
// addresses wait in w.late, so that the batch needs each container once, and none is held longer than it is used.
func (m *Ordered) forwardFar(ctx context.Context, w *farWork, base int, addrs, out []fri.RowAddr, st []Status) error {
	var at [farRows]*OrderedWord
	for done := 0; done < len(addrs); {
		done += m.locate(addrs[done:], at[done:len(addrs)])
		if done == len(addrs) {
			break
		}
		word, slot, err := m.findWord(ctx, addrs[done])
		if err != nil {
			return err
		}
		if word == nil {
			w.late = append(w.late, uint64(slot)<<32|uint64(base+done))
			word = &noSurvivors.Words[0]
		}
		at[done] = word
		done++
	}
	if fetch(at[:len(addrs)]); answer(at[:len(addrs)], addrs, out, st) {
		return m.exceptions(ctx, &at, addrs, out, st)
	}
	return nil
}

// locate finds the words of the leading addresses whose containers are at hand, and returns how many these are. It is
// not inlined, to keep its loop in registers.
//
//go:noinline
func (m *Ordered) locate(addrs []fri.RowAddr, at []*OrderedWord) int {
	near, least, blocks := m.near, m.bySrc.min, m.blocks
	slots := blocks.slots
	at = at[:len(addrs)]
	for k, a := range addrs {
		i := uint64(a>>32) - least
		if i >= uint64(len(near)) {
			return k
		}
		s, off := &near[i], uint32(a)
		if uint64(off) >= s.limit || off>>16 >= s.n {
			return k
		}
		slot := int(s.lo) + int(off>>16)
		if slot >= len(slots) {
			return k
		}
		b := slots[slot].Load()
		if b == nil {
			return k
		}
		blocks.touch(slot)
		at[k] = b.word(off)
	}
	return len(addrs)
}

// findWord finds the word of any address. No word means that its container, at slot, is not at hand and is to be decoded
// together with others.
func (m *Ordered) findWord(ctx context.Context, a fri.RowAddr) (w *OrderedWord, slot int, err error) {
	p := m.bySrc.find(uint32(a >> 32))
	if p < 0 {
		return nil, 0, outside("source", a, m.t.Record)
	}
	s := &m.sources[p]
	off := uint64(uint32(a))
	if off >= s.limit() {
		return beyond, 0, nil
	}
	if slot = s.slot(off >> 16); slot < 0 {
		return &noSurvivors.Words[0], 0, nil
	}
	b := m.blocks.peek(slot)
	if b == nil && int64(len(m.srcOf))*blockBytes <= m.blocks.c.budget/2 {
		b, err = m.block(ctx, slot)
	}
	if b == nil {
		return nil, slot, err
	}
	return b.word(uint32(off)), slot, nil
}

// fetch loads the words and returns something of all of them. There is as little as possible between one load and the
// next: how many are under way at once decides how long they take. This loop and that of answer have functions of their
// own, so that their few variables stay in registers.
//
//go:noinline
func fetch(at []*OrderedWord) (sum uint64) {
	for ; len(at) >= 8; at = at[8:] {
		w := (*[8]*OrderedWord)(at)
		sum |= w[0].Bits
		sum |= w[1].Bits
		sum |= w[2].Bits
		sum |= w[3].Bits
		sum |= w[4].Bits
		sum |= w[5].Bits
		sum |= w[6].Bits
		sum |= w[7].Bits
	}
	for _, w := range at {
		sum |= w.Bits
	}
	return sum
}

// answer computes the answers and reports whether a word is split.
//
//go:noinline
func answer(at []*OrderedWord, addrs, out []fri.RowAddr, st []Status) bool {
	at, out, st = at[:len(addrs)], out[:len(addrs)], st[:len(addrs)]
	split := false
	for k, a := range addrs {
		w := at[k]
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
func (m *Ordered) exceptions(ctx context.Context, at *[farRows]*OrderedWord, addrs, out []fri.RowAddr, st []Status) error {
	for k, a := range addrs {
		if !at[k&(farRows-1)].Split() {
			continue
		}
		b, limit, err := m.lookup(ctx, a)
		if err != nil {
			return err
		}
		out[k], st[k] = m.slowRow(b, limit, uint32(a)&(containerRows-1))
	}
	return nil
}

// forwardLate answers the addresses that wait for a container, container by container.
func (m *Ordered) forwardLate(ctx context.Context, w *farWork, addrs, out []fri.RowAddr, st []Status) error {
	m.sortLate(w)
	var b *OrderedBlock
	slot := -1
	for _, l := range w.order {
		i := uint32(l)
		if s := int(l >> 32); s != slot {
			var err error
			if b, err = m.block(ctx, s); err != nil {
				return err
			}
			slot = s
		}
		row := uint32(addrs[i]) & (containerRows - 1)
		if word := &b.Words[row>>6]; word.Split() {
			out[i], st[i] = m.splitRow(b, row)
		} else {
			out[i], st[i] = word.row(row)
		}
	}
	return nil
}

// sortLate orders w.late by container: by counting where there are many of them.
func (m *Ordered) sortLate(w *farWork) {
	w.order = slices.Grow(w.order[:0], len(w.late))[:len(w.late)]
	if len(w.late) < len(m.srcOf)/8 {
		copy(w.order, w.late)
		slices.Sort(w.order)
		return
	}
	w.ends = slices.Grow(w.ends[:0], len(m.srcOf)+1)[:len(m.srcOf)+1]
	clear(w.ends)
	for _, l := range w.late {
		w.ends[l>>32+1]++
	}
	for k := 1; k < len(w.ends); k++ {
		w.ends[k] += w.ends[k-1]
	}
	for _, l := range w.late {
		end := &w.ends[l>>32]
		w.order[*end] = l
		*end++
	}
}
