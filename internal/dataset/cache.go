package dataset

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

// cache keeps decoded values under keys that name the identity of their bytes, up to a budget of bytes, and lets callers
// that want the same key at the same time share one fetch. Failures are not kept.
type cache struct {
	budget int64
	share  *store.Share // of the budget of the process; nil: none

	mu      sync.Mutex // guards the rest; never held while fetching
	used    int64
	order   *list.List // of *cached, most recent first
	byKey   map[string]*list.Element
	flights map[string]*flight
}

type cached struct {
	key   string
	value any
	cost  int64
}

// flight is a fetch in progress; done is closed once value and err are set.
type flight struct {
	done  chan struct{}
	value any
	err   error
}

// newCache makes a cache of so many bytes, which count in the budget of the process.
func newCache(budget int64, process *store.Budget) *cache {
	c := &cache{budget: budget, order: list.New(), byKey: map[string]*list.Element{}, flights: map[string]*flight{}}
	c.share = process.Share("dataset", c.shrink)
	return c
}

// get returns the value of key, calling fetch if it is not at hand. fetch returns the value and its cost in bytes, a
// negative cost meaning that it must not be kept. It runs on its own, so that it survives the cancellation of the
// caller that started it; it must bound itself (each store call does).
func (c *cache) get(ctx context.Context, key string, fetch func(context.Context) (any, int64, error)) (any, error) {
	c.mu.Lock()
	if e, ok := c.byKey[key]; ok {
		c.order.MoveToFront(e)
		v := e.Value.(*cached).value
		c.mu.Unlock()
		return v, nil
	}
	f, ok := c.flights[key]
	if !ok {
		f = &flight{done: make(chan struct{})}
		c.flights[key] = f
		go c.run(context.WithoutCancel(ctx), key, f, fetch)
	}
	c.mu.Unlock()
	select {
	case <-f.done:
		return f.value, f.err
	case <-ctx.Done():
		return nil, fault.New("dataset.fetch", "", fault.KindOf(ctx.Err()), "%w", ctx.Err())
	}
}

func (c *cache) run(ctx context.Context, key string, f *flight, fetch func(context.Context) (any, int64, error)) {
	cost := int64(-1)
	defer func() {
		if p := recover(); p != nil {
			f.value, f.err = nil, fault.New("dataset.fetch", "", fault.Corrupt, "decoding failed: %s", fmt.Sprint(p))
			cost = -1
		}
		c.mu.Lock()
		delete(c.flights, key)
		if f.err == nil && cost >= 0 {
			c.keep(key, f.value, cost)
		}
		c.mu.Unlock()
		c.share.Settle()
		close(f.done)
	}()
	f.value, cost, f.err = fetch(ctx)
}

// keep puts a value in and takes the least recently used ones out. c.mu is held.
func (c *cache) keep(key string, value any, cost int64) {
	if cost > c.budget {
		return
	}
	c.byKey[key] = c.order.PushFront(&cached{key, value, cost})
	c.used += cost
	c.share.Add(cost)
	c.evict(c.budget)
}

// evict takes values out until no more than so many bytes are kept. c.mu is held.
func (c *cache) evict(most int64) {
	for c.used > most && c.order.Len() > 0 {
		e := c.order.Remove(c.order.Back()).(*cached)
		delete(c.byKey, e.key)
		c.used -= e.cost
		c.share.Add(-e.cost)
	}
}

// shrink lets go of so many bytes.
func (c *cache) shrink(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evict(c.used - bytes)
}
