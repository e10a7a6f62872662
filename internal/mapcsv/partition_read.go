package mapcsv

import (
	"context"
	"sort"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
)

// statesFrom is the size of a read, in bytes, from which on it pays to keep a state for each destination.
const statesFrom = 32 << 10

// open finds point, label block, mark and row of a byte.
func (b *partitionBody) open(ctx context.Context, off int64) (lineReader, int, error) {
	x, err := b.load(ctx)
	if err != nil {
		return nil, 0, err
	}
	i, start, err := x.block(ctx, b.m, uint64(off))
	if err != nil {
		return nil, 0, err
	}
	ranks, err := b.m.Ranks(ctx, i)
	if err != nil {
		return nil, 0, fault.Wrap("mapcsv.Mapping", "", err)
	}
	r := &partitionReader{b: b, x: x, block: i, ranks: ranks, rows: len(ranks.Rows)}
	at := uint64(off) - start
	marks := x.marksOf(i, ranks)
	k := sort.Search(len(marks), func(k int) bool { return uint64(marks[k]) > at }) - 1
	r.row = k * markRows
	at -= uint64(marks[k])
	r.span = x.src.at(ranks.First + uint64(r.row))
	for {
		s := &x.src.list[r.span]
		pos := ranks.First + uint64(r.row)
		if pos == s.end {
			r.span++
			s = &x.src.list[r.span]
		}
		n := uint64(halfWidth(s.frag, uint32(pos-s.start)) + 2 + x.width(ranks, ranks.Rows[r.row]))
		if at < n {
			break
		}
		at -= n
		if r.row++; r.row == r.rows {
			return nil, 0, fault.New("mapcsv.seek", "", fault.Corrupt, "byte %d of the mapping lies in no row", off)
		}
	}
	r.left.at(ranks.First + uint64(r.row) - x.src.list[r.span].start)
	return r, int(at), nil
}

// partitionReader writes the lines of mapping.csv of a stable partition. It starts with the ranks of the rows of its
// first block; in the blocks that it goes through from their start, states count, and labels are enough.
type partitionReader struct {
	b     *partitionBody
	x     *partitionIndex
	block int
	row   int // next row of the block
	rows  int // of the block

	labels *rowmap.LabelBlock // nil in the first block
	ranks  *rowmap.RankBlock  // nil after the first block

	span   int // source span of the next row
	left   half
	states *[]half // per destination, and one for dropped rows; nil until a large read
	fills  int
}

// unset marks a state that was not used yet.
const unset = ^uint64(0)

// next moves to the block that follows and reports whether there is one.
func (r *partitionReader) next(ctx context.Context) (bool, error) {
	i := r.block + 1
	if i == r.b.m.LabelBlocks() {
		return false, nil
	}
	if r.states == nil {
		ranks, err := r.b.m.Ranks(ctx, i)
		if err != nil {
			return false, fault.Wrap("mapcsv.Mapping", "", err)
		}
		r.ranks, r.labels, r.rows = ranks, nil, len(ranks.Rows)
	} else {
		labels, err := r.b.m.Labels(ctx, i)
		if err != nil {
			return false, fault.Wrap("mapcsv.Mapping", "", err)
		}
		r.ranks, r.labels, r.rows = nil, labels, len(labels.Labels)
	}
	r.block, r.row = i, 0
	return true, nil
}

func (r *partitionReader) fill(ctx context.Context, dst []byte) (int, error) {
	if r.fills++; r.states == nil && (len(dst) >= statesFrom || r.fills > 8) {
		r.acquire()
	}
	pos := 0
	for pos <= len(dst)-room {
		if r.row == r.rows {
			if more, err := r.next(ctx); err != nil {
				return 0, err
			} else if !more {
				break
			}
		}
		s := &r.x.src.list[r.span]
		first := uint64(r.block) * uint64(r.b.m.LabelBlockRows())
		if first+uint64(r.row) == s.end {
			r.span++
			s = &r.x.src.list[r.span]
			r.left.at(0)
		}
		end := int(min(s.end-first, uint64(r.rows)))
		switch {
		case r.states == nil:
			pos = r.plain(dst, pos, s.frag, end)
		case r.ranks != nil:
			pos = r.byRank(dst, pos, s.frag, end)
		case r.labels.NullBits != nil:
			pos = r.byNullBits(dst, pos, s.frag, end)
		default:
			pos = r.byLabel(dst, pos, s.frag, end)
		}
	}
	return pos, nil
}

// acquire gets a state for each destination.
func (r *partitionReader) acquire() {
	st, _ := r.b.states.Get().(*[]half)
	if st == nil {
		st = new([]half)
		*st = make([]half, len(r.x.sums)+1)
	}
	for i := range *st {
		(*st)[i].c, (*st)[i].next = 0, unset
	}
	r.states = st
}

// release gives the states back.
func (r *partitionReader) release() {
	if r.states != nil {
		r.b.states.Put(r.states)
		r.states = nil
	}
}

// renew makes the next template of destination d, whose next row has the offset first if the state is a new one.
func (r *partitionReader) renew(d int, first uint32) {
	h := &(*r.states)[d]
	if d == len(r.x.sums) {
		h.empty()
		return
	}
	if h.next == unset {
		h.at(uint64(first))
	}
	h.refill(r.x.ids[d])
}

// plain writes rows up to end without states.
func (r *partitionReader) plain(dst []byte, pos int, f fri.FragID, end int) int {
	for r.row < end && pos <= len(dst)-room {
		if r.left.left() == 0 {
			r.left.refill(f)
		}
		pos += r.left.put((*[window]byte)(dst[pos:]), ',')
		v := r.ranks.Rows[r.row]
		d := int(v >> 16)
		b := dst[pos:pos]
		if d == len(r.x.sums) || v == rowmap.NullRank && len(r.x.sums) == 1<<16 {
			b = append(b, ",,\n"...)
		} else {
			b = append(appendHalf(b, r.x.ids[d], r.ranks.Before[d]+v&0xFFFF), '\n')
		}
		pos += len(b)
		r.row++
	}
	return pos
}

// byRank writes rows up to end with states that may have to begin in the middle of the block.
func (r *partitionReader) byRank(dst []byte, pos int, f fri.FragID, end int) int {
	st := *r.states
	wide := len(r.x.sums) == 1<<16
	for r.row < end && pos <= len(dst)-room {
		if r.left.left() == 0 {
			r.left.refill(f)
		}
		pos += r.left.put((*[window]byte)(dst[pos:]), ',')
		v := r.ranks.Rows[r.row]
		d := int(v >> 16)
		if wide && v == rowmap.NullRank {
			d = len(r.x.sums)
		}
		h := &st[d]
		if h.left() == 0 {
			r.renew(d, r.ranks.Before[d]+v&0xFFFF)
		}
		pos += h.put((*[window]byte)(dst[pos:]), '\n')
		r.row++
	}
	return pos
}

// byLabel writes rows up to end of a block that was begun at its first row.
func (r *partitionReader) byLabel(dst []byte, pos int, f fri.FragID, end int) int {
	st := *r.states
	for r.row < end && pos <= len(dst)-room {
		if r.left.left() == 0 {
			r.left.refill(f)
		}
		n := min(end-r.row, int(r.left.left()), (len(dst)-room-pos)/maxLine+1)
		labels := r.labels.Labels[r.row : r.row+n]
		n, pos = scatter(dst, pos, &r.left, st, labels)
		if r.row += n; n < len(labels) {
			r.start(int(labels[n]))
		}
	}
	return pos
}

// start is renew for a block that was begun at its first row: a destination without state has had no row in it.
func (r *partitionReader) start(d int) {
	var first uint32
	if d < len(r.labels.Before) {
		first = r.labels.Before[d]
	}
	r.renew(d, first)
}

// byNullBits is byLabel for 65,536 destinations, where no label stands for a dropped row.
func (r *partitionReader) byNullBits(dst []byte, pos int, f fri.FragID, end int) int {
	st := *r.states
	for r.row < end && pos <= len(dst)-room {
		if r.left.left() == 0 {
			r.left.refill(f)
		}
		pos += r.left.put((*[window]byte)(dst[pos:]), ',')
		d := int(r.labels.Labels[r.row])
		if r.labels.Null(r.row, len(r.x.sums)) {
			d = len(r.x.sums)
		}
		if st[d].left() == 0 {
			r.start(d)
		}
		pos += st[d].put((*[window]byte)(dst[pos:]), '\n')
		r.row++
	}
	return pos
}

// section returns the place of a source's lines in the body.
func (b *partitionBody) section(ctx context.Context, src int) (off, n int64, err error) {
	x, err := b.load(ctx)
	if err != nil {
		return 0, 0, err
	}
	var at [2]uint64
	for k := range at {
		if at[k], err = b.edge(ctx, x, src+k); err != nil {
			return 0, 0, err
		}
	}
	return int64(at[0]), int64(at[1] - at[0]), nil
}

// edge is the byte at which the lines of source src begin, or the end for the number of sources. It reads the label
// block that the first row lies in.
func (b *partitionBody) edge(ctx context.Context, x *partitionIndex, src int) (uint64, error) {
	i := sort.Search(len(x.src.list), func(i int) bool { return x.src.list[i].pos >= src })
	if i == len(x.src.list) {
		return x.total, nil
	}
	pos := x.src.list[i].start
	if pos%x.pointRows == 0 {
		return x.point(ctx, b.m, int(pos/x.pointRows))
	}
	rows := uint64(b.m.LabelBlockRows())
	labels, err := b.m.Labels(ctx, int(pos/rows))
	if err != nil {
		return 0, fault.Wrap("mapcsv.Mapping", "", err)
	}
	before := append([]uint32(nil), labels.Before...)
	for i, d := range labels.Labels[:pos%rows] {
		if !labels.Null(i, len(before)) {
			before[d]++
		}
	}
	return x.prefix(pos, before), nil
}
