package dataset

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/frifs/frifs/fault"
)

func TestCacheSharesOneFetch(t *testing.T) {
	c := newCache(1 << 20)
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
	c := newCache(1 << 20)
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
	c := newCache(1 << 20)
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
	c := newCache(100)
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
