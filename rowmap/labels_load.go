package rowmap

import (
	"context"
	"math/bits"
	"slices"

	"github.com/frifs/frifs/fault"
)

// labelScratch holds the buffers of a load. A pass over many blocks uses one for all of them.
type labelScratch struct {
	labels []uint16
	nulls  []uint64
	seen   int      // null rows of the last read
	counts []uint32 // counters per destination, and for deleted rows at the end
	grid   []uint32
	block  LabelBlock
}

func resized[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n)
	}
	return s[:n]
}

// load reads the labels of block i and checks them: each below the number of destinations (check 14), and together
// what the counts of every stored block say (check 15). With a nil s the block owns what it holds; else it is valid
// until s is used again.
func (p *Partition) load(ctx context.Context, i int, s *labelScratch) (*LabelBlock, error) {
	owned := s == nil
	if owned {
		s = &labelScratch{}
	}
	var b *LabelBlock
	var err error
	if p.joined == 0 {
		b, err = p.loadSplit(ctx, i, s)
	} else {
		b, err = p.loadJoined(ctx, i, s)
	}
	if err != nil {
		return nil, err
	}
	p.labelRows.Add(uint64(len(b.Labels)))
	if owned {
		c := *b
		c.Before = slices.Clone(b.Before)
		return &c, nil
	}
	return b, nil
}

// loadJoined loads a label block of one or more whole stored blocks.
func (p *Partition) loadJoined(ctx context.Context, i int, s *labelScratch) (*LabelBlock, error) {
	first, n := p.span(i)
	stored := uint64(i) * p.joined
	row, err := p.grid.before(ctx, stored)
	if err != nil {
		return nil, err
	}
	b, err := p.readLabels(ctx, first, n, s)
	if err != nil {
		return nil, err
	}
	b.Before = row
	s.start(row)
	for lo := 0; lo < n; stored++ {
		hi := lo + int(p.grid.blockLen(stored))
		if err := p.count(b, lo, hi, s.counts); err != nil {
			return nil, err
		}
		if err := p.compareRow(ctx, stored, b, s); err != nil {
			return nil, err
		}
		lo = hi
	}
	return b, p.checkNulls(b, s)
}

// start sets the counters to a row of the grid.
func (s *labelScratch) start(row []uint32) {
	s.counts = resized(s.counts, len(row)+1)
	s.counts[copy(s.counts, row)] = 0
}

// readLabels decodes n rows from a position on and replaces nulls by the label that stands for them.
func (p *Partition) readLabels(ctx context.Context, first uint64, n int, s *labelScratch) (*LabelBlock, error) {
	s.labels = resized(s.labels, n)
	s.nulls = resized(s.nulls, (n+63)/64)
	seen, err := p.col.Read(ctx, first, s.labels, s.nulls)
	if err != nil {
		return nil, fault.Wrap("rowmap.labels", "", err)
	}
	s.seen = seen
	s.block = LabelBlock{First: first, Labels: s.labels}
	if p.null == maxDestinations {
		s.block.NullBits = s.nulls
		return &s.block, nil
	}
	if seen > 0 {
		for w, m := range s.nulls {
			for ; m != 0; m &= m - 1 {
				s.labels[w<<6+bits.TrailingZeros64(m)] = uint16(p.null)
			}
		}
	}
	return &s.block, nil
}

// count adds the labels of rows [lo, hi) of a block to counts, whose last place is for deleted rows. After it every
// label of these rows is within counts.
func (p *Partition) count(b *LabelBlock, lo, hi int, counts []uint32) error {
	if b.NullBits != nil {
		for i := lo; i < hi; i++ {
			if b.Null(i, int(p.null)) {
				counts[p.null]++
			} else {
				counts[b.Labels[i]]++
			}
		}
		return nil
	}
	for i, v := range b.Labels[lo:hi] {
		if int(v) >= len(counts) {
			return p.badLabel(b.First+uint64(lo+i), v)
		}
		counts[v]++
	}
	return nil
}

func (p *Partition) badLabel(pos uint64, label uint16) error {
	return fault.New("rowmap.labels", "", fault.Corrupt, "row %d of the row map has label %d, there are %d destinations", pos, label, p.null)
}

// checkNulls finds a stored label that equals the number of destinations: it looks like a deleted row, but its row is
// not null. The counters must hold the rows of this block alone in the place for deleted rows.
func (p *Partition) checkNulls(b *LabelBlock, s *labelScratch) error {
	if int(s.counts[p.null]) == s.seen {
		return nil
	}
	return p.findBad(b, s)
}

// findBad returns the error for the first row whose label names no destination, or nil.
func (p *Partition) findBad(b *LabelBlock, s *labelScratch) error {
	if b.NullBits != nil {
		return nil
	}
	for i, v := range b.Labels {
		if uint32(v) >= p.null && s.nulls[i>>6]>>(i&63)&1 == 0 {
			return p.badLabel(b.First+uint64(i), v)
		}
	}
	return nil
}

// compareRow compares the counters after a stored block with its row of the grid. Where they differ, the reason named
// is a bad label, or a rule that the grid itself breaks, if there is one.
func (p *Partition) compareRow(ctx context.Context, stored uint64, b *LabelBlock, s *labelScratch) error {
	row, err := p.gridRow(ctx, stored, s)
	if err != nil {
		return err
	}
	if slices.Equal(row, s.counts[:len(row)]) {
		return nil
	}
	if err := p.findBad(b, s); err != nil {
		return err
	}
	if _, err := p.grid.row(ctx, stored); err != nil {
		return err
	}
	for d, v := range row {
		if s.counts[d] != v {
			return p.grid.bad(stored, "labels disagree with counts: destination %d has received %d rows by the labels, %d by the counts",
				d, s.counts[d], v)
		}
	}
	return nil
}

// gridRow returns a row of the grid for comparison: from the checked chunks where few rows make a label block, else
// straight from the file, since the labels prove more than a check of neighbours.
func (p *Partition) gridRow(ctx context.Context, stored uint64, s *labelScratch) ([]uint32, error) {
	if p.joined <= p.grid.per {
		return p.grid.row(ctx, stored)
	}
	s.grid = resized(s.grid, int(p.null))
	return s.grid, p.grid.readRows(ctx, stored, s.grid)
}
