package rowmap

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/frifs/frifs/fault"
)

const (
	// privateBudget is the budget in bytes of the cache that a mapping makes for itself when it is given none.
	privateBudget = 16 << 20
	// failureAge is how long a failed load is answered from memory: whoever asks usually asks again at once.
	failureAge = 2 * time.Second
	// failuresKept bounds the remembered failures of one table.
	failuresKept = 1024
)

// Cache is the byte budget that the decoded blocks of all mappings of a process share. Blocks that were not used for
// the longest time go first (by the clock approximation). A nil *Cache is not usable; constructors that accept nil
// make a small private one.
type Cache struct {
	budget int64

	mu     sync.Mutex // guards what follows; no lock is taken and no IO done while it is held
	ring   []cached
	hand   int
	used   int64
	loads  int64
	evicts int64
}

// cached is an entry of the ring.
type cached interface {
	// spare reports whether the entry was used since the last call, and forgets that use.
	spare() bool
	// drop unlinks the entry from its slot.
	drop()
	bytes() int64
}

// NewCache makes a cache with a budget in bytes; a budget that is not positive keeps nothing.
func NewCache(bytes int64) *Cache { return &Cache{budget: bytes} }

// CacheStats is a snapshot of a cache: bytes used and allowed, entries held, and the loads and evictions so far.
type CacheStats struct {
	Used, Budget     int64
	Entries          int
	Loads, Evictions int64
}

// Stats returns a snapshot.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{Used: c.used, Budget: c.budget, Entries: len(c.ring), Loads: c.loads, Evictions: c.evicts}
}

// insert accounts for a new entry and makes room for it. An entry larger than the whole budget is not kept.
func (c *Cache) insert(e cached) {
	n := e.bytes()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loads++
	if n > c.budget {
		e.drop()
		return
	}
	for c.used+n > c.budget && len(c.ring) > 0 {
		if c.hand >= len(c.ring) {
			c.hand = 0
		}
		old := c.ring[c.hand]
		if old.spare() {
			c.hand++
			continue
		}
		c.remove(c.hand)
	}
	c.ring = append(c.ring, e)
	c.used += n
}

// remove takes the entry at position i out of the ring; c.mu is held.
func (c *Cache) remove(i int) {
	e := c.ring[i]
	last := len(c.ring) - 1
	c.ring[i] = c.ring[last]
	c.ring[last] = nil
	c.ring = c.ring[:last]
	c.used -= e.bytes()
	c.evicts++
	e.drop()
}

// table is a fixed number of slots whose values are loaded on demand and may be evicted at any time. A value that
// get returned stays valid for its holder; it must not be changed.
type table[T any] struct {
	c     *Cache
	slots []atomic.Pointer[T]
	used  []atomic.Uint32 // a bit per slot: it was asked for since the cache last looked

	mu       sync.Mutex // guards flights and failures; never held during a load
	flights  map[int]*flight
	failures map[int]failure
}

// entry is a held slot in the cache's ring.
type entry[T any] struct {
	t    *table[T]
	slot int
	v    *T
	size int64
}

func (e *entry[T]) bytes() int64 { return e.size }
func (e *entry[T]) drop()        { e.t.slots[e.slot].CompareAndSwap(e.v, nil) }
func (e *entry[T]) spare() bool {
	bit := uint32(1) << (e.slot & 31)
	return e.t.used[e.slot>>5].And(^bit)&bit != 0
}

// flight is a load in progress; done is closed when it ended, after the slot or the failure was stored.
type flight struct{ done chan struct{} }

type failure struct {
	err error
	at  time.Time
}

// newTable makes n empty slots that share c's budget; a nil c gives the table a small private cache.
func newTable[T any](c *Cache, n int) *table[T] {
	if c == nil {
		c = NewCache(privateBudget)
	}
	return &table[T]{c: c, slots: make([]atomic.Pointer[T], n), used: make([]atomic.Uint32, (n+31)/32)}
}

// peek returns the value of slot i if it is held, else nil. It is one atomic load.
func (t *table[T]) peek(i int) *T {
	v := t.slots[i].Load()
	if v != nil {
		t.touch(i)
	}
	return v
}

// touch notes that a slot is in use.
func (t *table[T]) touch(i int) {
	if w, bit := &t.used[i>>5], uint32(1)<<(i&31); w.Load()&bit == 0 {
		w.Or(bit)
	}
}

// get returns the value of slot i, loading it when it is not held. load returns the value and its size in bytes.
// Concurrent callers of one slot share one load; when the caller that runs it is cancelled, another one takes over.
// A failure is remembered for two seconds, unless it came from the caller's own context.
func (t *table[T]) get(ctx context.Context, i int, load func(context.Context) (*T, int64, error)) (*T, error) {
	if v := t.peek(i); v != nil {
		return v, nil
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, fault.Wrap("rowmap.load", "", err)
		}
		t.mu.Lock()
		if v := t.peek(i); v != nil {
			t.mu.Unlock()
			return v, nil
		}
		if f, ok := t.failures[i]; ok {
			if time.Since(f.at) < failureAge {
				t.mu.Unlock()
				return nil, f.err
			}
			delete(t.failures, i)
		}
		if f, ok := t.flights[i]; ok {
			t.mu.Unlock()
			select {
			case <-f.done:
			case <-ctx.Done():
			}
			continue
		}
		f := &flight{done: make(chan struct{})}
		if t.flights == nil {
			t.flights = make(map[int]*flight)
		}
		t.flights[i] = f
		t.mu.Unlock()
		return t.lead(ctx, i, f, load)
	}
}

// lead runs the load of slot i for the flight f and wakes whoever waits, also when load panics.
func (t *table[T]) lead(ctx context.Context, i int, f *flight, load func(context.Context) (*T, int64, error)) (v *T, err error) {
	var e *entry[T]
	defer func() {
		t.mu.Lock()
		switch {
		case e != nil:
			t.touch(i)
			t.slots[i].Store(e.v)
		case err != nil && ctx.Err() == nil:
			if t.failures == nil || len(t.failures) >= failuresKept {
				t.failures = make(map[int]failure)
			}
			t.failures[i] = failure{err, time.Now()}
		}
		delete(t.flights, i)
		t.mu.Unlock()
		close(f.done)
		if e != nil {
			t.c.insert(e)
		}
	}()
	var size int64
	if v, size, err = load(ctx); err != nil {
		return nil, err
	}
	e = &entry[T]{t, i, v, size}
	return v, nil
}
