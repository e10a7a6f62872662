package rowmap

import "context"

// splitBudget bounds the counts that are kept per stored block which is split.
const splitBudget = 8 << 20

// splitCounts holds, for one stored block that is longer than a label block, the counts at the start of every every-th
// label block that starts inside it. That it exists means that the labels of the whole stored block agree with the
// counts.
type splitCounts struct {
	first  int // the first label block that starts after the stored block's first row
	every  int
	counts []uint32
}

// split counts through stored block b, once: it has no counts of its own inside.
func (p *Partition) split(ctx context.Context, b uint64) (*splitCounts, error) {
	return p.splits.get(ctx, int(b), func(ctx context.Context) (*splitCounts, int64, error) {
		pos := b * uint64(p.grid.blockRows)
		end := pos + p.grid.blockLen(b)
		row, err := p.grid.before(ctx, b)
		if err != nil {
			return nil, 0, err
		}
		n := len(row)
		c := &splitCounts{first: int(pos/p.rows) + 1}
		inside := int((end-1)/p.rows) + 1 - c.first
		c.every = max(1, (inside*4*n+splitBudget-1)/splitBudget)
		s := &labelScratch{}
		s.start(row)
		for pos < end {
			i := int(pos / p.rows)
			if pos == uint64(i)*p.rows && i >= c.first && (i-c.first)%c.every == 0 {
				c.counts = append(c.counts, s.counts[:n]...)
			}
			next := min(end, uint64(i+1)*p.rows)
			l, err := p.readLabels(ctx, pos, int(next-pos), s)
			if err != nil {
				return nil, 0, err
			}
			s.counts[n] = 0
			if err := p.count(l, 0, len(l.Labels), s.counts); err != nil {
				return nil, 0, err
			}
			if err := p.checkNulls(l, s); err != nil {
				return nil, 0, err
			}
			if next == end {
				if err := p.compareRow(ctx, b, l, s); err != nil {
					return nil, 0, err
				}
			}
			pos = next
		}
		return c, int64(4 * len(c.counts)), nil
	})
}

// loadSplit loads a label block that is part of one or two stored blocks, after the labels of these were found to
// agree with the counts.
func (p *Partition) loadSplit(ctx context.Context, i int, s *labelScratch) (*LabelBlock, error) {
	first, n := p.span(i)
	stored := uint64(p.grid.blockRows)
	lead := first / stored
	c, err := p.split(ctx, lead)
	if err != nil {
		return nil, err
	}
	if last := (first + uint64(n) - 1) / stored; last != lead {
		if _, err := p.split(ctx, last); err != nil {
			return nil, err
		}
	}
	var before []uint32
	if first == lead*stored {
		if before, err = p.grid.before(ctx, lead); err != nil {
			return nil, err
		}
	} else if before, err = p.countsAt(ctx, c, i, s); err != nil {
		return nil, err
	}
	b, err := p.readLabels(ctx, first, n, s)
	if err != nil {
		return nil, err
	}
	b.Before = before
	// The counters serve for the range check only.
	s.counts = resized(s.counts, int(p.null)+1)
	clear(s.counts)
	if err := p.count(b, 0, n, s.counts); err != nil {
		return nil, err
	}
	return b, p.checkNulls(b, s)
}

// countsAt returns the counts before label block i, which starts inside a stored block with counts c: those kept, plus
// the labels from there on.
func (p *Partition) countsAt(ctx context.Context, c *splitCounts, i int, s *labelScratch) ([]uint32, error) {
	n := int(p.null)
	k := (i - c.first) / c.every
	kept := c.counts[k*n : (k+1)*n]
	from := c.first + k*c.every
	if from == i {
		return kept, nil
	}
	s.start(kept)
	for ; from < i; from++ {
		first, rows := p.span(from)
		b, err := p.readLabels(ctx, first, rows, s)
		if err != nil {
			return nil, err
		}
		if err := p.count(b, 0, rows, s.counts); err != nil {
			return nil, err
		}
	}
	return append([]uint32(nil), s.counts[:n]...), nil
}
