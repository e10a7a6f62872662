package mapcsv

import (
	"context"
	"math/bits"
	"sort"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
)

const (
	// mappingHeader is the first line of mapping.csv.
	mappingHeader = "old_row_addr,old_fragment,old_offset,new_row_addr,new_fragment,new_offset\n"
	// blockRows is the number of rows of a container of the survivor bitmap.
	blockRows = 1 << 16
)

// ordered is what is needed of a *rowmap.Ordered.
type ordered interface {
	Sources() []fri.Digest
	Destinations() []fri.Digest
	// First is the rank of the first survivor of a source, RankAtContainer its survivors below row key*65536.
	First(src int) uint64
	RankAtContainer(src int, key uint64) uint64
	Block(ctx context.Context, src int, key uint64) (*rowmap.OrderedBlock, error)
}

// orderedIndex holds what the files of an ordered compaction are measured with, all of it from digests and container
// headers.
type orderedIndex struct {
	src, dst spans
	starts   []uint64 // per source span: bytes of mapping.csv before it; then the total
}

func newOrderedIndex(m ordered) (*orderedIndex, error) {
	var x orderedIndex
	var err error
	if x.src, err = newSpans(m.Sources()); err != nil {
		return nil, err
	}
	if x.dst, err = newSpans(m.Destinations()); err != nil {
		return nil, err
	}
	at := uint64(0)
	for i := range x.src.list {
		s := &x.src.list[i]
		x.starts = append(x.starts, at)
		rows := s.end - s.start
		at += x.lineBytes(m, i, rows, m.RankAtContainer(s.pos, (rows+blockRows-1)/blockRows))
		if at > maxBytes {
			return nil, fault.New("mapcsv.Size", "", fault.TooLarge, "the mapping takes more than 2^62 bytes")
		}
	}
	x.starts = append(x.starts, at)
	return &x, nil
}

// lineBytes is the length of the lines of the first rows of a source span, survivors of which have a new address.
func (x *orderedIndex) lineBytes(m ordered, i int, rows, survivors uint64) uint64 {
	s := &x.src.list[i]
	first := m.First(s.pos)
	return s.sums.prefix(rows) + 2*rows + 2*(rows-survivors) +
		x.dst.prefix(first+survivors) - x.dst.prefix(first)
}

// orderedBody is the text of mapping.csv of an ordered compaction.
type orderedBody struct {
	m     ordered
	index lazy[orderedIndex]
}

func (b *orderedBody) load(ctx context.Context) (*orderedIndex, error) {
	return b.index.get(ctx, func(context.Context) (*orderedIndex, error) { return newOrderedIndex(b.m) })
}

func (b *orderedBody) length(ctx context.Context) (int64, error) {
	x, err := b.load(ctx)
	if err != nil {
		return 0, err
	}
	return int64(x.starts[len(x.starts)-1]), nil
}

// section returns the place of a source's lines in the body.
func (b *orderedBody) section(ctx context.Context, src int) (off, n int64, err error) {
	x, err := b.load(ctx)
	if err != nil {
		return 0, 0, err
	}
	i := sort.Search(len(x.src.list), func(i int) bool { return x.src.list[i].pos >= src })
	off = int64(x.starts[i])
	if i < len(x.src.list) && x.src.list[i].pos == src {
		n = int64(x.starts[i+1]) - off
	}
	return off, n, nil
}

// open finds source, container, word and row of a byte: the first two from headers, the others in one block.
func (b *orderedBody) open(ctx context.Context, off int64) (lineReader, int, error) {
	x, err := b.load(ctx)
	if err != nil {
		return nil, 0, err
	}
	at := uint64(off)
	i := sort.Search(len(x.src.list), func(i int) bool { return x.starts[i+1] > at })
	at -= x.starts[i]
	s := &x.src.list[i]
	keys := int((s.end - s.start + blockRows - 1) / blockRows)
	key := uint64(sort.Search(keys-1, func(k int) bool {
		return x.lineBytes(b.m, i, uint64(k+1)*blockRows, b.m.RankAtContainer(s.pos, uint64(k+1))) > at
	}))
	r := &orderedReader{m: b.m, x: x, span: i}
	if err := r.load(ctx, key); err != nil {
		return nil, 0, err
	}
	before := r.blk.First - b.m.First(s.pos)
	word := sort.Search(int(r.end+63)/64-1, func(w int) bool {
		return x.lineBytes(b.m, i, key*blockRows+uint64(w+1)*64, before+uint64(r.blk.Ranks[w+1])) > at
	})
	r.row = uint32(word) * 64
	rank := r.blk.First + uint64(r.blk.Ranks[word])
	at -= x.lineBytes(b.m, i, key*blockRows+uint64(r.row), rank-b.m.First(s.pos))
	d := x.dst.at(rank)
	for live := r.blk.Words[word].Bits; ; live >>= 1 {
		n := uint64(halfWidth(s.frag, uint32(key)*blockRows+r.row)) + 4
		if live&1 != 0 {
			for d < len(x.dst.list) && rank == x.dst.list[d].end {
				d++
			}
			if d == len(x.dst.list) {
				return nil, 0, noDestination(s.frag, rank)
			}
			n += uint64(halfWidth(x.dst.list[d].frag, uint32(rank-x.dst.list[d].start))) - 2
		}
		if at < n {
			break
		}
		at -= n
		rank += live & 1
		if r.row++; r.row == r.end {
			return nil, 0, fault.New("mapcsv.seek", "", fault.Corrupt, "byte %d of the mapping lies in no row", off)
		}
	}
	r.pair.atLeft(s.frag, key*blockRows+uint64(r.row))
	r.place(rank)
	return r, int(at), nil
}

func noDestination(f fri.FragID, rank uint64) error {
	return fault.New("mapcsv.Mapping", "", fault.Corrupt, "survivor %d, in fragment %d, lies past the destinations", rank, f)
}

// orderedReader writes the lines of mapping.csv of an ordered compaction.
type orderedReader struct {
	m    ordered
	x    *orderedIndex
	span int    // source span
	key  uint64 // its container
	blk  *rowmap.OrderedBlock
	row  uint32 // next row of blk
	end  uint32 // rows of blk

	dst  int    // destination span
	left uint64 // survivors until its end
	pair pair
}

// load makes container key of the current source the current block.
func (r *orderedReader) load(ctx context.Context, key uint64) error {
	s := &r.x.src.list[r.span]
	blk, err := r.m.Block(ctx, s.pos, key)
	if err != nil {
		return fault.Wrap("mapcsv.Mapping", "", err)
	}
	r.blk, r.key, r.row = blk, key, 0
	r.end = uint32(min(blockRows, s.end-s.start-key*blockRows))
	return nil
}

// place sets the right side to the survivor with a rank.
func (r *orderedReader) place(rank uint64) {
	r.dst, r.left = r.x.dst.at(rank), 0
	if r.dst < len(r.x.dst.list) {
		d := &r.x.dst.list[r.dst]
		r.left = d.end - rank
		r.pair.atRight(d.frag, rank-d.start)
	}
}

// next moves to the block that follows and reports whether there is one.
func (r *orderedReader) next(ctx context.Context) (bool, error) {
	s := &r.x.src.list[r.span]
	if key := r.key + 1; key*blockRows < s.end-s.start {
		return true, r.load(ctx, key)
	}
	if r.span+1 == len(r.x.src.list) {
		return false, nil
	}
	r.span++
	if err := r.load(ctx, 0); err != nil {
		r.span--
		return false, err
	}
	r.pair.atLeft(r.x.src.list[r.span].frag, 0)
	return true, nil
}

func (r *orderedReader) fill(ctx context.Context, dst []byte) (int, error) {
	pos := 0
	for pos <= len(dst)-room {
		if r.row == r.end {
			if more, err := r.next(ctx); err != nil {
				return 0, err
			} else if !more {
				break
			}
		}
		live := r.blk.Words[r.row>>6&(blockRows/64-1)].Bits >> (r.row & 63)
		n := min(64-r.row&63, r.end-r.row)
		if live&1 == 0 {
			n = min(n, uint32(bits.TrailingZeros64(live)))
			for n > 0 && pos <= len(dst)-room {
				pos = r.pair.dropped(dst, pos)
				r.row++
				n--
			}
			continue
		}
		n = min(n, uint32(bits.TrailingZeros64(^live)))
		if r.left == 0 {
			if r.dst+1 >= len(r.x.dst.list) {
				return 0, noDestination(r.pair.lf, r.x.dst.rows)
			}
			r.place(r.x.dst.list[r.dst].end)
		}
		n = uint32(min(uint64(n), r.left))
		n, pos = r.pair.lines(dst, pos, n)
		r.row += n
		r.left -= uint64(n)
	}
	return pos, nil
}
