package lancefile

import (
	"slices"
	"sync"
)

// The decoded indexes (chunk tables, dictionaries, row sets) that a column keeps: the most recent ones, up to
// pageCacheBytes, and at least one. A table of Lance's usual pages takes some 8 KiB.
const pageCacheBytes = 4 << 20

// pageCache holds the decoded index of recently used pages. The zero value is ready. No lock is held while an index is
// loaded, so two readers may load the same one.
type pageCache struct {
	mu    sync.Mutex // protects the fields below
	pages map[pageKey]*pageEntry
	order []pageKey // a ring, in the order in which they are looked at for dropping
	hand  int
	bytes int
}

// pageKey names an index: a page may have several, of different types.
type pageKey struct {
	page int
	of   any // a nil pointer of the type of the index
}

// entryBytes is what an entry takes beside its index.
const entryBytes = 128

type pageEntry struct {
	value any
	bytes int
	used  bool // since the hand last passed
}

// cached returns the index of a page, loading it if it is not there.
func cached[V any](c *pageCache, page int, load func() (*V, int, error)) (*V, error) {
	key := pageKey{page, (*V)(nil)}
	c.mu.Lock()
	if e := c.pages[key]; e != nil {
		if v, ok := e.value.(*V); ok {
			e.used = true
			c.mu.Unlock()
			return v, nil
		}
	}
	c.mu.Unlock()
	v, n, err := load()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(key, &pageEntry{v, n + entryBytes, false})
	return v, nil
}

// keep enters an index and drops others that were not used for long. c.mu is held.
func (c *pageCache) keep(key pageKey, e *pageEntry) {
	if c.pages == nil {
		c.pages = map[pageKey]*pageEntry{}
	}
	if old := c.pages[key]; old != nil { // another reader was faster
		c.bytes += e.bytes - old.bytes
		*old = *e
		return
	}
	for len(c.order) > 0 && c.bytes+e.bytes > pageCacheBytes {
		c.hand %= len(c.order)
		at := c.order[c.hand]
		old := c.pages[at]
		if old.used {
			old.used = false
			c.hand++
			continue
		}
		c.bytes -= old.bytes
		delete(c.pages, at)
		c.order = slices.Delete(c.order, c.hand, c.hand+1)
	}
	c.pages[key] = e
	c.order = slices.Insert(c.order, min(c.hand, len(c.order)), key) // where the hand comes last
	c.hand++
	c.bytes += e.bytes
}
