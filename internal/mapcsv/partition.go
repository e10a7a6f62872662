package mapcsv

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
)

// partition is what is needed of a *rowmap.Partition.
type partition interface {
	Sources() []fri.Digest
	Destinations() []fri.Digest
	Rows() uint64
	BlockRows() uint32
	Blocks() uint64
	GridRow(ctx context.Context, b int64) ([]uint32, error)
	LabelBlocks() int
	LabelBlockRows() int
	Labels(ctx context.Context, i int) (*rowmap.LabelBlock, error)
	Ranks(ctx context.Context, i int) (*rowmap.RankBlock, error)
}

const (
	// markRows is the number of rows between two marks of a block.
	markRows = 256
	// marksKept is the number of blocks whose marks are kept: 1 KiB each.
	marksKept = 256
	// pointsKept is the largest number of block starts that are remembered: 8 bytes each.
	pointsKept = 1 << 16
)

// partitionIndex holds what mapping.csv of a stable partition is measured with: digests, and row b-1 of the counts
// grid for the start of block b.
type partitionIndex struct {
	src, dst spans
	sums     []sums       // per destination
	ids      []fri.FragID // likewise
	total    uint64

	// Points are the rows at which the grid tells the byte: the edges of stored blocks, or of label blocks where
	// those are made of several stored ones.
	pointRows  uint64 // rows between two points
	pointCount int    // points before the last, which is the end
	perPoint   uint64 // stored blocks between two points

	known []atomic.Uint64 // byte + 1 of every stride-th point that was computed
	step  int

	mu    sync.Mutex // guards marks
	marks map[int]*blockMarks
}

// MappingSize is the size in bytes of mapping.csv of a mapping with these digests. Nothing else is needed: each
// destination receives each of its offsets once, whatever the order. corrupt where more rows arrive than there were,
// too_large over 2^62 bytes.
func MappingSize(sources, destinations []fri.Digest) (int64, error) {
	src, err := newSpans(sources)
	if err != nil {
		return 0, err
	}
	dst, err := newSpans(destinations)
	if err != nil {
		return 0, err
	}
	n, err := mappingBytes(src, dst)
	return int64(n) + int64(len(mappingHeader)), err
}

// mappingBytes is the length of the lines of mapping.csv.
func mappingBytes(src, dst spans) (uint64, error) {
	if dst.rows > src.rows {
		return 0, fault.New("mapcsv.Mapping", "", fault.Corrupt, "%d rows in the sources, %d rows in the destinations", src.rows, dst.rows)
	}
	n := src.bytes + 2*src.rows + dst.bytes + 2*(src.rows-dst.rows)
	if n > maxBytes {
		return 0, fault.New("mapcsv.Mapping", "", fault.TooLarge, "the mapping takes more than 2^62 bytes")
	}
	return n, nil
}

func newPartitionIndex(m partition) (*partitionIndex, error) {
	x := &partitionIndex{marks: make(map[int]*blockMarks)}
	var err error
	if x.src, err = newSpans(m.Sources()); err != nil {
		return nil, err
	}
	if x.dst, err = newSpans(m.Destinations()); err != nil {
		return nil, err
	}
	if x.src.rows != m.Rows() {
		return nil, fault.New("mapcsv.Mapping", "", fault.Corrupt, "%d rows in the sources, %d labels", x.src.rows, m.Rows())
	}
	if x.total, err = mappingBytes(x.src, x.dst); err != nil {
		return nil, err
	}
	for _, d := range m.Destinations() {
		x.sums = append(x.sums, newSums(d.Frag()))
		x.ids = append(x.ids, d.Frag())
	}
	x.pointRows, x.perPoint = uint64(m.BlockRows()), 1
	if n := uint64(m.LabelBlockRows()); n > x.pointRows {
		x.pointRows, x.perPoint = n, n/x.pointRows
	}
	x.pointCount = int((x.src.rows + x.pointRows - 1) / x.pointRows)
	x.step = x.pointCount/pointsKept + 1
	x.known = make([]atomic.Uint64, x.pointCount/x.step+1)
	return x, nil
}

// prefix is the length of the lines of the first pos rows, of which before[d] went to destination d.
func (x *partitionIndex) prefix(pos uint64, before []uint32) uint64 {
	t := x.src.prefix(pos) + 2*pos
	var moved uint64
	for d, n := range before {
		moved += uint64(n)
		t += x.sums[d].prefix(uint64(n))
	}
	return t + 2*(pos-moved)
}

// point is the byte at which point k begins.
func (x *partitionIndex) point(ctx context.Context, m partition, k int) (uint64, error) {
	switch k {
	case 0:
		return 0, nil
	case x.pointCount:
		return x.total, nil
	}
	var slot *atomic.Uint64
	if k%x.step == 0 {
		slot = &x.known[k/x.step]
		if v := slot.Load(); v > 0 {
			return v - 1, nil
		}
	}
	row, err := m.GridRow(ctx, int64(uint64(k)*x.perPoint)-1)
	if err != nil {
		return 0, fault.Wrap("mapcsv.Mapping", "", err)
	}
	v := x.prefix(uint64(k)*x.pointRows, row)
	if slot != nil {
		slot.Store(v + 1)
	}
	return v, nil
}

// find returns the last point at or before a byte, which is below the total. It interpolates, as lines hardly differ
// in length, and bisects when that does not close in.
func (x *partitionIndex) find(ctx context.Context, m partition, at uint64) (int, error) {
	lo, hi := 0, x.pointCount
	low, high := uint64(0), x.total
	for try := 0; hi-lo > 1; try++ {
		k := lo + (hi-lo)/2
		if try%4 != 3 {
			share := float64(at-low) / float64(high-low) * float64(hi-lo)
			// Aim a little to the near side of the guess, so that the next interval is a short one.
			if k = lo + int(share); try%2 == 1 {
				k++
			}
			k = min(max(k, lo+1), hi-1)
		}
		v, err := x.point(ctx, m, k)
		if err != nil {
			return 0, err
		}
		if v <= at {
			lo, low = k, v
		} else {
			hi, high = k, v
		}
	}
	return lo, nil
}

// block returns the label block that holds a byte and the byte at which it begins.
func (x *partitionIndex) block(ctx context.Context, m partition, at uint64) (i int, start uint64, err error) {
	k, err := x.find(ctx, m, at)
	if err != nil {
		return 0, 0, err
	}
	rows := uint64(m.LabelBlockRows())
	if x.pointRows == rows {
		start, err = x.point(ctx, m, k)
		return k, start, err
	}
	// Several label blocks between two points: the counts before each of them come with its labels.
	lo := uint64(k) * x.pointRows / rows
	end := min((uint64(k)+1)*x.pointRows, x.src.rows)
	hi := (end-1)/rows + 1
	begin := func(i uint64) (uint64, error) {
		if i == 0 {
			return 0, nil
		}
		r, err := m.Ranks(ctx, int(i))
		if err != nil {
			return 0, fault.Wrap("mapcsv.Mapping", "", err)
		}
		return x.prefix(r.First, r.Before[:len(x.sums)]), nil
	}
	if start, err = begin(lo); err != nil {
		return 0, 0, err
	}
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		v, err := begin(mid)
		if err != nil {
			return 0, 0, err
		}
		if v <= at {
			lo, start = mid, v
		} else {
			hi = mid
		}
	}
	return int(lo), start, nil
}

// blockMarks holds the length of the lines before every markRows-th row of a label block.
type blockMarks []uint32

// marksOf returns the marks of a label block.
func (x *partitionIndex) marksOf(i int, r *rowmap.RankBlock) blockMarks {
	x.mu.Lock()
	b := x.marks[i]
	x.mu.Unlock()
	if b != nil {
		return *b
	}
	marks := x.measure(r)
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.marks) >= marksKept {
		for k := range x.marks { // any one
			delete(x.marks, k)
			break
		}
	}
	x.marks[i] = &marks
	return marks
}

// varies stands for the width of a destination's halves where it changes within a block.
const varies = 0xFF

// measure computes the marks of a label block.
func (x *partitionIndex) measure(r *rowmap.RankBlock) blockMarks {
	n := len(x.sums)
	widths := make([]uint8, 1<<16)
	for d := range n {
		off := uint64(r.Before[d])
		f := x.ids[d]
		widths[d] = varies
		if widthChange(f, off) >= off+uint64(len(r.Rows)) {
			widths[d] = uint8(halfWidth(f, uint32(off)))
		}
	}
	if n < len(widths) {
		widths[n] = 2 // the two commas of a dropped row
	} else {
		widths[n-1] = varies // may be rowmap.NullRank
	}
	start := x.src.prefix(r.First)
	marks := make(blockMarks, 0, len(r.Rows)/markRows+1)
	var sum uint64
	for i := 0; i < len(r.Rows); i += markRows {
		pos := r.First + uint64(i)
		marks = append(marks, uint32(x.src.prefix(pos)-start+2*uint64(i)+sum))
		for _, v := range r.Rows[i:min(i+markRows, len(r.Rows))] {
			w := widths[v>>16]
			if w == varies {
				w = uint8(x.width(r, v))
			}
			sum += uint64(w)
		}
	}
	return marks
}

// width is the length of the right half of a row, given its entry in a rank block.
func (x *partitionIndex) width(r *rowmap.RankBlock, v uint32) int {
	d := int(v >> 16)
	if d == len(x.sums) || v == rowmap.NullRank && len(x.sums) == 1<<16 {
		return 2
	}
	return halfWidth(x.ids[d], r.Before[d]+v&0xFFFF)
}

// partitionBody is the text of mapping.csv of a stable partition.
type partitionBody struct {
	m      partition
	index  lazy[partitionIndex]
	states sync.Pool // *[]half
}

func (b *partitionBody) load(ctx context.Context) (*partitionIndex, error) {
	return b.index.get(ctx, func(context.Context) (*partitionIndex, error) { return newPartitionIndex(b.m) })
}

func (b *partitionBody) length(ctx context.Context) (int64, error) {
	x, err := b.load(ctx)
	if err != nil {
		return 0, err
	}
	return int64(x.total), nil
}
