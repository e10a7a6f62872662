package serve

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/frifs/frifs/fault"
)

const (
	maxAbandoned = 512                   // workers whose request has been answered without them
	leaveGrace   = 50 * time.Millisecond // for work that obeys the end of its context, with a better message than ours
)

// workers runs calls of the tree, a bounded number at a time, each within a bound of time.
type workers struct {
	slots     chan struct{}
	wait      time.Duration // for a slot
	onPanic   func(value any, stack []byte)
	abandoned atomic.Int64
}

func newWorkers(n int, wait time.Duration, onPanic func(any, []byte)) *workers {
	return &workers{slots: make(chan struct{}, n), wait: wait, onPanic: onPanic}
}

// slot takes a place among the workers.
func (ws *workers) slot(ctx context.Context) error {
	if ws.abandoned.Load() >= maxAbandoned {
		return fault.New("serve", "", fault.Unavailable, "%d earlier requests are still stuck", maxAbandoned)
	}
	select {
	case ws.slots <- struct{}{}:
		return nil
	default:
	}
	t := time.NewTimer(ws.wait)
	defer t.Stop()
	select {
	case ws.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.Wrap("serve", "", ctx.Err())
	case <-t.C:
		return fault.New("serve", "", fault.Unavailable, "too many requests at a time; none of the %d at work ended within %v", cap(ws.slots), ws.wait)
	}
}

// outcome is what a worker comes to.
type outcome[T any] struct {
	value T
	err   error
}

// run calls f in a goroutine of its own with a context that ends after limit or with ctx, and returns what f returns.
// When f does not notice the end of its context, run returns without it, and late (if not nil) gets the value that f
// returns in the end, with an error or without. A panic in f becomes an error.
func run[T any](ctx context.Context, ws *workers, limit time.Duration, f func(context.Context) (T, error), late func(T)) (T, error) {
	var none T
	if err := ws.slot(ctx); err != nil {
		return none, err
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	done := make(chan outcome[T], 1)
	go func() {
		var o outcome[T]
		defer func() {
			if v := recover(); v != nil {
				ws.onPanic(v, debug.Stack())
				o.err = fault.New("serve", "", fault.Unknown, "internal error: %v", v)
			}
			done <- o
		}()
		o.value, o.err = f(bounded)
	}()
	defer func() {
		cancel()
		<-ws.slots
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-bounded.Done():
	}
	t := time.NewTimer(leaveGrace)
	defer t.Stop()
	select {
	case o := <-done:
		return o.value, o.err
	case <-t.C:
	}
	ws.abandoned.Add(1)
	go func() {
		o := <-done
		ws.abandoned.Add(-1)
		if late != nil {
			late(o.value)
		}
	}()
	if err := ctx.Err(); err != nil {
		return none, fault.Wrap("serve", "", err)
	}
	return none, fault.New("serve", "", fault.TimedOut, "no answer within %v", limit)
}
