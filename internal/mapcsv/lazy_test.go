package mapcsv

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/frifs/frifs/fault"
)

func TestLazySharesOneComputation(t *testing.T) {
	var l lazy[int]
	var calls atomic.Int32
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			v, err := l.get(context.Background(), func(context.Context) (*int, error) {
				calls.Add(1)
				<-gate
				n := 7
				return &n, nil
			})
			if err != nil || *v != 7 {
				t.Errorf("get = %v, %v", v, err)
			}
		})
	}
	close(gate)
	wg.Wait()
	if n := calls.Load(); n != 1 {
		t.Errorf("computed %d times", n)
	}
}

func TestLazyRemembersFailures(t *testing.T) {
	var l lazy[int]
	calls := 0
	fail := func(context.Context) (*int, error) {
		calls++
		return nil, errors.New("no")
	}
	for range 3 {
		if _, err := l.get(context.Background(), fail); err == nil {
			t.Fatal("no error")
		}
	}
	if calls != 1 {
		t.Errorf("tried %d times within two seconds", calls)
	}
	l.at = l.at.Add(-failureAge)
	if _, err := l.get(context.Background(), fail); err == nil || calls != 2 {
		t.Errorf("after two seconds: %v, tried %d times", err, calls)
	}
}

func TestLazyForgetsCancelledCallers(t *testing.T) {
	var l lazy[int]
	ctx, cancel := context.WithCancel(context.Background())
	started := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := l.get(ctx, func(ctx context.Context) (*int, error) {
			close(started)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if !fault.Is(err, fault.Cancelled) {
			t.Errorf("the cancelled caller got %v", err)
		}
	})
	<-started
	cancel()
	n := 3
	v, err := l.get(context.Background(), func(context.Context) (*int, error) { return &n, nil })
	if err != nil || v != &n {
		t.Errorf("the next caller got %v, %v", v, err)
	}
	wg.Wait()
	if _, err := new(lazy[int]).get(ctx, nil); !fault.Is(err, fault.Cancelled) {
		t.Errorf("a caller that is cancelled before got %v", err)
	}
}
