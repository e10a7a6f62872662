package nodes

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/frifs/frifs/fault"
)

// docFile is a file whose text is a document: built, measured and kept (as a whole when small) in the tree's bounded
// cache, keyed by inode.
type docFile struct {
	base
	t     *Tree
	class Class
	build func(ctx context.Context) (*document, error)
}

var (
	_ File   = (*docFile)(nil)
	_ peeker = (*docFile)(nil)
)

// Type implements Node.
func (f *docFile) Type() Type { return TypeFile }

// Class implements File.
func (f *docFile) Class() Class { return f.class }

func (f *docFile) attr(size int64) Attr {
	return Attr{Type: TypeFile, Size: size, Perm: permFile, Mtime: f.mtime, Ino: f.ino}
}

func (f *docFile) peek() (Attr, bool) {
	r, ok := f.t.docs.peek(f.ino)
	if !ok {
		return Attr{}, false
	}
	return f.attr(r.size), true
}

func (f *docFile) make(ctx context.Context) (*rendered, int64, error) {
	d, err := f.build(ctx)
	if err != nil {
		return nil, 0, err
	}
	r, err := d.render(ctx)
	if err != nil {
		return nil, 0, err
	}
	return r, r.cost(), nil
}

// rendered returns the document: from the cache, made within the request, or, for a C2 file, made by a job.
func (f *docFile) rendered(ctx context.Context) (*rendered, error) {
	var r *rendered
	var err error
	if f.class != C2 {
		r, err = f.t.docs.get(ctx, f.ino, f.make)
	} else {
		r, err = f.scanned(ctx)
	}
	if err == nil {
		err = f.sameSize(r)
	}
	if err != nil {
		return nil, f.t.failed("render", f.path, err)
	}
	return r, nil
}

// sameSize fails, once, where a document that is made anew has another size than was told of it: what it tells of may
// have been cleaned up meanwhile, and who has the file open must not see it shrink. Who looks the name up again gets it.
func (f *docFile) sameSize(r *rendered) error {
	told, ok := f.t.sizes.peek(f.ino)
	switch {
	case !ok:
		f.t.sizes.put(f.ino, r.size, 128)
	case told != r.size:
		f.t.sizes.forget(func(k uint64) bool { return k == f.ino })
		return resized("render", f.path, r.size, told)
	}
	return nil
}

// scanned lets a job make the document. The job's result is kept in the cache of documents; where it has left that, the
// job runs again.
func (f *docFile) scanned(ctx context.Context) (*rendered, error) {
	if r, ok := f.t.docs.peek(f.ino); ok {
		return r, nil
	}
	key := "document " + strconv.FormatUint(f.ino, 16)
	if _, ok := f.t.jobs.known(key); ok {
		f.t.jobs.forgetOne(key)
	}
	var made atomic.Pointer[rendered]
	_, err := f.t.jobs.size(ctx, key, f.path, func(ctx context.Context) (int64, error) {
		r, cost, err := f.make(ctx)
		if err != nil {
			return 0, err
		}
		made.Store(r)
		f.t.docs.put(f.ino, r, cost)
		return r.size, nil
	})
	if err != nil {
		return nil, err
	}
	if r := made.Load(); r != nil {
		return r, nil
	}
	if r, ok := f.t.docs.peek(f.ino); ok {
		return r, nil
	}
	return nil, fault.New("render", f.path, fault.TooLarge, "the document does not fit the cache; raise --memory")
}

// Attr implements Node.
func (f *docFile) Attr(ctx context.Context) (Attr, error) {
	r, err := f.rendered(ctx)
	if err != nil {
		return Attr{}, err
	}
	return f.attr(r.size), nil
}

// Open implements File.
func (f *docFile) Open(ctx context.Context) (Handle, error) {
	r, err := f.rendered(ctx)
	if err != nil {
		return nil, err
	}
	return &docHandle{f: f, r: r}, nil
}

// docHandle reads a rendered document. One reader at a time goes on sequentially from where it stopped; readers beside
// it start at a checkpoint.
type docHandle struct {
	f  *docFile
	r  *rendered
	mu sync.Mutex // protects at; only ever tried
	at tail
}

// ReadAt implements Handle.
func (h *docHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fault.New("read", h.f.path, fault.Invalid, "negative offset %d", off)
	}
	var at *tail
	if h.r.size > keepBytes && h.mu.TryLock() {
		defer h.mu.Unlock()
		at = &h.at
	}
	n, err := h.r.readAt(ctx, p, off, at)
	if err != nil {
		return 0, h.f.t.failed("read", h.f.path, err)
	}
	return n, nil
}

// Close implements Handle.
func (h *docHandle) Close() error { return nil }
