package nodes

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
)

func sha(s string) []byte { h := sha256.Sum256([]byte(s)); return h[:] }

// clock is a time that a test moves.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

func TestFlightSharesOneLoad(t *testing.T) {
	var loads atomic.Int64
	f := newFlight[int, int](1<<20, time.Minute, time.Now)
	gate := make(chan struct{})
	load := func(context.Context) (int, int64, error) {
		loads.Add(1)
		<-gate
		return 7, 1, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	first := make(chan error)
	go func() { _, err := f.get(ctx, 1, load); first <- err }()
	var wg sync.WaitGroup
	for range 10 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if v, err := f.get(context.Background(), 1, load); v != 7 || err != nil {
				t.Errorf("got %d, %v", v, err)
			}
		}()
	}
	cancel()
	if err := <-first; !fault.Is(err, fault.Cancelled) {
		t.Errorf("the cancelled caller got %v", err)
	}
	close(gate)
	wg.Wait()
	if n := loads.Load(); n != 1 {
		t.Errorf("%d loads, want 1", n)
	}
}

func TestFlightBoundsItsCost(t *testing.T) {
	f := newFlight[int, int](1000, time.Minute, time.Now)
	for i := range 50 {
		if _, err := f.get(context.Background(), i, func(context.Context) (int, int64, error) { return i, 300, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if s := f.stats(); s.Bytes > 1000 || s.Entries != 3 {
		t.Errorf("after 50 loads of 300 bytes: %v", s)
	}
	if _, ok := f.peek(49); !ok {
		t.Error("the newest entry is gone")
	}
}

func TestFlightForgetsFailures(t *testing.T) {
	var c clock
	var loads int
	f := newFlight[int, int](1000, time.Minute, c.now)
	try := func(err error) {
		_, got := f.get(context.Background(), 1, func(context.Context) (int, int64, error) { loads++; return 0, 0, err })
		if got == nil {
			t.Fatal("no error")
		}
	}
	down := fault.New("x", "", fault.Unavailable, "down")
	try(down)
	try(down)
	if loads != 1 {
		t.Errorf("%d loads within the memory of a failure, want 1", loads)
	}
	c.advance(failureMemory)
	try(fault.New("x", "", fault.Corrupt, "bad"))
	c.advance(time.Hour)
	try(down)
	if loads != 2 {
		t.Errorf("%d loads, want 2: a corrupt content stays corrupt", loads)
	}
}

func TestFlightContainsPanics(t *testing.T) {
	f := newFlight[int, int](1000, time.Minute, time.Now)
	_, err := f.get(context.Background(), 1, func(context.Context) (int, int64, error) { panic("boom") })
	if !fault.Is(err, fault.Corrupt) {
		t.Errorf("got %v", err)
	}
}

func TestJobsTimeOutAndGoOn(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	js := newJobs(ctx, 1, time.Millisecond, time.Now)
	gate := make(chan struct{})
	var runs atomic.Int64
	find := func(context.Context) (int64, error) { runs.Add(1); <-gate; return 42, nil }
	if _, err := js.size(ctx, "k", "a/b", find); !fault.Is(err, fault.TimedOut) {
		t.Fatalf("got %v, want timed out", err)
	}
	if p, _ := js.pending(); len(p) != 1 || p[0].Path != "a/b" {
		t.Errorf("pending: %v", p)
	}
	if _, ok := js.known("k"); ok {
		t.Error("an unfinished job has a size")
	}
	close(gate)
	deadline := time.Now().Add(5 * time.Second)
	for {
		n, err := js.size(ctx, "k", "a/b", find)
		if err == nil {
			if n != 42 {
				t.Errorf("got %d", n)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if runs.Load() != 1 {
		t.Errorf("%d runs, want 1", runs.Load())
	}
}

func TestErrorRingKeepsTheLast(t *testing.T) {
	var c clock
	tr := &Tree{shared: &shared{now: c.now}}
	for i := range errorRingSize + 10 {
		c.advance(time.Second)
		tr.failed("read", "p", fault.New("x", "", fault.Corrupt, "n%d", i))
	}
	tr.failed("read", "p", fault.New("x", "", fault.Corrupt, "n%d", errorRingSize+9)) // again, at once
	tr.failed("read", "p", context.Canceled)
	recs, total := tr.ring.all()
	if len(recs) != errorRingSize || total != errorRingSize+10 {
		t.Fatalf("%d records of %d", len(recs), total)
	}
	if got := recs[0].Message; got != "read: p: x: corrupt: n10" {
		t.Errorf("oldest: %q", got)
	}
	if err := tr.failed("read", "p", errors.New("plain")); fault.KindOf(err) != fault.Unknown {
		t.Errorf("kind of a plain error: %v", fault.KindOf(err))
	}
}
