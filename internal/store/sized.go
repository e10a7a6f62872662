package store

import (
	"context"
	"errors"
	"io"

	"github.com/frifs/frifs/fault"
)

// SizedOpener is a store that opens a known object without asking for it first.
type SizedOpener interface {
	// OpenSized opens obj, as a listing or Stat of this store gave it. The first read finds out whether it is still that
	// object; fault.Stale if not.
	OpenSized(ctx context.Context, obj Object) (Reader, error)
}

// OpenObject opens obj, as a listing or Stat of st gave it: without a request where st can, else like Open, with
// fault.Stale if it is another object now.
func OpenObject(ctx context.Context, st Store, obj Object) (Reader, error) {
	if s, ok := st.(SizedOpener); ok && (obj.ETag != "" || !obj.Modified.IsZero()) {
		return s.OpenSized(ctx, obj)
	}
	r, err := st.Open(ctx, obj.Name)
	if err != nil {
		return nil, err
	}
	if now := r.Stat(); !obj.SameContent(now) {
		r.Close()
		return nil, fault.New("store.Open", Join(st.URI(), obj.Name), fault.Stale,
			"the object was replaced: %d bytes now, %d when it was listed", now.Size, obj.Size)
	}
	return r, nil
}

// FirstLister is a store that can list the beginning of a directory for less than the whole.
type FirstLister interface {
	// ListFirst returns at least the first n entries of dir in byte order, or all if there are fewer.
	ListFirst(ctx context.Context, dir string, n int) ([]Object, error)
	// ListsInOrder reports whether the store gives names in byte order by itself, so that ListFirst is one request. Of
	// other stores it lists everything.
	ListsInOrder() bool
}

// ListsInOrder reports whether ListFirst costs one request, however many names a directory of st holds.
func ListsInOrder(st Store) bool {
	f, ok := st.(FirstLister)
	return ok && f.ListsInOrder()
}

// ListFirst returns at least the first n entries of dir in byte order: with one request where st can, else all of them.
func ListFirst(ctx context.Context, st Store, dir string, n int) ([]Object, error) {
	if f, ok := st.(FirstLister); ok {
		return f.ListFirst(ctx, dir, n)
	}
	return st.List(ctx, dir)
}

// ReadObject returns n bytes at off of obj, as a listing or Stat of st gave it; fewer only where the object ends. A store
// that opens known objects for nothing (a SizedOpener) may take them from its caches, and gives fault.Stale where another
// object has the name now. Other stores read by name, whatever the object is.
func ReadObject(ctx context.Context, st Store, obj Object, off, n int64) ([]byte, error) {
	s, ok := st.(SizedOpener)
	if !ok || obj.ETag == "" && obj.Modified.IsZero() || n < 0 || off < 0 {
		return st.ReadRange(ctx, obj.Name, off, n)
	}
	r, err := s.OpenSized(ctx, obj)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	off = min(off, obj.Size)
	p := make([]byte, min(n, obj.Size-off))
	if len(p) == 0 {
		return p, nil
	}
	if _, err := r.ReadAtContext(ctx, p, off); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return p, nil
}
