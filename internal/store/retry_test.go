package store

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/api/googleapi"

	"github.com/frifs/frifs/fault"
)

func status(code int, header ...string) error {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	err := &googleapi.Error{Code: code, Header: h}
	return fault.New("fake", "", kindOfBlob(err), "%w", brief(err))
}

// half makes jitter the middle of its range.
func half() float64 { return 0.5 }

func TestRetries(t *testing.T) {
	reset := fault.New("fake", "", fault.Unavailable, "%w", syscall.ECONNRESET)
	for _, tc := range []struct {
		name  string
		fails int // requests that fail before one succeeds
		err   error
		tries int // requests made
		kind  fault.Kind
		took  time.Duration // waiting
	}{
		{"at once", 0, nil, 1, fault.Unknown, 0},
		{"busy", 2, status(429), 3, fault.Unknown, 150 * time.Millisecond},
		{"internal error", 1, status(500), 2, fault.Unknown, 50 * time.Millisecond},
		{"unavailable", 3, status(503), 4, fault.Unknown, 350 * time.Millisecond},
		{"asked to wait", 1, status(503, "Retry-After", "2"), 2, fault.Unknown, 2 * time.Second},
		{"asked to wait longer than the bound", 1, status(503, "Retry-After", "60"), 1, fault.Unavailable, 0},
		{"reset", 1, reset, 2, fault.Unknown, 50 * time.Millisecond},
		{"cut", 1, fault.New("fake", "", fault.Unknown, "%w", io.ErrUnexpectedEOF), 2, fault.Unknown, 50 * time.Millisecond},
		{"for ever unavailable", 1000, status(503), 7, fault.Unavailable, 3050 * time.Millisecond},
		{"no such host", 1000, fault.New("fake", "", fault.Unavailable, "%w", &net.DNSError{IsNotFound: true}), 1, fault.Unavailable, 0},
		{"missing", 1000, status(404), 1, fault.NotFound, 0},
		{"denied", 1000, status(403), 1, fault.Denied, 0},
		{"unauthorized", 1000, status(401), 1, fault.Denied, 0},
		{"another object", 1000, status(412), 1, fault.Stale, 0},
		{"bad request", 1000, status(400), 1, fault.Invalid, 0},
		{"not implemented", 1000, status(501), 1, fault.Unsupported, 0},
		{"no credentials", 1000, fault.New("fake", "", fault.Denied, "%w", errNoCredentials), 1, fault.Denied, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(map[string]string{"a": "abc"})
				n := 0
				f.script = func(_ int, r request) reply {
					if r.kind != "stat" {
						return reply{}
					}
					if n++; n <= tc.fails {
						return reply{err: tc.err}
					}
					return reply{}
				}
				l := NewLayer(Config{Rand: half})
				start := time.Now()
				_, err := l.wrap(f).Stat(t.Context(), "a")
				if fault.KindOf(err) != tc.kind || (err == nil) != (tc.kind == fault.Unknown) {
					t.Errorf("got %v, want kind %v", err, tc.kind)
				}
				if got := f.count("stat"); got != tc.tries {
					t.Errorf("%d requests, want %d", got, tc.tries)
				}
				if got := time.Since(start); got != tc.took {
					t.Errorf("waited %v, want %v", got, tc.took)
				}
				if got := l.Stats().Retries; got != uint64(tc.tries-1) {
					t.Errorf("%d retries counted, want %d", got, tc.tries-1)
				}
			})
		})
	}
}

func TestDeadStoreEndsWithinTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]string{"a": pattern(10)})
		st := NewLayer(Config{Rand: half}).wrap(f)
		r := open(t, st, "a")
		f.script = func(int, request) reply { return reply{wait: time.Hour} }
		for name, call := range map[string]func() error{
			"Stat":      func() error { _, err := st.Stat(t.Context(), "a"); return err },
			"List":      func() error { _, err := st.List(t.Context(), ""); return err },
			"ReadRange": func() error { _, err := st.ReadRange(t.Context(), "a", 0, 1); return err },
			"ReadAt":    func() error { _, err := r.ReadAt(make([]byte, 1), 0); return err },
		} {
			start := time.Now()
			if err := call(); !fault.Is(err, fault.TimedOut) {
				t.Errorf("%s: %v, want timed_out", name, err)
			}
			if took := time.Since(start); took > DefaultCallTimeout {
				t.Errorf("%s took %v", name, took)
			}
		}
		synctest.Wait()
		if f.underWay() != 0 {
			t.Errorf("%d requests are still under way", f.underWay())
		}
	})
}

func TestBrokenAnswersAreCompleted(t *testing.T) {
	const size = 3*BlockSize + 100
	want := pattern(size)
	for _, tc := range []struct {
		name  string
		first reply
		took  time.Duration
	}{
		{"cut in the first block", reply{after: 10, cut: true}, 50 * time.Millisecond},
		{"cut at once", reply{cut: true}, 50 * time.Millisecond},
		{"cut in the third block", reply{after: 2*BlockSize + 7, cut: true}, 50 * time.Millisecond},
		{"stalls", reply{after: BlockSize + 1, stall: time.Hour}, defaultStall + 50*time.Millisecond},
		{"halts for a moment", reply{after: BlockSize + 1, stall: time.Second}, time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(map[string]string{"a": want})
				st := NewLayer(Config{Rand: half}).wrap(f)
				r := open(t, st, "a")
				first := true
				f.script = func(int, request) reply {
					if first {
						first = false
						return tc.first
					}
					return reply{}
				}
				start := time.Now()
				reads(t, r, want, 0, size)
				if took := time.Since(start); took != tc.took {
					t.Errorf("took %v, want %v", took, tc.took)
				}
				first = true
				got, err := st.ReadRange(t.Context(), "a", 5, size-10)
				if err != nil || string(got) != want[5:size-5] {
					t.Errorf("ReadRange: %d bytes, %v", len(got), err)
				}
				synctest.Wait()
			})
		})
	}
}

func TestSlowLineIsNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 8 * BlockSize
		want := pattern(size)
		f := newFake(map[string]string{"a": want})
		f.script = func(_ int, r request) reply {
			if r.kind == "read" { // each try brings one block, then crawls
				return reply{after: BlockSize + 1, stall: 4 * time.Second}
			}
			return reply{}
		}
		r := open(t, NewLayer(Config{Rand: half, CallTimeout: 6 * time.Second, Stall: 3 * time.Second}).wrap(f), "a")
		reads(t, r, want, 0, size)
	})
}

func TestCallerEndsItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(map[string]string{"a": "x"})
		f.script = func(int, request) reply { return reply{err: status(503)} }
		ctx, cancel := context.WithTimeout(t.Context(), 120*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := NewLayer(Config{Rand: half}).wrap(f).Stat(ctx, "a")
		if !fault.Is(err, fault.Unavailable) || time.Since(start) > 120*time.Millisecond {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

func TestForbiddenIsAbsentWhereListingIsDenied(t *testing.T) {
	for _, listing := range []bool{true, false} {
		t.Run(fmt.Sprintf("listing %t", listing), func(t *testing.T) {
			f := newFake(map[string]string{"d/a": "x"})
			f.script = func(_ int, r request) reply {
				if r.kind != "list" || !listing {
					return reply{err: status(403)}
				}
				return reply{}
			}
			st := NewLayer(Config{}).wrap(f)
			want := fault.NotFound
			if listing {
				want = fault.Denied
			}
			for range 3 {
				if _, err := st.Stat(t.Context(), "d/b"); !fault.Is(err, want) {
					t.Errorf("Stat: %v, want %v", err, want)
				}
				if _, err := st.ReadRange(t.Context(), "d/c", 0, 1); !fault.Is(err, want) {
					t.Errorf("ReadRange: %v, want %v", err, want)
				}
			}
			if n := f.count("list"); n != 1 {
				t.Errorf("the directory was listed %d times, want once", n)
			}
		})
	}
}
