package mapcsv

import (
	"context"
	"math/bits"
	"sort"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/rowmap"
)

// inverseHeader is the first line of inverse.csv.
const inverseHeader = "new_row_addr,new_fragment,new_offset,old_row_addr,old_fragment,old_offset\n"

// oldWidths tells the length of the old halves of the survivors before a rank: between two steps all have one width.
type oldWidths struct {
	steps []widthStep
	total uint64
}

type widthStep struct{ rank, bytes, width uint64 }

// add appends n survivors with a width.
func (w *oldWidths) add(rank, n, width uint64) {
	if n == 0 {
		return
	}
	if k := len(w.steps); k == 0 || w.steps[k-1].width != width {
		w.steps = append(w.steps, widthStep{rank, w.total, width})
	}
	w.total += n * width
}

// prefix is the length of the halves of the survivors below rank.
func (w *oldWidths) prefix(rank uint64) uint64 {
	i := sort.Search(len(w.steps), func(i int) bool { return w.steps[i].rank > rank }) - 1
	if i < 0 {
		return 0
	}
	s := &w.steps[i]
	return s.bytes + (rank-s.rank)*s.width
}

// orderedInverse is the text of inverse.csv of an ordered compaction: the survivors by rank.
type orderedInverse struct {
	m     ordered
	index lazy[orderedIndex]
	old   lazy[oldWidths]
}

func (b *orderedInverse) load(ctx context.Context) (*orderedIndex, *oldWidths, error) {
	x, err := b.index.get(ctx, func(context.Context) (*orderedIndex, error) { return newOrderedIndex(b.m) })
	if err != nil {
		return nil, nil, err
	}
	w, err := b.old.get(ctx, func(ctx context.Context) (*oldWidths, error) { return newOldWidths(ctx, b.m, x) })
	return x, w, err
}

// newOldWidths counts the survivors between the rows at which the width changes: one block for each such row that
// is not at a container's edge.
func newOldWidths(ctx context.Context, m ordered, x *orderedIndex) (*oldWidths, error) {
	w := &oldWidths{}
	for i := range x.src.list {
		s := &x.src.list[i]
		rows, first := s.end-s.start, m.First(s.pos)
		keys := (rows + blockRows - 1) / blockRows
		before := uint64(0)
		for off := uint64(0); off < rows; {
			next := min(rows, widthChange(s.frag, off))
			rank := m.RankAtContainer(s.pos, (next+blockRows-1)/blockRows)
			if key := next / blockRows; key < keys && next%blockRows != 0 {
				// Only where the container has survivors on both sides of the row does its content matter.
				if lo := m.RankAtContainer(s.pos, key); lo != rank {
					blk, err := m.Block(ctx, s.pos, key)
					if err != nil {
						return nil, fault.Wrap("mapcsv.Inverse", "", err)
					}
					rank = blk.RankBefore(uint32(next%blockRows)) - first
				}
			}
			w.add(first+before, rank-before, uint64(halfWidth(s.frag, uint32(off))))
			before, off = rank, next
		}
	}
	if n := w.total + 2*x.dst.rows + x.dst.bytes; n > maxBytes {
		return nil, fault.New("mapcsv.Inverse", "", fault.TooLarge, "the mapping takes more than 2^62 bytes")
	}
	return w, nil
}

func (b *orderedInverse) length(ctx context.Context) (int64, error) {
	x, w, err := b.load(ctx)
	if err != nil {
		return 0, err
	}
	return int64(x.dst.bytes + 2*x.dst.rows + w.total), nil
}

func (b *orderedInverse) open(ctx context.Context, off int64) (lineReader, int, error) {
	x, w, err := b.load(ctx)
	if err != nil {
		return nil, 0, err
	}
	prefix := func(rank uint64) uint64 { return x.dst.prefix(rank) + 2*rank + w.prefix(rank) }
	lo, hi := uint64(0), x.dst.rows-1 // the line is one of these
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if prefix(mid) <= uint64(off) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	r := &orderedInverseReader{m: b.m, x: x, dst: x.dst.at(lo)}
	if err := r.seek(ctx, lo); err != nil {
		return nil, 0, err
	}
	return r, int(uint64(off) - prefix(lo)), nil
}

// orderedInverseReader writes the lines of inverse.csv of an ordered compaction.
type orderedInverseReader struct {
	m    ordered
	x    *orderedIndex
	span int    // source span
	key  uint64 // its container
	blk  *rowmap.OrderedBlock
	row  uint32 // next row of blk
	rank uint64 // of the next survivor
	dst  int    // destination span of rank
	pair pair
}

// seek goes to the survivor with a rank.
func (r *orderedInverseReader) seek(ctx context.Context, rank uint64) error {
	list := r.x.src.list
	i := sort.Search(len(list), func(i int) bool {
		rows := list[i].end - list[i].start
		return r.m.First(list[i].pos)+r.m.RankAtContainer(list[i].pos, (rows+blockRows-1)/blockRows) > rank
	})
	if i == len(list) {
		return fault.New("mapcsv.Inverse", "", fault.Corrupt, "row %d of the destinations has no survivor", rank)
	}
	s := &list[i]
	keys := int((s.end - s.start + blockRows - 1) / blockRows)
	in := rank - r.m.First(s.pos)
	key := uint64(sort.Search(keys-1, func(k int) bool { return r.m.RankAtContainer(s.pos, uint64(k+1)) > in }))
	blk, err := r.m.Block(ctx, s.pos, key)
	if err != nil {
		return fault.Wrap("mapcsv.Inverse", "", err)
	}
	word := sort.Search(blockRows/64-1, func(w int) bool { return blk.First+uint64(blk.Ranks[w+1]) > rank })
	live := blk.Words[word].Bits
	for k := rank - blk.First - uint64(blk.Ranks[word]); k > 0; k-- {
		live &= live - 1
	}
	r.span, r.key, r.blk, r.rank = i, key, blk, rank
	r.row = uint32(word)*64 + uint32(bits.TrailingZeros64(live))
	r.pair.atRight(s.frag, key*blockRows+uint64(r.row))
	d := &r.x.dst.list[r.dst]
	r.pair.atLeft(d.frag, rank-d.start)
	return nil
}

func (r *orderedInverseReader) fill(ctx context.Context, dst []byte) (int, error) {
	pos := 0
	for pos <= len(dst)-room && r.rank < r.x.dst.rows {
		if r.row == blockRows {
			// The next survivor is in another container: find it by its rank.
			if err := r.seek(ctx, r.rank); err != nil {
				return 0, err
			}
		}
		live := r.blk.Words[r.row>>6&(blockRows/64-1)].Bits >> (r.row & 63)
		if live&1 == 0 {
			n := min(64-r.row&63, uint32(bits.TrailingZeros64(live)))
			r.row += n
			r.pair.r.skip(uint64(n))
			continue
		}
		d := &r.x.dst.list[r.dst]
		if r.rank == d.end {
			r.dst++
			d = &r.x.dst.list[r.dst]
			r.pair.atLeft(d.frag, 0)
		}
		n := uint32(bits.TrailingZeros64(^live))
		n = uint32(min(uint64(min(n, 64-r.row&63)), d.end-r.rank))
		n, pos = r.pair.lines(dst, pos, n)
		r.row += n
		r.rank += uint64(n)
	}
	return pos, nil
}
