package rowmap

import (
	"context"
	"encoding/binary"
	"math/bits"
	"sync"
	"unsafe"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// movedOrDropped turns eight bits of a survivor bitmap into eight statuses.
var movedOrDropped = func() (t [256]uint64) {
	for i := range t {
		for k := range 8 {
			s := uint64(Dropped)
			if i>>k&1 == 1 {
				s = uint64(Moved)
			}
			t[i] |= s << (8 * k)
		}
	}
	return t
}()

const allMoved = 0x0101010101010101 * uint64(Moved)

// statusBytes views statuses as the bytes that they are.
func statusBytes(st []Status) []byte { return unsafe.Slice((*byte)(unsafe.SliceData(st)), len(st)) }

// limit is the number of offsets that are not out of range.
func (s *orderedSource) limit() uint64 {
	if s.rows == 0 {
		return 1 << 32
	}
	return s.rows
}

// ForwardRun implements Mapping.
func (m *Ordered) ForwardRun(ctx context.Context, src int, off uint64, out []fri.RowAddr, st []Status) error {
	if src < 0 || src >= len(m.sources) || len(out) != len(st) {
		return fault.New("rowmap.ForwardRun", "", fault.Invalid, "source %d of %d, %d addresses, %d statuses",
			src, len(m.sources), len(out), len(st))
	}
	s := &m.sources[src]
	if limit := s.limit(); off+uint64(len(out)) > limit {
		n := int(limit - min(off, limit))
		fill(st[n:], OutOfRange)
		out, st = out[:n], st[:n]
	}
	for len(out) > 0 {
		row := uint32(off & (containerRows - 1))
		n := min(len(out), int(containerRows-row))
		slot := s.slot(off >> 16)
		if slot < 0 {
			fill(st[:n], Dropped)
		} else {
			b, err := m.block(ctx, slot)
			if err != nil {
				return err
			}
			m.run(b, row, out[:n], st[:n])
		}
		off += uint64(n)
		out, st = out[n:], st[n:]
	}
	return nil
}

func fill(st []Status, v Status) {
	for i := range st {
		st[i] = v
	}
}

// run maps consecutive rows of a block, all of which exist.
func (m *Ordered) run(b *OrderedBlock, row uint32, out []fri.RowAddr, st []Status) {
	if head := int(-row & 63); head > 0 || len(out) < 64 {
		n := min(head, len(out))
		if head == 0 {
			n = len(out)
		}
		m.part(b, row, out[:n], st[:n])
		row, out, st = row+uint32(n), out[n:], st[n:]
	}
	for len(out) >= 64 {
		w := &b.Words[row>>6&(blockWords-1)]
		if w.Split() {
			m.part(b, row, out[:64], st[:64])
		} else {
			wholeWord(w, (*[64]fri.RowAddr)(out), statusBytes(st))
		}
		row, out, st = row+64, out[64:], st[64:]
	}
	if len(out) > 0 {
		m.part(b, row, out, st)
	}
}

// wholeWord maps the 64 rows of a word that is not split.
func wholeWord(w *OrderedWord, out *[64]fri.RowAddr, st []byte) {
	st = st[:64:64]
	v, bitset := w.Base, w.Bits
	if bitset == ^uint64(0) {
		for k := range out {
			out[k] = fri.RowAddr(v + uint64(k))
		}
		for k := 0; k < 64; k += 8 {
			binary.LittleEndian.PutUint64(st[k:k+8], allMoved)
		}
		return
	}
	for k := 0; k < 64; k += 8 {
		x := bitset >> k & 255
		binary.LittleEndian.PutUint64(st[k:k+8], movedOrDropped[x])
		o := (*[8]fri.RowAddr)(out[k:])
		o[0] = fri.RowAddr(v)
		o[1] = fri.RowAddr(v + x&1)
		v += x & 1
		v += x >> 1 & 1
		o[2] = fri.RowAddr(v)
		v += x >> 2 & 1
		o[3] = fri.RowAddr(v)
		v += x >> 3 & 1
		o[4] = fri.RowAddr(v)
		v += x >> 4 & 1
		o[5] = fri.RowAddr(v)
		v += x >> 5 & 1
		o[6] = fri.RowAddr(v)
		v += x >> 6 & 1
		o[7] = fri.RowAddr(v)
		v += x >> 7 & 1
	}
}

// part maps a few consecutive rows of a block that lie in one word.
func (m *Ordered) part(b *OrderedBlock, row uint32, out []fri.RowAddr, st []Status) {
	for i := range out {
		r := row + uint32(i)
		w := &b.Words[r>>6&(blockWords-1)]
		if w.Split() {
			out[i], st[i] = m.splitRow(b, r)
			continue
		}
		out[i], st[i] = w.row(r)
	}
}

// row maps one row of a word that is not split.
func (w *OrderedWord) row(r uint32) (fri.RowAddr, Status) {
	k := r & 63
	return fri.RowAddr(w.Base + uint64(bits.OnesCount64(w.Bits&(1<<k-1)))), Dropped - Status(w.Bits>>k&1)
}

// splitRow maps one row of a word whose survivors fall into several destinations.
func (m *Ordered) splitRow(b *OrderedBlock, r uint32) (fri.RowAddr, Status) {
	if b.Words[r>>6&(blockWords-1)].Bits>>(r&63)&1 == 0 {
		return 0, Dropped
	}
	rank := b.RankBefore(r)
	d := &m.dests[m.destAt(rank)]
	return fri.RowAddr(d.addr + rank - d.start), Moved
}

// Forward implements Mapping. Addresses that lie in the same container as the one before them cost no look-up;
// stretches of consecutive ones run at the speed of ForwardRun.
func (m *Ordered) Forward(ctx context.Context, addrs []fri.RowAddr, out []fri.RowAddr, st []Status) error {
	if len(out) != len(addrs) || len(st) != len(addrs) {
		return fault.New("rowmap.Forward", "", fault.Invalid, "%d addresses, room for %d and %d statuses", len(addrs), len(out), len(st))
	}
	if len(addrs) >= 256 && scattered(addrs) {
		return m.forwardScattered(ctx, addrs, out, st)
	}
	for i := 0; i < len(addrs); {
		key := addrs[i] >> 16
		b, limit, err := m.lookup(ctx, addrs[i])
		if err != nil {
			return err
		}
		i += m.within(b, limit, key, addrs[i:], out[i:], st[i:])
	}
	return nil
}

// scattered reports whether most addresses are in another container than their predecessor, judged by a sample.
func scattered(addrs []fri.RowAddr) bool {
	step, jumps := (len(addrs)-1)/32, 0
	for i := 1; i < len(addrs) && step > 0; i += step {
		if addrs[i]>>16 != addrs[i-1]>>16 {
			jumps++
		}
	}
	return jumps > 16
}

// lookup returns the block that holds a, and how many of its 65,536 offsets are not out of range.
func (m *Ordered) lookup(ctx context.Context, a fri.RowAddr) (*OrderedBlock, uint32, error) {
	i := m.bySrc.find(uint32(a.Frag()))
	if i < 0 {
		return nil, 0, outside("source", a, m.t.Record)
	}
	s := &m.sources[i]
	limit := s.limit() - min(s.limit(), uint64(a.Offset())&^(containerRows-1))
	slot := s.slot(uint64(a.Offset()) >> 16)
	if slot < 0 {
		return noSurvivors, uint32(min(limit, containerRows)), nil
	}
	b, err := m.block(ctx, slot)
	return b, uint32(min(limit, containerRows)), err
}

func outside(side string, a fri.RowAddr, record int) error {
	return fault.New("rowmap", "", fault.Invalid, "%v lies in no %s of record %d", a, side, record)
}

// within maps the leading addresses that lie in the container named by key, and returns how many they are.
func (m *Ordered) within(b *OrderedBlock, limit uint32, key fri.RowAddr, addrs, out []fri.RowAddr, st []Status) int {
	i := 0
	for i < len(addrs) && addrs[i]>>16 == key {
		row := uint32(addrs[i]) & (containerRows - 1)
		n := int(64 - row&63)
		if i+n <= len(addrs) && row+uint32(n) <= limit && consecutive(addrs[i:i+n]) {
			w := &b.Words[row>>6&(blockWords-1)]
			if n == 64 && !w.Split() {
				wholeWord(w, (*[64]fri.RowAddr)(out[i:]), statusBytes(st[i:]))
			} else {
				m.part(b, row, out[i:i+n], st[i:i+n])
			}
			i += n
			continue
		}
		end := min(i+64, len(addrs))
		if !b.AnySplit && allWithin(addrs[i:end], key, limit) {
			b.rows(addrs[i:end], out[i:end], st[i:end])
			i = end
			continue
		}
		for ; i < end; i++ {
			a := addrs[i]
			if a>>16 != key {
				return i
			}
			row := uint32(a) & (containerRows - 1)
			w := &b.Words[row>>6]
			if row >= limit || w.Split() {
				out[i], st[i] = m.slowRow(b, limit, row)
				continue
			}
			out[i], st[i] = w.row(row)
		}
	}
	return i
}

// allWithin reports whether all addresses lie in the container named by key, below limit. It is not inlined: within
// has no registers to spare for its loop.
//
//go:noinline
func allWithin(addrs []fri.RowAddr, key fri.RowAddr, limit uint32) bool {
	var other fri.RowAddr
	var over uint32 // the top bit is set where a row is not below limit
	for _, a := range addrs {
		other |= a>>16 ^ key
		over |= limit - 1 - uint32(a)&(containerRows-1)
	}
	return other == 0 && over>>31 == 0
}

// rows maps rows of a block that has no split words; all of them exist. Not inlined for the same reason.
//
//go:noinline
func (b *OrderedBlock) rows(addrs, out []fri.RowAddr, st []Status) {
	out, st = out[:len(addrs)], st[:len(addrs)]
	for i, a := range addrs {
		w := &b.Words[uint32(a)>>6&(blockWords-1)]
		out[i], st[i] = w.row(uint32(a))
	}
}

// slowRow maps a row that is out of range or in a split word.
func (m *Ordered) slowRow(b *OrderedBlock, limit, row uint32) (fri.RowAddr, Status) {
	if row >= limit {
		return 0, OutOfRange
	}
	return m.splitRow(b, row)
}

// consecutive reports whether each address is its predecessor plus one.
//
//go:noinline
func consecutive(addrs []fri.RowAddr) bool {
	first := addrs[0]
	if addrs[len(addrs)-1]-first != fri.RowAddr(len(addrs)-1) {
		return false
	}
	var diff fri.RowAddr
	for k, a := range addrs {
		diff |= a ^ (first + fri.RowAddr(k))
	}
	return diff == 0
}

// scratchPool keeps the short-lived work areas of one mapping.
type scratchPool struct{ w, s sync.Pool }

func (p *scratchPool) words() *[blockWords]uint64 {
	if w, ok := p.w.Get().(*[blockWords]uint64); ok {
		return w
	}
	return new([blockWords]uint64)
}

func (p *scratchPool) putWords(w *[blockWords]uint64) { p.w.Put(w) }

// scatter is the work area of one batch in no order.
type scatter struct {
	blocks []*OrderedBlock // by slot, nil until looked up in this batch
	slots  []int32         // by input position
	order  []int32         // input positions by slot
	starts []int32         // per slot, where its positions start in order
}

func (p *scratchPool) scatter() *scatter {
	if s, ok := p.s.Get().(*scatter); ok {
		return s
	}
	return new(scatter)
}

func (p *scratchPool) putScatter(s *scatter) { p.s.Put(s) }
