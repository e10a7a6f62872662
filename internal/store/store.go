package store

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/frifs/frifs/fault"
)

// DefaultCallTimeout bounds one call to a store (docs/DESIGN.md, "Errors").
const DefaultCallTimeout = 15 * time.Second

// Object is what a store knows of one file, or of one directory in a listing. A directory of an object store has
// neither Size nor Modified.
type Object struct {
	Name     string    // relative to the store's root, slash-separated, no leading slash
	Size     int64     // bytes
	Modified time.Time // the store's clock
	ETag     string    // empty where the store has none
	Dir      bool
}

// Identity names the content of the object: its e-tag, or size, modification time and name. Two objects read in the
// same way (both from List, or both from Stat or Open) with equal identities hold the same bytes. To compare across
// ways use SameContent.
func (o Object) Identity() string {
	if o.ETag != "" {
		return o.ETag + "|" + o.Name
	}
	b := strconv.AppendInt(nil, o.Size, 10)
	b = append(b, '@')
	b = strconv.AppendInt(b, o.Modified.UnixNano(), 10)
	b = append(b, '|')
	return string(append(b, o.Name...))
}

// SameContent reports whether two views of one name mean the same bytes. E-tags decide where both have one; else size
// and modification time, the latter to the second where one of the two was given without a fraction (object stores
// round it in some answers).
func (o Object) SameContent(p Object) bool {
	if o.Dir != p.Dir || o.Size != p.Size {
		return false
	}
	if o.ETag != "" && p.ETag != "" {
		return o.ETag == p.ETag
	}
	if o.Modified.Nanosecond() == 0 || p.Modified.Nanosecond() == 0 {
		return o.Modified.Unix() == p.Modified.Unix()
	}
	return o.Modified.Equal(p.Modified)
}

// Reader is an open object of fixed size. It is safe for concurrent use. ReadAt fills p unless the object ends there
// (then n < len(p) and io.EOF). An object that changed or shrank since it was opened gives fault.Stale, where the store
// can tell.
type Reader interface {
	io.ReaderAt
	io.Closer
	ReadAtContext(ctx context.Context, p []byte, off int64) (int, error)
	Size() int64
	// Stat returns the object as it was when it was opened.
	Stat() Object
}

// Store is a read-only tree of objects. Implementations are safe for concurrent use.
type Store interface {
	// List returns one level of dir ("" is the root) in byte order by name. A directory that does not exist gives
	// fault.NotFound; in an object store that is any prefix without objects, the root of a bucket apart.
	List(ctx context.Context, dir string) ([]Object, error)
	// Stat returns a file. A directory is given with Dir set by local stores and as fault.NotFound by others.
	Stat(ctx context.Context, name string) (Object, error)
	// ReadRange returns n bytes from off, or, if n is negative, the last -n bytes (off is ignored then). It returns
	// fewer only where the object ends. The result is the caller's.
	ReadRange(ctx context.Context, name string, off, n int64) ([]byte, error)
	// Open opens a file for reading at any offset.
	Open(ctx context.Context, name string) (Reader, error)
	// Sub returns the store below dir. The limit that symbolic links may not leave stays the one of the first root.
	// A dir that is no valid name gives a store whose calls all fail.
	Sub(dir string) Store
	// URI names the root, without credentials and without a slash at the end.
	URI() string
	// Local returns the absolute path of the root for stores of the operating system's files.
	Local() (string, bool)
}

// Options says how stores are opened. The zero value is the default.
type Options struct {
	FollowOutside bool          // follow symbolic links that leave the root
	CallTimeout   time.Duration // for one call; 0 means DefaultCallTimeout
	Anonymous     bool          // no credentials: public buckets
	// Layer is shared by all stores of the process: its limits, caches and counters. nil: a layer of its own.
	Layer *Layer
	// Warn is told, once for each store, what the user should know. It may be nil.
	Warn func(message string)
}

func (o Options) callTimeout() time.Duration {
	if o.CallTimeout > 0 {
		return o.CallTimeout
	}
	return DefaultCallTimeout
}

// ReadAt reads from r at off, bound to ctx. It has the result of io.ReaderAt: n < len(p) only with an error, io.EOF at
// the end.
func ReadAt(ctx context.Context, r Reader, p []byte, off int64) (int, error) {
	return r.ReadAtContext(ctx, p, off)
}

// Recheck asks the store for obj again. It fails with fault.Stale if the object is gone or is another one now, and with
// the store's own error if it cannot tell.
func Recheck(ctx context.Context, st Store, obj Object) error {
	now, err := st.Stat(ctx, obj.Name)
	where := Join(st.URI(), obj.Name)
	switch {
	case fault.Is(err, fault.NotFound):
		return fault.New("store.Recheck", where, fault.Stale, "the file is gone: %w", err)
	case err != nil:
		return err
	case !obj.SameContent(now):
		return fault.New("store.Recheck", where, fault.Stale,
			"the file was replaced: %d bytes of %s, was %d bytes of %s", now.Size, now.Modified.UTC().Format(time.RFC3339Nano),
			obj.Size, obj.Modified.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

// Join puts a name behind a URI or behind another name; either may be empty.
func Join(base, name string) string {
	switch {
	case base == "":
		return name
	case name == "":
		return base
	case strings.HasSuffix(base, "/"):
		return base + name
	}
	return base + "/" + name
}

// CheckName reports whether name may be asked of a store: relative, no empty, "." or ".." element, no NUL byte. The
// empty name is the root. The error is fault.Invalid.
func CheckName(name string) error {
	if name == "" {
		return nil
	}
	if strings.IndexByte(name, 0) >= 0 {
		return fault.New("store.CheckName", "", fault.Invalid, "name %q has a NUL byte", name)
	}
	for rest := name; ; {
		elem, tail, more := strings.Cut(rest, "/")
		if elem == "" || elem == "." || elem == ".." {
			return fault.New("store.CheckName", "", fault.Invalid, "name %q is not a plain relative path", name)
		}
		if !more {
			return nil
		}
		rest = tail
	}
}

// failure wraps err for one operation on one object and gives it a kind, if its chain has none. The end of the caller's
// context wins over what the store made of it; the end of our own per-call bound is fault.TimedOut.
func failure(caller, call context.Context, op, uri string, limit time.Duration, kind fault.Kind, err error) error {
	if cerr := caller.Err(); cerr != nil {
		return fault.New(op, uri, fault.KindOf(cerr), "%w", cerr)
	}
	if call != nil && call.Err() != nil {
		return fault.New(op, uri, fault.TimedOut, "no answer from the store within %s", limit)
	}
	if k := fault.KindOf(err); k != fault.Unknown && kind == fault.Unknown {
		kind = k
	}
	if kind == fault.Unknown {
		kind = fault.Unavailable
	}
	return fault.New(op, uri, kind, "%w", err)
}
