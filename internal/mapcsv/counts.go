package mapcsv

import (
	"context"
	"slices"
	"sort"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
)

// countsHeader is the first line of counts.csv.
const countsHeader = "block,rows_done,destination,fragment,count\n"

// gridded is what counts.csv needs of a *rowmap.Partition.
type gridded interface {
	Destinations() []fri.Digest
	Rows() uint64
	BlockRows() uint32
	Blocks() uint64
	GridRow(ctx context.Context, b int64) ([]uint32, error)
}

// Counts returns counts.csv of a stable partition: for each stored block and destination the rows received once the
// block is finished. Its size needs the grid rows at which a count gets another digit, no others.
func Counts(m rowmap.Mapping) (File, error) {
	p, ok := m.(*rowmap.Partition)
	if !ok {
		return nil, unknownMapping(m)
	}
	return newText(countsHeader, &countsBody{m: p}), nil
}

// countsIndex measures the blocks of counts.csv. Counts never fall, so each destination's gets its further digits at
// a few blocks.
type countsIndex struct {
	blocks, rows, blockRows uint64
	dests                   uint64
	fixed                   uint64   // of a block: destinations, fragments, separators
	grow                    []uint64 // blocks at which a count gets a digit more, ascending, repeated for each digit
	sums                    []uint64 // of grow before each of its elements; then of all
}

func newCountsIndex(ctx context.Context, m gridded) (*countsIndex, error) {
	x := &countsIndex{blocks: m.Blocks(), rows: m.Rows(), blockRows: uint64(m.BlockRows())}
	dests := m.Destinations()
	x.dests = uint64(len(dests))
	for d, f := range dests {
		x.fixed += uint64(width(uint64(d)) + width(f.ID) + 5)
	}
	if x.blocks == 0 {
		x.sums = []uint64{0}
		return x, nil
	}
	last, err := m.GridRow(ctx, int64(x.blocks)-1)
	if err != nil {
		return nil, fault.Wrap("mapcsv.Counts", "", err)
	}
	if err := x.search(ctx, m, -1, int64(x.blocks)-1, make([]uint32, len(dests)), last); err != nil {
		return nil, fault.Wrap("mapcsv.Counts", "", err)
	}
	slices.Sort(x.grow)
	x.sums = make([]uint64, len(x.grow)+1)
	for i, b := range x.grow {
		x.sums[i+1] = x.sums[i] + b
	}
	return x, nil
}

// search finds the blocks in (lo, hi] at which counts get digits, given the grid rows of lo and hi.
func (x *countsIndex) search(ctx context.Context, m gridded, lo, hi int64, low, high []uint32) error {
	same := true
	for d, n := range low {
		same = same && width(uint64(n)) == width(uint64(high[d]))
	}
	if same {
		return nil
	}
	if hi-lo == 1 {
		for d, n := range low {
			for range width(uint64(high[d])) - width(uint64(n)) {
				x.grow = append(x.grow, uint64(hi))
			}
		}
		return nil
	}
	mid := lo + (hi-lo)/2
	row, err := m.GridRow(ctx, mid)
	if err != nil {
		return err
	}
	if err := x.search(ctx, m, lo, mid, low, row); err != nil {
		return err
	}
	return x.search(ctx, m, mid, hi, row, high)
}

// rowsDone is the number of source rows up to the end of block b.
func (x *countsIndex) rowsDone(b uint64) uint64 { return min((b+1)*x.blockRows, x.rows) }

// prefix is the length of the lines of the first n blocks.
func (x *countsIndex) prefix(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	numbers := sumWidths(0, n)
	numbers += uint64(width(x.rowsDone(n - 1)))
	for k := range pow10 { // block b-1 has b*blockRows rows done, b = 1 ... n-1
		if least := (pow10[k]-1)/x.blockRows + 1; k == 0 {
			numbers += n - 1
		} else if least <= n-1 {
			numbers += n - least
		} else {
			break
		}
	}
	i := sort.Search(len(x.grow), func(i int) bool { return x.grow[i] >= n })
	return numbers*x.dests + n*x.fixed + n*x.dests + uint64(i)*n - x.sums[i]
}

// countsBody is the text of counts.csv.
type countsBody struct {
	m     gridded
	index lazy[countsIndex]
}

func (b *countsBody) load(ctx context.Context) (*countsIndex, error) {
	return b.index.get(ctx, func(ctx context.Context) (*countsIndex, error) { return newCountsIndex(ctx, b.m) })
}

func (b *countsBody) length(ctx context.Context) (int64, error) {
	x, err := b.load(ctx)
	if err != nil {
		return 0, err
	}
	return int64(x.prefix(x.blocks)), nil
}

func (b *countsBody) open(ctx context.Context, off int64) (lineReader, int, error) {
	x, err := b.load(ctx)
	if err != nil {
		return nil, 0, err
	}
	at := uint64(off)
	block := uint64(sort.Search(int(x.blocks)-1, func(k int) bool { return x.prefix(uint64(k)+1) > at }))
	at -= x.prefix(block)
	r := &countsReader{m: b.m, x: x, block: block}
	if err := r.load(ctx); err != nil {
		return nil, 0, err
	}
	for dests := b.m.Destinations(); ; r.dest++ {
		if r.dest == len(r.row) {
			return nil, 0, fault.New("mapcsv.Counts", "", fault.Corrupt, "byte %d of counts.csv lies in no line", off)
		}
		n := uint64(len(r.start) + width(uint64(r.dest)) + width(dests[r.dest].ID) + width(uint64(r.row[r.dest])) + 3)
		if at < n {
			return r, int(at), nil
		}
		at -= n
	}
}

// countsReader writes the lines of counts.csv.
type countsReader struct {
	m     gridded
	x     *countsIndex
	block uint64
	dest  int
	row   []uint32
	start []byte // of the block's lines
}

// load makes block the current one.
func (r *countsReader) load(ctx context.Context) error {
	row, err := r.m.GridRow(ctx, int64(r.block))
	if err != nil {
		return fault.Wrap("mapcsv.Counts", "", err)
	}
	r.row, r.dest = row, 0
	r.start = append(appendUint(r.start[:0], r.block), ',')
	r.start = append(appendUint(r.start, r.x.rowsDone(r.block)), ',')
	return nil
}

func (r *countsReader) fill(ctx context.Context, dst []byte) (int, error) {
	out := dst[:0]
	dests := r.m.Destinations()
	for len(out) <= len(dst)-room {
		if r.dest == len(r.row) {
			if r.block+1 == r.x.blocks {
				break
			}
			r.block++
			if err := r.load(ctx); err != nil {
				return 0, err
			}
		}
		out = append(out, r.start...)
		out = append(appendUint(out, uint64(r.dest)), ',')
		out = append(appendUint(out, dests[r.dest].ID), ',')
		out = append(appendUint(out, uint64(r.row[r.dest])), '\n')
		r.dest++
	}
	return len(out), nil
}
