package lancefile

import "sync"

// The decoded indexes (chunk tables, dictionaries, row sets) that a column keeps: the most recent ones, up to
// pageCacheBytes, and at least one.
const pageCacheBytes = 4 << 20

// pageCache holds the decoded index of recently used pages. The zero value is ready. No lock is held while an index is
// loaded, so two readers may load the same one.
type pageCache struct {
	mu      sync.Mutex // protects the fields below
	entries []pageEntry
	bytes   int
}

type pageEntry struct {
	page  int
	value any
	bytes int
}

// cached returns the index of a page, loading it if it is not there.
func cached[V any](c *pageCache, page int, load func() (*V, int, error)) (*V, error) {
	c.mu.Lock()
	for i, e := range c.entries {
		if v, ok := e.value.(*V); ok && e.page == page {
			copy(c.entries[i:], c.entries[i+1:])
			c.entries[len(c.entries)-1] = e
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
	c.entries = append(c.entries, pageEntry{page, v, n})
	c.bytes += n
	drop := 0
	for ; drop < len(c.entries)-1 && (c.bytes > pageCacheBytes || len(c.entries)-drop > 16); drop++ {
		c.bytes -= c.entries[drop].bytes
	}
	c.entries = append(c.entries[:0], c.entries[drop:]...)
	return v, nil
}
