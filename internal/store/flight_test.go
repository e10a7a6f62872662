package store

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fault"
)

func TestLateAnswerIsAskedForTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]string{"a": "abc"})
		f.script = func(n int, _ request) reply {
			if n == 1 {
				return reply{wait: time.Hour}
			}
			return reply{wait: 10 * time.Millisecond}
		}
		l := NewLayer(Config{})
		start := time.Now()
		if _, err := l.wrap(f).ReadRange(t.Context(), "a", 0, 3); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != hedgeUnknown+10*time.Millisecond {
			t.Errorf("took %v", took)
		}
		synctest.Wait() // the first request has ended
		if s := l.Stats(); s.Hedges != 1 || s.HedgesWon != 1 || s.InFlight != 0 || f.underWay() != 0 {
			t.Errorf("%+v, %d under way", s, f.underWay())
		}
	})
}

func TestSecondRequestsAdaptAndAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]string{"a": "abc"})
		slow := time.Duration(0)
		f.script = func(int, request) reply { return reply{wait: 100*time.Millisecond + slow} }
		l := NewLayer(Config{})
		st := l.wrap(f)
		for range 20 {
			if _, err := st.Stat(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		if d := l.late.delay(); d != 300*time.Millisecond || l.Stats().Hedges != 0 {
			t.Errorf("late means %v after 20 answers in 100 ms; %d second requests", d, l.Stats().Hedges)
		}
		slow = 1400 * time.Millisecond // all is slow now: asking twice only adds to it
		for range 60 {
			if _, err := st.Stat(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		if n := l.Stats().Hedges; n == 0 || n > hedgeBudget+6 {
			t.Errorf("%d second requests for 60 slow ones", n)
		}
	})
}

func TestEqualReadsJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := pattern(2 * BlockSize)
		f := newFake(map[string]string{"a": want})
		l := NewLayer(Config{})
		st := l.wrap(f)
		var readers []Reader
		for range 50 {
			readers = append(readers, open(t, st, "a"))
		}
		f.script = func(int, request) reply { return reply{wait: 50 * time.Millisecond} }
		var wg sync.WaitGroup
		for i, r := range readers {
			wg.Go(func() { reads(t, r, want, i*1000, 5000) })
		}
		wg.Wait()
		if n := f.count("read"); n != 1 {
			t.Errorf("%d reads for 50 readers of one block", n)
		}
		if s := l.Stats(); s.Joined != 49 {
			t.Errorf("%d joined, want 49", s.Joined)
		}
	})
}

func TestAdjacentReadsMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := pattern(8 * BlockSize)
		f := newFake(map[string]string{"a": want, "b": "x"})
		l := NewLayer(Config{Parallel: 1, ReadAhead: -1})
		st := l.wrap(f)
		r := open(t, st, "a")
		f.script = func(int, request) reply { return reply{wait: 100 * time.Millisecond} }
		go func() { _, _ = st.Stat(context.Background(), "b") }() // has the only slot
		synctest.Wait()
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() { reads(t, r, want, i*BlockSize, BlockSize) })
			synctest.Wait()
		}
		wg.Wait()
		if n := f.count("read"); n != 1 || l.Stats().Merged != 7 {
			t.Errorf("%d reads, %d merged; want one read", n, l.Stats().Merged)
		}
		synctest.Wait()
	})
}

func TestSharedReadOutlivesOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := pattern(1000)
		f := newFake(map[string]string{"a": want})
		l := NewLayer(Config{})
		st := l.wrap(f)
		r := open(t, st, "a")
		f.script = func(int, request) reply { return reply{wait: 500 * time.Millisecond} }
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := r.ReadAtContext(ctx, make([]byte, 10), 0)
			left <- err
		}()
		synctest.Wait()
		got := make(chan string)
		go func() {
			p := make([]byte, 10)
			_, err := r.ReadAtContext(context.Background(), p, 20)
			if err != nil {
				t.Error(err)
			}
			got <- string(p)
		}()
		synctest.Wait()
		cancel()
		if err := <-left; !fault.Is(err, fault.Cancelled) {
			t.Errorf("the one who left: %v", err)
		}
		if p := <-got; p != want[20:30] || f.count("read") != 1 {
			t.Errorf("the one who stayed: %q, %d reads", p, f.count("read"))
		}
		// When all have left, the request ends.
		f.set("b", pattern(1000), `"2"`)
		f.script = nil
		r = open(t, st, "b")
		f.script = func(int, request) reply { return reply{wait: time.Hour} }
		ctx, cancel = context.WithCancel(t.Context())
		go func() {
			_, err := r.ReadAtContext(ctx, make([]byte, 10), 0)
			left <- err
		}()
		synctest.Wait()
		cancel()
		<-left
		synctest.Wait()
		if f.underWay() != 0 || l.Stats().InFlight != 0 {
			t.Errorf("%d requests go on for nobody", f.underWay())
		}
		// And a new reader is not told of it.
		f.script = nil
		reads(t, r, pattern(1000), 0, 1000)
	})
}

func TestParallelismIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := pattern(40 << 20)
		f := newFake(map[string]string{"a": want})
		l := NewLayer(Config{Parallel: 3})
		r := open(t, l.wrap(f), "a")
		f.script = func(int, request) reply { return reply{wait: 20 * time.Millisecond} }
		var wg sync.WaitGroup
		for off := 0; off < len(want); off += largeRead {
			wg.Go(func() { reads(t, r, want, off, largeRead) })
		}
		wg.Wait()
		if got := f.busiest(); got != 3 {
			t.Errorf("%d requests at once, want 3", got)
		}
		if n := f.count("read"); n != 10 {
			t.Errorf("%d requests for 40 MiB, want 10", n)
		}
		if used := l.Stats().MemoryBytes; used > DefaultLayerMemory {
			t.Errorf("%d bytes kept", used)
		}
		synctest.Wait()
	})
}

func TestReadAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step, size = 128 << 10, 24 << 20
		want := pattern(size)
		f := newFake(map[string]string{"a": want})
		l := NewLayer(Config{})
		r := open(t, l.wrap(f), "a")
		f.script = func(int, request) reply { return reply{wait: 50 * time.Millisecond} }
		start := time.Now()
		for off := 0; off < size; off += step {
			reads(t, r, want, off, step)
		}
		// Without it: 96 blocks, each 50 ms.
		if took := time.Since(start); took > time.Second {
			t.Errorf("a sequential reader took %v", took)
		}
		if n := f.count("read"); n > 24 {
			t.Errorf("%d requests", n)
		}
		synctest.Wait()
		if l.ahead.Load() != 0 {
			t.Errorf("%d bytes of read-ahead are still accounted for", l.ahead.Load())
		}
		before := f.count("read")
		other := open(t, NewLayer(Config{}).wrap(f), "a")
		for _, off := range []int{5 << 20, 1 << 20, 17 << 20, 9 << 20, 3 << 20} {
			reads(t, other, want, off, 4096)
		}
		synctest.Wait()
		if n := f.count("read") - before; n != 5 {
			t.Errorf("%d requests for 5 reads here and there", n)
		}
	})
}

// TestReadsUnderFaults reads at random from a store that fails at random: right bytes or an error, never anything else.
func TestReadsUnderFaults(t *testing.T) {
	want := pattern(5*BlockSize + 12345)
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.SliceOfN(rapid.IntRange(0, 30), 20, 60).Draw(rt, "faults")
		type read struct{ off, n int }
		plan := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) read {
			off := rapid.IntRange(0, len(want)-1).Draw(rt, "off")
			return read{off, rapid.IntRange(1, len(want)-off).Draw(rt, "n")}
		}), 1, 12).Draw(rt, "reads")
		synctest.Test(t, func(t *testing.T) {
			f := newFake(map[string]string{"a": want})
			l := NewLayer(Config{Rand: half, Memory: 3 * BlockSize, Parallel: 2})
			r, err := l.wrap(f).Open(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			f.script = func(n int, _ request) reply {
				switch k := seed[n%len(seed)]; k {
				case 0:
					return reply{err: status(500)}
				case 1:
					return reply{err: status(429)}
				case 2:
					return reply{wait: time.Hour}
				case 3, 4, 5:
					return reply{cut: true, after: k * 50000}
				case 6:
					return reply{stall: time.Hour, after: 70000}
				case 7:
					return reply{stall: time.Second, after: 300000}
				}
				return reply{wait: time.Millisecond}
			}
			var wg sync.WaitGroup
			for _, q := range plan {
				wg.Go(func() {
					p := make([]byte, q.n)
					n, err := r.ReadAtContext(t.Context(), p, int64(q.off))
					if err != nil && !errors.Is(err, io.EOF) {
						if k := fault.KindOf(err); k != fault.Unavailable && k != fault.TimedOut {
							t.Errorf("read %+v: %v", q, err)
						}
						return
					}
					if n != q.n || string(p) != want[q.off:q.off+q.n] {
						t.Errorf("read %+v: wrong bytes", q)
					}
				})
			}
			wg.Wait()
			time.Sleep(time.Hour) // what was read ahead comes to its end
			if s := l.Stats(); s.InFlight != 0 || s.Waiting != 0 || f.underWay() != 0 || len(l.contents) != 1 {
				t.Errorf("something is left behind: %+v, %d requests, %d contents", s, f.underWay(), len(l.contents))
			}
		})
	})
}

func TestMemoryAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMemory(20_000, nil)
		all := map[int64][]byte{}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k := rapid.Int64Range(0, 30).Draw(t, "k")
				if all[k] == nil {
					all[k] = make([]byte, rapid.IntRange(1, 9000).Draw(t, "n"))
				}
				m.put("c", k, all[k])
			},
			"get": func(t *rapid.T) {
				k := rapid.Int64Range(0, 30).Draw(t, "k")
				if got := m.get("c", k); got != nil && len(got) != len(all[k]) || m.get("other", k) != nil {
					t.Fatalf("block %d: %d bytes", k, len(got))
				}
			},
			"": func(t *rapid.T) {
				var used int64
				for _, e := range m.blocks {
					used += cost(e.Value.(*kept).data)
				}
				if used != m.bytes() || used > m.limit || m.order.Len() != len(m.blocks) {
					t.Fatalf("%d bytes in %d blocks, %d accounted for", used, len(m.blocks), m.bytes())
				}
			},
		})
	})
}
