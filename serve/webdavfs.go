package serve

import (
	"context"
	"io"
	"io/fs"
	"time"

	"golang.org/x/net/webdav"

	"github.com/frifs/frifs/nodes"
)

// known is what one PROPFIND may say, as a file system for package webdav: everything has been looked up, so that the
// package waits for nothing and cannot start work. Paths begin with a slash and do not end with one.
type known struct{ infos map[string]*info }

var _ webdav.FileSystem = (*known)(nil)

// Stat implements webdav.FileSystem.
func (k *known) Stat(_ context.Context, name string) (fs.FileInfo, error) {
	if i, ok := k.infos[name]; ok {
		return i, nil
	}
	return nil, fs.ErrNotExist
}

// OpenFile implements webdav.FileSystem: for PROPFIND, which reads no content.
func (k *known) OpenFile(_ context.Context, name string, flag int, _ fs.FileMode) (webdav.File, error) {
	if flag != 0 {
		return nil, fs.ErrPermission
	}
	if i, ok := k.infos[name]; ok {
		return knownFile{i}, nil
	}
	return nil, fs.ErrNotExist
}

// Mkdir implements webdav.FileSystem.
func (*known) Mkdir(context.Context, string, fs.FileMode) error { return fs.ErrPermission }

// RemoveAll implements webdav.FileSystem.
func (*known) RemoveAll(context.Context, string) error { return fs.ErrPermission }

// Rename implements webdav.FileSystem.
func (*known) Rename(context.Context, string, string) error { return fs.ErrPermission }

// knownFile is a node opened by package webdav.
type knownFile struct{ i *info }

var _ webdav.File = knownFile{}

func (knownFile) Close() error                   { return nil }
func (knownFile) Read([]byte) (int, error)       { return 0, fs.ErrPermission }
func (knownFile) Write([]byte) (int, error)      { return 0, fs.ErrPermission }
func (knownFile) Seek(int64, int) (int64, error) { return 0, fs.ErrPermission }
func (f knownFile) Stat() (fs.FileInfo, error)   { return f.i, nil }
func (f knownFile) Readdir(n int) ([]fs.FileInfo, error) {
	if n > 0 {
		return nil, io.ErrUnexpectedEOF // never asked: it reads directories whole
	}
	out := make([]fs.FileInfo, len(f.i.below))
	for k, i := range f.i.below {
		out[k] = i
	}
	return out, nil
}

// info is a node as a PROPFIND shows it. Links are followed, so its kind is never that of a link.
type info struct {
	path  string
	name  string
	kind  nodes.Type
	tags  tagger
	attr  *nodes.Attr // nil where not at hand
	below []*info     // of a directory whose entries are asked for
}

var (
	_ fs.FileInfo         = (*info)(nil)
	_ webdav.ETager       = (*info)(nil)
	_ webdav.ContentTyper = (*info)(nil)
)

// Name implements fs.FileInfo.
func (i *info) Name() string { return i.name }

// IsDir implements fs.FileInfo.
func (i *info) IsDir() bool { return i.kind == nodes.TypeDir }

// Sys implements fs.FileInfo.
func (i *info) Sys() any { return nil }

// Mode implements fs.FileInfo.
func (i *info) Mode() fs.FileMode {
	if i.IsDir() {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// Size implements fs.FileInfo.
func (i *info) Size() int64 {
	if i.attr == nil {
		return unknownSize
	}
	return i.attr.Size
}

// ModTime implements fs.FileInfo: the zero time where it is not known.
func (i *info) ModTime() time.Time {
	if i.attr == nil {
		return time.Time{}
	}
	return i.attr.Mtime
}

// ETag implements webdav.ETager.
func (i *info) ETag(context.Context) (string, error) {
	if i.attr == nil {
		return unknownTag, nil
	}
	return i.tags.tag(*i.attr), nil
}

// ContentType implements webdav.ContentTyper.
func (i *info) ContentType(context.Context) (string, error) { return mediaType(i.name), nil }
