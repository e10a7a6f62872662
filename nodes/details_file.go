package nodes

import (
	"context"
	"errors"
	"io"

	"github.com/frifs/frifs/fault"
)

// detailsFile is fri/details.binpb: the raw InlineContent bytes, wherever they are stored.
type detailsFile struct {
	base
	n    version
	size int64
}

var (
	_ File   = (*detailsFile)(nil)
	_ peeker = (*detailsFile)(nil)
)

func (n version) detailsFile(l *loaded, h *history) *detailsFile {
	return &detailsFile{base: n.base("fri/details.binpb", n.key(), l.mtime), n: n, size: h.content.Size()}
}

// Type implements Node.
func (f *detailsFile) Type() Type { return TypeFile }

// Class implements File.
func (f *detailsFile) Class() Class { return C1 }

func (f *detailsFile) peek() (Attr, bool) {
	return Attr{Type: TypeFile, Size: f.size, Perm: permFile, Mtime: f.mtime, Ino: f.ino}, true
}

// Attr implements Node.
func (f *detailsFile) Attr(context.Context) (Attr, error) {
	a, _ := f.peek()
	return a, nil
}

// Open implements File.
func (f *detailsFile) Open(ctx context.Context) (Handle, error) {
	_, h, err := f.n.loadHistory(ctx)
	if err == nil && h.content == nil {
		err = h.h.Broken
	}
	if err != nil {
		return nil, f.n.t.failed("open", f.path, err)
	}
	return &readerHandle{t: f.n.t, path: f.path, r: h.content}, nil
}

// contextReaderAt is an io.ReaderAt that can be interrupted.
type contextReaderAt interface {
	ReadAtContext(ctx context.Context, p []byte, off int64) (int, error)
}

// readerHandle reads from an io.ReaderAt of fixed content. close, if set, is called once.
type readerHandle struct {
	t     *Tree
	path  string
	r     io.ReaderAt
	close func() error
}

// ReadAt implements Handle.
func (h *readerHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fault.New("read", h.path, fault.Invalid, "negative offset %d", off)
	}
	var n int
	var err error
	if c, ok := h.r.(contextReaderAt); ok {
		n, err = c.ReadAtContext(ctx, p, off)
	} else {
		n, err = h.r.ReadAt(p, off)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, h.t.failed("read", h.path, err)
	}
	return n, nil
}

// Close implements Handle.
func (h *readerHandle) Close() error {
	if h.close == nil {
		return nil
	}
	return h.close()
}
