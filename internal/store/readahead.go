package store

import "sync"

// sequence notices a reader that goes forward, and says what to read before it asks. Reads of one file may come a
// little out of order: the kernel sends several at once.
type sequence struct {
	mu     sync.Mutex // guards the rest
	begun  bool       // something was read
	next   int64      // where the reader is expected
	window int64      // 0: not known to be sequential
	done   int64      // up to here was read ahead
}

// slack is how far a read may be off and still count as the next one of a reader that is known to go forward.
const slack = 1 << 20

// advance takes note of a read of n bytes at off, and returns the range to read ahead, empty if from >= to.
func (q *sequence) advance(off, n, size, limit int64) (from, to int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	end := off + n
	near := int64(slack)
	if q.window == 0 {
		near = BlockSize / 2 // the second read tells, if it continues the first
	}
	sequential := q.begun && off >= q.next-near && off <= q.next+near && end > q.next
	q.begun = true
	behind := end <= q.next && end > q.next-slack && q.window > 0 // a straggler changes nothing
	switch {
	case behind:
		return 0, 0
	case !sequential:
		q.next, q.window, q.done = end, 0, 0
		return 0, 0
	}
	q.next = end
	q.window = min(limit, max(2*q.window, 2*n, 2*BlockSize))
	from, to = max(end, q.done), min(size, end+q.window)
	// Small steps would make small requests: wait until half of the window is used up.
	if to-from < q.window/2 && to < size {
		return 0, 0
	}
	q.done = max(q.done, to)
	return from, to
}

// readAhead starts to read a range that nobody has asked for yet, if the layer has room for it.
func (c *content) readAhead(from, to int64) {
	budget := c.l.cfg.ReadAhead * 2
	if from >= to || c.l.busy() {
		return
	}
	var runs []*run
	c.mu.Lock()
	for b := from / BlockSize; b <= (to-1)/BlockSize; b++ {
		if c.flights[b] != nil || c.l.mem.has(c.key, b) {
			continue
		}
		if c.l.ahead.Add(BlockSize) > budget {
			c.l.ahead.Add(-BlockSize)
			break
		}
		_, runs = c.launch(b, runs, true)
		runs[len(runs)-1].reserved += BlockSize
		c.l.count.readAhead.Add(1)
	}
	c.mu.Unlock()
	for _, r := range runs {
		go c.bring(r, true)
	}
}
