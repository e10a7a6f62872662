package rowmap

import (
	"context"
	"slices"
	"sort"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// Inverse implements Mapping. Addresses are taken label block by label block, so that each is loaded once per call.
func (p *Partition) Inverse(ctx context.Context, addrs, out []fri.RowAddr, st []Status) error {
	late := make([]lateRow, 0, len(addrs))
	var hint blockHint
	for i, a := range addrs {
		d := p.byDst.find(uint32(a.Frag()))
		if d < 0 {
			return outside("destination", a, p.t.Record)
		}
		if uint64(a.Offset()) >= p.t.Destinations[d].PhysicalRows {
			out[i], st[i] = 0, OutOfRange
			continue
		}
		b, err := p.blockOf(ctx, int(d), a.Offset(), &hint)
		if err != nil {
			return err
		}
		late = append(late, lateRow{uint32(b), uint32(d), i})
	}
	slices.SortFunc(late, func(a, b lateRow) int { return int(a.block) - int(b.block) })
	for len(late) > 0 {
		b, err := p.Order(ctx, int(late[0].block))
		if err != nil {
			return err
		}
		n := 0
		for ; n < len(late) && late[n].block == late[0].block; n++ {
			l := late[n]
			row := b.Order[b.Starts[l.row]+addrs[l.at].Offset()-b.Before[l.row]]
			out[l.at], st[l.at] = p.addrAt(b.First+uint64(row)), Moved
		}
		late = late[n:]
	}
	return nil
}

// blockHint remembers the last block found for a destination.
type blockHint struct {
	dest     int
	from, to uint32 // the offsets of dest in the block; no block while they are equal
	block    int
}

// blockOf returns the label block that holds the row at offset x of destination d; the row must exist.
func (p *Partition) blockOf(ctx context.Context, d int, x uint32, h *blockHint) (int, error) {
	if h.to > h.from && h.dest == d && x >= h.from && x < h.to {
		return h.block, nil
	}
	if p.joined == 0 {
		return p.splitBlockOf(ctx, d, x)
	}
	if h.to > h.from && h.dest == d && x == h.to { // the usual case of a run: the next block
		n, err := p.endCount(ctx, h.block+1, d)
		if err != nil {
			return 0, err
		}
		if n > x {
			*h = blockHint{dest: d, from: x, to: n, block: h.block + 1}
			return h.block, nil
		}
	}
	// The number of rows of d grows over the blocks about evenly in most files: guess, then close in.
	lo, hi := uint64(0), uint64(p.LabelBlocks()) // the block is in [lo, hi)
	var below, above uint32                      // count before lo, count before hi
	above = uint32(p.t.Destinations[d].PhysicalRows)
	for step := 0; hi-lo > 1; step++ {
		mid := lo + (hi-lo)/2
		if step < 8 && above > below {
			mid = lo + (uint64(x-below)*(hi-lo)+uint64(above-below)/2)/uint64(above-below)
			mid = min(max(mid, lo+1), hi-1)
		}
		n, err := p.grid.cell(ctx, mid*p.joined-1, d)
		if err != nil {
			return 0, err
		}
		if n < below || n > above {
			return 0, p.grid.bad(mid*p.joined-1, "count %d of destination %d is not between %d and %d, those of the blocks around it", n, d, below, above)
		}
		if n > x {
			hi, above = mid, n
		} else {
			lo, below = mid, n
		}
	}
	*h = blockHint{dest: d, from: below, to: above, block: int(lo)}
	return int(lo), nil
}

// endCount returns the rows that destination d has received at the end of label block i.
func (p *Partition) endCount(ctx context.Context, i, d int) (uint32, error) {
	return p.grid.cell(ctx, min(uint64(i+1)*p.joined, p.grid.blocks())-1, d)
}

// splitBlockOf is blockOf where stored blocks are split: the stored block by the grid, then the label block by the
// counts inside.
func (p *Partition) splitBlockOf(ctx context.Context, d int, x uint32) (int, error) {
	var err error
	search := func(n int, after func(int) (uint32, error)) int {
		return sort.Search(n, func(i int) bool {
			if err != nil {
				return true
			}
			v, e := after(i)
			err = e
			return e == nil && v > x
		})
	}
	b := search(int(p.grid.blocks()), func(i int) (uint32, error) { return p.grid.cell(ctx, uint64(i), d) })
	if err != nil {
		return 0, err
	}
	first := uint64(b) * uint64(p.grid.blockRows)
	lo := p.LabelBlockAt(first)
	n := p.LabelBlockAt(first+p.grid.blockLen(uint64(b))-1) - lo
	k := search(n, func(i int) (uint32, error) {
		l, err := p.Labels(ctx, lo+i+1)
		if err != nil {
			return 0, err
		}
		return l.Before[d], nil
	})
	return lo + k, err
}

// addrAt returns the address of the source row at a position below Rows.
func (p *Partition) addrAt(pos uint64) fri.RowAddr {
	src, off := p.SourceOf(pos)
	return fri.Addr(p.t.Sources[src].Frag(), uint32(off))
}

// InverseRun implements Mapping. A run that goes on where others ended, over more rows than the cache holds orders
// for, is answered from a Window; else from the orders of the blocks that it touches.
func (p *Partition) InverseRun(ctx context.Context, dst int, off uint64, out []fri.RowAddr) error {
	if dst < 0 || dst >= len(p.t.Destinations) || off > p.t.Destinations[dst].PhysicalRows ||
		uint64(len(out)) > p.t.Destinations[dst].PhysicalRows-off {
		return fault.New("rowmap.InverseRun", "", fault.Invalid, "destination %d of %d has no %d rows from %d", dst, len(p.t.Destinations), len(out), off)
	}
	if p.seq.next(p.destStart[dst]+off, len(out)) && p.windowsPay() {
		return p.windowRun(ctx, p.destStart[dst]+off, out)
	}
	var hint blockHint
	for x := uint32(off); len(out) > 0; {
		i, err := p.blockOf(ctx, dst, x, &hint)
		if err != nil {
			return err
		}
		b, err := p.Order(ctx, i)
		if err != nil {
			return err
		}
		rows := b.Order[b.Starts[dst]+x-b.Before[dst] : b.Starts[dst+1]]
		n := min(len(rows), len(out))
		p.addrs(b.First, rows[:n], out)
		x += uint32(n)
		out = out[n:]
	}
	return nil
}

// addrs writes the addresses of ascending rows of a block.
func (p *Partition) addrs(first uint64, rows []uint16, out []fri.RowAddr) {
	var lo, hi, base uint64 // positions [lo, hi) are those of one source; address = base + position
	for i, r := range rows {
		pos := first + uint64(r)
		if pos-lo >= hi-lo {
			lo, hi, base = p.sourceSpan(pos)
		}
		out[i] = fri.RowAddr(base + pos)
	}
}

// sourceSpan returns the positions [lo, hi) of the source that holds pos, and what added to a position gives the
// address.
func (p *Partition) sourceSpan(pos uint64) (lo, hi, base uint64) {
	src, _ := p.SourceOf(pos)
	lo = p.starts[src]
	return lo, p.starts[src+1], uint64(fri.Addr(p.t.Sources[src].Frag(), 0)) - lo
}
