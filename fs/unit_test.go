package fs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
)

func TestRunnerBounds(t *testing.T) {
	var panics atomic.Int64
	stalls := make(chan stall, 10)
	where := func() string { return "some/file" }
	base, end := context.WithCancel(context.Background())
	defer end()
	r := &runner{ctx: base, grace: 60 * time.Millisecond, onPanic: func(any, []byte) { panics.Add(1) }, onStall: func(s stall) { stalls <- s }}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	release := make(chan struct{})
	obey := func(ctx context.Context) error { <-ctx.Done(); return fault.Wrap("work", "file", ctx.Err()) }
	deaf := func(context.Context) error { <-release; return nil }
	quick := func(context.Context) error { return nil }
	tests := []struct {
		name     string
		caller   context.Context
		work     func(context.Context) error
		kind     fault.Kind
		finished bool
	}{
		{"quick", context.Background(), quick, fault.Unknown, true},
		{"quick although interrupted", cancelled, quick, fault.Unknown, true},
		{"slow, obedient", context.Background(), obey, fault.TimedOut, true},
		{"slow, deaf", context.Background(), deaf, fault.TimedOut, false},
		{"interrupted, obedient", cancelled, obey, fault.Cancelled, true},
		{"interrupted, deaf", cancelled, deaf, fault.Cancelled, false},
		{"finishes within the grace period", cancelled, func(context.Context) error { time.Sleep(10 * time.Millisecond); return nil }, fault.Unknown, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			limit := 120 * time.Millisecond
			finished, err := r.run(tc.caller, "test", where, limit, tc.work)
			if finished != tc.finished || fault.KindOf(err) != tc.kind || (err == nil) != (tc.kind == fault.Unknown) {
				t.Errorf("got %v, %v; want %v, kind %v", finished, err, tc.finished, tc.kind)
			}
		})
	}
	if n := r.abandoned.Load(); n != 2 {
		t.Errorf("abandoned: got %d, want 2", n)
	}
	if len(stalls) != 1 || r.stalls.Load() != 1 {
		t.Fatalf("%d stalls were reported, %d counted; want 1: an interrupt is none", len(stalls), r.stalls.Load())
	}
	if s := <-stalls; s.op != "test" || s.path != "some/file" || !strings.Contains(s.stack, "TestRunnerBounds.func") || strings.Count(s.stack, "goroutine ") > 2 {
		t.Errorf("the stall is reported as %+v; want the stack of its worker", s)
	}
	close(release)
	for deadline := time.Now().Add(2 * time.Second); r.abandoned.Load()+r.running.Load() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("gauges stay at %d, %d", r.abandoned.Load(), r.running.Load())
		}
	}
	if _, err := r.run(context.Background(), "test", where, time.Second, func(context.Context) error { panic("bug") }); err == nil || !strings.Contains(err.Error(), "bug") {
		t.Errorf("a panic: got %v", err)
	}
	if panics.Load() != 1 {
		t.Errorf("the panic was not reported")
	}
	end()
	if _, err := r.run(context.Background(), "test", where, time.Second, obey); !fault.Is(err, fault.Cancelled) {
		t.Errorf("after the mount's end: got %v", err)
	}
}

func TestMemoryOfFailures(t *testing.T) {
	now := time.Unix(1000, 0)
	m := newMemory(2*time.Second, func() time.Time { return now })
	bad := fault.New("x", "y", fault.Corrupt, "bad")
	late := fault.New("x", "y", fault.TimedOut, "late")
	key := failureKey{ino: 7, op: "read"}
	m.read(key, 0, 256<<10, 100<<10, bad) // page 25 is bad
	m.read(failureKey{ino: 8, op: "read"}, 0, 256<<10, 0, bad)
	m.read(failureKey{ino: 9, op: "read"}, 128<<10, 256<<10, 70<<10, late)
	m.read(failureKey{ino: 10, op: "read"}, 0, 4096, 0, fault.New("", "", fault.Cancelled, "interrupted"))
	tests := []struct {
		name   string
		ino    uint64
		lo, hi int64
		want   error
	}{
		{"the bad page", 7, 100 << 10, 104 << 10, bad},
		{"a request over it", 7, 0, 1 << 20, bad},
		{"before it", 7, 0, 100 << 10, nil},
		{"after it", 7, 104 << 10, 256 << 10, nil},
		{"another file", 11, 100 << 10, 104 << 10, nil},
		{"the page is not known", 8, 0, 4096, nil},
		{"late: its block", 9, 192 << 10, 196 << 10, late},
		{"late: the rest of the request", 9, 380 << 10, 384 << 10, late},
		{"late: behind the request", 9, 384 << 10, 388 << 10, nil},
		{"late: the part that was read", 9, 128 << 10, 192 << 10, nil},
		{"interrupted", 10, 0, 4096, nil},
	}
	check := func(t *testing.T) {
		for _, tc := range tests {
			if got := m.recall(failureKey{ino: tc.ino, op: "read"}, tc.lo, tc.hi); !errors.Is(got, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
			}
		}
	}
	check(t)
	now = now.Add(1900 * time.Millisecond)
	check(t)
	now = now.Add(200 * time.Millisecond)
	for i := range tests {
		tests[i].want = nil
	}
	check(t)
	// The memory is bounded, and makes room for new failures when old ones have expired.
	for i := range uint64(3 * maxRemembered) {
		m.request(failureKey{ino: i, op: "open"}, late)
	}
	if m.count > maxRemembered {
		t.Errorf("got %d failures remembered, the limit is %d", m.count, maxRemembered)
	}
	now = now.Add(3 * time.Second)
	m.request(failureKey{ino: 1 << 40, op: "open"}, late)
	if m.recall(failureKey{ino: 1 << 40, op: "open"}, 0, 1) == nil || m.count != 1 {
		t.Errorf("after expiry: %d remembered", m.count)
	}
}

func TestInodeLimit(t *testing.T) {
	tab := newInodes(100)
	tab.touch(1000, nil, 1, "dir", true)
	for i := range uint64(99) {
		tab.touch(i+2, nil, 1000, "f", false)
	}
	if got := tab.surplus(); got != nil {
		t.Fatalf("at the limit: %d picked", len(got))
	}
	tab.touch(2, nil, 1000, "f", false) // the most recent again
	tab.touch(500, nil, 1000, "f", false)
	picked := tab.surplus()
	if len(picked) != 11 {
		t.Errorf("got %d picked, want 11", len(picked))
	}
	for _, l := range picked {
		if l.dir || l.ino == 2 || l.ino == 500 {
			t.Errorf("picked %+v", l)
		}
	}
	for _, l := range picked {
		tab.forget(l.ino)
	}
	if tab.count() != 90 || tab.surplus() != nil {
		t.Errorf("after forgetting: %d", tab.count())
	}
	// A directory goes when nothing below it is left and no handle is open.
	small := newInodes(1)
	small.touch(10, nil, 1, "d", true)
	small.touch(11, nil, 10, "f", false)
	small.opened(10, 1)
	for range 3 {
		for _, l := range small.surplus() {
			if l.ino == 10 {
				t.Errorf("a directory with an open handle was picked")
			}
		}
	}
	small.opened(10, -1)
	small.forget(11)
	small.touch(12, nil, 1, "f", false)
	found := false
	for _, l := range small.surplus() {
		found = found || l.ino == 10
	}
	if !found {
		t.Errorf("an empty, closed directory is never picked")
	}
}

func TestKernelIno(t *testing.T) {
	for _, ino := range []uint64{0, 1, 2, 1 << 63, 1<<63 + 1, ^uint64(0), 12345} {
		if got := kernelIno(ino); got < 2 || got >= 1<<63 {
			t.Errorf("kernelIno(%d) = %d", ino, got)
		}
	}
}

func TestHowLongTheKernelKeepsNames(t *testing.T) {
	const day, second = 24 * time.Hour, time.Second
	for _, tc := range []struct {
		opt                                    Options
		entry, volatileEntry, attr, volatileAt time.Duration
	}{
		{Options{}, day, second, day, second},
		{Options{EntryTimeout: time.Hour, AttrTimeout: time.Minute}, time.Hour, second, time.Minute, second},
		{Options{EntryTimeout: time.Millisecond}, time.Millisecond, time.Millisecond, day, second},
		{Options{AttrTimeout: -1, VolatileTimeout: time.Hour}, day, time.Hour, 0, 0},
	} {
		o := tc.opt.withDefaults()
		got := []time.Duration{o.entryTimeout(false), o.entryTimeout(true), o.attrTimeout(false), o.attrTimeout(true)}
		if want := []time.Duration{tc.entry, tc.volatileEntry, tc.attr, tc.volatileAt}; !slices.Equal(got, want) {
			t.Errorf("%+v: got %v, want %v", tc.opt, got, want)
		}
	}
}
