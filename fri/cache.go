package fri

import (
	"container/list"
	"sync"
)

// Cache shares parsed records between histories: the versions of a table carry the same records over and over.
// Records of up to 1 MiB are found by the SHA-256 of their bytes, larger ones by Options.Identity and their place. It
// holds headers and digests, never payloads, and drops the least recently used beyond its budget. It is safe for
// concurrent use; a nil Cache keeps nothing.
type Cache struct {
	mu     sync.Mutex // guards everything below; never held while reading
	limit  int64
	bytes  int64
	byKey  map[recordKey]*list.Element
	recent *list.List // of *cached, most recently used first
	hits   int64
	misses int64
}

// recordKey names a record's bytes: by sum, or by identity and place.
type recordKey struct {
	form     Form
	sum      [32]byte
	identity string
	off, n   int64
}

type cached struct {
	key  recordKey
	rec  *record
	cost int64
}

// NewCache returns a Cache that holds about `bytes` bytes.
func NewCache(bytes int64) *Cache {
	return &Cache{limit: bytes, byKey: map[recordKey]*list.Element{}, recent: list.New()}
}

// CacheStats tells what a Cache holds and how often it helped.
type CacheStats struct {
	Records      int
	Bytes        int64 // estimated
	Hits, Misses int64
}

// Stats returns the present numbers.
func (c *Cache) Stats() CacheStats {
	if c == nil {
		return CacheStats{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{Records: c.recent.Len(), Bytes: c.bytes, Hits: c.hits, Misses: c.misses}
}

func (c *Cache) get(k recordKey) *record {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[k]
	if e == nil {
		c.misses++
		return nil
	}
	c.hits++
	c.recent.MoveToFront(e)
	return e.Value.(*cached).rec
}

// put keeps rec under k and returns the record to use: one that another caller put there first, else rec.
func (c *Cache) put(k recordKey, rec *record) *record {
	if c == nil {
		return rec
	}
	cost := rec.cost()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[k]; e != nil {
		return e.Value.(*cached).rec
	}
	if cost > c.limit {
		return rec
	}
	c.byKey[k] = c.recent.PushFront(&cached{key: k, rec: rec, cost: cost})
	c.bytes += cost
	for c.bytes > c.limit {
		e := c.recent.Back()
		old := c.recent.Remove(e).(*cached)
		delete(c.byKey, old.key)
		c.bytes -= old.cost
	}
	return rec
}
