package nodes

import (
	"container/list"
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

// failureMemory is how long a failure is remembered: the kernel asks again for a failed read, many times.
const failureMemory = 2 * time.Second

// flight is a bounded cache with single flight: one load per key at a time, shared by all who ask, and surviving the
// cancellation of any one of them. Keys name content, so values never go stale. A failure that lies in the bytes stays
// as long as a value would; any other is forgotten after failureMemory, a cancellation at once.
type flight[K comparable, V any] struct {
	limit   int64         // bound on the sum of costs; the newest entry always stays
	timeout time.Duration // bound on one load
	now     func() time.Time
	drop    func(V)      // told of each value that leaves, in a goroutine of its own; may be nil
	share   *store.Share // of the budget of the process; nil: none

	mu      sync.Mutex // protects what follows; never held while loading
	entries map[K]*list.Element
	lru     *list.List // of *loading[K, V], most recently used first
	cost    int64
	hits    uint64
	misses  uint64
}

type loading[K comparable, V any] struct {
	key  K
	done chan struct{} // closed when the fields below are final
	val  V
	err  error
	cost int64
	at   time.Time // when it failed
}

func newFlight[K comparable, V any](limit int64, timeout time.Duration, now func() time.Time) *flight[K, V] {
	return &flight[K, V]{limit: limit, timeout: timeout, now: now, entries: map[K]*list.Element{}, lru: list.New()}
}

// get returns the value of key, loading it if need be. load returns the value and its cost in bytes.
func (f *flight[K, V]) get(ctx context.Context, key K, load func(context.Context) (V, int64, error)) (V, error) {
	f.mu.Lock()
	el, ok := f.entries[key]
	if ok && f.expired(el) {
		f.remove(el)
		ok = false
	}
	var l *loading[K, V]
	if ok {
		f.hits++
		f.lru.MoveToFront(el)
		l = el.Value.(*loading[K, V])
	} else {
		f.misses++
		l = &loading[K, V]{key: key, done: make(chan struct{})}
		f.entries[key] = f.lru.PushFront(l)
		go f.run(context.WithoutCancel(ctx), l, load)
	}
	f.mu.Unlock()
	select {
	case <-l.done:
		return l.val, l.err
	case <-ctx.Done():
		var zero V
		return zero, fault.Wrap("nodes.load", "", ctx.Err())
	}
}

func (f *flight[K, V]) run(ctx context.Context, l *loading[K, V], load func(context.Context) (V, int64, error)) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	l.val, l.cost, l.err = guarded(ctx, load)
	l.at = f.now()
	defer f.share.Settle() // when the lock is given back
	f.mu.Lock()
	defer f.mu.Unlock()
	close(l.done)
	el, ok := f.entries[l.key]
	if !ok || el.Value != any(l) {
		f.dropped(l)
		return
	}
	if fault.Is(l.err, fault.Cancelled) {
		l.cost = 0
		f.remove(el)
		return
	}
	f.settle(l)
}

// put stores a value that was made elsewhere.
func (f *flight[K, V]) put(key K, v V, cost int64) {
	l := &loading[K, V]{key: key, done: make(chan struct{}), val: v, cost: cost}
	close(l.done)
	defer f.share.Settle() // when the lock is given back
	f.mu.Lock()
	defer f.mu.Unlock()
	if el, ok := f.entries[key]; ok {
		f.remove(el)
	}
	f.entries[key] = f.lru.PushFront(l)
	f.settle(l)
}

// settle counts a finished entry in and makes room. The caller holds f.mu.
func (f *flight[K, V]) settle(l *loading[K, V]) {
	l.cost = max(l.cost, 128)
	f.cost += l.cost
	f.share.Add(l.cost)
	for el := f.lru.Back(); el != nil && f.cost > f.limit; {
		prev := el.Prev()
		if old := el.Value.(*loading[K, V]); old != l && settled(old) {
			f.remove(el)
		}
		el = prev
	}
}

// guarded turns a panic of load into an error: a hostile file must not end the process.
func guarded[V any](ctx context.Context, load func(context.Context) (V, int64, error)) (v V, cost int64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New("nodes.load", "", fault.Corrupt, "internal failure: %v\n%s", p, debug.Stack())
		}
	}()
	return load(ctx)
}

func settled[K comparable, V any](l *loading[K, V]) bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// expired reports whether a remembered failure has served its time. The caller holds f.mu.
func (f *flight[K, V]) expired(el *list.Element) bool {
	l := el.Value.(*loading[K, V])
	return settled(l) && l.err != nil && !lasting(l.err) && f.now().Sub(l.at) >= failureMemory
}

// lasting reports whether a failure lies in the bytes themselves.
func lasting(err error) bool {
	switch fault.KindOf(err) {
	case fault.Corrupt, fault.Unsupported, fault.TooLarge, fault.Invalid:
		return true
	}
	return false
}

// remove takes an entry out. The caller holds f.mu.
func (f *flight[K, V]) remove(el *list.Element) {
	l := el.Value.(*loading[K, V])
	f.lru.Remove(el)
	delete(f.entries, l.key)
	if settled(l) {
		f.cost -= l.cost
		f.share.Add(-l.cost)
		f.dropped(l)
	}
}

// dropped tells drop of a value that has left.
func (f *flight[K, V]) dropped(l *loading[K, V]) {
	if f.drop != nil && l.err == nil {
		go f.drop(l.val)
	}
}

// use returns a value that is at hand, and counts as a use of it.
func (f *flight[K, V]) use(key K) (v V, ok bool) {
	if v, ok = f.peek(key); !ok {
		return v, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if el, ok := f.entries[key]; ok {
		f.lru.MoveToFront(el)
	}
	return v, true
}

// forget lets go of one value, or of all that are at hand.
func (f *flight[K, V]) forget(match func(K) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for el := f.lru.Back(); el != nil; {
		prev := el.Prev()
		if l := el.Value.(*loading[K, V]); settled(l) && match(l.key) {
			f.remove(el)
		}
		el = prev
	}
}

// forgetValues lets go of values that are at hand.
func (f *flight[K, V]) forgetValues(match func(V) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for el := f.lru.Back(); el != nil; {
		prev := el.Prev()
		if l := el.Value.(*loading[K, V]); settled(l) && l.err == nil && match(l.val) {
			f.remove(el)
		}
		el = prev
	}
}

// peek returns a value that is at hand, without loading and without counting as a use.
func (f *flight[K, V]) peek(key K) (v V, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	el, ok := f.entries[key]
	if !ok {
		return v, false
	}
	l := el.Value.(*loading[K, V])
	if !settled(l) || l.err != nil {
		return v, false
	}
	return l.val, true
}

// CacheStats says how a cache is doing. Bytes are estimates of what the entries hold.
type CacheStats struct {
	Entries      int
	Bytes, Limit int64
	Hits, Misses uint64
}

func (f *flight[K, V]) stats() CacheStats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return CacheStats{Entries: f.lru.Len(), Bytes: f.cost, Limit: f.limit, Hits: f.hits, Misses: f.misses}
}

func (s CacheStats) String() string {
	return fmt.Sprintf("%d entries, %d of %d bytes, %d hits, %d misses", s.Entries, s.Bytes, s.Limit, s.Hits, s.Misses)
}
