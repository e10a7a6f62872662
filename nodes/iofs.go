package nodes

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/frifs/frifs/fault"
)

// FS presents the tree below root as an io/fs file system. It follows links in Open, Stat and ReadDir, as os.DirFS
// does. Requests are not bounded in time beyond what the nodes do themselves.
func FS(root Dir) fs.FS { return treeFS{root} }

type treeFS struct{ root Dir }

var (
	_ fs.StatFS     = treeFS{}
	_ fs.ReadDirFS  = treeFS{}
	_ fs.ReadLinkFS = treeFS{}
)

func (t treeFS) find(op, name string, follow bool) (Node, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	n, err := walkPath(context.Background(), t.root, name, follow)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return n, nil
}

// fsError lets errors.Is find the io/fs sentinel that a kind means, beside the error itself.
type fsError struct {
	error
	sentinel error
}

func (e fsError) Unwrap() []error { return []error{e.error, e.sentinel} }

func pathError(op, name string, err error) error {
	switch fault.KindOf(err) {
	case fault.NotFound, fault.Stale:
		err = fsError{err, fs.ErrNotExist}
	case fault.Denied:
		err = fsError{err, fs.ErrPermission}
	case fault.Invalid:
		err = fsError{err, fs.ErrInvalid}
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Open implements fs.FS.
func (t treeFS) Open(name string) (fs.File, error) {
	n, err := t.find("open", name, true)
	if err != nil {
		return nil, err
	}
	o := &openNode{name: name, node: n}
	if f, ok := n.(File); ok {
		if o.handle, err = f.Open(context.Background()); err != nil {
			return nil, pathError("open", name, err)
		}
	}
	return o, nil
}

// Stat implements fs.StatFS.
func (t treeFS) Stat(name string) (fs.FileInfo, error) {
	n, err := t.find("stat", name, true)
	if err != nil {
		return nil, err
	}
	return infoOf("stat", name, n)
}

// Lstat implements fs.ReadLinkFS.
func (t treeFS) Lstat(name string) (fs.FileInfo, error) {
	n, err := t.find("lstat", name, false)
	if err != nil {
		return nil, err
	}
	return infoOf("lstat", name, n)
}

// ReadLink implements fs.ReadLinkFS.
func (t treeFS) ReadLink(name string) (string, error) {
	n, err := t.find("readlink", name, false)
	if err != nil {
		return "", err
	}
	l, ok := n.(Link)
	if !ok {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	return l.Target(context.Background())
}

// ReadDir implements fs.ReadDirFS.
func (t treeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.find("readdir", name, true)
	if err != nil {
		return nil, err
	}
	d, ok := n.(Dir)
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: errors.New("not a directory")}
	}
	return dirEntries(name, d)
}

func dirEntries(name string, d Dir) ([]fs.DirEntry, error) {
	es, err := d.Entries(context.Background())
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	out := make([]fs.DirEntry, len(es))
	for i, e := range es {
		out[i] = dirEntry{dir: d, e: e}
	}
	return out, nil
}

type dirEntry struct {
	dir Dir
	e   Entry
}

func (d dirEntry) Name() string      { return d.e.Name }
func (d dirEntry) IsDir() bool       { return d.e.Type == TypeDir }
func (d dirEntry) Type() fs.FileMode { return modeOf(Attr{Type: d.e.Type}).Type() }
func (d dirEntry) String() string    { return fs.FormatDirEntry(d) }

// Info implements fs.DirEntry: attributes are found only now if the listing had none.
func (d dirEntry) Info() (fs.FileInfo, error) {
	if d.e.Attr != nil {
		return fileInfo{d.e.Name, *d.e.Attr}, nil
	}
	n, err := d.dir.Lookup(context.Background(), d.e.Name)
	if err != nil {
		return nil, pathError("lstat", d.e.Name, err)
	}
	return infoOf("lstat", d.e.Name, n)
}

func infoOf(op, name string, n Node) (fs.FileInfo, error) {
	a, err := n.Attr(context.Background())
	if err != nil {
		return nil, pathError(op, name, err)
	}
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '/' {
			name = name[i+1:]
			break
		}
	}
	return fileInfo{name, a}, nil
}

type fileInfo struct {
	name string
	attr Attr
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.attr.Size }
func (i fileInfo) Mode() fs.FileMode  { return modeOf(i.attr) }
func (i fileInfo) ModTime() time.Time { return i.attr.Mtime }
func (i fileInfo) IsDir() bool        { return i.attr.Type == TypeDir }
func (i fileInfo) Sys() any           { return i.attr }
func (i fileInfo) String() string     { return fs.FormatFileInfo(i) }

func modeOf(a Attr) fs.FileMode {
	m := fs.FileMode(a.Perm)
	switch a.Type {
	case TypeDir:
		m |= fs.ModeDir
	case TypeLink:
		m |= fs.ModeSymlink
	case TypeFile, TypeUnknown:
	}
	return m
}

// openNode is an open file or directory. It is not safe for concurrent use, except for ReadAt.
type openNode struct {
	name   string
	node   Node
	handle Handle // nil for a directory
	off    int64
	rest   []fs.DirEntry
	listed bool
}

var (
	_ fs.ReadDirFile = (*openNode)(nil)
	_ io.ReaderAt    = (*openNode)(nil)
)

func (o *openNode) Stat() (fs.FileInfo, error) { return infoOf("stat", o.name, o.node) }

func (o *openNode) Read(p []byte) (int, error) {
	n, err := o.ReadAt(p, o.off)
	o.off += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// ReadAt implements io.ReaderAt.
func (o *openNode) ReadAt(p []byte, off int64) (int, error) {
	if o.handle == nil {
		return 0, &fs.PathError{Op: "read", Path: o.name, Err: errors.New("is a directory")}
	}
	if off < 0 {
		return 0, &fs.PathError{Op: "read", Path: o.name, Err: fs.ErrInvalid}
	}
	n, err := o.handle.ReadAt(context.Background(), p, off)
	if err != nil {
		return n, pathError("read", o.name, err)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (o *openNode) ReadDir(n int) ([]fs.DirEntry, error) {
	d, ok := o.node.(Dir)
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: o.name, Err: errors.New("not a directory")}
	}
	if !o.listed {
		es, err := dirEntries(o.name, d)
		if err != nil {
			return nil, err
		}
		o.rest, o.listed = es, true
	}
	take := len(o.rest)
	if n > 0 {
		if take == 0 {
			return nil, io.EOF
		}
		take = min(take, n)
	}
	es := o.rest[:take:take]
	o.rest = o.rest[take:]
	return es, nil
}

func (o *openNode) Close() error {
	if o.handle == nil {
		return nil
	}
	return o.handle.Close()
}
