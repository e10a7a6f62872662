package store

import "context"

// acquire waits for the right to make a request. release must be called once.
func (l *Layer) acquire(ctx context.Context) (release func(), err error) {
	select {
	case l.slots <- struct{}{}:
	default:
		l.count.waiting.Add(1)
		defer l.count.waiting.Add(-1)
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return l.release, nil
}

// tryAcquire is acquire for what need not be done.
func (l *Layer) tryAcquire() (release func(), ok bool) {
	select {
	case l.slots <- struct{}{}:
		return l.release, true
	default:
		return nil, false
	}
}

func (l *Layer) release() { <-l.slots }

// busy reports whether half of all requests that may be under way are: not the time for what nobody waits for.
func (l *Layer) busy() bool { return len(l.slots) > cap(l.slots)/2 }

// makeRoom waits until n bytes may be under way, and counts them until done is called. What is more than all that may be
// goes alone.
func (l *Layer) makeRoom(ctx context.Context, n int64) (done func(), err error) {
	weight := min(n, l.cfg.Transfer)
	if err := l.room.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	l.transfer.Add(n)
	l.transfer.Settle()
	return func() {
		l.transfer.Add(-n)
		l.room.Release(weight)
	}, nil
}
