package mapcsv

import (
	"context"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
)

// failureAge is how long a failure is answered from memory: whoever asks usually asks again at once.
const failureAge = 2 * time.Second

// lazy is a value that is computed when it is first asked for, once for all callers. A failure is kept for two
// seconds. A caller that is cancelled while it computes makes way for the next.
type lazy[T any] struct {
	mu     sync.Mutex // guards the rest; never held while computing
	v      *T
	flight chan struct{} // closed when the computation in progress ends; nil when there is none
	err    error
	at     time.Time
}

func (l *lazy[T]) get(ctx context.Context, compute func(context.Context) (*T, error)) (*T, error) {
	for {
		l.mu.Lock()
		switch {
		case l.v != nil:
			v := l.v
			l.mu.Unlock()
			return v, nil
		case l.err != nil && time.Since(l.at) < failureAge:
			err := l.err
			l.mu.Unlock()
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			l.mu.Unlock()
			return nil, fault.Wrap("mapcsv", "", err)
		}
		if l.flight == nil {
			done := make(chan struct{})
			l.flight = done
			l.mu.Unlock()
			return l.lead(ctx, done, compute)
		}
		wait := l.flight
		l.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
}

// lead computes the value and wakes whoever waits, also when compute panics.
func (l *lazy[T]) lead(ctx context.Context, done chan struct{}, compute func(context.Context) (*T, error)) (v *T, err error) {
	defer func() {
		l.mu.Lock()
		l.v, l.err = v, nil
		if err != nil && ctx.Err() == nil {
			l.err, l.at = err, time.Now()
		}
		l.flight = nil
		l.mu.Unlock()
		close(done)
	}()
	return compute(ctx)
}
