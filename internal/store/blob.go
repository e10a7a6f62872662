package store

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	"gocloud.dev/blob"

	"github.com/frifs/frifs/fault"
)

// bucket is an open bucket and what is known of its kind.
type bucket struct {
	mu     sync.Mutex   // guards blob and region
	blob   *blob.Bucket // replaced where the server says that the bucket is in another region
	region string
	in     func(region string) (*blob.Bucket, error) // opens the bucket in a region; nil: there are no regions

	identity  string // names the bucket among all stores, without credentials; "" if nothing outlives this process
	driver    driver // nil: nothing is known beyond gocloud
	unordered bool   // listings come in no order
}

// do makes a request of the bucket, and a second one where the answer to the first was that the bucket is elsewhere.
func (b *bucket) do(request func(*blob.Bucket) error) error {
	b.mu.Lock()
	at, region := b.blob, b.region
	b.mu.Unlock()
	err := request(at)
	if b.in == nil {
		return err
	}
	a, ok := answerIn(err)
	to := a.header.Get("X-Amz-Bucket-Region")
	if !ok || to == "" || to == region || a.status != http.StatusMovedPermanently && a.status != http.StatusTemporaryRedirect &&
		a.status != http.StatusBadRequest && a.status != http.StatusForbidden {
		return err
	}
	if at, err = b.move(to); err != nil {
		return err
	}
	return request(at)
}

// move goes to another region, with all requests from now on.
func (b *bucket) move(region string) (*blob.Bucket, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.region != region {
		at, err := b.in(region)
		if err != nil {
			return nil, err
		}
		b.blob, b.region = at, region // the old one may be in use; it holds nothing that has to be closed
	}
	return b.blob, nil
}

// driver is what a cloud can do beyond gocloud's common ground.
type driver interface {
	// suffix reports whether the last n bytes can be asked for without knowing the size.
	suffix() bool
	// prepare changes a request before it is made: a suffix of so many bytes instead of the range (if positive), and an
	// e-tag that the object must have (if not empty).
	prepare(as func(any) bool, suffix int64, etag string)
	// listed, attributes and answered return the e-tag of an object in one and the same form, "" if there is none.
	// contentRange is the header of the answer; known says whether it could be looked at.
	listed(o *blob.ListObject) string
	attributes(a *blob.Attributes) string
	answered(r *blob.Reader) (etag, contentRange string, known bool)
}

// Blob is a store in a gocloud bucket, one request for each call and no more than one try. Make one with NewBlob;
// OpenURI puts the request layer around it.
type Blob struct {
	bucket *bucket
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
	return &Blob{bucket: &bucket{blob: b}, root: uri, opt: opt}
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
	kind := kindOfBlob(err)
	return failure(ctx, call, op, s.where(name), s.opt.callTimeout(), kind, explained(err, kind, op == "store.List"))
}

// List implements Store. Keys are asked for page by page; each page has its own time bound.
func (s *Blob) List(ctx context.Context, dir string) ([]Object, error) {
	return listPages(ctx, s, dir)
}

// listPages collects the pages of one directory.
func listPages(ctx context.Context, s remote, dir string) ([]Object, error) {
	var out []Object
	for token := blob.FirstPageToken; len(token) > 0; {
		page, next, err := s.page(ctx, dir, token, pageSize)
		if err != nil {
			return nil, err
		}
		out, token = append(out, page...), next
		if len(out) > maxNames {
			return nil, fault.New("store.List", Join(s.URI(), dir), fault.TooLarge, "there are more than %d names in this directory", maxNames)
		}
	}
	if len(out) == 0 && !s.atTop(dir) {
		return nil, fault.New("store.List", Join(s.URI(), dir), fault.NotFound, "nothing is stored below this name")
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// maxNames is how many names a listing holds at most: a server that goes on for ever must not take all memory.
const maxNames = 1 << 19

// pageSize is how many keys one request of a listing asks for: what all clouds give at most.
const pageSize = 1000

// atTop reports whether dir is the whole bucket, which exists even if it is empty.
func (s *Blob) atTop(dir string) bool { return Join(Join(s.prefix, s.sub), dir) == "" }

// id names the store for caches that outlive it: no two stores of other content have the same.
func (s *Blob) id() string {
	if s.bucket.identity == "" {
		return ""
	}
	return s.bucket.identity + "|" + Join(s.prefix, s.sub)
}

func (s *Blob) ordered() bool { return !s.bucket.unordered }

// opening implements remote.
func (s *Blob) opening() int64 {
	d := s.bucket.driver
	// An answer that does not say which part of the object it is cannot be told from one that was cut short.
	if _, ok := d.(tailer); ok || d == nil {
		return 0
	}
	switch {
	case d.suffix():
		return -BlockSize
	}
	return BlockSize
}

// below implements remote.
func (s *Blob) below(dir string) remote { return s.Sub(dir).(*Blob) }

// page returns one page of a listing: one request. next is empty after the last page.
func (s *Blob) page(ctx context.Context, dir string, token []byte, size int) (out []Object, next []byte, err error) {
	const op = "store.List"
	key, err := s.key(ctx, dir)
	if err != nil {
		return nil, nil, s.fail(ctx, nil, op, dir, err)
	}
	prefix := ""
	if key != "" {
		prefix = key + "/"
	}
	call, cancel := s.call(ctx)
	defer cancel()
	if d, ok := s.bucket.driver.(direct); ok {
		out, next, err = d.list(call, prefix, token, size)
	} else {
		out, next, err = s.list(call, prefix, token, size)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, s.fail(ctx, call, op, dir, err)
	}
	kept := out[:0]
	for _, o := range out {
		if leaf := strings.TrimSuffix(strings.TrimPrefix(o.Name, prefix), "/"); leaf != "" { // not the marker object of the directory itself
			o.Name = Join(dir, leaf)
			kept = append(kept, o)
		}
	}
	return kept, next, nil
}

// list is direct.list by gocloud.
func (s *Blob) list(ctx context.Context, prefix string, token []byte, size int) (out []Object, next []byte, err error) {
	var page []*blob.ListObject
	err = s.bucket.do(func(b *blob.Bucket) (err error) {
		page, next, err = b.ListPage(ctx, token, size, &blob.ListOptions{Prefix: prefix, Delimiter: "/"})
		return err
	})
	for _, o := range page {
		obj := Object{Name: o.Key, Size: o.Size, Modified: o.ModTime, Dir: o.IsDir}
		if s.bucket.driver != nil && !o.IsDir {
			obj.ETag = s.bucket.driver.listed(o)
		}
		out = append(out, obj)
	}
	return out, next, err
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
	if d, ok := s.bucket.driver.(direct); ok {
		obj, err := d.head(call, key)
		if err != nil {
			return Object{}, s.fail(ctx, call, op, name, err)
		}
		obj.Name = name
		return obj, nil
	}
	var a *blob.Attributes
	if err := s.bucket.do(func(b *blob.Bucket) (err error) {
		a, err = b.Attributes(call, key)
		return err
	}); err != nil {
		return Object{}, s.fail(ctx, call, op, name, err)
	}
	obj := Object{Name: name, Size: a.Size, Modified: a.ModTime, ETag: a.ETag}
	if s.bucket.driver != nil {
		obj.ETag = s.bucket.driver.attributes(a)
	}
	return obj, nil
}

// ReadRange implements Store: one request; two for a suffix where the cloud has no suffix ranges.
func (s *Blob) ReadRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	call, cancel := s.call(ctx)
	defer cancel()
	p, err := readRange(call, s, name, off, n)
	if err != nil && ctx.Err() == nil && call.Err() != nil {
		return nil, s.fail(ctx, call, "store.ReadRange", name, err)
	}
	return p, err
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
	call, cancel := r.s.call(ctx)
	defer cancel()
	n, err := readObject(call, r.s, r.obj, p, off)
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil && call.Err() != nil {
		err = r.s.fail(ctx, call, "store.ReadAt", r.obj.Name, err)
	}
	return n, err
}
