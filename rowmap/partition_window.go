package rowmap

import (
	"context"
	"sort"
	"sync"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// windowBytes bounds a window; a window also takes at most a third of the cache.
const windowBytes = 64 << 20

// Window is the inverse of consecutive destination rows: all rows numbered [Start, Start+Len()) when the destinations
// follow each other in recorded order. It is made in one pass over the labels, whatever the number of destinations,
// and is immutable.
type Window struct {
	p     *Partition
	Start uint64
	rows  []uint16 // row in its label block; which block that is follows from the counts
	wide  []uint64 // position, where stored blocks are split and the counts do not tell
}

// Len returns the number of rows.
func (w *Window) Len() int { return max(len(w.rows), len(w.wide)) }

// Addrs writes the source addresses of rows [from, from+len(out)) of the window, counted from its start. The rows must
// be in the window. Errors are those of reading the counts.
func (w *Window) Addrs(ctx context.Context, from int, out []fri.RowAddr) error {
	p := w.p
	if w.wide != nil {
		var lo, hi, base uint64
		for i, pos := range w.wide[from:][:len(out)] {
			if pos-lo >= hi-lo {
				lo, hi, base = p.sourceSpan(pos)
			}
			out[i] = fri.RowAddr(base + pos)
		}
		return nil
	}
	rows := w.rows[from:][:len(out)]
	row := w.Start + uint64(from)
	var hint blockHint
	for d := p.destOf(row); len(rows) > 0; d++ {
		left := min(p.destStart[d+1]-row, uint64(len(rows)))
		for left > 0 {
			x := uint32(row - p.destStart[d])
			i, err := p.blockOf(ctx, d, x, &hint)
			if err != nil {
				return err
			}
			n := min(uint64(hint.to-x), left)
			p.addrs(uint64(i)*p.rows, rows[:n], out)
			rows, out = rows[n:], out[n:]
			row += n
			left -= n
		}
	}
	return nil
}

// destOf returns the destination that holds a row in destination order, which must exist.
func (p *Partition) destOf(row uint64) int {
	return sort.Search(len(p.t.Destinations), func(d int) bool { return p.destStart[d+1] > row })
}

// InverseWindow makes the inverse of up to limit consecutive destination rows from offset off of destination dst on,
// into the following destinations. It costs one pass over all labels (some nanoseconds a source row) and 2 bytes a
// row, 8 where stored blocks are longer than a label block; nothing is kept. A sequential reader of all destinations that
// holds a window of a few million rows needs one pass per window, and never decodes a block per destination.
// InverseRun does this by itself for runs that follow each other.
func (p *Partition) InverseWindow(ctx context.Context, dst int, off uint64, limit int) (*Window, error) {
	if dst < 0 || dst >= len(p.t.Destinations) || off > p.t.Destinations[dst].PhysicalRows || limit < 0 {
		return nil, fault.New("rowmap.InverseWindow", "", fault.Invalid, "destination %d of %d, offset %d, %d rows", dst, len(p.t.Destinations), off, limit)
	}
	return p.window(ctx, p.destStart[dst]+off, uint64(limit))
}

// window makes the window of rows [start, start+n), cut to what exists.
func (p *Partition) window(ctx context.Context, start, n uint64) (*Window, error) {
	n = min(n, p.destRows()-start)
	w := &Window{p: p, Start: start}
	if p.joined == 0 {
		w.wide = make([]uint64, n, n+1)
	} else {
		w.rows = make([]uint16, n, n+1)
	}
	// The destinations that have rows in the window; others may be skipped.
	lo, hi := p.destSpan(start, start+n)
	c := &collector{p: p, w: w, next: make([]uint64, p.null+1)}
	for i := range p.LabelBlocks() {
		if err := ctx.Err(); err != nil {
			return nil, fault.Wrap("rowmap.InverseWindow", "", err)
		}
		if skip, err := p.untouched(ctx, i, lo, hi); err != nil {
			return nil, err
		} else if skip {
			continue
		}
		if err := c.block(ctx, i); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// collector fills a window.
type collector struct {
	p    *Partition
	w    *Window
	s    labelScratch
	next []uint64 // per destination the place of its next row in the window, and one for deleted rows
}

// block puts the rows of label block i into their places. Where a label block is a stored block, the places that are
// reached in the end are its counts, so the labels are checked in the same pass.
func (c *collector) block(ctx context.Context, i int) error {
	p := c.p
	if b := p.blocks.peek(i); b != nil {
		c.collect(b)
		return nil
	}
	if p.joined != 1 || p.null == maxDestinations {
		b, err := p.load(ctx, i, &c.s)
		if err != nil {
			return err
		}
		c.collect(b)
		return nil
	}
	before, err := p.grid.before(ctx, uint64(i))
	if err != nil {
		return err
	}
	after, err := p.grid.row(ctx, uint64(i))
	if err != nil {
		return err
	}
	first, n := p.span(i)
	b, err := p.readLabels(ctx, first, n, &c.s)
	if err != nil {
		return err
	}
	b.Before = before
	c.collect(b)
	good := c.next[p.null] == nullPlace+uint64(c.s.seen)
	for d, v := range after {
		good = good && c.next[d] == c.place(d, v)
	}
	if good {
		p.labelRows.Add(uint64(n))
		return nil
	}
	if _, err = p.load(ctx, i, &c.s); err == nil {
		err = p.grid.bad(uint64(i), "labels disagree with counts")
	}
	return err
}

// nullPlace is where deleted rows are put: in no window.
const nullPlace = 1 << 63

// place is the place in the window of the row of destination d that count rows come before. Rows before the window
// wrap around to huge numbers, so one comparison tells whether a row is in it.
func (c *collector) place(d int, count uint32) uint64 {
	return c.p.destStart[d] + uint64(count) - c.w.Start
}

// collect puts the position of each row of a block into its place.
func (c *collector) collect(b *LabelBlock) {
	for d, n := range b.Before {
		c.next[d] = c.place(d, n)
	}
	c.next[c.p.null] = nullPlace
	switch {
	case b.NullBits != nil:
		c.collectMarked(b)
	case c.w.wide != nil:
		collect(b.Labels, c.next, c.w.wide, b.First)
	default:
		collect(b.Labels, c.next, c.w.rows, 0)
	}
}

// collect is written without a branch on the place, which would be mispredicted for most rows at the window's edges:
// what is not in the window goes to one place behind it. out has the window's length, and capacity for that place.
func collect[P uint16 | uint64](labels []uint16, next []uint64, out []P, first P) {
	n := uint64(len(out))
	out = out[:n+1]
	for i, l := range labels {
		if int(l) >= len(next) { // never: labels are checked when they are read
			return
		}
		v := next[l]
		next[l] = v + 1
		out[min(v, n)] = first + P(i)
	}
}

// collectMarked is collect for blocks with separate marks of deleted rows.
func (c *collector) collectMarked(b *LabelBlock) {
	for i, l := range b.Labels {
		if b.Null(i, int(c.p.null)) {
			continue
		}
		v := c.next[l]
		c.next[l] = v + 1
		switch {
		case v < uint64(len(c.w.rows)):
			c.w.rows[v] = uint16(i)
		case v < uint64(len(c.w.wide)):
			c.w.wide[v] = b.First + uint64(i)
		}
	}
}

// destSpan returns the destinations [lo, hi) that hold rows [from, to) in destination order.
func (p *Partition) destSpan(from, to uint64) (lo, hi int) {
	n := len(p.t.Destinations)
	for lo < n && p.destStart[lo+1] <= from {
		lo++
	}
	for hi = lo; hi < n && p.destStart[hi] < to; hi++ {
	}
	return lo, hi
}

// untouched reports whether none of the destinations [lo, hi) receives a row in label block i, by the counts.
func (p *Partition) untouched(ctx context.Context, i, lo, hi int) (bool, error) {
	if p.joined == 0 {
		return lo == hi, nil
	}
	from := uint64(i) * p.joined
	before, err := p.grid.before(ctx, from)
	if err != nil {
		return false, err
	}
	after, err := p.grid.row(ctx, min(from+p.joined, p.grid.blocks())-1)
	if err != nil {
		return false, err
	}
	for d := lo; d < hi; d++ {
		if before[d] != after[d] {
			return false, nil
		}
	}
	return true, nil
}

// windowWidth is the bytes of a window's row.
func (p *Partition) windowWidth() int64 {
	if p.joined == 0 {
		return 8
	}
	return 2
}

// windowRows is the number of rows of the windows that InverseRun makes.
func (p *Partition) windowRows() uint64 {
	return max(uint64(min(windowBytes, max(p.cache.budget, 0)/3)/p.windowWidth()), labelBlockRows)
}

// windowRun answers a run of consecutive destination rows from cached windows.
func (p *Partition) windowRun(ctx context.Context, row uint64, out []fri.RowAddr) error {
	size := p.windowRows()
	for len(out) > 0 {
		k := row / size
		w, err := p.windows.get(ctx, int(k), func(ctx context.Context) (*Window, int64, error) {
			w, err := p.window(ctx, k*size, size)
			if err != nil {
				return nil, 0, err
			}
			return w, int64(2*len(w.rows) + 8*len(w.wide)), nil
		})
		if err != nil {
			return err
		}
		from := int(row - w.Start)
		n := min(len(out), w.Len()-from)
		if err := w.Addrs(ctx, from, out[:n]); err != nil {
			return err
		}
		row += uint64(n)
		out = out[n:]
	}
	return nil
}

// windowsPay reports whether windows are of use: the orders of all blocks do not fit half of the cache, and a window
// does, so that it is still there for the next run.
func (p *Partition) windowsPay() bool {
	per := 2*int64(p.rows) + 8*int64(p.null)
	return per*int64(p.LabelBlocks()) > p.cache.budget/2 && p.windowWidth()*int64(p.windowRows()) <= p.cache.budget/2
}

const (
	// sequenceSlack is how far from the end of the last run another one may begin and still go on with it: readers
	// ahead do not keep the order strictly.
	sequenceSlack = 1 << 20
	// sequenceRuns and sequenceRows are how many runs and rows make a sequence.
	sequenceRuns = 16
	sequenceRows = 1 << 15
)

// sequence notices runs that follow each other.
type sequence struct {
	mu   sync.Mutex // protects the fields below
	end  uint64
	runs int
	rows uint64
}

// next notes a run and reports whether it is part of a long sequence.
func (q *sequence) next(row uint64, n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if d := int64(row - q.end); d < -sequenceSlack || d > sequenceSlack {
		q.runs, q.rows = 0, 0
	}
	q.end = row + uint64(n)
	q.runs++
	q.rows += uint64(n)
	return q.runs > sequenceRuns && q.rows > sequenceRows
}
