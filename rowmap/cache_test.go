package rowmap

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/frifs/frifs/fault"
)

func loadOf(v int, size int64, loads *atomic.Int32) func(context.Context) (*int, int64, error) {
	return func(context.Context) (*int, int64, error) {
		loads.Add(1)
		return &v, size, nil
	}
}

func TestCacheKeepsItsBudget(t *testing.T) {
	t.Parallel()
	c := NewCache(100)
	tab, other := newTable[int](c, 50), newTable[int](c, 50)
	var loads atomic.Int32
	for i := range 50 {
		for _, x := range []*table[int]{tab, other} {
			v, err := x.get(context.Background(), i, loadOf(i, 7, &loads))
			if err != nil || *v != i {
				t.Fatalf("slot %d: %v, %v", i, v, err)
			}
			if s := c.Stats(); s.Used > s.Budget || int64(s.Entries)*7 != s.Used {
				t.Fatalf("after slot %d: %+v", i, s)
			}
		}
	}
	if loads.Load() != 100 {
		t.Errorf("%d loads, want 100", loads.Load())
	}
	if v, err := tab.get(context.Background(), 1, loadOf(1, 101, &loads)); err != nil || *v != 1 || tab.peek(1) != nil {
		t.Error("a value over the budget is given out but not kept")
	}
}

func TestCacheKeepsWhatIsUsed(t *testing.T) {
	t.Parallel()
	tab := newTable[int](NewCache(100), 1000)
	var loads, hot atomic.Int32
	for i := range 1000 {
		if _, err := tab.get(context.Background(), 0, loadOf(0, 10, &hot)); err != nil {
			t.Fatal(err)
		}
		if _, err := tab.get(context.Background(), 1+i%900, loadOf(i, 10, &loads)); err != nil {
			t.Fatal(err)
		}
	}
	if hot.Load() > 20 {
		t.Errorf("a slot that is used all the time was loaded %d times", hot.Load())
	}
}

func TestCacheSharesLoads(t *testing.T) {
	t.Parallel()
	tab := newTable[int](NewCache(100), 1)
	var loads atomic.Int32
	release := make(chan struct{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			v, err := tab.get(context.Background(), 0, func(context.Context) (*int, int64, error) {
				loads.Add(1)
				<-release
				v := 7
				return &v, 1, nil
			})
			if err != nil || *v != 7 {
				t.Errorf("%v, %v", v, err)
			}
		})
	}
	for loads.Load() == 0 {
		runtime.Gosched()
	}
	close(release)
	wg.Wait()
	if loads.Load() != 1 {
		t.Errorf("%d loads, want 1", loads.Load())
	}
}

func TestCacheLoadOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	tab := newTable[int](nil, 1)
	ctx, cancel := context.WithCancel(context.Background())
	started := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := tab.get(ctx, 0, func(ctx context.Context) (*int, int64, error) {
			close(started)
			<-ctx.Done()
			return nil, 0, ctx.Err()
		})
		if !fault.Is(err, fault.Cancelled) {
			t.Errorf("the leader got %v", err)
		}
	})
	<-started
	var loads atomic.Int32
	wg.Go(func() {
		v, err := tab.get(context.Background(), 0, loadOf(3, 1, &loads))
		if err != nil || *v != 3 {
			t.Errorf("the follower got %v, %v", v, err)
		}
	})
	cancel()
	wg.Wait()
}

func TestCacheRemembersFailures(t *testing.T) {
	t.Parallel()
	tab := newTable[int](nil, 2)
	broken := errors.New("broken")
	loads := 0
	for range 3 {
		if _, err := tab.get(context.Background(), 1, func(context.Context) (*int, int64, error) {
			loads++
			return nil, 0, broken
		}); !errors.Is(err, broken) {
			t.Fatal(err)
		}
	}
	if loads != 1 {
		t.Errorf("%d loads, want 1", loads)
	}
}
