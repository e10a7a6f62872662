package nodes

import (
	"context"
	"strconv"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/mapcsv"
)

// mapFile is a file that package mapcsv computes. Its object, with what it has found out about sizes, is kept in a
// bounded cache by inode; the size of a C2 file is found by a job.
type mapFile struct {
	base
	t     *Tree
	class Class
	open  func(ctx context.Context) (mapcsv.File, error)
	// measure gives the size where it can be had without opening; nil where it cannot.
	measure func(ctx context.Context) (int64, error)
}

var (
	_ File   = (*mapFile)(nil)
	_ peeker = (*mapFile)(nil)
)

// Type implements Node.
func (f *mapFile) Type() Type { return TypeFile }

// Class implements File.
func (f *mapFile) Class() Class { return f.class }

// openedFileCost is what an open mapping file is taken to hold, in bytes.
const openedFileCost = 64 << 10

// file opens the file, or gives it as it was opened before. One that is opened again must have the size that was told
// before: a row map that was missing then and is there now, or the other way round, makes other lines.
func (f *mapFile) file(ctx context.Context) (mapcsv.File, error) {
	return f.t.files.get(ctx, f.ino, func(ctx context.Context) (mapcsv.File, int64, error) {
		m, err := f.open(ctx)
		if err != nil {
			return nil, 0, err
		}
		if a, ok := f.peek(); ok {
			size, err := m.Size(ctx)
			if err != nil {
				return nil, 0, err
			}
			if size != a.Size {
				return nil, 0, resized("open", f.path, size, a.Size)
			}
		}
		return m, openedFileCost, nil
	})
}

func (f *mapFile) jobKey() string { return strconv.FormatUint(f.ino, 16) }

func (f *mapFile) size(ctx context.Context) (int64, error) {
	if f.class == C2 {
		return f.t.jobs.size(ctx, f.jobKey(), f.path, func(ctx context.Context) (int64, error) {
			m, err := f.file(ctx)
			if err != nil {
				return 0, err
			}
			return m.Size(ctx)
		})
	}
	return f.t.sizes.get(ctx, f.ino, func(ctx context.Context) (int64, int64, error) {
		if f.measure != nil {
			n, err := f.measure(ctx)
			return n, 0, err
		}
		m, err := f.file(ctx)
		if err != nil {
			return 0, 0, err
		}
		n, err := m.Size(ctx)
		return n, 0, err
	})
}

func (f *mapFile) attr(size int64) Attr {
	return Attr{Type: TypeFile, Size: size, Perm: permFile, Mtime: f.mtime, Ino: f.ino}
}

func (f *mapFile) peek() (Attr, bool) {
	size, ok := f.t.sizes.peek(f.ino)
	if f.class == C2 {
		size, ok = f.t.jobs.known(f.jobKey())
	}
	return f.attr(size), ok
}

// Attr implements Node.
func (f *mapFile) Attr(ctx context.Context) (Attr, error) {
	size, err := f.size(ctx)
	if err != nil {
		return Attr{}, f.t.failed("stat", f.path, err)
	}
	return f.attr(size), nil
}

// Open implements File.
func (f *mapFile) Open(ctx context.Context) (Handle, error) {
	if _, err := f.size(ctx); err != nil {
		return nil, f.t.failed("open", f.path, err)
	}
	m, err := f.file(ctx)
	if err != nil {
		return nil, f.t.failed("open", f.path, err)
	}
	return &mapHandle{f: f, m: m}, nil
}

type mapHandle struct {
	f *mapFile
	m mapcsv.File
}

// ReadAt implements Handle.
func (h *mapHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fault.New("read", h.f.path, fault.Invalid, "negative offset %d", off)
	}
	n, err := h.m.ReadAt(ctx, p, off)
	if err != nil {
		return 0, h.f.t.failed("read", h.f.path, err)
	}
	return n, nil
}

// Close implements Handle.
func (h *mapHandle) Close() error { return nil }

// mappingFile is one of the files computed from a single transition: mapping.csv, mapping.arrow, counts.csv and, below
// scan/, inverse.csv. rel is its directory below the version.
func (n version) mappingFile(l *loaded, rel string, seq int, name string) *mapFile {
	f := &mapFile{base: n.base(rel+"/"+name, n.key(), l.mtime), t: n.t, class: C1}
	switch name {
	case "inverse.csv":
		f.class = C2
	case "mapping.csv":
		f.measure = func(ctx context.Context) (int64, error) {
			_, _, t, err := n.transition(ctx, seq)
			if err != nil {
				return 0, err
			}
			return mapcsv.MappingSize(t.Sources, t.Destinations)
		}
	}
	f.open = func(ctx context.Context) (mapcsv.File, error) {
		l, h, t, err := n.transition(ctx, seq)
		if err != nil {
			return nil, err
		}
		m, err := n.mapping(ctx, l, h, t)
		if err != nil {
			return nil, err
		}
		switch name {
		case "mapping.csv":
			return mapcsv.Mapping(m)
		case "mapping.arrow":
			return mapcsv.MappingArrow(m)
		case "inverse.csv":
			return mapcsv.Inverse(m)
		case "counts.csv":
			return mapcsv.Counts(m)
		}
		return nil, notFound(n.path+"/"+rel, name)
	}
	return f
}

// composedFile is fri/scan/composed.csv.
func (n version) composedFile(l *loaded) *mapFile {
	return &mapFile{base: n.base("fri/scan/composed.csv", n.key(), l.mtime), t: n.t, class: C2,
		open: func(ctx context.Context) (mapcsv.File, error) {
			tr, _, err := n.openTranslator(ctx)
			if err != nil {
				return nil, err
			}
			return mapcsv.Composed(tr), nil
		}}
}
