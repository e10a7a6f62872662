package rowmap

import "context"

// placeBlock holds, per row of a label block, what its new address is made of in one word: the label in the high bits
// and, in the low rankBits, the number of rows with that label since the start of the block's span. A span is as many
// label blocks as that number has room for, so that the counts at its start, which all its blocks share, stay in the
// processor's cache when rows are asked for in random order.
type placeBlock struct {
	rows []uint32
	base []uint32 // counts per destination at the start of the span, and 0 for deleted rows
}

// place returns the places of the rows of label block i.
func (p *Partition) place(ctx context.Context, i int) (*placeBlock, error) {
	if b := p.places.peek(i); b != nil {
		return b, nil
	}
	return p.places.get(ctx, i, func(ctx context.Context) (*placeBlock, int64, error) {
		l, err := p.labelsOnce(ctx, i)
		if err != nil {
			return nil, 0, err
		}
		b := &placeBlock{rows: make([]uint32, len(l.Labels))}
		if b.base, err = p.spanBase(ctx, i, l); err != nil {
			return nil, 0, err
		}
		p.fillPlaces(l, b)
		return b, int64(4*len(b.rows) + 4*len(b.base)/p.spanBlocks), nil
	})
}

// spanBase returns the counts at the start of the span of label block i.
func (p *Partition) spanBase(ctx context.Context, i int, l *LabelBlock) ([]uint32, error) {
	if p.spanBlocks == 1 {
		return append(l.Before[:len(l.Before):len(l.Before)], 0), nil
	}
	k := i / p.spanBlocks
	base, err := p.bases.get(ctx, k, func(ctx context.Context) (*[]uint32, int64, error) {
		row, err := p.grid.before(ctx, uint64(k*p.spanBlocks)*p.joined)
		if err != nil {
			return nil, 0, err
		}
		base := append(row[:len(row):len(row)], 0)
		return &base, int64(4 * len(base)), nil
	})
	if err != nil {
		return nil, err
	}
	return *base, nil
}

func (p *Partition) fillPlaces(l *LabelBlock, b *placeBlock) {
	next := make([]uint32, p.null+1)
	for d := range next {
		next[d] = uint32(d) << p.rankBits
	}
	for d, n := range l.Before {
		next[d] += n - b.base[d]
	}
	if l.NullBits != nil {
		for i, v := range l.Labels {
			if l.Null(i, int(p.null)) {
				b.rows[i] = NullRank
				continue
			}
			b.rows[i] = next[v]
			next[v]++
		}
		return
	}
	rows := b.rows[:len(l.Labels)]
	for i, v := range l.Labels {
		if int(v) >= len(next) { // never: labels are checked when they are read
			return
		}
		x := next[v]
		next[v] = x + 1
		rows[i] = x
	}
}
