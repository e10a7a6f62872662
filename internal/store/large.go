package store

import (
	"context"
	"sync"

	"github.com/frifs/frifs/fault"
)

const (
	// largeRead is from where on a read goes past the memory cache, which it would only empty: 4 MiB.
	largeRead = maxRunBlocks * BlockSize
	// pieceRuns is how much more of a large read one request asks for at most than of others: 32 MiB in all.
	pieceRuns = 8
)

// readLarge is read for much at once. Whole blocks go from the store (or the disk cache) to where they are wanted, with
// one request for each piece that is missing, and are not kept in memory; only the ends are read like other blocks.
func (c *content) readLarge(ctx context.Context, p []byte, off int64) error {
	end := off + int64(len(p))
	first, last := (off+BlockSize-1)/BlockSize, end/BlockSize
	if end == c.obj.Size {
		last = (end + BlockSize - 1) / BlockSize
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error // the first failure
	note := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if failed == nil {
			failed = err
		}
	}
	ends := func(lo, hi int64) {
		if lo < hi {
			if err := c.readBlocks(ctx, p[lo-off:hi-off], lo); err != nil {
				note(err)
			}
		}
	}
	ends(off, first*BlockSize)
	ends(last*BlockSize, end) // nothing at the end of the object
	if failed != nil {
		return failed
	}
	piece := int64(c.l.runBlocks * pieceRuns)
	for b := first; b < last; b += piece {
		lo, hi := b, min(last, b+piece)
		wg.Go(func() {
			if err := c.readPiece(ctx, p[lo*BlockSize-off:min(hi*BlockSize, end)-off], lo, hi); err != nil {
				note(err)
			}
		})
	}
	wg.Wait()
	return failed
}

// readPiece fills p with the blocks [first, last).
func (c *content) readPiece(ctx context.Context, p []byte, first, last int64) error {
	part := func(b, e int64) []byte {
		return p[(b-first)*BlockSize : min((e-first)*BlockSize, int64(len(p)))]
	}
	missing := first // blocks from here to the one at hand are not in the caches
	for b := first; b <= last; b++ {
		if b < last && !c.cached(b, part(b, b+1)) {
			continue
		}
		if missing < b {
			if err := c.stream(ctx, part(missing, b), missing); err != nil {
				return err
			}
		}
		missing = b + 1
	}
	return nil
}

// cached copies a block into p if one of the caches has it.
func (c *content) cached(b int64, p []byte) bool {
	if data := c.l.mem.get(c.key, b); data != nil {
		c.l.count.memoryHits.Add(1)
		return copy(p, data) == len(p)
	}
	c.l.count.memoryMisses.Add(1)
	if disk := c.l.cfg.Disk; disk != nil && c.last != "" {
		if data := disk.get(c.last, b, len(p)); data != nil {
			return copy(p, data) == len(p)
		}
	}
	return false
}

// stream fills p, which begins at the block first, from the store.
func (c *content) stream(ctx context.Context, p []byte, first int64) error {
	where := Join(c.s.URI(), c.obj.Name)
	landed := 0 // bytes, of whole blocks
	var err error
	for again := true; again; {
		before := landed
		_, err = retry(ctx, c.l, "store.ReadAt", where, func(ctx context.Context) (struct{}, error) {
			rest := p[landed:]
			b, err := c.l.open(ctx, c.s, c.obj.Name, first*BlockSize+int64(landed), int64(len(rest)), c.obj)
			if err != nil {
				return struct{}{}, err
			}
			defer func() { _ = b.Close() }() // only read from
			for len(rest) > 0 {
				block := rest[:min(BlockSize, len(rest))]
				if err := b.fill(ctx, c.s, block); err != nil {
					return struct{}{}, b.cause(err)
				}
				if disk := c.l.cfg.Disk; disk != nil && c.last != "" {
					disk.put(c.last, first+int64(landed/BlockSize), block)
				}
				landed += len(block)
				rest = rest[len(block):]
			}
			return struct{}{}, nil
		})
		// The bound is for an answer; on a slow line much may take longer.
		again = fault.Is(err, fault.TimedOut) && landed > before && ctx.Err() == nil
	}
	return gone("store.ReadAt", where, err)
}
