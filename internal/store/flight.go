package store

import (
	"context"
	"sync"

	"github.com/frifs/frifs/fault"
)

const (
	// BlockSize is the unit of reads and caches behind a layer, in bytes.
	BlockSize = 256 << 10
	// maxRunBlocks is how many blocks one request asks for at most, unless a read is large: 4 MiB.
	maxRunBlocks = 16
	// windowBlocks is how much of one large read is under way at once, twice: 8 MiB.
	windowBlocks = 32
)

// content is one content of one object, shared by all who read it: equal reads join, adjacent ones that wait for their
// turn become one request.
type content struct {
	l    *Layer
	s    remote
	obj  Object
	key  string // of the content among all, for the memory cache
	last string // the same for caches that outlive the process; "" if there is none

	refs int // guarded by Layer.mu

	mu      sync.Mutex // guards the rest, and the fields of flights and runs; Layer.mem may be locked inside
	flights map[int64]*flight
	queue   []*run // runs that wait for the right to make a request
}

// flight is one block on its way.
type flight struct {
	block   int64
	run     *run
	waiters int
	done    chan struct{} // closed when data or err is set
	data    []byte
	err     error
}

// run is a range of blocks that one request brings.
type run struct {
	flights    []*flight // ascending, without gaps
	ctx        context.Context
	cancel     context.CancelFunc
	background bool  // read ahead: goes on without waiters
	absorbed   bool  // another run took its flights
	reserved   int64 // of the read-ahead budget, to be given back
}

// ticket is one block that a reader needs.
type ticket struct {
	data []byte
	f    *flight // nil: data is there
}

// share finds or makes the content of an object.
func (l *Layer) share(d *layered, obj Object) *content {
	key := d.ident + "|" + obj.Identity()
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.contents[key]
	if c == nil {
		c = &content{l: l, s: d.s, obj: obj, key: key, flights: map[int64]*flight{}}
		if d.lasting {
			c.last = key
		}
		l.contents[key] = c
	}
	c.refs++
	return c
}

func (l *Layer) unshare(c *content) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.refs--; c.refs == 0 && l.contents[c.key] == c {
		delete(l.contents, c.key)
	}
}

// blockLen is how long a block is; the last one may be short.
func (c *content) blockLen(b int64) int { return int(min(BlockSize, c.obj.Size-b*BlockSize)) }

// read fills p, which lies inside the object, from off on.
func (c *content) read(ctx context.Context, p []byte, off int64) error {
	if len(p) > largeRead {
		return c.readLarge(ctx, p, off)
	}
	return c.readBlocks(ctx, p, off)
}

// readBlocks is read by way of the memory cache.
func (c *content) readBlocks(ctx context.Context, p []byte, off int64) error {
	first, last := off/BlockSize, (off+int64(len(p))-1)/BlockSize
	ahead := c.want(first, min(last, first+windowBlocks-1))
	for from := first; from <= last; from += windowBlocks {
		now := ahead
		ahead = nil
		if next := from + windowBlocks; next <= last {
			ahead = c.want(next, min(last, next+windowBlocks-1))
		}
		for i, t := range now {
			b := from + int64(i)
			data, err := c.take(ctx, t, b)
			if err != nil {
				c.leave(now[i+1:])
				c.leave(ahead)
				return err
			}
			lo, hi := max(off, b*BlockSize), min(off+int64(len(p)), b*BlockSize+int64(len(data)))
			copy(p[lo-off:hi-off], data[lo-b*BlockSize:hi-b*BlockSize])
		}
	}
	return nil
}

// want returns a ticket for each of the blocks, and starts what nobody is bringing yet.
func (c *content) want(first, last int64) []ticket {
	tickets := make([]ticket, 0, last-first+1)
	var runs []*run
	c.mu.Lock()
	for b := first; b <= last; b++ {
		if data := c.l.mem.get(c.key, b); data != nil {
			c.l.count.memoryHits.Add(1)
			tickets = append(tickets, ticket{data: data})
			continue
		}
		f := c.flights[b]
		if f == nil {
			c.l.count.memoryMisses.Add(1)
			f, runs = c.launch(b, runs, false)
		} else {
			c.l.count.joined.Add(1)
		}
		f.waiters++
		tickets = append(tickets, ticket{f: f})
	}
	c.mu.Unlock()
	for _, r := range runs {
		go c.bring(r, true)
	}
	return tickets
}

// launch makes the flight of a block, in the last of runs if it fits there. c.mu is held.
func (c *content) launch(b int64, runs []*run, background bool) (*flight, []*run) {
	f := &flight{block: b, done: make(chan struct{})}
	var r *run
	if n := len(runs); n > 0 && len(runs[n-1].flights) < c.l.runBlocks && runs[n-1].end() == b {
		r = runs[n-1]
	} else {
		// A shared read outlives the caller who began it, as long as somebody waits.
		r = &run{background: background}
		r.ctx, r.cancel = context.WithCancel(context.Background())
		runs = append(runs, r)
	}
	f.run = r
	r.flights = append(r.flights, f)
	c.flights[b] = f
	return f, runs
}

// end is the block behind the run.
func (r *run) end() int64 { return r.flights[len(r.flights)-1].block + 1 }

// take waits for a block. A flight that ended because others no longer wanted it is begun anew.
func (c *content) take(ctx context.Context, t ticket, b int64) ([]byte, error) {
	for {
		if t.f == nil {
			return t.data, nil
		}
		select {
		case <-t.f.done:
		case <-ctx.Done():
			c.leave([]ticket{t})
			return nil, failure(ctx, nil, "store.ReadAt", Join(c.s.URI(), c.obj.Name), 0, fault.Unknown, ctx.Err())
		}
		if t.f.err == nil {
			return t.f.data, nil
		}
		if !fault.Is(t.f.err, fault.Cancelled) {
			return nil, t.f.err
		}
		if err := ctx.Err(); err != nil {
			return nil, failure(ctx, nil, "store.ReadAt", Join(c.s.URI(), c.obj.Name), 0, fault.Unknown, err)
		}
		t = c.want(b, b)[0]
	}
}

// leave gives up tickets. A run that nobody waits for any more ends, unless it reads ahead.
func (c *content) leave(tickets []ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range tickets {
		if t.f == nil {
			continue
		}
		t.f.waiters--
		r := t.f.run
		if r.background || r.wanted() {
			continue
		}
		for _, f := range r.flights {
			c.forget(f)
		}
		r.cancel()
	}
}

// wanted reports whether somebody waits for a block that is still to come.
func (r *run) wanted() bool {
	for _, f := range r.flights {
		if f.waiters > 0 && f.data == nil && f.err == nil {
			return true
		}
	}
	return false
}

// forget takes a flight off the list, so that the next reader begins anew. c.mu is held.
func (c *content) forget(f *flight) {
	if c.flights[f.block] == f {
		delete(c.flights, f.block)
	}
}

// land hands out a block.
func (c *content) land(f *flight, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.l.mem.put(c.key, f.block, data)
	f.data = data
	c.forget(f)
	close(f.done)
}

// crash ends all flights of a run that did not land. A run that was absorbed has none left.
func (c *content) crash(r *run, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range r.flights {
		if f.data == nil && f.err == nil {
			f.err = err
			c.forget(f)
			close(f.done)
		}
	}
}
