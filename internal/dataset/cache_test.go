package dataset

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

func TestCacheSharesOneFetch(t *testing.T) {
	c := newCache(1<<20, nil)
	var fetches atomic.Int32
	release := make(chan struct{})
	fetch := func(context.Context) (any, int64, error) {
		fetches.Add(1)
		<-release
		return "value", 1, nil
	}
	var wg sync.WaitGroup
	started := make(chan struct{}, 20)
	for range 20 {
		wg.Go(func() {
			started <- struct{}{}
			if v, err := c.get(t.Context(), "k", fetch); err != nil || v != "value" {
				t.Errorf("%v, %v", v, err)
			}
		})
	}
	for range 20 {
		<-started
	}
	close(release)
	wg.Wait()
	if n := fetches.Load(); n != 1 {
		t.Errorf("%d fetches, want 1", n)
	}
}

func TestCacheFetchSurvivesItsCaller(t *testing.T) {
	c := newCache(1<<20, nil)
	ctx, cancel := context.WithCancel(t.Context())
	release, entered := make(chan struct{}), make(chan struct{})
	failed := make(chan error)
	go func() {
		_, err := c.get(ctx, "k", func(ctx context.Context) (any, int64, error) {
			close(entered)
			<-release
			return "value", 1, ctx.Err()
		})
		failed <- err
	}()
	<-entered
	cancel()
	if err := <-failed; !fault.Is(err, fault.Cancelled) {
		t.Errorf("the caller got %v, want cancelled", err)
	}
	close(release)
	v, err := c.get(t.Context(), "k", func(context.Context) (any, int64, error) { return "second", 1, nil })
	if err != nil || v != "value" {
		t.Errorf("%v, %v, want what the first fetch brought", v, err)
	}
}

func TestCacheKeepsNoFailuresAndNoPanics(t *testing.T) {
	c := newCache(1<<20, nil)
	for i, fetch := range []func(context.Context) (any, int64, error){
		func(context.Context) (any, int64, error) { return nil, 0, errors.New("down") },
		func(context.Context) (any, int64, error) { panic("boom") },
		func(context.Context) (any, int64, error) { return "not to be kept", -1, nil },
	} {
		v, err := c.get(t.Context(), "k", fetch)
		if i == 1 && !fault.Is(err, fault.Corrupt) || i < 2 && (v != nil || err == nil) {
			t.Errorf("fetch %d: %v, %v", i, v, err)
		}
	}
	if v, err := c.get(t.Context(), "k", func(context.Context) (any, int64, error) { return "good", 1, nil }); err != nil || v != "good" {
		t.Errorf("%v, %v, want a new fetch", v, err)
	}
}

func TestCacheStaysInItsBudget(t *testing.T) {
	c := newCache(100, nil)
	fetched := map[string]int{}
	get := func(key string, cost int64) {
		t.Helper()
		if _, err := c.get(t.Context(), key, func(context.Context) (any, int64, error) { fetched[key]++; return key, cost, nil }); err != nil {
			t.Fatal(err)
		}
		if c.used > c.budget || c.order.Len() != len(c.byKey) {
			t.Fatalf("%d bytes used of %d; %d and %d entries", c.used, c.budget, c.order.Len(), len(c.byKey))
		}
	}
	for i := range 10 {
		get(fmt.Sprint(i), 10)
	}
	get("0", 10)   // the most recent now
	get("new", 20) // takes 1 and 2 out
	get("0", 10)
	get("3", 10)
	get("1", 10)
	get("huge", 101)
	get("huge", 101)
	for key, want := range map[string]int{"0": 1, "3": 1, "1": 2, "2": 1, "huge": 2} {
		if fetched[key] != want {
			t.Errorf("%q fetched %d times, want %d", key, fetched[key], want)
		}
	}
}

// What is kept counts in the budget of the process, which may ask for some of it back.
func TestCacheGivesWay(t *testing.T) {
	b := store.NewBudget(100)
	c := newCache(1000, b)
	for i := range 30 {
		if _, err := c.get(t.Context(), fmt.Sprint(i), func(context.Context) (any, int64, error) { return i, 10, nil }); err != nil {
			t.Fatal(err)
		}
		if b.Used() > 100 || b.Used() != c.used {
			t.Fatalf("%d bytes of 100, %d in the cache", b.Used(), c.used)
		}
	}
	if c.used != 100 || c.byKey["29"] == nil || c.byKey["20"] == nil {
		t.Errorf("%d bytes are kept, the last ones: %v %v", c.used, c.byKey["29"], c.byKey["20"])
	}
}
