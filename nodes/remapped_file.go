package nodes

import (
	"context"
	"sync"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/indexfile"
)

// remapRefused says why a segment has no remapped/; nil if it has. It goes by names alone: the type, what the index
// stores, and, for an entry without details, the names of its files.
func (at segmentAt) remapRefused(ctx context.Context, l *loaded, s *segment) error {
	if err := storedImpossible(s.ix); err != nil {
		return err
	}
	if l.refusal != nil {
		return l.refusal
	}
	if domain, why := indexfile.Domain(l.m, s.ix); domain == indexfile.DomainUnknown {
		return fault.New("nodes.Remapped", at.n.path, fault.Unsupported, "what the index stores is not known: %s", why)
	}
	if s.ix.Type != "" {
		return nil
	}
	files, err := at.n.storedFiles(ctx, l, s.ix)
	if err != nil {
		return nil //nolint:nilerr // listing stored/ or remapped/ tells
	}
	if at.layout(l, s, files).Type == "" {
		return fault.New("nodes.Remapped", at.n.path, fault.Unsupported, "the index entry has no details, and its files are those of no known type")
	}
	return nil
}

// remappedDir is remapped/ of a segment, under any path of the tree: rel is its path below the version, dirPerm and
// filePerm are the permissions (0: the usual ones). Files and sub-directories have the names of those below stored/.
// Listing it opens no file. A file whose role is not known is left out and named in an ERROR.json.
func (at segmentAt) remappedDir(l *loaded, rel string, dirPerm, filePerm uint32) *dir {
	tree := fileTree{at: at, perm: dirPerm, node: func(_ context.Context, l *loaded, s *segment, files []storedFile) (fileNode, error) {
		seg := at.layout(l, s, files)
		return func(rel string, f storedFile) (Node, error) { return at.remapped(l, seg, rel, f, filePerm) }, nil
	}}
	return tree.dir(l, rel, "")
}

// remappedFile is one file of a segment with translated addresses, under any path of the tree: rel is its path below
// the version, perm its permissions (0: the usual ones). Under all its paths it has the same bytes, made once. A file
// without addresses is the stored file itself. Errors: fault.Unsupported where the file's role is not known; ask
// remapRefused about the segment first.
func (at segmentAt) remappedFile(ctx context.Context, rel string, f storedFile, perm uint32) (File, error) {
	l, s, err := at.get(ctx)
	if err != nil {
		return nil, err
	}
	files, err := at.n.storedFiles(ctx, l, s.ix)
	if err != nil {
		return nil, err
	}
	return at.remapped(l, at.layout(l, s, files), rel, f, perm)
}

func (at segmentAt) remapped(l *loaded, seg *indexfile.Segment, rel string, f storedFile, perm uint32) (File, error) {
	how, err := seg.How(f.path)
	if err != nil {
		return nil, err
	}
	if how == indexfile.Verbatim {
		return at.storedNode(l, rel, f, perm), nil
	}
	key := at.key(f.path)
	return &remapFile{
		base: at.n.base(rel, key, l.mtime), at: at, file: f, how: how, perm: perm, key: key,
		id: at.n.t.inode(at.path()+"/"+f.path, "remapped "+key),
	}, nil
}

// remapFile is a file of a segment with translated addresses. Its size is exact before anything is translated; for the
// re-serialised types a job finds it, which makes the file.
type remapFile struct {
	base
	at   segmentAt
	file storedFile
	how  indexfile.How
	perm uint32
	key  string // content key, as it was when the node was made
	id   uint64 // names the content, whatever its path in the tree
}

var (
	_ File   = (*remapFile)(nil)
	_ peeker = (*remapFile)(nil)
)

// Type implements Node.
func (f *remapFile) Type() Type { return TypeFile }

// Class implements File.
func (f *remapFile) Class() Class {
	if f.how == indexfile.Reserialised {
		return C2
	}
	return C1
}

func (f *remapFile) attr(size int64) Attr {
	return Attr{Type: TypeFile, Size: size, Perm: orPerm(f.perm, permFile), Mtime: f.mtime, Ino: f.ino}
}

func (f *remapFile) peek() (Attr, bool) {
	size, ok := f.at.n.t.sizes.peek(f.id)
	return f.attr(size), ok
}

// Attr implements Node.
func (f *remapFile) Attr(ctx context.Context) (Attr, error) {
	if size, ok := f.told(ctx); ok {
		return f.attr(size), nil
	}
	h, _, err := f.hold(ctx)
	if err != nil {
		return Attr{}, f.at.n.t.failed("stat", f.path, err)
	}
	defer h.release()
	return f.attr(h.size), nil
}

// Open implements File.
func (f *remapFile) Open(ctx context.Context) (Handle, error) {
	h, fresh, err := f.hold(ctx)
	if err == nil && !fresh {
		if err = f.at.recheck(ctx, f.file.path); err != nil {
			h.release()
		}
	}
	if err != nil {
		return nil, f.at.n.t.failed("open", f.path, err)
	}
	return &remapHandle{f: f, h: h}, nil
}

type remapHandle struct {
	f    *remapFile
	h    *held
	once sync.Once
}

// ReadAt implements Handle.
func (h *remapHandle) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fault.New("read", h.f.path, fault.Invalid, "negative offset %d", off)
	}
	n, err := h.h.content.ReadAt(ctx, p, off)
	if err == nil && h.f.at.n.gone() {
		// What it is translated by may have gone with the version: no bytes rather than others.
		err = fault.New("read", h.f.path, fault.Stale, "the file is of a version that was cleaned up")
	}
	if err != nil {
		return 0, h.f.at.n.t.failed("read", h.f.path, err)
	}
	return n, nil
}

// Close implements Handle.
func (h *remapHandle) Close() error {
	h.once.Do(h.h.release)
	return nil
}
