package store

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/frifs/frifs/fault"
)

const (
	backoffBase = 100 * time.Millisecond
	backoffCap  = 3 * time.Second
)

// errStalled is the cause of a try that ended because nothing came.
var errStalled = errors.New("the store sent nothing")

// retry runs fn until it succeeds, fails for good, or the bound of the call is over. Between tries it waits a random
// time up to a bound that doubles, or as long as the server asks.
func retry[T any](ctx context.Context, l *Layer, op, where string, fn func(context.Context) (T, error)) (T, error) {
	var zero T
	bound, cancel := context.WithTimeout(ctx, l.cfg.CallTimeout)
	defer cancel()
	for try := 1; ; try++ {
		v, err := fn(bound)
		if err == nil {
			return v, nil
		}
		if ctx.Err() != nil {
			return zero, failure(ctx, nil, op, where, 0, fault.Unknown, err)
		}
		if bound.Err() != nil {
			l.count.failed.Add(1)
			return zero, fault.New(op, where, fault.TimedOut, "no answer from the store within %s (%d tries)", l.cfg.CallTimeout, try)
		}
		if !transient(err) {
			return zero, err
		}
		wait := l.backoff(try, err)
		deadline, _ := bound.Deadline()
		if try >= l.cfg.Tries || time.Until(deadline) <= wait {
			l.count.failed.Add(1)
			return zero, fault.New(op, where, fault.KindOf(err), "after %d tries: %w", try, err)
		}
		l.count.retries.Add(1)
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-bound.Done(): // found out by the next try
			t.Stop()
		}
	}
}

// backoff is how long to wait after the try-th failure, and counts what kind that was.
func (l *Layer) backoff(try int, err error) time.Duration {
	wait := min(backoffCap, backoffBase<<min(try-1, 10))
	wait = time.Duration(float64(wait) * l.cfg.Rand())
	if a, ok := answerIn(err); ok {
		if a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
			l.count.throttled.Add(1)
		}
		wait = max(wait, a.retryAfter())
	}
	if errors.Is(err, errStalled) {
		l.count.stalled.Add(1)
	}
	return wait
}

// watch returns a context that ends when progress was not called for the stall bound.
func (l *Layer) watch(ctx context.Context) (watched context.Context, progress, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	t := time.AfterFunc(l.cfg.Stall, func() { cancel(errStalled) })
	return watched, func() { t.Reset(l.cfg.Stall) }, func() {
		t.Stop()
		cancel(context.Canceled)
	}
}

// stalled replaces an error that our own watch caused by one that says so.
func (l *Layer) stalled(watched context.Context, op, where string, err error) error {
	if err != nil && errors.Is(context.Cause(watched), errStalled) {
		return fault.New(op, where, fault.TimedOut, "%w for %s", errStalled, l.cfg.Stall)
	}
	return err
}
