package nodes

import (
	"context"
	"path/filepath"
)

var _ LocalFile = (*storeFile)(nil)

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
