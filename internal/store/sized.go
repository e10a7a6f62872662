package store

import (
	"context"

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
}

// ListFirst returns at least the first n entries of dir in byte order: with one request where st can, else all of them.
func ListFirst(ctx context.Context, st Store, dir string, n int) ([]Object, error) {
	if f, ok := st.(FirstLister); ok {
		return f.ListFirst(ctx, dir, n)
	}
	return st.List(ctx, dir)
}
