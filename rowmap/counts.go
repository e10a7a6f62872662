package rowmap

import (
	"context"
	"encoding/binary"
	"math/bits"
	"sync/atomic"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/lancefile"
)

// countsHeaderBytes is the size of the header of the counts buffer: magic, version, representation, destinations,
// rows per block (u32 each), total rows (u64).
const countsHeaderBytes = 28

// maxDestinations is how many destinations a label can tell apart.
const maxDestinations = 1 << 16

// countsHeader is the header of the counts buffer (docs/FORMAT.md, "Row map").
type countsHeader struct {
	destinations uint32 // 1 to 65,536
	blockRows    uint32 // rows of every block but the last, which may have fewer
	rows         uint64 // physical source rows
}

// blocks returns the number of stored blocks.
func (h countsHeader) blocks() uint64 {
	if h.rows == 0 {
		return 0
	}
	return (h.rows-1)/uint64(h.blockRows) + 1
}

// parseCounts reads the header of a counts buffer of size bytes and checks that its grid has just the size that the
// header asks for. Nothing is allocated; the sizes are multiplied with a check for overflow.
func parseCounts(b []byte, size uint64) (countsHeader, string, error) {
	bad := func(check, format string, args ...any) (countsHeader, string, error) {
		return countsHeader{}, check, fault.New("rowmap.counts", "", fault.Corrupt, "counts buffer: "+format, args...)
	}
	if size < countsHeaderBytes || len(b) < countsHeaderBytes {
		return bad(checkHeader, "%d bytes are too few for a header of %d", size, countsHeaderBytes)
	}
	le := binary.LittleEndian
	if string(b[:4]) != "LSPC" {
		return bad(checkHeader, "magic %q instead of \"LSPC\"", b[:4])
	}
	if v := le.Uint32(b[4:]); v != 1 {
		return countsHeader{}, checkHeader, fault.New("rowmap.counts", "", fault.Unsupported, "counts buffer: version %d, known is 1", v)
	}
	if v := le.Uint32(b[8:]); v != 0 {
		return countsHeader{}, checkHeader, fault.New("rowmap.counts", "", fault.Unsupported,
			"counts buffer: representation %d, known is 0 (dense grid)", v)
	}
	h := countsHeader{le.Uint32(b[12:]), le.Uint32(b[16:]), le.Uint64(b[20:])}
	if h.destinations == 0 || h.destinations > maxDestinations {
		return bad(checkHeader, "%d destinations, allowed are 1 to %d", h.destinations, maxDestinations)
	}
	if h.blockRows == 0 {
		return bad(checkHeader, "0 rows per block")
	}
	hi, want := bits.Mul64(h.blocks(), 4*uint64(h.destinations))
	if hi != 0 || want != size-countsHeaderBytes {
		return bad(checkSize, "%d bytes of counts; %d rows in blocks of %d for %d destinations need %d blocks x %d x 4 bytes",
			size-countsHeaderBytes, h.rows, h.blockRows, h.destinations, h.blocks(), h.destinations)
	}
	return h, "", nil
}

// gridChunkBytes is about how much of the grid is read, checked and kept at a time.
const gridChunkBytes = 64 << 10

// grid reads the cumulative counts: row b holds, per destination, the rows received once block b is finished. Rows are
// read in chunks, each checked against the row before it when it is read (checks 6 and 7), never all at once.
type grid struct {
	countsHeader
	file   *lancefile.File
	buffer int
	dests  []fri.Digest
	per    uint64 // rows of the grid per chunk
	chunks *table[gridChunk]
	read   atomic.Int64 // grid rows that were checked, counted anew when read anew; see Checks
}

// gridChunk holds rows [first, first+n) and the row before them, one after the other.
type gridChunk struct {
	first  uint64
	counts []uint32
}

func newGrid(f *lancefile.File, buffer int, h countsHeader, dests []fri.Digest, c *Cache) *grid {
	g := &grid{countsHeader: h, file: f, buffer: buffer, dests: dests}
	g.per = max(1, gridChunkBytes/(4*uint64(h.destinations)))
	g.chunks = newTable[gridChunk](c, int((h.blocks()+g.per-1)/g.per))
	return g
}

// row returns grid row b, b < blocks, shared and not to be changed.
func (g *grid) row(ctx context.Context, b uint64) ([]uint32, error) {
	c, err := g.chunk(ctx, b)
	if err != nil {
		return nil, err
	}
	d := uint64(g.destinations)
	at := (b - c.first + 1) * d
	return c.counts[at : at+d : at+d], nil
}

// before returns the counts before block b: grid row b-1, or zeros.
func (g *grid) before(ctx context.Context, b uint64) ([]uint32, error) {
	if b == 0 {
		return make([]uint32, g.destinations), nil
	}
	return g.row(ctx, b-1)
}

// cell returns count (b, d).
func (g *grid) cell(ctx context.Context, b uint64, d int) (uint32, error) {
	c, err := g.chunk(ctx, b)
	if err != nil {
		return 0, err
	}
	return c.counts[(b-c.first+1)*uint64(g.destinations)+uint64(d)], nil
}

func (g *grid) chunk(ctx context.Context, b uint64) (*gridChunk, error) {
	i := int(b / g.per)
	if c := g.chunks.peek(i); c != nil {
		return c, nil
	}
	return g.chunks.get(ctx, i, func(ctx context.Context) (*gridChunk, int64, error) {
		first := uint64(i) * g.per
		n := min(g.per, g.blocks()-first)
		d := uint64(g.destinations)
		c := &gridChunk{first: first, counts: make([]uint32, (n+1)*d)}
		from, into := first, c.counts[d:]
		if first > 0 {
			from, into = first-1, c.counts
		}
		if err := g.readRows(ctx, from, into); err != nil {
			return nil, 0, err
		}
		for k := range n {
			if err := g.checkRow(first+k, c.counts[k*d:(k+1)*d], c.counts[(k+1)*d:(k+2)*d]); err != nil {
				return nil, 0, err
			}
		}
		g.read.Add(int64(n))
		return c, int64(4 * len(c.counts)), nil
	})
}

// readRows fills out, a multiple of a row, with rows from b on, unchecked.
func (g *grid) readRows(ctx context.Context, b uint64, out []uint32) error {
	raw := make([]byte, 4*len(out))
	if err := g.file.ReadGlobal(ctx, g.buffer, raw, g.offset(b)); err != nil {
		return fault.Wrap("rowmap.counts", "", err)
	}
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return nil
}

// offset is where grid row b begins in the counts buffer.
func (g *grid) offset(b uint64) uint64 {
	return countsHeaderBytes + 4*b*uint64(g.destinations)
}

// blockLen returns the rows of stored block b.
func (g *grid) blockLen(b uint64) uint64 {
	return min(uint64(g.blockRows), g.rows-b*uint64(g.blockRows))
}

// checkRow checks grid row b against the row before: no count falls, the increases sum up to no more than the rows of
// the block, and no destination receives more rows than its digest says (checks 6, 7 and 11).
func (g *grid) checkRow(b uint64, prev, cur []uint32) error {
	var sum uint64
	for d, v := range cur {
		if v < prev[d] {
			return g.bad(b, "count of destination %d falls from %d to %d", d, prev[d], v)
		}
		if uint64(v) > g.dests[d].PhysicalRows {
			return g.bad(b, "destination %d has received %d rows, its fragment %d holds %d", d, v, g.dests[d].ID, g.dests[d].PhysicalRows)
		}
		sum += uint64(v - prev[d])
	}
	if n := g.blockLen(b); sum > n {
		return g.bad(b, "destinations receive %d rows from a block of %d", sum, n)
	}
	return nil
}

func (g *grid) bad(b uint64, format string, args ...any) error {
	off, _ := g.file.GlobalBuffer(g.buffer)
	args = append([]any{b, off + g.offset(b)}, args...)
	return fault.New("rowmap.counts", "", fault.Corrupt, "counts of block %d @%d: "+format, args...)
}
