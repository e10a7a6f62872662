package nodes

import (
	"context"
	"strings"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/store"
)

// storedFile is one file of an index segment.
type storedFile struct {
	path string // as recorded, relative to the segment's directory
	size int64
}

// storedImpossible says why the files of an entry cannot be located at all; nil if they can.
func storedImpossible(ix *dataset.Index) error {
	if ix.UUIDErr != nil {
		return ix.UUIDErr
	}
	return nil
}

// storedFiles lists the files of a segment: as the entry records them, or, where it records none or leaves a size out,
// as the store lists them (one request per directory). Paths that would leave the directory are left out.
func (n version) storedFiles(ctx context.Context, l *loaded, ix *dataset.Index) ([]storedFile, error) {
	recorded := ix.PB.GetFiles()
	if ix == l.fri.entry && l.fri.content.External != nil {
		recorded = nil // the entry records no files, but its details are one
	}
	var out []storedFile
	seen := map[string]bool{}
	for _, f := range recorded {
		if f.GetSizeBytes() == 0 || f.GetSizeBytes() > 1<<62 {
			out = nil
			break
		}
		if p := f.GetPath(); p != "" && store.CheckName(p) == nil && !seen[p] {
			seen[p] = true
			out = append(out, storedFile{p, int64(f.GetSizeBytes())})
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	if ix == l.fri.entry && l.fri.content.External == nil {
		return nil, nil // an inline history has no files
	}
	dir, err := n.t.ds.IndexDir(ctx, l.m, ix)
	if err != nil {
		return nil, err
	}
	out, err = n.listDir(ctx, dir.Location)
	if fault.Is(err, fault.NotFound) && len(recorded) == 0 && ix.System() {
		return nil, nil
	}
	return out, err
}

// listDir lists the files below a directory of the store, with their paths relative to it.
func (n version) listDir(ctx context.Context, dir dataset.Location) ([]storedFile, error) {
	return n.t.dirs.get(ctx, dir.URI(), func(ctx context.Context) ([]storedFile, int64, error) {
		objects, err := listFiles(ctx, dir.Store, dir.Path)
		var files []storedFile
		for _, o := range objects {
			files = append(files, storedFile{strings.TrimPrefix(o.Name, dir.Path+"/"), o.Size})
		}
		return files, int64(len(files)) * 128, err
	})
}

// storedDir is stored/ of a segment.
func (at segmentAt) storedDir(l *loaded, rel string) *dir {
	tree := fileTree{at: at, node: func(_ context.Context, l *loaded, _ *segment, _ []storedFile) (fileNode, error) {
		return func(rel string, f storedFile) (Node, error) { return at.storedNode(l, rel, f, 0), nil }, nil
	}}
	return tree.dir(l, rel, "")
}

// storedNode is a file of the segment as it is stored, at rel below the version; perm 0 is the usual one.
func (at segmentAt) storedNode(l *loaded, rel string, f storedFile, perm uint32) *storeFile {
	n := at.n
	b := n.base(rel, n.key(), l.mtime)
	node := &storeFile{base: b, first: b.ino, key: n.key(), t: n.t, size: f.size, perm: perm, locate: func(ctx context.Context) (dataset.Location, error) {
		l, s, err := at.get(ctx)
		if err != nil {
			return dataset.Location{}, err
		}
		return n.t.ds.IndexFile(ctx, l.m, s.ix, f.path)
	}}
	if o, ok := n.t.opened.peek(b.ino); ok && o.replaced {
		node.ino = n.t.inode(b.path, n.key()+"\x00"+o.object.Identity())
		node.size = o.object.Size
	}
	return node
}

// openedObject is an object of the store as an opening of its file last found it. replaced: it was not what the name
// stood for until then, so the name stands for another inode since.
type openedObject struct {
	object   store.Object
	replaced bool
}

// storeFile is a file of the dataset, shown byte for byte. Opening it looks at the object again: where it is another
// one than at the last opening, or has another size than recorded, the node is stale, and looking the name up again
// gives a new one.
type storeFile struct {
	base
	first  uint64 // inode of the name before any replacement
	key    string // content key of the manifest
	t      *Tree
	size   int64
	perm   uint32 // 0 = permFile
	locate func(ctx context.Context) (dataset.Location, error)
}

var (
	_ File   = (*storeFile)(nil)
	_ peeker = (*storeFile)(nil)
)

// Type implements Node.
func (f *storeFile) Type() Type { return TypeFile }

// Class implements File.
func (f *storeFile) Class() Class { return C1 }

func (f *storeFile) peek() (Attr, bool) {
	return Attr{Type: TypeFile, Size: f.size, Perm: orPerm(f.perm, permFile), Mtime: f.mtime, Ino: f.ino}, true
}

// Attr implements Node: the recorded size, which Open checks.
func (f *storeFile) Attr(context.Context) (Attr, error) {
	a, _ := f.peek()
	return a, nil
}

// Open implements File.
func (f *storeFile) Open(ctx context.Context) (Handle, error) {
	h, err := f.open(ctx)
	if err != nil {
		return nil, f.t.failed("open", f.path, err)
	}
	return h, nil
}

func (f *storeFile) open(ctx context.Context) (Handle, error) {
	loc, err := f.locate(ctx)
	if err != nil {
		return nil, err
	}
	loc, r, err := loc.Open(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.verify(loc, r.Stat()); err != nil {
		_ = r.Close()
		return nil, err
	}
	return &readerHandle{t: f.t, path: f.path, r: r, close: r.Close}, nil
}

// verify compares the object that was opened with what the node stands for.
func (f *storeFile) verify(loc dataset.Location, obj store.Object) error {
	known, ok := f.t.opened.peek(f.first)
	if ok && known.replaced {
		ok = f.ino == f.t.inode(f.path, f.key+"\x00"+known.object.Identity())
		if !ok && known.object.SameContent(obj) {
			return fault.New("open", loc.URI(), fault.Stale, "the file was replaced")
		}
	}
	switch {
	case ok && !known.object.SameContent(obj):
	case obj.Size != f.size:
	default:
		if !ok {
			f.t.opened.put(f.first, openedObject{object: obj}, 256)
		}
		return nil
	}
	f.t.opened.put(f.first, openedObject{object: obj, replaced: true}, 256)
	return fault.New("open", loc.URI(), fault.Stale, "the file has %d bytes of %s, which is not what this name stood for (%d bytes); look it up again",
		obj.Size, obj.Modified.UTC().Format(time.RFC3339Nano), f.size)
}
