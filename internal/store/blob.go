package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sort"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/frifs/frifs/fault"
)

// Blob is a store in a gocloud bucket. Make one with NewBlob or OpenURI.
type Blob struct {
	bucket *blob.Bucket
	root   string // URI of the first store, which stands for the keys below prefix
	prefix string // of the first store in the bucket, no slash at either end
	sub    string // of this store below the first one
	opt    Options
	guard  *fence // file:// only: links may not leave the bucket's directory
	bad    error  // Sub was given an invalid name
}

// NewBlob returns the store of a bucket. uri names it in messages and must hold no credentials. The caller keeps
// ownership of the bucket.
func NewBlob(b *blob.Bucket, uri string, opt Options) *Blob {
	return &Blob{bucket: b, root: uri, opt: opt}
}

// URI implements Store.
func (s *Blob) URI() string { return Join(s.root, s.sub) }

// Local implements Store: a bucket has no local path, not even one of file://.
func (s *Blob) Local() (string, bool) { return "", false }

// Sub implements Store.
func (s *Blob) Sub(dir string) Store {
	if dir == "" {
		return s
	}
	t := *s
	if err := CheckName(dir); err != nil && t.bad == nil {
		t.bad = err
	}
	t.sub = Join(s.sub, dir)
	return &t
}

func (s *Blob) where(name string) string { return Join(s.URI(), name) }

// key checks name and returns the key in the bucket.
func (s *Blob) key(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if s.bad != nil {
		return "", s.bad
	}
	if err := CheckName(name); err != nil {
		return "", err
	}
	key := Join(Join(s.prefix, s.sub), name)
	if s.guard != nil {
		if _, err := s.guard.resolve(filepath.Join(s.guard.root, filepath.FromSlash(key))); err != nil {
			return "", err
		}
	}
	return key, nil
}

// call bounds one call to the bucket.
func (s *Blob) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.opt.callTimeout())
}

func (s *Blob) fail(ctx, call context.Context, op, name string, err error) error {
	return failure(ctx, call, op, s.where(name), s.opt.callTimeout(), kindOfBlob(err), err)
}

// kindOfBlob classifies an error of gocloud.
func kindOfBlob(err error) fault.Kind {
	if k := fault.KindOf(err); k != fault.Unknown {
		return k
	}
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return fault.NotFound
	case gcerrors.PermissionDenied:
		return fault.Denied
	case gcerrors.InvalidArgument:
		return fault.Invalid
	case gcerrors.Unimplemented:
		return fault.Unsupported
	case gcerrors.Canceled:
		return fault.Cancelled
	case gcerrors.DeadlineExceeded:
		return fault.TimedOut
	case gcerrors.FailedPrecondition:
		return fault.Stale
	}
	return kindOfOS(err)
}

// List implements Store. Keys are asked for page by page; each page has its own time bound.
func (s *Blob) List(ctx context.Context, dir string) ([]Object, error) {
	const op = "store.List"
	key, err := s.key(ctx, dir)
	if err != nil {
		return nil, s.fail(ctx, nil, op, dir, err)
	}
	prefix := ""
	if key != "" {
		prefix = key + "/"
	}
	var out []Object
	opts := &blob.ListOptions{Prefix: prefix, Delimiter: "/"}
	for token := blob.FirstPageToken; len(token) > 0; {
		page, next, err := s.page(ctx, token, opts)
		if err != nil {
			return nil, s.fail(ctx, nil, op, dir, err)
		}
		for _, o := range page {
			leaf := strings.TrimSuffix(strings.TrimPrefix(o.Key, prefix), "/")
			if leaf == "" { // the marker object of the directory itself
				continue
			}
			out = append(out, Object{Name: Join(dir, leaf), Size: o.Size, Modified: o.ModTime, Dir: o.IsDir})
		}
		token = next
	}
	if len(out) == 0 && key != "" {
		return nil, fault.New(op, s.where(dir), fault.NotFound, "nothing is stored below this name")
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

func (s *Blob) page(ctx context.Context, token []byte, opts *blob.ListOptions) ([]*blob.ListObject, []byte, error) {
	call, cancel := s.call(ctx)
	defer cancel()
	page, next, err := s.bucket.ListPage(call, token, 1000, opts)
	if err == nil || errors.Is(err, io.EOF) {
		return page, next, nil
	}
	if call.Err() != nil && ctx.Err() == nil {
		err = fault.New("store.List", "", fault.TimedOut, "no answer from the store within %s", s.opt.callTimeout())
	}
	return nil, nil, err
}

// Stat implements Store with one request.
func (s *Blob) Stat(ctx context.Context, name string) (Object, error) {
	return s.stat(ctx, "store.Stat", name)
}

func (s *Blob) stat(ctx context.Context, op, name string) (Object, error) {
	key, err := s.key(ctx, name)
	if err != nil {
		return Object{}, s.fail(ctx, nil, op, name, err)
	}
	call, cancel := s.call(ctx)
	defer cancel()
	a, err := s.bucket.Attributes(call, key)
	if err != nil {
		return Object{}, s.fail(ctx, call, op, name, err)
	}
	return Object{Name: name, Size: a.Size, Modified: a.ModTime, ETag: a.ETag}, nil
}

// ReadRange implements Store: one request, two for a suffix (gocloud has no suffix range).
func (s *Blob) ReadRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	const op = "store.ReadRange"
	if n < 0 {
		obj, err := s.stat(ctx, op, name)
		if err != nil {
			return nil, err
		}
		off, n, _ = clip(off, n, obj.Size)
	}
	if off < 0 {
		return nil, fault.New(op, s.where(name), fault.Invalid, "negative offset %d", off)
	}
	key, err := s.key(ctx, name)
	if err != nil {
		return nil, s.fail(ctx, nil, op, name, err)
	}
	call, cancel := s.call(ctx)
	defer cancel()
	r, err := s.bucket.NewRangeReader(call, key, off, n, nil)
	if err != nil {
		return nil, s.fail(ctx, call, op, name, err)
	}
	defer func() { _ = r.Close() }()
	_, n, err = clip(off, n, r.Size())
	if err != nil {
		return nil, s.fail(ctx, nil, op, name, err)
	}
	p := make([]byte, n)
	got, err := io.ReadFull(r, p)
	if err != nil {
		return nil, s.fail(ctx, call, op, name, fmt.Errorf("%d of %d bytes at %d came: %w", got, n, off, err))
	}
	return p, nil
}

// Open implements Store with one request; each ReadAt is one more.
func (s *Blob) Open(ctx context.Context, name string) (Reader, error) {
	obj, err := s.stat(ctx, "store.Open", name)
	if err != nil {
		return nil, err
	}
	return &blobReader{s, obj}, nil
}

// blobReader reads an object by ranges and notices when it is another one.
type blobReader struct {
	s   *Blob
	obj Object
}

func (r *blobReader) Size() int64  { return r.obj.Size }
func (r *blobReader) Stat() Object { return r.obj }
func (r *blobReader) Close() error { return nil }

func (r *blobReader) ReadAt(p []byte, off int64) (int, error) {
	return r.ReadAtContext(context.Background(), p, off)
}

func (r *blobReader) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	const op = "store.ReadAt"
	where := r.s.where(r.obj.Name)
	if off < 0 {
		return 0, fault.New(op, where, fault.Invalid, "negative offset %d", off)
	}
	if off >= r.obj.Size {
		return 0, io.EOF
	}
	want := p
	if int64(len(p)) > r.obj.Size-off {
		want = p[:r.obj.Size-off]
	}
	key, err := r.s.key(ctx, r.obj.Name)
	if err != nil {
		return 0, r.gone(r.s.fail(ctx, nil, op, r.obj.Name, err))
	}
	call, cancel := r.s.call(ctx)
	defer cancel()
	br, err := r.s.bucket.NewRangeReader(call, key, off, int64(len(want)), nil)
	if err != nil {
		return 0, r.gone(r.s.fail(ctx, call, op, r.obj.Name, err))
	}
	defer func() { _ = br.Close() }()
	if now := (Object{Size: br.Size(), Modified: br.ModTime()}); !r.obj.SameContent(now) {
		return 0, fault.New(op, where, fault.Stale, "the object was replaced: %d bytes now, %d when it was opened", now.Size, r.obj.Size)
	}
	n, err := io.ReadFull(br, want)
	if err != nil {
		return n, r.s.fail(ctx, call, op, r.obj.Name, fmt.Errorf("%d of %d bytes at %d came: %w", n, len(want), off, err))
	}
	if len(want) < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// gone turns "not found" into "stale": the object was there when it was opened.
func (r *blobReader) gone(err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.New("store.ReadAt", r.s.where(r.obj.Name), fault.Stale, "the object is gone since it was opened: %w", err)
	}
	return err
}
