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
	walk  bool  // links are resolved here although the kernel could; for tests
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

// path checks ctx and name and returns the path of name, links and all.
func (s *local) path(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if s.bad != nil {
		return "", s.bad
	}
	if err := CheckName(name); err != nil {
		return "", err
	}
	return filepath.Join(s.root, filepath.FromSlash(name)), nil
}

// resolve returns the real path of p, links resolved and checked.
func (s *local) resolve(p string) (string, error) {
	f, err := newFence(s.fence)
	if err != nil {
		return "", err
	}
	return f.resolve(p)
}

// openAt opens p unless a link leads out of the fence. What is opened is what was checked, whatever happens to the links
// meanwhile.
func (s *local) openAt(p string, flags int) (fd int, err error) {
	if s.opt.FollowOutside {
		err = again(func() (err error) {
			fd, err = unix.Open(p, flags|unix.O_CLOEXEC, 0)
			return err
		})
		return fd, err
	}
	if !s.walk {
		if fd, ok := openInside(s.fence, p, flags); ok {
			return fd, nil
		}
	}
	found, err := s.resolve(p)
	if err != nil {
		return -1, err
	}
	return openResolved(found, flags)
}

// openNoFollow opens a path that does not end in a link.
func openNoFollow(path string, flags int) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Open(path, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// statAt is stat of p unless a link leads out of the fence.
func (s *local) statAt(p string) (unix.Stat_t, error) {
	if !s.opt.FollowOutside {
		if !s.walk {
			if st, ok := statInside(s.fence, p); ok {
				return st, nil
			}
		}
		found, err := s.resolve(p)
		if err != nil {
			return unix.Stat_t{}, err
		}
		p = found
	}
	var st unix.Stat_t
	err := again(func() error { return unix.Stat(p, &st) })
	return st, err
}

func (s *local) List(ctx context.Context, dir string) ([]Object, error) {
	const op = "store.List"
	p, err := s.path(ctx, dir)
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
	fd, err := s.openAt(path, unix.O_RDONLY|unix.O_DIRECTORY) // never a pipe as if it were a directory
	if err != nil {
		return nil, false, err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
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
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		if target, err := s.statAt(filepath.Join(path, e.Name())); err == nil {
			st = target
		}
	}
	return object(name, &st), true
}

func object(name string, st *unix.Stat_t) Object {
	return Object{Name: name, Size: st.Size, Modified: time.Unix(st.Mtim.Unix()), Dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}
}

func (s *local) Stat(ctx context.Context, name string) (Object, error) {
	const op = "store.Stat"
	p, err := s.path(ctx, name)
	if err != nil {
		return Object{}, s.fail(ctx, op, name, err)
	}
	st, err := s.statAt(p)
	if err != nil {
		return Object{}, s.fail(ctx, op, name, err)
	}
	return object(name, &st), nil
}

func (s *local) Open(ctx context.Context, name string) (Reader, error) {
	r, err := s.open(ctx, "store.Open", name)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (s *local) open(ctx context.Context, op, name string) (*localReader, error) {
	p, err := s.path(ctx, name)
	if err != nil {
		return nil, s.fail(ctx, op, name, err)
	}
	fd, st, err := s.openFile(p)
	if err != nil {
		return nil, s.fail(ctx, op, name, err)
	}
	return &localReader{d: newDescriptor(fd), obj: object(name, &st), where: s.where(name)}, nil
}

// openFile opens a regular file and tells what it is.
func (s *local) openFile(p string) (fd int, st unix.Stat_t, err error) {
	// A pipe or a device would block or do things on open; the flag covers the moment between the two calls. Links are
	// checked when it is opened.
	err = again(func() error { return unix.Stat(p, &st) })
	if err == nil && regular(&st) != nil {
		if st, err = s.statAt(p); err == nil {
			err = regular(&st)
		}
	}
	if err != nil && !errors.Is(err, unix.ELOOP) {
		return -1, st, err
	}
	if fd, err = s.openAt(p, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY); err != nil {
		return -1, st, err
	}
	if err = fstat(fd, &st); err == nil {
		err = regular(&st)
	}
	if err != nil {
		_ = unix.Close(fd) // only read from
		return -1, st, err
	}
	return fd, st, nil
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

// LocalReader is a Reader of one file of this machine, and of nothing else.
type LocalReader interface {
	Reader
	// Fd is the descriptor of the file, open until Close. It must only be read from.
	Fd() int
}

var _ LocalReader = (*localReader)(nil)

// localReader is an open file. The descriptor keeps the bytes of a file that was unlinked or replaced since.
type localReader struct {
	d     *descriptor
	obj   Object
	where string
}

func (r *localReader) Fd() int      { return r.d.fd }
func (r *localReader) Size() int64  { return r.obj.Size }
func (r *localReader) Stat() Object { return r.obj }
func (r *localReader) Close() error { return r.d.Close() }

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
		n, err := r.d.pread(want[done:min(len(want), done+localChunk)], off+int64(done))
		if err != nil {
			return done, failure(ctx, nil, op, r.where, 0, kindOfOS(err), bare(err))
		}
		if n == 0 {
			return done, fault.New(op, fmt.Sprintf("%s @%d", r.where, off+int64(done)), fault.Stale,
				"the file ends here, but had %d bytes when it was opened", r.obj.Size)
		}
		done += n
	}
	if len(want) < len(p) {
		return done, io.EOF
	}
	return done, nil
}
