package store

import (
	"context"
	"slices"

	"github.com/frifs/frifs/fault"
)

// bring gets the blocks of a run: from the disk cache if look is set and they are there, else from the store.
func (c *content) bring(r *run, look bool) {
	defer c.l.mem.settle()
	defer r.cancel()
	defer c.l.ahead.Add(-r.reserved)
	disk := c.l.cfg.Disk
	if c.last == "" {
		disk = nil
	}
	if disk != nil && look {
		rest := c.fromDisk(disk, r)
		for _, part := range rest[min(1, len(rest)):] {
			go c.bring(part, false)
		}
		if len(rest) == 0 {
			return
		}
		r = rest[0]
		defer r.cancel()
	}
	where := Join(c.s.URI(), c.obj.Name)
	c.enqueue(r)
	landed := 0
	var err error
	for again := true; again; {
		before := landed
		_, err = retry(r.ctx, c.l, "store.ReadAt", where, func(ctx context.Context) (struct{}, error) {
			n, err := c.fetch(ctx, r, landed)
			landed += n
			return struct{}{}, err
		})
		// The bound is for an answer; on a slow line many blocks may take longer.
		again = fault.Is(err, fault.TimedOut) && landed > before
	}
	c.dequeue(r)
	if err != nil {
		c.crash(r, gone("store.ReadAt", where, err))
	}
	if disk != nil {
		for _, f := range r.flights[:landed] {
			disk.put(c.last, f.block, f.data)
		}
	}
}

// fromDisk lands the blocks that the disk cache has, and returns runs for the others.
func (c *content) fromDisk(disk *DiskCache, r *run) []*run {
	var rest []*run
	for _, f := range r.flights {
		if data := disk.get(c.last, f.block, c.blockLen(f.block)); data != nil {
			c.land(f, data)
			continue
		}
		c.mu.Lock()
		if n := len(rest); n > 0 && rest[n-1].end() == f.block {
			rest[n-1].flights = append(rest[n-1].flights, f)
		} else {
			part := &run{flights: []*flight{f}, background: r.background}
			part.ctx, part.cancel = context.WithCancel(context.Background())
			rest = append(rest, part)
		}
		f.run = rest[len(rest)-1]
		c.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, part := range rest {
		if !part.background && !part.wanted() { // all who wanted it left meanwhile
			for _, f := range part.flights {
				c.forget(f)
			}
			part.cancel()
		}
	}
	return rest
}

// enqueue puts a run among those that wait for their turn.
func (c *content) enqueue(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.ctx.Err() == nil {
		c.queue = append(c.queue, r)
	}
}

func (c *content) dequeue(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.queue, r); i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
	}
}

// absorb takes the flights of waiting runs that begin where r ends, when r's turn has come. c.mu is not held.
func (c *content) absorb(r *run) (absorbed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.absorbed {
		return true
	}
	i := slices.Index(c.queue, r)
	if i < 0 {
		return false // not the first try
	}
	c.queue = slices.Delete(c.queue, i, i+1)
	for again := true; again; {
		again = false
		for i, q := range c.queue {
			if q.background != r.background || q.flights[0].block != r.end() || len(q.flights)+len(r.flights) > c.l.runBlocks {
				continue
			}
			for _, f := range q.flights {
				f.run = r
			}
			r.flights = append(r.flights, q.flights...)
			q.flights, q.absorbed = nil, true
			q.cancel()
			c.queue = slices.Delete(c.queue, i, i+1)
			c.l.count.merged.Add(1)
			again = true
			break
		}
	}
	return false
}

// fetch makes one try to bring the flights of r from the landed-th on. It returns how many landed.
func (c *content) fetch(ctx context.Context, r *run, landed int) (int, error) {
	release, err := c.l.acquire(ctx)
	if err != nil {
		return 0, c.turnLost(r, err)
	}
	absorbed := c.absorb(r)
	if absorbed {
		release()
		return 0, nil
	}
	todo := r.flights[landed:]
	off := todo[0].block * BlockSize
	n := min(r.end()*BlockSize, c.obj.Size) - off
	done, err := c.l.makeRoom(ctx, n)
	if err != nil {
		release()
		return 0, fault.New("store.ReadAt", Join(c.s.URI(), c.obj.Name), fault.KindOf(err), "waiting for memory: %w", err)
	}
	defer done()
	b, err := c.l.openWith(ctx, release, c.s, c.obj.Name, off, n, c.obj)
	if err != nil {
		return 0, err
	}
	defer func() { _ = b.Close() }() // only read from
	for i, f := range todo {
		p := make([]byte, c.blockLen(f.block))
		if err := b.fill(ctx, c.s, p); err != nil {
			return i, b.cause(err)
		}
		c.land(f, p)
	}
	return len(todo), nil
}

// turnLost is the end of waiting for a turn: nothing is wrong if another run took the flights.
func (c *content) turnLost(r *run, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.absorbed {
		return nil
	}
	return fault.New("store.ReadAt", Join(c.s.URI(), c.obj.Name), fault.KindOf(err), "waiting for the right to make a request: %w", err)
}
