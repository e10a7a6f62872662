package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/frifs/frifs/fault"
)

// localChunk is how much one pread takes; the context is looked at in between.
const localChunk = 8 << 20

// local is a directory of the operating system.
type local struct {
	root  string // absolute, as the user gave it
	fence string // the root that links may not leave, as given; the same for all stores of Sub
	opt   Options
	bad   error // Sub was given an invalid name
}

// NewLocal returns the store of a directory, which need not exist. Errors: fault.Invalid for a path that has no
// absolute form.
func NewLocal(dir string, opt Options) (Store, error) {
	if dir == "" {
		return nil, fault.New("store.NewLocal", "", fault.Invalid, "the path is empty")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fault.New("store.NewLocal", dir, fault.Invalid, "%w", err)
	}
	return &local{root: abs, fence: abs, opt: opt}, nil
}

func (s *local) URI() string           { return s.root }
func (s *local) Local() (string, bool) { return s.root, true }

func (s *local) Sub(dir string) Store {
	if dir == "" {
		return s
	}
	t := *s
	if err := CheckName(dir); err != nil && t.bad == nil {
		t.bad = err
	}
	t.root = filepath.Join(s.root, filepath.FromSlash(dir))
	return &t
}

// where is the path of name for messages.
func (s *local) where(name string) string { return Join(s.root, name) }

func (s *local) fail(ctx context.Context, op, name string, err error) error {
	return failure(ctx, nil, op, s.where(name), 0, kindOfOS(err), bare(err))
}

// bare drops the operation and the path that os puts into its errors; our own error carries them.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// resolve checks ctx and name and returns the real path, links resolved and checked.
func (s *local) resolve(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if s.bad != nil {
		return "", s.bad
	}
	if err := CheckName(name); err != nil {
		return "", err
	}
	p := filepath.Join(s.root, filepath.FromSlash(name))
	if s.opt.FollowOutside {
		return p, nil
	}
	f, err := newFence(s.fence)
	if err != nil {
		return "", err
	}
	return f.resolve(p)
}

func (s *local) List(ctx context.Context, dir string) ([]Object, error) {
	const op = "store.List"
	p, err := s.resolve(ctx, dir)
	if err != nil {
		return nil, s.fail(ctx, op, dir, err)
	}
	fi, err := os.Stat(p) // never open a pipe as if it were a directory
	if err == nil && !fi.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, s.fail(ctx, op, dir, err)
	}
	for try := 1; ; try++ {
		out, vanished, err := s.entries(ctx, dir, p)
		if err != nil {
			return nil, s.fail(ctx, op, dir, err)
		}
		if vanished && (try < listTries || len(out) == 0 && try < listTriesEmpty) {
			continue
		}
		slices.SortFunc(out, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
		return out, nil
	}
}

// listTries is how many times a directory is read whose entries go while it is read. Something was always there to see
// when each old entry goes only after a new one came, but one reading can miss both: the old entry is gone when it is
// asked for, and the new one came after the names were read. A listing that shows nothing at all is doubted for longer.
const (
	listTries      = 8
	listTriesEmpty = 200
)

// entries reads a directory once, in no order. vanished reports that an entry was gone before it could be asked for.
func (s *local) entries(ctx context.Context, dir, path string) (out []Object, vanished bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	fd := int(f.Fd())
	for {
		entries, err := f.ReadDir(4096)
		out = slices.Grow(out, len(entries))
		for _, e := range entries {
			if o, ok := s.entry(dir, path, fd, e); ok {
				out = append(out, o)
			} else {
				vanished = true
			}
		}
		if err == nil {
			err = ctx.Err()
		}
		if errors.Is(err, io.EOF) {
			return out, vanished, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// entry makes the object of one directory entry. A link counts as what it points to; one that cannot be followed stays
// in the listing with the attributes of the link itself, so that opening it can say why. An entry that vanished since
// the directory was read is left out.
//
// A directory may have tens of thousands of entries: each is asked for relative to the open directory, which spares the
// kernel the walk along the path.
func (s *local) entry(dir, path string, fd int, e os.DirEntry) (Object, bool) {
	name := Join(dir, e.Name())
	var st unix.Stat_t
	if err := unix.Fstatat(fd, e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return Object{}, false
	}
	o := Object{Name: name, Size: st.Size, Modified: time.Unix(st.Mtim.Unix()), Dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return o, true
	}
	target := filepath.Join(path, e.Name())
	if !s.opt.FollowOutside {
		f, err := newFence(s.fence)
		if err != nil {
			return o, true
		}
		if target, err = f.resolve(target); err != nil {
			return o, true
		}
	}
	if fi, err := os.Stat(target); err == nil {
		o = object(name, fi)
	}
	return o, true
}

func object(name string, fi fs.FileInfo) Object {
	return Object{Name: name, Size: fi.Size(), Modified: fi.ModTime(), Dir: fi.IsDir()}
}

func (s *local) Stat(ctx context.Context, name string) (Object, error) {
	const op = "store.Stat"
	p, err := s.resolve(ctx, name)
	if err != nil {
		return Object{}, s.fail(ctx, op, name, err)
	}
	fi, err := os.Stat(p)
	if err != nil {
		return Object{}, s.fail(ctx, op, name, err)
	}
	return object(name, fi), nil
}

func (s *local) Open(ctx context.Context, name string) (Reader, error) {
	r, err := s.open(ctx, "store.Open", name)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (s *local) open(ctx context.Context, op, name string) (*localReader, error) {
	p, err := s.resolve(ctx, name)
	if err != nil {
		return nil, s.fail(ctx, op, name, err)
	}
	// A pipe or a device would block or do things on open; the flag covers the moment between the two calls.
	fi, err := os.Stat(p)
	if err == nil {
		err = regular(fi)
	}
	if err != nil {
		return nil, s.fail(ctx, op, name, err)
	}
	f, err := os.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, s.fail(ctx, op, name, err)
	}
	if fi, err = f.Stat(); err == nil {
		err = regular(fi)
	}
	if err != nil {
		f.Close()
		return nil, s.fail(ctx, op, name, err)
	}
	return &localReader{f: f, obj: object(name, fi), where: s.where(name)}, nil
}

func regular(fi fs.FileInfo) error {
	if fi.Mode().IsRegular() {
		return nil
	}
	if fi.IsDir() {
		return syscall.EISDIR
	}
	return fault.New("", "", fault.Invalid, "not a regular file (%s)", fi.Mode())
}

func (s *local) ReadRange(ctx context.Context, name string, off, n int64) ([]byte, error) {
	const op = "store.ReadRange"
	r, err := s.open(ctx, op, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // only read from
	off, n, err = clip(off, n, r.obj.Size)
	if err != nil {
		return nil, s.fail(ctx, op, name, err)
	}
	p := make([]byte, n)
	got, err := r.ReadAtContext(ctx, p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return p[:got], nil
}

// clip turns a range into one that lies inside size bytes. A negative n is a suffix.
func clip(off, n, size int64) (int64, int64, error) {
	if n < 0 {
		// -n overflows for the smallest int64, which means all of it just as well.
		if n = -n; n < 0 || n > size {
			n = size
		}
		return size - n, n, nil
	}
	if off < 0 {
		return 0, 0, fault.New("", "", fault.Invalid, "negative offset %d", off)
	}
	if off > size {
		off = size
	}
	return off, min(n, size-off), nil
}

// localReader is an open file. The descriptor keeps the bytes of a file that was unlinked or replaced since.
type localReader struct {
	f     *os.File
	obj   Object
	where string
}

func (r *localReader) Size() int64  { return r.obj.Size }
func (r *localReader) Stat() Object { return r.obj }
func (r *localReader) Close() error { return r.f.Close() }

func (r *localReader) ReadAt(p []byte, off int64) (int, error) {
	return r.ReadAtContext(context.Background(), p, off)
}

func (r *localReader) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	const op = "store.ReadAt"
	if off < 0 {
		return 0, fault.New(op, r.where, fault.Invalid, "negative offset %d", off)
	}
	if off >= r.obj.Size {
		return 0, io.EOF
	}
	want := p
	if int64(len(p)) > r.obj.Size-off {
		want = p[:r.obj.Size-off]
	}
	done := 0
	for done < len(want) {
		if err := ctx.Err(); err != nil {
			return done, failure(ctx, nil, op, r.where, 0, fault.Unknown, err)
		}
		n, err := r.f.ReadAt(want[done:min(len(want), done+localChunk)], off+int64(done))
		done += n
		if errors.Is(err, io.EOF) && done < len(want) {
			return done, fault.New(op, fmt.Sprintf("%s @%d", r.where, off+int64(done)), fault.Stale,
				"the file ends here, but had %d bytes when it was opened", r.obj.Size)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return done, failure(ctx, nil, op, r.where, 0, kindOfOS(err), bare(err))
		}
	}
	if len(want) < len(p) {
		return done, io.EOF
	}
	return done, nil
}
