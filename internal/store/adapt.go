package store

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/frifs/frifs/fault"
)

// asRemote makes any store a remote one.
func asRemote(st Store) remote {
	if r, ok := st.(remote); ok {
		return r
	}
	return adapted{st, ""}
}

// adapted is a store whose calls count as single requests, whatever they do.
type adapted struct {
	Store
	dir string // below the one that was adapted
}

func (a adapted) get(ctx context.Context, name string, off, n int64, want Object) (*body, error) {
	if want.ETag == "" && want.Modified.IsZero() {
		p, err := a.ReadRange(ctx, name, off, n)
		if err != nil {
			return nil, err
		}
		// Not the size of the object, but enough for who asked by name alone.
		return &body{io.NopCloser(bytes.NewReader(p)), Object{Name: name, Size: max(0, off) + int64(len(p))}, max(0, off)}, nil
	}
	r, err := a.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if !want.SameContent(r.Stat()) {
		return nil, fault.New("store.Read", Join(a.URI(), name), fault.Stale, "the object was replaced")
	}
	p := make([]byte, max(0, min(n, want.Size-off)))
	if _, err := r.ReadAtContext(ctx, p, off); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &body{io.NopCloser(bytes.NewReader(p)), r.Stat(), off}, nil
}

func (a adapted) page(ctx context.Context, dir string, _ []byte, _ int) ([]Object, []byte, error) {
	out, err := a.List(ctx, dir)
	return out, nil, err
}

func (a adapted) atTop(dir string) bool   { return Join(a.dir, dir) == "" }
func (adapted) id() string                { return "" }
func (adapted) ordered() bool             { return true }
func (adapted) opening() int64            { return 0 }
func (a adapted) below(dir string) remote { return adapted{a.Sub(dir), Join(a.dir, dir)} }
