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
	blocks  [lane]*placeBlock
	rows    [lane]uint32  // row within its block
	entries [lane]*uint32 // that row's entry, where its block is at hand
	late    []lateRow
}

// lateRow is an address whose block was not at hand.
type lateRow struct {
	block uint32
	row   uint32
	at    int
}

var noRow = &placeBlock{} // stands for "no such row"; it is never written

// forwardPool keeps scratch for reuse.
type forwardPool struct{ p sync.Pool }

func (f *forwardPool) get() *forwardScratch {
	if s, ok := f.p.Get().(*forwardScratch); ok {
		return s
	}
	return &forwardScratch{}
}

// put takes scratch back, of which the first n places were in use: what stands there would keep evicted blocks alive.
func (f *forwardPool) put(s *forwardScratch, n int) {
	clear(s.blocks[:n])
	clear(s.entries[:n])
	f.p.Put(s)
}

// Forward implements Mapping. Addresses whose blocks are in the cache are answered first; the others are then taken
// block by block, so that each block is loaded once per call whatever the order of the addresses.
func (p *Partition) Forward(ctx context.Context, addrs, out []fri.RowAddr, st []Status) error {
	s := p.forward.get()
	defer p.forward.put(s, min(len(addrs), lane))
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
	slots := p.places.slots
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
		b := slots[hi].Load()
		s.blocks[i] = b
		if b != nil {
			p.places.touch(int(hi))
			s.entries[i] = &b.rows[s.rows[i]]
			continue
		}
		clean = false
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
				out[i], st[i] = p.one(b, b.rows[s.rows[i]])
			}
		}
		return
	}
	// The entries first, by themselves: they do not depend on each other, so their cache misses overlap.
	fetchEntries(s.entries[:len(out)])
	st = st[:len(out)]
	addr, shift, mask := p.destAddr, p.rankBits&31, uint32(1)<<p.rankBits-1
	for i := range out {
		e := *s.entries[i]
		d := e >> shift
		out[i] = fri.RowAddr(addr[d] + uint64(s.blocks[i].base[d]+e&mask))
		// Moved, or Dropped where d is the label of deleted rows; without a branch.
		st[i] = Moved + Status((d^p.null-1)>>31)
	}
}

// fetchEntries loads the entries, as fetch does words.
//
//go:noinline
func fetchEntries(at []*uint32) (sum uint32) {
	for ; len(at) >= 8; at = at[8:] {
		e := (*[8]*uint32)(at)
		sum |= *e[0]
		sum |= *e[1]
		sum |= *e[2]
		sum |= *e[3]
		sum |= *e[4]
		sum |= *e[5]
		sum |= *e[6]
		sum |= *e[7]
	}
	for _, e := range at {
		sum |= *e
	}
	return sum
}

// one computes the answer for one entry of a block.
func (p *Partition) one(b *placeBlock, e uint32) (fri.RowAddr, Status) {
	d := e >> p.rankBits
	if d == p.null || (p.null == maxDestinations && e == NullRank) {
		return 0, Dropped
	}
	return fri.RowAddr(p.destAddr[d] + uint64(b.base[d]+e&(1<<p.rankBits-1))), Moved
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
		b, err := p.place(ctx, int(late[0].block))
		if err != nil {
			return err
		}
		for _, l := range late[:n] {
			out[l.at], st[l.at] = p.one(b, b.rows[l.row])
		}
		late = late[n:]
	}
	return nil
}
