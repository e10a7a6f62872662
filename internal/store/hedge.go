package store

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/frifs/frifs/fault"
)

const (
	hedgeFrom    = 200 * time.Millisecond
	hedgeMax     = 4 * time.Second
	hedgeUnknown = time.Second // as long as too little is known of the store
	hedgeBudget  = 10          // second requests at once, after a quiet time
	hedgeShare   = 0.1         // of all requests may be second ones in the long run
)

// lateness knows how long first bytes usually take, and how many second requests the store can be asked to bear.
type lateness struct {
	mu     sync.Mutex // guards the rest
	took   [64]time.Duration
	n      int
	spent  float64 // second requests not yet paid for by first ones
	answer []time.Duration
}

func (h *lateness) add(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.took[h.n%len(h.took)] = d
	h.n++
	h.spent = max(0, h.spent-hedgeShare)
}

// delay is when an answer counts as late: three times what nine of ten take.
func (h *lateness) delay() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n < 8 {
		return hedgeUnknown
	}
	h.answer = append(h.answer[:0], h.took[:min(h.n, len(h.took))]...)
	slices.Sort(h.answer)
	return max(hedgeFrom, min(hedgeMax, 3*h.answer[len(h.answer)*9/10]))
}

// spend reports whether one more second request is within the budget, and takes it.
func (h *lateness) spend() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.spent+1 > hedgeBudget {
		return false
	}
	h.spent++
	return true
}

// try is one request on its way.
type try[T any] struct {
	v      T
	err    error
	second bool
	end    func() // gives back the slot and ends the request's context
}

// hedged makes a request, and a second one if the answer is late; the first answer wins. end must be called when the
// value is no longer used. drop gets the value that is not wanted.
//
// release gives back the slot of the first request, which the caller has acquired.
func hedged[T any](ctx context.Context, l *Layer, release func(), counter *atomic.Uint64, fn func(context.Context) (T, error), drop func(T)) (v T, end func(), err error) {
	results := make(chan try[T], 2)
	var cancels []context.CancelFunc
	launch := func(release func(), second bool) {
		own, cancel := context.WithCancel(ctx)
		cancels = append(cancels, cancel)
		counter.Add(1)
		start := time.Now()
		go func() {
			v, err := fn(own)
			if err == nil {
				l.late.add(time.Since(start))
			}
			results <- try[T]{v, err, second, sync.OnceFunc(func() { cancel(); release() })}
		}()
	}
	launch(release, false)
	pending := 1
	// abandon ends what is still under way, and waits for it in the background, since it holds a slot.
	abandon := func(winner int) {
		for i, c := range cancels {
			if i != winner {
				c()
			}
		}
		if pending == 0 {
			return
		}
		go func(n int) {
			for range n {
				if t := <-results; t.err == nil {
					drop(t.v)
					t.end()
				} else {
					t.end()
				}
			}
		}(pending)
	}
	timer := time.NewTimer(l.late.delay())
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			if release, ok := l.tryAcquire(); ok {
				if !l.late.spend() {
					release()
					continue
				}
				l.count.hedges.Add(1)
				launch(release, true)
				pending++
			}
		case t := <-results:
			pending--
			winner := 0
			if t.second {
				winner = 1
			}
			if t.err == nil {
				if t.second {
					l.count.hedgesWon.Add(1)
				}
				abandon(winner)
				return t.v, t.end, nil
			}
			t.end()
			if pending == 0 || !transient(t.err) {
				abandon(winner)
				return v, nil, t.err
			}
		case <-ctx.Done():
			abandon(-1)
			return v, nil, fault.New("store.Read", "", fault.KindOf(ctx.Err()), "%w", context.Cause(ctx))
		}
	}
}

// single is one try of a request whose answer is small: it must be there within the stall bound.
func single[T any](ctx context.Context, l *Layer, counter *atomic.Uint64, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	release, err := l.acquire(ctx)
	if err != nil {
		return zero, err
	}
	watched, _, stop := l.watch(ctx)
	defer stop()
	v, end, err := hedged(watched, l, release, counter, fn, func(T) {})
	if err == nil {
		end()
	}
	return v, l.stalled(watched, "store.Call", "", err)
}

// watchedBody is an answer whose bytes must keep coming.
type watchedBody struct {
	*body
	progress func()
	end      func()
	cause    func(error) error // names a stall as the reason of an error
	read     *atomic.Uint64
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if n > 0 {
		b.progress()
		b.read.Add(uint64(n))
	}
	return n, err
}

func (b *watchedBody) Close() error {
	err := b.body.Close()
	b.end()
	return err
}

// open makes one try of a read, up to the first byte of the answer.
func (l *Layer) open(ctx context.Context, s remote, name string, off, n int64, want Object) (*watchedBody, error) {
	release, err := l.acquire(ctx)
	if err != nil {
		return nil, err
	}
	return l.openWith(ctx, release, s, name, off, n, want)
}

// openWith is open by who has acquired the right to make a request already.
func (l *Layer) openWith(ctx context.Context, release func(), s remote, name string, off, n int64, want Object) (*watchedBody, error) {
	watched, progress, stop := l.watch(ctx)
	where := Join(s.URI(), name)
	b, end, err := hedged(watched, l, release, &l.count.reads,
		func(ctx context.Context) (*body, error) { return s.get(ctx, name, off, n, want) },
		func(b *body) { _ = b.Close() })
	if err != nil {
		err = l.stalled(watched, "store.Read", where, err)
		stop()
		return nil, err
	}
	progress()
	w := &watchedBody{body: b, progress: progress, read: &l.count.bytes}
	w.end = sync.OnceFunc(func() { stop(); end() })
	w.cause = func(err error) error { return l.stalled(watched, "store.Read", where, err) }
	return w, nil
}

// fill reads exactly p, watched.
func (b *watchedBody) fill(ctx context.Context, s remote, p []byte) error {
	return (&body{reading{b}, b.obj, b.start}).fill(ctx, s, p)
}

// reading is the watched body without its own fill.
type reading struct{ *watchedBody }
