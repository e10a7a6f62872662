package mapcsv

import (
	"context"
	"sort"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// inverter is what inverse.csv of a stable partition needs of a *rowmap.Partition.
type inverter interface {
	partition
	InverseRun(ctx context.Context, dst int, off uint64, out []fri.RowAddr) error
}

const (
	// arrivalBytes bounds the table of a partitionArrivals.
	arrivalBytes = 48 << 20
	// inverseRows is the number of rows that are asked for at a time.
	inverseRows = 1 << 12
)

// partitionArrivals tells the length of the old halves of the first rows of each destination. Those of a stretch of
// source rows between two changes of digits all have one width, so counts at the changes are enough: one label block
// for each that is not at a block's edge.
type partitionArrivals struct {
	src, dst spans
	sums     []sums
	ids      []fri.FragID
	starts   []uint64 // per destination: byte at which its lines begin; then the total

	changes []uint64 // source positions at which the width of the old half changes; then the end
	widths  []uint64 // of the rows from each change to the next
	group   int      // changes between two rows of the table
	counts  []uint32 // per group, per destination: rows received before its first change
	bytes   []uint64 // likewise: length of their old halves
}

func newPartitionArrivals(ctx context.Context, m partition) (*partitionArrivals, error) {
	x := &partitionArrivals{group: 1}
	var err error
	if x.src, err = newSpans(m.Sources()); err != nil {
		return nil, err
	}
	if x.dst, err = newSpans(m.Destinations()); err != nil {
		return nil, err
	}
	dests := m.Destinations()
	for _, d := range dests {
		x.sums = append(x.sums, newSums(d.Frag()))
		x.ids = append(x.ids, d.Frag())
	}
	for i := range x.src.list {
		s := &x.src.list[i]
		rows := s.end - s.start
		for off := uint64(0); off < rows; off = widthChange(s.frag, off) {
			w := uint64(halfWidth(s.frag, uint32(off)))
			if k := len(x.widths); k == 0 || x.widths[k-1] != w {
				x.changes = append(x.changes, s.start+off)
				x.widths = append(x.widths, w)
			}
		}
	}
	x.changes = append(x.changes, x.src.rows)
	if n := len(x.widths) * len(dests); n > arrivalBytes/12 {
		x.group = n/(arrivalBytes/12) + 1
	}
	last := make([]uint32, len(dests))
	sum := make([]uint64, len(dests))
	for j, pos := range x.changes {
		row, err := arrived(ctx, m, pos)
		if err != nil {
			return nil, fault.Wrap("mapcsv.Inverse", "", err)
		}
		if j > 0 {
			for d, n := range row {
				if n < last[d] {
					return nil, fault.New("mapcsv.Inverse", "", fault.Corrupt, "destination %d has %d rows after it had %d", d, n, last[d])
				}
				sum[d] += uint64(n-last[d]) * x.widths[j-1]
			}
		}
		copy(last, row)
		if j%x.group == 0 && j < len(x.widths) {
			x.counts = append(x.counts, last...)
			x.bytes = append(x.bytes, sum...)
		}
	}
	at := uint64(0)
	for d, n := range dests {
		if uint64(last[d]) != n.PhysicalRows {
			return nil, fault.New("mapcsv.Inverse", "", fault.Corrupt, "destination %d received %d rows, its fragment has %d", d, last[d], n.PhysicalRows)
		}
		x.starts = append(x.starts, at)
		at += x.sums[d].prefix(n.PhysicalRows) + 2*n.PhysicalRows + sum[d]
		if at > maxBytes {
			return nil, fault.New("mapcsv.Inverse", "", fault.TooLarge, "the mapping takes more than 2^62 bytes")
		}
	}
	x.starts = append(x.starts, at)
	return x, nil
}

// arrived counts the rows that each destination has received from the source rows below pos. The result may be
// shared.
func arrived(ctx context.Context, m partition, pos uint64) ([]uint32, error) {
	if n := uint64(m.BlockRows()); pos%n == 0 || pos == m.Rows() {
		return m.GridRow(ctx, int64((pos+n-1)/n)-1)
	}
	rows := uint64(m.LabelBlockRows())
	labels, err := m.Labels(ctx, int(pos/rows))
	if err != nil {
		return nil, err
	}
	n := len(labels.Before)
	if labels.NullBits != nil {
		before := append([]uint32(nil), labels.Before...)
		for i, d := range labels.Labels[:pos%rows] {
			if !labels.Null(i, n) {
				before[d]++
			}
		}
		return before, nil
	}
	before := make([]uint32, n+1)
	copy(before, labels.Before)
	for _, d := range labels.Labels[:pos%rows] {
		before[d]++
	}
	return before[:n], nil
}

// find returns the row of destination d that holds byte at of its lines, and the byte at which that line begins.
func (x *partitionArrivals) find(ctx context.Context, m partition, d int, at uint64) (row, start uint64, err error) {
	n := len(x.sums)
	lines := func(rows, old uint64) uint64 { return x.sums[d].prefix(rows) + 2*rows + old }
	g := sort.Search(len(x.counts)/n-1, func(g int) bool {
		return lines(uint64(x.counts[(g+1)*n+d]), x.bytes[(g+1)*n+d]) > at
	})
	from, old := uint64(x.counts[g*n+d]), x.bytes[g*n+d]
	for j := g * x.group; ; j++ {
		to := m.Destinations()[d].PhysicalRows
		if j+1 < len(x.widths) {
			if x.group == 1 {
				to = uint64(x.counts[(j+1)*n+d])
			} else {
				row, err := arrived(ctx, m, x.changes[j+1])
				if err != nil {
					return 0, 0, fault.Wrap("mapcsv.Inverse", "", err)
				}
				to = uint64(row[d])
			}
		}
		w := x.widths[j]
		if next := old + (to-from)*w; lines(to, next) <= at && j+1 < len(x.widths) {
			from, old = to, next
			continue
		}
		k := sort.Search(int(to-from), func(k int) bool {
			rows := uint64(k) + 1
			return lines(from+rows, old+rows*w) > at
		})
		return from + uint64(k), lines(from+uint64(k), old+uint64(k)*w), nil
	}
}

// partitionInverse is the text of inverse.csv of a stable partition.
type partitionInverse struct {
	m     inverter
	index lazy[partitionArrivals]
}

func (b *partitionInverse) load(ctx context.Context) (*partitionArrivals, error) {
	return b.index.get(ctx, func(ctx context.Context) (*partitionArrivals, error) { return newPartitionArrivals(ctx, b.m) })
}

func (b *partitionInverse) length(ctx context.Context) (int64, error) {
	x, err := b.load(ctx)
	if err != nil {
		return 0, err
	}
	return int64(x.starts[len(x.starts)-1]), nil
}

func (b *partitionInverse) open(ctx context.Context, off int64) (lineReader, int, error) {
	x, err := b.load(ctx)
	if err != nil {
		return nil, 0, err
	}
	at := uint64(off)
	d := sort.Search(len(x.sums), func(d int) bool { return x.starts[d+1] > at })
	row, start, err := x.find(ctx, b.m, d, at-x.starts[d])
	if err != nil {
		return nil, 0, err
	}
	r := &partitionInverseReader{b: b, x: x, dst: d, row: row}
	r.left.at(row)
	return r, int(at - x.starts[d] - start), nil
}

// partitionInverseReader writes the lines of inverse.csv of a stable partition.
type partitionInverseReader struct {
	b    *partitionInverse
	x    *partitionArrivals
	dst  int
	row  uint64 // next row to ask for
	left half
	old  side
	buf  []fri.RowAddr // rows that were asked for
	done int           // of buf
}

func (r *partitionInverseReader) fill(ctx context.Context, dst []byte) (int, error) {
	pos := 0
	for pos <= len(dst)-room {
		if r.done == len(r.buf) {
			if more, err := r.more(ctx, len(dst)-pos); err != nil {
				return 0, err
			} else if !more {
				break
			}
		}
		f := r.x.ids[r.dst]
		for _, a := range r.buf[r.done:] {
			if pos > len(dst)-room {
				break
			}
			if r.left.left() == 0 {
				r.left.refill(f)
			}
			pos += r.left.put((*[window]byte)(dst[pos:]), ',')
			pos += r.old.put((*[window]byte)(dst[pos:]), a, '\n')
			r.done++
		}
	}
	return pos, nil
}

// more asks for the next rows, as many as the room for their lines suggests, and reports whether there are any.
func (r *partitionInverseReader) more(ctx context.Context, space int) (bool, error) {
	dests := r.b.m.Destinations()
	for r.row == dests[r.dst].PhysicalRows {
		if r.dst+1 == len(dests) {
			return false, nil
		}
		r.dst, r.row = r.dst+1, 0
		r.left.at(0)
	}
	n := min(uint64(inverseRows), dests[r.dst].PhysicalRows-r.row, uint64(space)/32+1)
	if uint64(cap(r.buf)) < n {
		r.buf = make([]fri.RowAddr, n)
	}
	r.buf, r.done = r.buf[:n], 0
	if err := r.b.m.InverseRun(ctx, r.dst, r.row, r.buf); err != nil {
		return false, fault.Wrap("mapcsv.Inverse", "", err)
	}
	r.row += n
	return true, nil
}
