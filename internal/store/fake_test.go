package store

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
)

// fake is a remote store whose answers a test scripts. Times are those of the test's bubble.
type fake struct {
	mu       sync.Mutex
	objects  map[string]fakeObject
	requests []request
	now, max int // requests under way
	lasting  string
	ends     int64 // what opening brings

	// script says how to answer a request; nil answers at once. n counts requests from 1.
	script func(n int, r request) reply
}

type fakeObject struct {
	data []byte
	etag string
}

type request struct {
	kind, name string
	off, n     int64
}

type reply struct {
	wait  time.Duration // before the first byte
	err   error
	after int           // bytes that come before cut or stall; used if one is set
	cut   bool          // the connection breaks there
	stall time.Duration // nothing comes for so long there
}

func newFake(objects map[string]string) *fake {
	f := &fake{objects: map[string]fakeObject{}}
	for n, d := range objects {
		f.objects[n] = fakeObject{[]byte(d), `"1"`}
	}
	return f
}

func (f *fake) set(name, data, etag string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects[name] = fakeObject{[]byte(data), etag}
}

func (f *fake) begin(ctx context.Context, r request) (reply, error) {
	f.mu.Lock()
	f.requests = append(f.requests, r)
	n := len(f.requests)
	f.now++
	f.max = max(f.max, f.now)
	script := f.script
	f.mu.Unlock()
	var a reply
	if script != nil {
		a = script(n, r)
	}
	if err := wait(ctx, a.wait); err != nil {
		return a, err
	}
	return a, a.err
}

func (f *fake) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now--
}

func wait(ctx context.Context, d time.Duration) error {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return fault.New("fake", "", fault.KindOf(err), "%w", err)
	}
	return nil
}

func (f *fake) find(name string) (Object, []byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.objects[name]
	if !ok {
		return Object{}, nil, fault.New("fake", name, fault.NotFound, "no such object")
	}
	return Object{Name: name, Size: int64(len(o.data)), Modified: time.Unix(1e9, 0), ETag: o.etag}, o.data, nil
}

func (f *fake) Stat(ctx context.Context, name string) (Object, error) {
	defer f.end()
	if _, err := f.begin(ctx, request{"stat", name, 0, 0}); err != nil {
		return Object{}, err
	}
	o, _, err := f.find(name)
	return o, err
}

func (f *fake) get(ctx context.Context, name string, off, n int64, want Object) (*body, error) {
	a, err := f.begin(ctx, request{"read", name, off, n})
	if err != nil {
		f.end()
		return nil, err
	}
	o, data, err := f.find(name)
	if err == nil && want.ETag != "" && want.ETag != o.ETag {
		err = fault.New("fake", name, fault.Stale, "replaced")
	}
	if err != nil {
		f.end()
		return nil, err
	}
	off, n, _ = clip(off, n, o.Size)
	return &body{&fakeBody{f: f, ctx: ctx, a: a, r: bytes.NewReader(data[off : off+n])}, o, off}, nil
}

type fakeBody struct {
	f    *fake
	ctx  context.Context
	a    reply
	r    *bytes.Reader
	read int
	once sync.Once
}

func (b *fakeBody) Read(p []byte) (int, error) {
	if b.a.cut || b.a.stall > 0 {
		switch left := b.a.after - b.read; {
		case left > 0:
			p = p[:min(len(p), left)]
		case b.a.cut:
			return 0, io.ErrUnexpectedEOF
		default:
			if err := wait(b.ctx, b.a.stall); err != nil {
				return 0, err
			}
			b.a.stall = 0
		}
	}
	n, err := b.r.Read(p)
	b.read += n
	return n, err
}

func (b *fakeBody) Close() error {
	b.once.Do(b.f.end)
	return nil
}

func (f *fake) page(ctx context.Context, dir string, _ []byte, _ int) ([]Object, []byte, error) {
	defer f.end()
	if _, err := f.begin(ctx, request{"list", dir, 0, 0}); err != nil {
		return nil, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Object
	for n, o := range f.objects {
		if rest, ok := strings.CutPrefix(n, Join(dir, "x")[:len(Join(dir, "x"))-1]); ok && !strings.Contains(rest, "/") {
			out = append(out, Object{Name: n, Size: int64(len(o.data)), Modified: time.Unix(1e9, 0), ETag: o.etag})
		}
	}
	slices.SortFunc(out, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	return out, nil, nil
}

func (f *fake) atTop(dir string) bool { return dir == "" }
func (f *fake) id() string            { return f.lasting }
func (f *fake) ordered() bool         { return true }
func (f *fake) opening() int64        { return f.ends }
func (f *fake) URI() string           { return "fake://store" }
func (f *fake) Local() (string, bool) { return "", false }
func (f *fake) below(string) remote   { panic("the tests use full names") }
func (f *fake) Sub(string) Store      { panic("the tests use full names") }
func (f *fake) List(ctx context.Context, dir string) ([]Object, error) {
	return listPages(ctx, f, dir)
}
func (f *fake) ReadRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	return readRange(ctx, f, name, off, n)
}
func (f *fake) Open(context.Context, string) (Reader, error) { panic("the layer opens") }

// count is how many requests of a kind were made.
func (f *fake) count(kind string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if r.kind == kind {
			n++
		}
	}
	return n
}

func (f *fake) underWay() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fake) busiest() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.max
}

// pattern is n bytes, each of which tells where it stands.
func pattern(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return string(b)
}

func open(t *testing.T, st Store, name string) Reader {
	t.Helper()
	r, err := st.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// reads reads n bytes at off and compares them with what must be there.
func reads(t *testing.T, r Reader, want string, off, n int) {
	t.Helper()
	p := make([]byte, n)
	if _, err := r.ReadAtContext(t.Context(), p, int64(off)); err != nil {
		t.Fatalf("read %d at %d: %v", n, off, err)
	}
	if string(p) != want[off:off+n] {
		t.Fatalf("read %d at %d: wrong bytes", n, off)
	}
}
