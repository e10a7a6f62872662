package storetest

import (
	"context"
	"fmt"
	"io"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

// Mem is a store.Store in memory. It behaves like an object store: directories exist only as prefixes, and an open
// reader notices that its object was replaced or deleted.
type Mem struct {
	Unordered bool // does not list in order by itself; set before first use

	shared *memory
	prefix string
	bad    error // Sub was given an invalid name
}

type memory struct {
	mu      sync.Mutex // guards the rest
	objects map[string]memObject
	changes int64
}

type memObject struct {
	data     []byte
	modified time.Time
	etag     string
}

// NewMem returns a store with these objects, by full name.
func NewMem(objects map[string][]byte) *Mem {
	m := &Mem{shared: &memory{objects: map[string]memObject{}}}
	for name, data := range objects {
		m.Put(name, data)
	}
	return m
}

// Put stores an object or replaces it. The data is not copied.
func (m *Mem) Put(name string, data []byte) {
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	m.shared.changes++
	n := m.shared.changes
	m.shared.objects[store.Join(m.prefix, name)] = memObject{data, time.Unix(1_700_000_000+n, 0), fmt.Sprintf("%q", fmt.Sprint("tag", n))}
}

// Delete removes an object.
func (m *Mem) Delete(name string) {
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	delete(m.shared.objects, store.Join(m.prefix, name))
}

// URI implements store.Store.
func (m *Mem) URI() string { return "test://mem/" + m.prefix }

// Local implements store.Store.
func (m *Mem) Local() (string, bool) { return "", false }

// Sub implements store.Store.
func (m *Mem) Sub(dir string) store.Store {
	if dir == "" {
		return m
	}
	bad := m.bad
	if err := store.CheckName(dir); err != nil && bad == nil {
		bad = err
	}
	return &Mem{m.Unordered, m.shared, store.Join(m.prefix, dir), bad}
}

func (m *Mem) check(name string) error {
	if m.bad != nil {
		return m.bad
	}
	return store.CheckName(name)
}

func (m *Mem) get(ctx context.Context, op, name string) (memObject, error) {
	where := store.Join(m.URI(), name)
	if err := ctx.Err(); err != nil {
		return memObject{}, fault.Wrap(op, where, err)
	}
	if err := m.check(name); err != nil {
		return memObject{}, fault.Wrap(op, where, err)
	}
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	o, ok := m.shared.objects[store.Join(m.prefix, name)]
	if !ok {
		return memObject{}, fault.New(op, where, fault.NotFound, "no such object")
	}
	return o, nil
}

// List implements store.Store.
func (m *Mem) List(ctx context.Context, dir string) ([]store.Object, error) {
	const op = "storetest.List"
	where := store.Join(m.URI(), dir)
	if err := ctx.Err(); err != nil {
		return nil, fault.Wrap(op, where, err)
	}
	if err := m.check(dir); err != nil {
		return nil, fault.Wrap(op, where, err)
	}
	prefix := store.Join(m.prefix, dir)
	if prefix != "" {
		prefix += "/"
	}
	m.shared.mu.Lock()
	defer m.shared.mu.Unlock()
	seen := map[string]store.Object{}
	for key, o := range m.shared.objects {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		leaf, _, isDir := strings.Cut(rest, "/")
		obj := store.Object{Name: store.Join(dir, leaf), Dir: isDir}
		if !isDir {
			obj.Size, obj.Modified = int64(len(o.data)), o.modified
		}
		seen[leaf] = obj
	}
	if len(seen) == 0 && prefix != "" {
		return nil, fault.New(op, where, fault.NotFound, "no objects below this name")
	}
	out := make([]store.Object, 0, len(seen))
	for _, o := range seen {
		out = append(out, o)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// ListFirst implements store.FirstLister.
func (m *Mem) ListFirst(ctx context.Context, dir string, n int) ([]store.Object, error) {
	out, err := m.List(ctx, dir)
	if !m.Unordered && len(out) > n {
		out = out[:n]
	}
	return out, err
}

// ListsInOrder implements store.FirstLister.
func (m *Mem) ListsInOrder() bool { return !m.Unordered }

// Stat implements store.Store.
func (m *Mem) Stat(ctx context.Context, name string) (store.Object, error) {
	o, err := m.get(ctx, "storetest.Stat", name)
	if err != nil {
		return store.Object{}, err
	}
	return store.Object{Name: name, Size: int64(len(o.data)), Modified: o.modified, ETag: o.etag}, nil
}

// ReadRange implements store.Store.
func (m *Mem) ReadRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	o, err := m.get(ctx, "storetest.ReadRange", name)
	if err != nil {
		return nil, err
	}
	size := int64(len(o.data))
	if n < 0 {
		off, n = max(0, size+n), -n
	}
	if off < 0 {
		return nil, fault.New("storetest.ReadRange", name, fault.Invalid, "negative offset %d", off)
	}
	off = min(off, size)
	return append([]byte{}, o.data[off:off+min(n, size-off)]...), nil
}

// Open implements store.Store.
func (m *Mem) Open(ctx context.Context, name string) (store.Reader, error) {
	obj, err := m.Stat(ctx, name)
	if err != nil {
		return nil, err
	}
	return &memReader{m, obj}, nil
}

type memReader struct {
	m   *Mem
	obj store.Object
}

func (r *memReader) Size() int64        { return r.obj.Size }
func (r *memReader) Stat() store.Object { return r.obj }
func (r *memReader) Close() error       { return nil }

func (r *memReader) ReadAt(p []byte, off int64) (int, error) {
	return r.ReadAtContext(context.Background(), p, off)
}

func (r *memReader) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	const op = "storetest.ReadAt"
	where := store.Join(r.m.URI(), r.obj.Name)
	o, err := r.m.get(ctx, op, r.obj.Name)
	if fault.Is(err, fault.NotFound) || err == nil && o.etag != r.obj.ETag {
		return 0, fault.New(op, where, fault.Stale, "the object is another one now")
	}
	if err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, fault.New(op, where, fault.Invalid, "negative offset %d", off)
	}
	if off >= int64(len(o.data)) {
		return 0, io.EOF
	}
	n := copy(p, o.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
