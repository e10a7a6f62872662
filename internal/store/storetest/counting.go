package storetest

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

// Call is one counted call: the method (List, Stat, ReadRange, Open, ReadAt) and the name relative to the root that
// was wrapped.
type Call struct {
	Method, Name string
}

// Counting is a store.Store that counts the calls to the store it wraps. Stores of Sub share the counters of the one
// they come from, and count under full names. Set the exported fields before first use.
type Counting struct {
	store.Store
	Delay     time.Duration // added before each call; ends early with the context
	HideLocal bool          // Local reports false, as an object store does

	shared *shared
	prefix string
	once   sync.Once
}

type shared struct {
	mu    sync.Mutex // guards the rest
	calls map[Call]int
	bytes int64
	fail  map[Call]error
}

// New wraps st with a delay for each call.
func New(st store.Store, delay time.Duration) *Counting {
	return &Counting{Store: st, Delay: delay}
}

func (c *Counting) state() *shared {
	c.once.Do(func() {
		if c.shared == nil {
			c.shared = &shared{calls: map[Call]int{}, fail: map[Call]error{}}
		}
	})
	return c.shared
}

// Fail makes calls of the method ("" = every method) on the name fail with err; nil ends that.
func (c *Counting) Fail(method, name string, err error) {
	s := c.state()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.fail, Call{method, name})
		return
	}
	s.fail[Call{method, name}] = err
}

// Calls returns a copy of the counters.
func (c *Counting) Calls() map[Call]int {
	s := c.state()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[Call]int, len(s.calls))
	for k, n := range s.calls {
		out[k] = n
	}
	return out
}

// Names returns the names that calls of a method ("" = any) were made for, in byte order.
func (c *Counting) Names(method string) []string {
	seen := map[string]bool{}
	for k := range c.Calls() {
		if method == "" || k.Method == method {
			seen[k.Name] = true
		}
	}
	out := make([]string, 0, len(seen))
	for n := range seen {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// Total is the number of calls of a method ("" = any) so far.
func (c *Counting) Total(method string) int {
	n := 0
	for k, v := range c.Calls() {
		if method == "" || k.Method == method {
			n += v
		}
	}
	return n
}

// Bytes is the number of content bytes read so far.
func (c *Counting) Bytes() int64 {
	s := c.state()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// Reset sets all counters to zero; faults stay.
func (c *Counting) Reset() {
	s := c.state()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.bytes = map[Call]int{}, 0
}

// before counts a call, waits, and returns the fault to give.
func (c *Counting) before(ctx context.Context, method, name string) error {
	s := c.state()
	full := store.Join(c.prefix, name)
	s.mu.Lock()
	s.calls[Call{method, full}]++
	err := s.fail[Call{method, full}]
	if err == nil {
		err = s.fail[Call{"", full}]
	}
	s.mu.Unlock()
	if c.Delay > 0 {
		t := time.NewTimer(c.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return fault.New("storetest."+method, full, fault.KindOf(ctx.Err()), "%w", ctx.Err())
		}
	}
	return err
}

func (c *Counting) read(n int) {
	s := c.state()
	s.mu.Lock()
	s.bytes += int64(n)
	s.mu.Unlock()
}

// List implements store.Store.
func (c *Counting) List(ctx context.Context, dir string) ([]store.Object, error) {
	if err := c.before(ctx, "List", dir); err != nil {
		return nil, err
	}
	return c.Store.List(ctx, dir)
}

// ListFirst implements store.FirstLister.
func (c *Counting) ListFirst(ctx context.Context, dir string, n int) ([]store.Object, error) {
	if err := c.before(ctx, "ListFirst", dir); err != nil {
		return nil, err
	}
	return store.ListFirst(ctx, c.Store, dir, n)
}

// ListsInOrder implements store.FirstLister.
func (c *Counting) ListsInOrder() bool { return store.ListsInOrder(c.Store) }

// Stat implements store.Store.
func (c *Counting) Stat(ctx context.Context, name string) (store.Object, error) {
	if err := c.before(ctx, "Stat", name); err != nil {
		return store.Object{}, err
	}
	return c.Store.Stat(ctx, name)
}

// ReadRange implements store.Store.
func (c *Counting) ReadRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	if err := c.before(ctx, "ReadRange", name); err != nil {
		return nil, err
	}
	b, err := c.Store.ReadRange(ctx, name, off, n)
	c.read(len(b))
	return b, err
}

// Open implements store.Store.
func (c *Counting) Open(ctx context.Context, name string) (store.Reader, error) {
	if err := c.before(ctx, "Open", name); err != nil {
		return nil, err
	}
	r, err := c.Store.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &reader{r, c, name}, nil
}

// Sub implements store.Store.
func (c *Counting) Sub(dir string) store.Store {
	return &Counting{Store: c.Store.Sub(dir), Delay: c.Delay, HideLocal: c.HideLocal,
		shared: c.state(), prefix: store.Join(c.prefix, dir)}
}

// Local implements store.Store.
func (c *Counting) Local() (string, bool) {
	if c.HideLocal {
		return "", false
	}
	return c.Store.Local()
}

// reader counts each read as a ReadAt call.
type reader struct {
	store.Reader
	c    *Counting
	name string
}

func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	return r.ReadAtContext(context.Background(), p, off)
}

func (r *reader) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	if err := r.c.before(ctx, "ReadAt", r.name); err != nil {
		return 0, err
	}
	n, err := r.Reader.ReadAtContext(ctx, p, off)
	r.c.read(n)
	return n, err
}
