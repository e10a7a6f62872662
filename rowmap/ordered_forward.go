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

// nearRows is how far the last of 64 addresses may be from the first for the words of all of them to be in the cache
// when the first ones were touched.
const nearRows = 4096

// Forward implements Mapping. Neighbours that lie close together in one container cost one look-up for all of them, and
// stretches of consecutive ones run at the speed of ForwardRun; others go through forwardFar.
func (m *Ordered) Forward(ctx context.Context, addrs []fri.RowAddr, out []fri.RowAddr, st []Status) error {
	if len(out) != len(addrs) || len(st) != len(addrs) {
		return fault.New("rowmap.Forward", "", fault.Invalid, "%d addresses, room for %d and %d statuses", len(addrs), len(out), len(st))
	}
	var (
		far   *farWork
		b     *OrderedBlock
		key   fri.RowAddr // of b
		limit uint32      // of b
	)
	for i := 0; i < len(addrs); {
		n := min(64, len(addrs)-i)
		if addrs[i+n-1]-addrs[i] < nearRows { // not less than the first, that is
			if k := addrs[i] >> 16; b == nil || k != key {
				var err error
				if b, limit, err = m.lookup(ctx, addrs[i]); err != nil {
					return err
				}
				key = k
			}
			if k := m.within(b, limit, key, addrs[i:], out[i:], st[i:]); k > 0 {
				i += k
				continue
			}
		}
		if far == nil {
			far = m.scratch.far()
			defer m.scratch.putFar(far)
		}
		n = min(farRows, len(addrs)-i)
		if err := m.forwardFar(ctx, far, i, addrs[i:i+n], out[i:i+n], st[i:i+n]); err != nil {
			return err
		}
		i += n
	}
	if far == nil || len(far.late) == 0 {
		return nil
	}
	return m.forwardLate(ctx, far, addrs, out, st)
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

// within maps the leading addresses if they are consecutive up to the end of a word, or else the first 64 if they all lie
// in the container named by key, and returns how many these are; 0 if it is neither.
func (m *Ordered) within(b *OrderedBlock, limit uint32, key fri.RowAddr, addrs, out []fri.RowAddr, st []Status) int {
	row := uint32(addrs[0]) & (containerRows - 1)
	n := int(64 - row&63)
	if n <= len(addrs) && row+uint32(n) <= limit && consecutive(addrs[:n]) {
		w := &b.Words[row>>6&(blockWords-1)]
		if n == 64 && !w.Split() {
			wholeWord(w, (*[64]fri.RowAddr)(out), statusBytes(st))
		} else {
			m.part(b, row, out[:n], st[:n])
		}
		return n
	}
	n = min(64, len(addrs))
	if b.AnySplit || !allWithin(addrs[:n], key, limit) {
		return 0
	}
	b.rows(addrs[:n], out[:n], st[:n])
	return n
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

// farWork is the work area of addresses that do not lie close together.
type farWork struct {
	late  []uint64 // slot << 32 | position of an address whose container was not at hand
	order []uint64 // late, by slot
	ends  []uint32 // per slot
}

func (p *scratchPool) far() *farWork {
	if s, ok := p.s.Get().(*farWork); ok {
		return s
	}
	return new(farWork)
}

func (p *scratchPool) putFar(s *farWork) {
	s.late = s.late[:0]
	p.s.Put(s)
}
