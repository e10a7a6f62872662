package nodes

import (
	"context"
	"path/filepath"

	"github.com/frifs/frifs/internal/store"
)

// LocalHandle is implemented by a Handle whose bytes may be exactly those of one open file of the operating system, from
// the first to the last. Fd is the descriptor of the very file that Open has verified; it is open until Close, and must
// only be read from. ok is false where there is none.
type LocalHandle interface {
	Fd() (fd int, ok bool)
}

var (
	_ LocalFile   = (*storeFile)(nil)
	_ LocalHandle = (*readerHandle)(nil)
)

// Fd implements LocalHandle: the file of the dataset, if the store is a directory of this machine.
func (h *readerHandle) Fd() (fd int, ok bool) {
	r, ok := h.r.(store.LocalReader)
	if !ok || h.close == nil { // a reader of others may be closed at any time
		return 0, false
	}
	return r.Fd(), true
}

// LocalPath implements LocalFile: the file of the dataset, if the store is a directory of this machine.
func (f *storeFile) LocalPath(ctx context.Context) (path string, off int64, ok bool) {
	loc, err := f.locate(ctx)
	if err != nil {
		return "", 0, false
	}
	dir, ok := loc.Store.Local()
	if !ok {
		return "", 0, false
	}
	return filepath.Join(dir, filepath.FromSlash(loc.Path)), 0, true
}
