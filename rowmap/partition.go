package rowmap

import (
	"context"
	"math"
	"math/bits"
	"sort"
	"strconv"
	"sync/atomic"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/lancefile"
)

const (
	// countsKey is the schema metadata key that names the global buffer with the counts.
	countsKey = "lance:stable_partition:counts_buffer_index"
	// maxPartitionRows bounds the source rows of one partition; it keeps the table of blocks small.
	maxPartitionRows = 1 << 34
	// labelBlockRows is the largest label block: a row's rank in its block must fit 16 bits.
	labelBlockRows = 1 << 16
	// gridShare bounds the bytes of grid rows that are compared when one label block is loaded.
	gridShare = 4 << 20
)

// Partition is the mapping of a stable partition: a label file says for each source row, in source order, which
// destination it went to, and rows of one destination keep their order (docs/FORMAT.md, "Row map").
//
// Opening reads the file's tail, the header of its counts and the last row of the grid, never labels. Labels are read
// in label blocks of at most 65,536 rows, which are the stored blocks joined or split: several small stored blocks
// make one label block, a stored block of more than 65,536 rows several. Whatever the stored blocks are, their counts
// are compared with the labels before any answer is given from them.
type Partition struct {
	t     *fri.Transition
	file  *lancefile.File
	col   *lancefile.Column[uint16]
	grid  *grid
	cache *Cache

	bySrc, byDst fragIndex
	near         []sourceRange // by fragment id from bySrc.min on, where ids are close together
	starts       []uint64      // position of each source's first row, and the total at the end
	destStart    []uint64      // rows of the destinations before each, and the total at the end
	destAddr     []uint64      // address of each destination's first row, and 0 for "none" at the end

	null   uint32 // the label that stands for "deleted before": the number of destinations
	rows   uint64 // rows per label block, the last one excepted
	recip  uint64 // position / rows = high half of position * recip
	joined uint64 // stored blocks per label block, or 0 where stored blocks are split

	rankBits   uint32 // of a placeBlock's word
	spanBlocks int    // label blocks per span

	blocks  *table[LabelBlock]
	places  *table[placeBlock]
	bases   *table[[]uint32] // per span
	ranks   *table[RankBlock]
	orders  *table[OrderBlock]
	splits  *table[splitCounts] // per stored block, where stored blocks are split
	windows *table[Window]
	seq     sequence
	forward forwardPool

	labelRows atomic.Uint64 // rows of label blocks that were checked, counted anew when read anew
}

// OpenPartition opens the label file f of a stable partition and makes the checks that need no label. The errors are of
// kind corrupt or unsupported, or what the file gave; CheckList tells which checks passed.
func OpenPartition(ctx context.Context, t *fri.Transition, f File, opt Options) (*Partition, error) {
	p := &Partition{t: t, cache: opt.Cache}
	if p.cache == nil {
		p.cache = NewCache(privateBudget)
	}
	if check, err := p.open(ctx, f); err != nil {
		return nil, &openError{check: check, err: fault.Wrap("rowmap.OpenPartition", "", err)}
	}
	return p, nil
}

// open returns the name of the check that failed with the error.
func (p *Partition) open(ctx context.Context, f File) (string, error) {
	t := p.t
	if t.Partition == nil {
		return checkFile, fault.New("", "", fault.Invalid, "record %d is no stable partition", t.Record)
	}
	if size := f.Size(); size < 0 || uint64(size) != t.Partition.SizeBytes {
		return checkFile, fault.New("", "", fault.Corrupt, "the row map has %d bytes, record %d says %d", size, t.Record, t.Partition.SizeBytes)
	}
	var err error
	if p.file, err = lancefile.Open(ctx, f, f.Size()); err != nil {
		return checkFile, err
	}
	if err := checkSchema(p.file); err != nil {
		return checkColumn, err
	}
	buffer, err := countsBuffer(p.file)
	if err != nil {
		return checkIndex, err
	}
	_, size := p.file.GlobalBuffer(buffer)
	head := make([]byte, min(size, countsHeaderBytes))
	if err := p.file.ReadGlobal(ctx, buffer, head, 0); err != nil {
		return checkHeader, err
	}
	h, check, err := parseCounts(head, size)
	if err != nil {
		return check, err
	}
	if err := checkDigests("rowmap.OpenPartition", t); err != nil {
		return checkSources, err
	}
	if check, err := p.compare(h); err != nil {
		return check, err
	}
	p.layout(h)
	p.grid = newGrid(p.file, buffer, h, t.Destinations, p.cache)
	if err := p.totals(ctx, h); err != nil {
		return checkTotals, err
	}
	if p.col, err = lancefile.OpenColumn[uint16](ctx, p.file, 0); err != nil {
		return checkPages, err
	}
	p.tables()
	return "", nil
}

// checkSchema makes check 1: exactly one column, "label", uint16, nullable.
func checkSchema(f *lancefile.File) error {
	fields := f.Fields()
	if len(fields) != 1 || f.Columns() != 1 {
		return fault.New("", "", fault.Corrupt, "%d fields and %d columns, a row map has one of each", len(fields), f.Columns())
	}
	if c := fields[0]; c.GetName() != "label" || c.GetLogicalType() != "uint16" || !c.GetNullable() {
		return fault.New("", "", fault.Corrupt, "column %q of type %q (nullable %v), a row map has \"label\", \"uint16\", nullable",
			c.GetName(), c.GetLogicalType(), c.GetNullable())
	}
	return nil
}

// countsBuffer makes check 2: the metadata names a global buffer that exists.
func countsBuffer(f *lancefile.File) (int, error) {
	v, ok := f.Metadata(countsKey)
	if !ok {
		return 0, fault.New("", "", fault.Corrupt, "schema metadata has no %q", countsKey)
	}
	n, err := strconv.ParseUint(string(v), 10, 32)
	if err != nil {
		return 0, fault.New("", "", fault.Corrupt, "schema metadata %q is %.40q, not a decimal u32", countsKey, v)
	}
	if n >= uint64(f.GlobalBuffers()) {
		return 0, fault.New("", "", fault.Corrupt, "schema metadata %q names global buffer %d of %d", countsKey, n, f.GlobalBuffers())
	}
	return int(n), nil
}

// compare makes checks 8, 9 and 10: the counts agree with file and record in rows and destinations.
func (p *Partition) compare(h countsHeader) (string, error) {
	if h.rows != p.file.Rows() {
		return checkRows, fault.New("", "", fault.Corrupt, "the file has %d rows, its counts say %d", p.file.Rows(), h.rows)
	}
	p.starts = make([]uint64, len(p.t.Sources)+1)
	for i, d := range p.t.Sources {
		p.starts[i+1] = p.starts[i] + d.PhysicalRows
	}
	if total := p.starts[len(p.t.Sources)]; total != h.rows {
		return checkRows, fault.New("", "", fault.Corrupt, "the row map has %d rows, the sources of record %d have %d", h.rows, p.t.Record, total)
	}
	if h.rows > maxPartitionRows {
		return checkRows, fault.New("", "", fault.TooLarge, "%d rows in one row map, at most %d are read", h.rows, uint64(maxPartitionRows))
	}
	if n := len(p.t.Destinations); uint64(n) != uint64(h.destinations) {
		return checkDestinations, fault.New("", "", fault.Corrupt, "the row map has %d destinations, record %d has %d", h.destinations, p.t.Record, n)
	}
	return "", nil
}

// totals makes check 11: the last count of each destination is its digest's row count.
func (p *Partition) totals(ctx context.Context, h countsHeader) error {
	last, err := p.grid.before(ctx, h.blocks())
	if err != nil {
		return err
	}
	for d, n := range last {
		if want := p.t.Destinations[d].PhysicalRows; uint64(n) != want {
			return p.grid.bad(max(h.blocks(), 1)-1, "destination %d has received %d rows in all, its fragment %d holds %d",
				d, n, p.t.Destinations[d].ID, want)
		}
	}
	return nil
}

// layout decides what a label block is.
func (p *Partition) layout(h countsHeader) {
	t := p.t
	p.bySrc, p.byDst = newFragIndex(t.Sources), newFragIndex(t.Destinations)
	p.near = make([]sourceRange, len(p.bySrc.dense))
	for i, src := range p.bySrc.dense {
		if src >= 0 {
			p.near[i] = sourceRange{p.starts[src], t.Sources[src].PhysicalRows}
		}
	}
	n := len(t.Destinations)
	p.null = uint32(n)
	p.destStart = make([]uint64, n+1)
	p.destAddr = make([]uint64, n+1)
	for i, d := range t.Destinations {
		p.destStart[i+1] = p.destStart[i] + d.PhysicalRows
		p.destAddr[i] = uint64(fri.Addr(d.Frag(), 0))
	}
	limit := uint64(labelBlockRows)
	if n == maxDestinations {
		// No 16-bit label is left for "deleted before"; with half the rows a rank has a bit to spare for it.
		limit /= 2
	}
	if stored := uint64(h.blockRows); stored <= limit {
		p.joined = max(1, min(limit/stored, gridShare/(4*uint64(n))))
		p.rows = p.joined * stored
	} else {
		p.rows = limit
	}
	// 65,536 destinations need 16 bits, and mark deleted rows by a word that their short blocks leave free.
	labelBits := min(16, uint32(bits.Len32(p.null)))
	p.rankBits = 32 - labelBits
	p.spanBlocks = 1
	if p.joined > 0 && n < maxDestinations {
		p.spanBlocks = max(1, int(min(1<<p.rankBits/p.rows, 1<<20)))
	}
	if p.rows == 1 {
		p.recip = math.MaxUint64 // never met: 16 or more blocks of one row are joined
	} else {
		// Exact for positions below 2^34 and blocks of at most 2^16 rows.
		q, r := bits.Div64(1, 0, p.rows)
		if r > 0 {
			q++
		}
		p.recip = q
	}
}

// tables makes the empty caches.
func (p *Partition) tables() {
	n := p.LabelBlocks()
	p.blocks = newTable[LabelBlock](p.cache, n)
	p.places = newTable[placeBlock](p.cache, n)
	p.bases = newTable[[]uint32](p.cache, n/p.spanBlocks+1)
	p.ranks = newTable[RankBlock](p.cache, n)
	p.orders = newTable[OrderBlock](p.cache, n)
	if p.joined == 0 {
		p.splits = newTable[splitCounts](p.cache, int(p.grid.blocks()))
	}
	p.windows = newTable[Window](p.cache, int(p.destRows()/p.windowRows()+1))
}

// Sources returns the source digests in recorded order.
func (p *Partition) Sources() []fri.Digest { return p.t.Sources }

// Destinations returns the destination digests in recorded order, the order of labels.
func (p *Partition) Destinations() []fri.Digest { return p.t.Destinations }

// Rows returns the number of physical source rows.
func (p *Partition) Rows() uint64 { return p.grid.rows }

// BlockRows returns the rows of a stored block; the last one may have fewer.
func (p *Partition) BlockRows() uint32 { return p.grid.blockRows }

// Blocks returns the number of stored blocks.
func (p *Partition) Blocks() uint64 { return p.grid.blocks() }

// GridRow returns, per destination, the rows it has received when stored block b is finished; b = -1 gives zeros. The
// row was checked against the row before it. It is shared and must not be changed. A block that does not exist is
// fault.Invalid.
func (p *Partition) GridRow(ctx context.Context, b int64) ([]uint32, error) {
	if b < -1 || (b >= 0 && uint64(b) >= p.grid.blocks()) {
		return nil, fault.New("rowmap.GridRow", "", fault.Invalid, "block %d of %d", b, p.grid.blocks())
	}
	return p.grid.before(ctx, uint64(b+1))
}

// SourceStart returns the position of the first row of source src, counted over all sources in recorded order.
func (p *Partition) SourceStart(src int) uint64 { return p.starts[src] }

// SourceOf returns the source that holds the row at a position, which must be below Rows, and the row's offset there.
func (p *Partition) SourceOf(pos uint64) (src int, off uint64) {
	src = sort.Search(len(p.t.Sources), func(i int) bool { return p.starts[i+1] > pos })
	return src, pos - p.starts[src]
}

// destRows is the number of rows in all destinations.
func (p *Partition) destRows() uint64 { return p.destStart[len(p.destStart)-1] }
