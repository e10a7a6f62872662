package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"gocloud.dev/blob"

	"github.com/frifs/frifs/fault"
)

// remote is a store of which each call is one request, as the request layer wants it.
type remote interface {
	Store
	// get asks for n bytes at off, or for the last -n bytes if n is negative. If want has an e-tag or a time, the object
	// must be that one, else fault.Stale. The body holds at most what was asked for; ctx must live until it is closed.
	get(ctx context.Context, name string, off, n int64, want Object) (*body, error)
	// page returns one page of a listing; next is empty after the last.
	page(ctx context.Context, dir string, token []byte, size int) (out []Object, next []byte, err error)
	// atTop reports whether dir is the root of everything, which exists even without objects.
	atTop(dir string) bool
	// id names the store among all stores; "" if nothing may outlive this process.
	id() string
	// ordered reports whether listings come in byte order.
	ordered() bool
	// opening is the read that tells of an object whose name alone is known: of the last -n bytes, or of the first n.
	// 0: answers do not tell enough, or cost no less than Stat does.
	opening() int64
	// below is Sub.
	below(dir string) remote
}

// body is the answer to one read: the object as this answer describes it, and bytes of it from start on.
type body struct {
	io.ReadCloser
	obj   Object // Size is that of the whole object
	start int64
}

// length is how many bytes a body must hold that answers a request for n bytes (a suffix if negative).
func (b *body) length(n int64) int64 {
	if n < 0 {
		return b.obj.Size - b.start
	}
	return max(0, min(n, b.obj.Size-b.start))
}

// tailer is a driver with a suffix read of its own.
type tailer interface {
	tail(ctx context.Context, key string, n int64) (*body, error)
}

func (s *Blob) get(ctx context.Context, name string, off, n int64, want Object) (*body, error) {
	const op = "store.Read"
	if n >= 0 && off < 0 {
		return nil, fault.New(op, s.where(name), fault.Invalid, "negative offset %d", off)
	}
	key, err := s.key(ctx, name)
	if err != nil {
		return nil, s.fail(ctx, nil, op, name, err)
	}
	d := s.bucket.driver
	if n < 0 && (d == nil || !d.suffix()) {
		if want, err = s.stat(ctx, op, name); err != nil {
			return nil, err
		}
		off, n, _ = clip(off, n, want.Size)
	}
	b, err := s.ask(ctx, key, off, n, want.ETag)
	if a, ok := answerIn(err); ok && a.status == http.StatusRequestedRangeNotSatisfiable {
		return s.pastEnd(ctx, name, off, n, want)
	}
	if err != nil {
		return nil, s.fail(ctx, nil, op, name, err)
	}
	b.obj.Name = name
	if err := s.check(b, want); err != nil {
		_ = b.Close() // nothing of it is used
		return nil, err
	}
	return b, nil
}

// ask makes the request.
func (s *Blob) ask(ctx context.Context, key string, off, n int64, etag string) (*body, error) {
	d := s.bucket.driver
	if t, ok := d.(tailer); ok && n < 0 {
		return t.tail(ctx, key, -n)
	}
	if t, ok := d.(direct); ok {
		return t.read(ctx, key, off, n, etag)
	}
	suffix := max(0, -n)
	opts := &blob.ReaderOptions{}
	if d != nil && (suffix > 0 || etag != "") {
		opts.BeforeRead = func(as func(any) bool) error {
			d.prepare(as, suffix, etag)
			return nil
		}
	}
	var r *blob.Reader
	if err := s.bucket.do(func(b *blob.Bucket) (err error) {
		r, err = b.NewRangeReader(ctx, key, off, n, opts)
		return err
	}); err != nil {
		return nil, err
	}
	b := &body{r, Object{Size: r.Size(), Modified: r.ModTime()}, off}
	if n < 0 {
		b.start = max(0, b.obj.Size-suffix)
	}
	if d == nil {
		return b, nil
	}
	tag, contentRange, known := d.answered(r)
	b.obj.ETag = tag
	if known && n != 0 && b.obj.Size > 0 && b.start != startOf(contentRange) {
		_ = r.Close() // nothing of it is used
		return nil, fault.New("", "", fault.Unavailable, "bytes from %d on were asked for, the answer begins at %d: does a proxy drop the Range header?", b.start, startOf(contentRange))
	}
	return b, nil
}

// startOf is the first byte of a Content-Range header; an answer without one begins at 0.
func startOf(contentRange string) int64 {
	rest := strings.TrimPrefix(contentRange, "bytes ")
	first, _, _ := strings.Cut(rest, "-")
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// check compares the answer with what was asked for.
func (s *Blob) check(b *body, want Object) error {
	if want.ETag == "" && want.Modified.IsZero() {
		return nil
	}
	if !want.SameContent(b.obj) {
		return fault.New("store.Read", s.where(b.obj.Name), fault.Stale,
			"the object was replaced: %d bytes now, %d when it was opened", b.obj.Size, want.Size)
	}
	return nil
}

// pastEnd answers a read that begins behind the end of the object: nothing to read is no error.
func (s *Blob) pastEnd(ctx context.Context, name string, off, n int64, want Object) (*body, error) {
	obj, err := s.stat(ctx, "store.Read", name)
	if err != nil {
		return nil, err
	}
	b := &body{http.NoBody, obj, obj.Size}
	if err := s.check(b, want); err != nil {
		return nil, err
	}
	if obj.Size > 0 && (n < 0 || off < obj.Size) {
		return nil, fault.New("store.Read", s.where(name), fault.Unavailable, "the store refuses a range at %d of an object of %d bytes", off, obj.Size)
	}
	return b, nil
}

// readRange is Store.ReadRange by one get.
func readRange(ctx context.Context, s remote, name string, off, n int64) ([]byte, error) {
	b, err := s.get(ctx, name, off, n, Object{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = b.Close() }() // only read from
	p := make([]byte, b.length(n))
	if err := b.fill(ctx, s, p); err != nil {
		return nil, err
	}
	return p, nil
}

// fill reads exactly p. What is missing gives fault.Unavailable: the object is there, the answer was cut.
func (b *body) fill(ctx context.Context, s remote, p []byte) error {
	got, err := io.ReadFull(b, p)
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	kind := kindOfBlob(err)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		kind = fault.Unavailable
	}
	err = fmt.Errorf("%d of %d bytes came: %w", got, len(p), brief(err))
	return failure(ctx, nil, "store.Read", fmt.Sprintf("%s @%d", Join(s.URI(), b.obj.Name), b.start), 0, kind, err)
}

// readObject is Reader.ReadAtContext by one get.
func readObject(ctx context.Context, s remote, obj Object, p []byte, off int64) (int, error) {
	const op = "store.ReadAt"
	where := Join(s.URI(), obj.Name)
	if off < 0 {
		return 0, fault.New(op, where, fault.Invalid, "negative offset %d", off)
	}
	if off >= obj.Size {
		return 0, io.EOF
	}
	want := p
	if int64(len(p)) > obj.Size-off {
		want = p[:obj.Size-off]
	}
	b, err := s.get(ctx, obj.Name, off, int64(len(want)), obj)
	if err != nil {
		return 0, gone(op, where, err)
	}
	defer func() { _ = b.Close() }() // only read from
	if err := b.fill(ctx, s, want); err != nil {
		return 0, err
	}
	if len(want) < len(p) {
		return len(want), io.EOF
	}
	return len(want), nil
}

// gone turns "not found" into "stale": the object was there when it was opened.
func gone(op, where string, err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.New(op, where, fault.Stale, "the object is gone since it was opened: %w", err)
	}
	return err
}
