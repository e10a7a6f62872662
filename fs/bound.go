package fs

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/frifs/frifs/fault"
)

// maxAbandoned bounds the workers that went on past the end of their request. Beyond it new work is refused: a tree
// that ignores its context must not collect goroutines without end.
const maxAbandoned = 512

// runner runs the work of requests under a bound of time. It holds no lock; its counters are gauges.
type runner struct {
	ctx       context.Context // ends when the mount ends
	grace     time.Duration   // life of a request after its caller was interrupted
	onPanic   func(value any, stack []byte)
	onStall   func(stall)  // told of work that did not notice the end of its time
	running   atomic.Int64 // workers at work
	abandoned atomic.Int64 // workers whose request has been answered without them
	stalls    atomic.Int64 // requests answered without their worker because of the time
	dumped    atomic.Int64 // when stacks were last looked at, in Unix nanoseconds
	workers   workers
}

// run calls work in a goroutine other than the caller's with a context that ends after limit, and returns work's error. When the
// time is over it returns fault.TimedOut, whether or not work has noticed; when caller ends (the client took a
// signal) it waits for the grace period and returns fault.Cancelled. finished reports whether work has returned:
// while it has not, the memory it writes to must not be used again. A panic in work becomes an error. where names the
// file for the report of a stall.
func (r *runner) run(caller context.Context, op string, where func() string, limit time.Duration, work func(context.Context) error) (finished bool, err error) {
	if r.abandoned.Load() >= maxAbandoned {
		return true, fault.New("fs."+op, "", fault.TimedOut, "%d earlier requests are still stuck", maxAbandoned)
	}
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()

	const (
		working int32 = iota
		left          // the request went on without the worker
		returned
	)
	var state atomic.Int32
	done := make(chan error, 1)
	r.running.Add(1)
	worker := r.workers.start(r.ctx, func(w *worker) {
		var werr error
		defer func() {
			if v := recover(); v != nil {
				stack := debug.Stack()
				r.onPanic(v, stack)
				werr = fault.New("fs."+op, "", fault.Unknown, "internal error: %v", v)
			}
			r.running.Add(-1)
			if state.Swap(returned) == left {
				r.abandoned.Add(-1)
			}
			r.workers.finish(w)
			done <- werr
		}()
		werr = work(ctx)
	})

	leave := func(kind fault.Kind, why string) (bool, error) {
		cancel()
		// Work that obeys its context ends now, with a better message than ours.
		t := time.NewTimer(50 * time.Millisecond)
		defer t.Stop()
		select {
		case err := <-done:
			if fault.Is(err, fault.Cancelled) {
				break
			}
			return true, err // done after all, maybe with a handle that only the caller can close
		case <-t.C:
			r.abandoned.Add(1)
			if !state.CompareAndSwap(working, left) {
				r.abandoned.Add(-1)
				return true, fault.New("fs."+op, "", kind, "%s", why)
			}
			if kind == fault.TimedOut {
				r.stalled(op, where, limit, worker)
			}
			return false, fault.New("fs."+op, "", kind, "%s", why)
		}
		return true, fault.New("fs."+op, "", kind, "%s", why)
	}
	timedOut := func() (bool, error) {
		if r.ctx.Err() != nil {
			return leave(fault.Cancelled, "the mount is ending")
		}
		return leave(fault.TimedOut, fmt.Sprintf("no answer within %v", limit))
	}

	select {
	case err := <-done:
		return true, err
	case <-ctx.Done():
		return timedOut()
	case <-caller.Done():
	}
	grace := time.NewTimer(r.grace)
	defer grace.Stop()
	select {
	case err := <-done:
		return true, err
	case <-ctx.Done():
		return timedOut()
	case <-grace.C:
		return leave(fault.Cancelled, "the caller was interrupted")
	}
}
