package nodes

import (
	"context"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/indexfile"
)

// kept lists the data files and the like of the version.
func (n version) kept(ctx context.Context, l *loaded) ([]indexfile.Kept, error) {
	return n.t.lance.kept.get(ctx, n.key(), func(context.Context) ([]indexfile.Kept, int64, error) {
		files := indexfile.KeptFiles(l.m, indexfile.NameData(l.m))
		return files, 144 * int64(len(files)), nil
	})
}

// keptListing lists what of the original's files lies in a directory of remapped.lance; sub is its path there, with a
// slash at the end, or "".
func (n version) keptListing(ctx context.Context, l *loaded, sub string) (*listing, error) {
	files, err := n.kept(ctx, l)
	if err != nil {
		return nil, err
	}
	out := &listing{}
	last := ""
	for i := sort.Search(len(files), func(i int) bool { return files[i].Path >= sub }); i < len(files); i++ {
		tail, ok := strings.CutPrefix(files[i].Path, sub)
		if !ok {
			break
		}
		name, _, deeper := strings.Cut(tail, "/")
		if name == last {
			continue
		}
		last = name
		switch {
		case deeper:
			out.add(name, n.keptDir(l, sub+name+"/"))
		case files[i].Sidecars():
			out.add(name, n.sidecarDir(l, &files[i]))
		default:
			out.add(name, n.keptFile(l, &files[i]))
		}
	}
	return out, nil
}

// keptDir is a directory with files of the original.
func (n version) keptDir(l *loaded, sub string) *dir {
	d := n.copyDir(l, lanceName+"/"+strings.TrimSuffix(sub, "/"))
	d.list = func(ctx context.Context) (*listing, error) {
		l, err := n.load(ctx)
		if err != nil {
			return nil, err
		}
		return n.keptListing(ctx, l, sub)
	}
	d.find = func(ctx context.Context, name string) (Node, error) {
		l, err := n.load(ctx)
		if err != nil {
			return nil, err
		}
		files, err := n.kept(ctx, l)
		if err != nil {
			return nil, err
		}
		full := sub + name
		i := sort.Search(len(files), func(i int) bool { return files[i].Path >= full })
		if i < len(files) && files[i].Path == full {
			if files[i].Sidecars() {
				return n.sidecarDir(l, &files[i]), nil
			}
			return n.keptFile(l, &files[i]), nil
		}
		i = sort.Search(len(files), func(i int) bool { return files[i].Path >= full+"/" })
		if name != "" && i < len(files) && strings.HasPrefix(files[i].Path, full+"/") {
			return n.keptDir(l, full+"/"), nil
		}
		return nil, notFound(n.path+"/"+lanceName+"/"+strings.TrimSuffix(sub, "/"), name)
	}
	return d
}

// keptFile is a file of the original, wherever its base is.
func (n version) keptFile(l *loaded, k *indexfile.Kept) File {
	b := n.base(lanceName+"/"+k.Path, n.key(), l.mtime)
	var known atomic.Pointer[dataset.Location] // readers open files again and again
	f := &storeFile{base: b, first: b.ino, key: n.key(), t: n.t, size: int64(k.Size), perm: permCopyFile, locate: func(ctx context.Context) (dataset.Location, error) {
		if loc := known.Load(); loc != nil {
			return *loc, nil
		}
		l, err := n.load(ctx)
		if err != nil {
			return dataset.Location{}, err
		}
		loc, err := n.keptLocation(ctx, l, k)
		if err == nil && len(l.m.PB.GetBasePaths()) == 0 {
			known.Store(&dataset.Location{Store: loc.Store, Path: loc.Path}) // there is no other place to look for it
		}
		return loc, err
	}}
	if o, ok := n.t.opened.peek(b.ino); ok && o.replaced {
		f.ino = n.t.inode(b.path, n.key()+"\x00"+o.object.Identity())
		f.size = o.object.Size
		return f
	}
	if k.Size == 0 || k.Size > 1<<62 {
		return &unsizedFile{storeFile: *f}
	}
	return f
}

// keptLocation is where a file of the original is.
func (n version) keptLocation(ctx context.Context, l *loaded, k *indexfile.Kept) (dataset.Location, error) {
	if d := k.Data(); d != nil {
		return n.t.ds.DataFile(ctx, l.m, d)
	}
	if f := k.Deletion(); f != nil {
		return n.t.ds.DeletionFile(ctx, l.m, f)
	}
	return dataset.Location{Store: n.t.ds.Store(), Path: k.Path}, nil
}

// unsizedFile is a file of the dataset of which the manifest does not say how large it is: the store is asked.
type unsizedFile struct{ storeFile }

var (
	_ File   = (*unsizedFile)(nil)
	_ peeker = (*unsizedFile)(nil)
)

func (f *unsizedFile) peek() (Attr, bool) {
	size, ok := f.t.sizes.peek(f.ino)
	return Attr{Type: TypeFile, Size: size, Perm: f.perm, Mtime: f.mtime, Ino: f.ino}, ok
}

// sized is the file with its size.
func (f *unsizedFile) sized(ctx context.Context) (*storeFile, error) {
	size, err := f.t.sizes.get(ctx, f.ino, func(ctx context.Context) (int64, int64, error) {
		loc, err := f.locate(ctx)
		if err != nil {
			return 0, 0, err
		}
		at, err := loc.Find(ctx)
		if err == nil && at.Object.Dir {
			err = fault.New("stat", at.URI(), fault.Corrupt, "a directory, where the manifest names a file")
		}
		return at.Object.Size, 128, err
	})
	if err != nil {
		return nil, err
	}
	s := f.storeFile
	s.size = size
	return &s, nil
}

// Attr implements Node.
func (f *unsizedFile) Attr(ctx context.Context) (Attr, error) {
	s, err := f.sized(ctx)
	if err != nil {
		return Attr{}, f.t.failed("stat", f.path, err)
	}
	return s.Attr(ctx)
}

// Open implements File.
func (f *unsizedFile) Open(ctx context.Context) (Handle, error) {
	s, err := f.sized(ctx)
	if err != nil {
		return nil, f.t.failed("open", f.path, err)
	}
	return s.Open(ctx)
}
