package rowmap

import (
	"context"
	"math/bits"
	"slices"
)

// LabelBlock is a run of consecutive source rows with their labels, checked against the counts. It is shared and must
// not be changed.
//
// A row that was deleted before the rewrite has the label len(Destinations()) where there are at most 65,535
// destinations, and NullBits is nil. With 65,536 destinations all labels are taken: then bit i%64 of NullBits[i/64]
// marks the row, and its label means nothing.
type LabelBlock struct {
	First    uint64   // position of the first row, counted over all sources in recorded order
	Labels   []uint16 // position in Destinations, per row
	NullBits []uint64
	Before   []uint32 // per destination: rows received before this block
}

// Null reports whether row i of the block was deleted before the rewrite; n is the number of destinations.
func (b *LabelBlock) Null(i, n int) bool {
	if b.NullBits != nil {
		return b.NullBits[i>>6]>>(i&63)&1 != 0
	}
	return int(b.Labels[i]) == n
}

// RankBlock holds, per row of a label block, label<<16 | rank, where rank is the number of earlier rows of the block
// with the same label. A deleted row has the label len(Destinations()); with 65,536 destinations its entry is NullRank.
// It is shared and must not be changed.
type RankBlock struct {
	First  uint64
	Rows   []uint32
	Before []uint32 // per destination, and 0 at the end for deleted rows
}

// NullRank is the entry of a deleted row where no label is left for it.
const NullRank = ^uint32(0)

// OrderBlock lists the rows of a label block by destination, and in source order within each: those of destination d
// are Order[Starts[d]:Starts[d+1]]. Deleted rows are left out. It is shared and must not be changed.
type OrderBlock struct {
	First  uint64
	Order  []uint16
	Starts []uint32
	Before []uint32
}

// LabelBlocks returns the number of label blocks.
func (p *Partition) LabelBlocks() int { return int((p.grid.rows + p.rows - 1) / p.rows) }

// LabelBlockRows returns the rows of every label block but the last: at most 65,536.
func (p *Partition) LabelBlockRows() int { return int(p.rows) }

// LabelBlockAt returns the label block that holds a position below Rows.
func (p *Partition) LabelBlockAt(pos uint64) int {
	hi, _ := bits.Mul64(pos, p.recip)
	return int(hi)
}

// Labels returns label block i, 0 <= i < LabelBlocks(), from the cache or from the file.
func (p *Partition) Labels(ctx context.Context, i int) (*LabelBlock, error) {
	if b := p.blocks.peek(i); b != nil {
		return b, nil
	}
	return p.blocks.get(ctx, i, func(ctx context.Context) (*LabelBlock, int64, error) {
		b, err := p.load(ctx, i, nil)
		if err != nil {
			return nil, 0, err
		}
		return b, int64(2*len(b.Labels) + 8*len(b.NullBits) + 4*len(b.Before)), nil
	})
}

// Ranks returns the ranks of label block i.
func (p *Partition) Ranks(ctx context.Context, i int) (*RankBlock, error) {
	if b := p.ranks.peek(i); b != nil {
		return b, nil
	}
	return p.ranks.get(ctx, i, func(ctx context.Context) (*RankBlock, int64, error) {
		l, err := p.labelsOnce(ctx, i)
		if err != nil {
			return nil, 0, err
		}
		r := p.rank(l)
		return r, int64(4*len(r.Rows) + 4*len(r.Before)), nil
	})
}

// Order returns the rows of label block i by destination.
func (p *Partition) Order(ctx context.Context, i int) (*OrderBlock, error) {
	if b := p.orders.peek(i); b != nil {
		return b, nil
	}
	return p.orders.get(ctx, i, func(ctx context.Context) (*OrderBlock, int64, error) {
		l, err := p.labelsOnce(ctx, i)
		if err != nil {
			return nil, 0, err
		}
		o := p.order(l)
		return o, int64(2*len(o.Order) + 4*len(o.Starts) + 4*len(o.Before)), nil
	})
}

// labelsOnce returns label block i without keeping it where it is not kept already: what is made from it is kept
// instead.
func (p *Partition) labelsOnce(ctx context.Context, i int) (*LabelBlock, error) {
	if b := p.blocks.peek(i); b != nil {
		return b, nil
	}
	return p.load(ctx, i, nil)
}

// rank numbers the rows of each label.
func (p *Partition) rank(l *LabelBlock) *RankBlock {
	n := int(p.null)
	r := &RankBlock{First: l.First, Rows: make([]uint32, len(l.Labels)), Before: append(slices.Clip(l.Before), 0)}
	next := make([]uint32, n+1)
	for d := range next {
		next[d] = uint32(d) << 16
	}
	if l.NullBits != nil {
		for i, v := range l.Labels {
			if l.Null(i, n) {
				r.Rows[i] = NullRank
				continue
			}
			r.Rows[i] = next[v]
			next[v]++
		}
		return r
	}
	rows := r.Rows[:len(l.Labels)]
	for i, v := range l.Labels {
		if int(v) >= len(next) { // never: labels are checked when they are read
			break
		}
		x := next[v]
		next[v] = x + 1
		rows[i] = x
	}
	return r
}

// order sorts the rows of a block by label, keeping their order.
func (p *Partition) order(l *LabelBlock) *OrderBlock {
	n := int(p.null)
	o := &OrderBlock{First: l.First, Before: l.Before, Starts: make([]uint32, n+1)}
	next := make([]uint32, n+2)
	for i, v := range l.Labels {
		if l.NullBits == nil || !l.Null(i, n) {
			next[int(v)+1]++
		}
	}
	for d := range n {
		o.Starts[d+1] = o.Starts[d] + next[d+1]
	}
	o.Order = make([]uint16, o.Starts[n])
	copy(next, o.Starts)
	for i, v := range l.Labels {
		if int(v) == n || (l.NullBits != nil && l.Null(i, n)) {
			continue
		}
		o.Order[next[v]] = uint16(i)
		next[v]++
	}
	return o
}

// span returns the first row and the length of label block i.
func (p *Partition) span(i int) (first uint64, n int) {
	first = uint64(i) * p.rows
	return first, int(min(p.rows, p.grid.rows-first))
}
