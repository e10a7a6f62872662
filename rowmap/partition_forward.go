package rowmap

import (
	"context"
	"math/bits"
	"slices"
	"sync"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// lane is how many addresses go through the phases of Forward together: enough of them to keep several cache misses
// in flight, few enough for their state to stay in the first-level cache.
const lane = 512

// forwardScratch is the state of a Forward call.
type forwardScratch struct {
	blocks [lane]*RankBlock
	rows   [lane]uint32 // row within its block
	late   []lateRow
}

// lateRow is an address whose block was not at hand.
type lateRow struct {
	block uint32
	row   uint32
	at    int
}

var noRow = &RankBlock{} // stands for "no such row"; it is never written

// forwardPool keeps scratch for reuse.
type forwardPool struct{ p sync.Pool }

func (f *forwardPool) get() *forwardScratch {
	if s, ok := f.p.Get().(*forwardScratch); ok {
		return s
	}
	return &forwardScratch{}
}

// Forward implements Mapping. Addresses whose blocks are in the cache are answered first; the others are then taken
// block by block, so that each block is loaded once per call whatever the order of the addresses.
func (p *Partition) Forward(ctx context.Context, addrs, out []fri.RowAddr, st []Status) error {
	s := p.forward.get()
	defer p.forward.p.Put(s)
	s.late = s.late[:0]
	for at := 0; at < len(addrs); at += lane {
		if err := ctx.Err(); err != nil {
			return fault.Wrap("rowmap.Forward", "", err)
		}
		end := min(at+lane, len(addrs))
		clean, err := p.locate(s, addrs[at:end], at)
		if err != nil {
			return err
		}
		p.answer(s, out[at:end], st[at:end], clean)
	}
	return p.answerLate(ctx, s, out, st)
}

// locate finds block and row of each address. Addresses past their source's rows get the block noRow, those whose
// block has to be loaded get no block and are noted in s.late. clean reports that all have a block.
func (p *Partition) locate(s *forwardScratch, addrs []fri.RowAddr, base int) (clean bool, err error) {
	clean = true
	slots := p.ranks.slots
	for i, a := range addrs {
		start, rows := p.source(uint32(a >> 32))
		off := uint64(uint32(a))
		if off >= rows {
			if rows == 0 && p.bySrc.find(uint32(a>>32)) < 0 {
				return false, outside("source", a, p.t.Record)
			}
			s.blocks[i], clean = noRow, false
			continue
		}
		pos := start + off
		hi, _ := bits.Mul64(pos, p.recip)
		s.rows[i] = uint32(pos - hi*p.rows)
		if e := slots[hi].Load(); e != nil {
			if e.used.Load() == 0 {
				e.used.Store(1)
			}
			s.blocks[i] = e.v
			continue
		}
		s.blocks[i], clean = nil, false
		s.late = append(s.late, lateRow{uint32(hi), s.rows[i], base + i})
	}
	return clean, nil
}

// sourceRange is the positions of a source's rows.
type sourceRange struct{ start, rows uint64 }

// source returns the range of the source with a fragment id; no rows where there is none. With ids close together it
// takes no branch that depends on the address.
func (p *Partition) source(f uint32) (start, rows uint64) {
	if i := uint64(f) - p.bySrc.min; i < uint64(len(p.near)) {
		return p.near[i].start, p.near[i].rows
	}
	if i := p.bySrc.find(f); i >= 0 {
		return p.starts[i], p.starts[i+1] - p.starts[i]
	}
	return 0, 0
}

// answer computes the new addresses of those rows of a lane whose block is there.
func (p *Partition) answer(s *forwardScratch, out []fri.RowAddr, st []Status, clean bool) {
	if !clean || p.null == maxDestinations {
		for i := range out {
			switch b := s.blocks[i]; b {
			case nil:
			case noRow:
				out[i], st[i] = 0, OutOfRange
			default:
				out[i], st[i] = p.one(b, b.Rows[s.rows[i]])
			}
		}
		return
	}
	// All loads of one kind together: they do not depend on each other, so their cache misses overlap.
	for i := range out {
		s.rows[i] = s.blocks[i].Rows[s.rows[i]]
	}
	st = st[:len(out)]
	addr := p.destAddr
	for i := range out {
		e := s.rows[i]
		d := e >> 16
		out[i] = fri.RowAddr(addr[d] + uint64(s.blocks[i].Before[d]+e&0xFFFF))
		// Moved, or Dropped where d is the label of deleted rows; without a branch.
		st[i] = Moved + Status((d^p.null-1)>>31)
	}
}

// one computes the answer for one entry of a rank block.
func (p *Partition) one(b *RankBlock, e uint32) (fri.RowAddr, Status) {
	d := e >> 16
	if d == p.null || (p.null == maxDestinations && e == NullRank) {
		return 0, Dropped
	}
	return fri.RowAddr(p.destAddr[d] + uint64(b.Before[d]+e&0xFFFF)), Moved
}

// answerLate loads the blocks that were not at hand, each once, and answers their rows.
func (p *Partition) answerLate(ctx context.Context, s *forwardScratch, out []fri.RowAddr, st []Status) error {
	late := s.late
	slices.SortFunc(late, func(a, b lateRow) int { return int(a.block) - int(b.block) })
	for len(late) > 0 {
		n := 1
		for n < len(late) && late[n].block == late[0].block {
			n++
		}
		b, err := p.Ranks(ctx, int(late[0].block))
		if err != nil {
			return err
		}
		for _, l := range late[:n] {
			out[l.at], st[l.at] = p.one(b, b.Rows[l.row])
		}
		late = late[n:]
	}
	return nil
}

// ForwardRun implements Mapping. A run over a whole label block goes straight through its labels with one counter per
// destination; a part of a block uses the ranks.
func (p *Partition) ForwardRun(ctx context.Context, src int, off uint64, out []fri.RowAddr, st []Status) error {
	if src < 0 || src >= len(p.t.Sources) {
		return fault.New("rowmap.ForwardRun", "", fault.Invalid, "source %d of %d", src, len(p.t.Sources))
	}
	have := uint64(0)
	if rows := p.t.Sources[src].PhysicalRows; off < rows {
		have = min(rows-off, uint64(len(out)))
	}
	for i := int(have); i < len(out); i++ {
		out[i], st[i] = 0, OutOfRange
	}
	out, st = out[:have], st[:have]
	var next []uint64
	for pos := p.starts[src] + off; len(out) > 0; {
		if err := ctx.Err(); err != nil {
			return fault.Wrap("rowmap.ForwardRun", "", err)
		}
		i := p.LabelBlockAt(pos)
		first, n := p.span(i)
		lo := int(pos - first)
		take := min(n-lo, len(out))
		if take == n && p.null < maxDestinations && p.ranks.peek(i) == nil {
			b, err := p.Labels(ctx, i)
			if err != nil {
				return err
			}
			next = p.sweep(b, next, out[:take], st[:take])
		} else {
			b, err := p.Ranks(ctx, i)
			if err != nil {
				return err
			}
			p.run(b, b.Rows[lo:lo+take], out[:take], st[:take])
		}
		out, st = out[take:], st[take:]
		pos += uint64(take)
	}
	return nil
}

// sweep answers a whole block: next holds the next address of each destination.
func (p *Partition) sweep(b *LabelBlock, next []uint64, out []fri.RowAddr, st []Status) []uint64 {
	next = resized(next, int(p.null)+1)
	for d, n := range b.Before {
		next[d] = p.destAddr[d] + uint64(n)
	}
	next[p.null] = 0
	labels := b.Labels[:len(out)]
	st = st[:len(out)]
	null := p.null
	for i, l := range labels {
		if int(l) >= len(next) { // never: labels are checked when they are read
			break
		}
		v := next[l]
		next[l] = v + 1
		out[i] = fri.RowAddr(v)
		st[i] = Moved + Status((uint32(l)^null-1)>>31)
	}
	return next
}

// run answers consecutive rows of a block from their ranks.
func (p *Partition) run(b *RankBlock, rows []uint32, out []fri.RowAddr, st []Status) {
	if p.null == maxDestinations {
		for i, e := range rows {
			out[i], st[i] = p.one(b, e)
		}
		return
	}
	addr, before := p.destAddr, b.Before
	out, st = out[:len(rows)], st[:len(rows)]
	for i, e := range rows {
		d := e >> 16
		out[i] = fri.RowAddr(addr[d] + uint64(before[d]+e&0xFFFF))
		st[i] = Moved + Status((d^p.null-1)>>31)
	}
}

// Received implements Mapping.
func (p *Partition) Received(ctx context.Context, src int, off uint64, counts []uint64) error {
	if src < 0 || src >= len(p.t.Sources) || len(counts) < int(p.null) {
		return fault.New("rowmap.Received", "", fault.Invalid, "source %d of %d, %d counters for %d destinations",
			src, len(p.t.Sources), len(counts), p.null)
	}
	pos := p.starts[src] + min(off, p.t.Sources[src].PhysicalRows)
	if stored := uint64(p.grid.blockRows); pos == p.grid.rows || pos%stored == 0 {
		row, err := p.grid.before(ctx, (pos+stored-1)/stored)
		if err != nil {
			return err
		}
		for d, n := range row {
			counts[d] = uint64(n)
		}
		return nil
	}
	b, err := p.Labels(ctx, p.LabelBlockAt(pos))
	if err != nil {
		return err
	}
	for d, n := range b.Before {
		counts[d] = uint64(n)
	}
	for i, l := range b.Labels[:pos-b.First] {
		if !b.Null(i, int(p.null)) {
			counts[l]++
		}
	}
	return nil
}
