package nodes

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/indexfile"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/translate"
)

// fileNode makes the node of a segment's file at rel below the version, or says why it is impossible.
type fileNode func(rel string, f storedFile) (Node, error)

// fileTree shows the files of a segment in the sub-directories that their recorded paths name. It is made from names
// alone.
type fileTree struct {
	at   segmentAt
	perm uint32 // of directories; 0 = permDir
	node func(ctx context.Context, l *loaded, s *segment, files []storedFile) (fileNode, error)
}

// dir is the directory at rel below the version, with the files whose recorded paths begin with sub ("" or "x/").
func (ft fileTree) dir(l *loaded, rel, sub string) *dir {
	n := ft.at.n
	return &dir{base: n.base(rel, n.key(), l.mtime), perm: ft.perm, list: func(ctx context.Context) (*listing, error) {
		l, s, err := ft.at.get(ctx)
		if err != nil {
			return nil, err
		}
		files, err := n.storedFiles(ctx, l, s.ix)
		if err != nil {
			return nil, n.t.failed("list", n.path+"/"+rel, err)
		}
		node, err := ft.node(ctx, l, s, files)
		if err != nil {
			return nil, err
		}
		out := &listing{}
		var es problems
		names := newUniqueNames()
		dirs := map[string]bool{}
		for _, f := range files {
			tail, ok := strings.CutPrefix(f.path, sub)
			if !ok {
				continue
			}
			elem, _, deeper := strings.Cut(tail, "/")
			if deeper && dirs[elem] {
				continue
			}
			name := names.take(EncodeName(elem))
			if deeper {
				dirs[elem] = true
				out.add(name, ft.dir(l, rel+"/"+name, sub+elem+"/"))
			} else if f, err := node(rel+"/"+name, f); err != nil {
				out.leaveOut(&es, name, err)
			} else {
				out.add(name, f)
			}
		}
		if len(es) > 0 {
			out.add(names.take("ERROR.json"), n.errorFile(rel, l.mtime, es))
		}
		return out, nil
	}}
}

// mark names what is known about a stored file of the segment, or, with file "", about any of them.
func (at segmentAt) mark(file string) uint64 {
	return at.n.t.inode(at.path()+"/"+file, at.n.key())
}

func (at segmentAt) path() string {
	return at.n.path + "/indices/" + at.index + "/" + strconv.Itoa(at.i)
}

// key is the content key of what is made from a stored file of the segment (file "": from all of them): the identity of
// the manifest, and that of the file where it was replaced since it was first opened.
func (at segmentAt) key(file string) string {
	key := at.n.key()
	if o, ok := at.n.t.opened.peek(at.mark(file)); ok && o.replaced {
		key += "\x00" + o.object.Identity()
	}
	return key
}

// verify compares an object that was opened, or asked for again, with what the name stood for until now. Where it is
// another one, what was made from it is stale, and looking names up again gives new nodes.
func (at segmentAt) verify(file string, loc dataset.Location, obj store.Object) error {
	opened := at.n.t.opened
	known, ok := opened.peek(at.mark(file))
	if ok && known.object.SameContent(obj) {
		return nil
	}
	opened.put(at.mark(file), openedObject{object: obj, replaced: ok}, 256)
	if !ok {
		return nil
	}
	opened.put(at.mark(""), openedObject{object: obj, replaced: true}, 256)
	return fault.New("open", loc.URI(), fault.Stale, "the file has %d bytes of %s now; it had %d of %s before",
		obj.Size, obj.Modified.UTC().Format(time.RFC3339Nano), known.object.Size, known.object.Modified.UTC().Format(time.RFC3339Nano))
}

// recheck asks the store whether a stored file is still what it was.
func (at segmentAt) recheck(ctx context.Context, file string) error {
	l, s, err := at.get(ctx)
	if err != nil {
		return err
	}
	loc, err := at.locator(l, s)(ctx, file)
	if err != nil {
		return err
	}
	r, err := loc.Store.Open(ctx, loc.Path) // no dearer than asking for the attributes, and often of use
	if fault.Is(err, fault.NotFound) {
		return fault.New("open", loc.URI(), fault.Stale, "the file is gone: %w", err)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	return at.verify(file, loc, r.Stat())
}

// locator finds the stored files of a segment. Where its directory has to be looked for, that is done once.
func (at segmentAt) locator(l *loaded, s *segment) func(ctx context.Context, path string) (dataset.Location, error) {
	var mu sync.Mutex // protects dir
	var dir *dataset.IndexDir
	return func(ctx context.Context, path string) (dataset.Location, error) {
		if path == "" || store.CheckName(path) != nil {
			return dataset.Location{}, fault.New("nodes.Locate", at.n.path, fault.Corrupt, "index file %q is no relative path that stays inside", path)
		}
		mu.Lock()
		d := dir
		mu.Unlock()
		if d == nil {
			found, err := at.n.t.ds.IndexDir(ctx, l.m, s.ix)
			if err != nil {
				return dataset.Location{}, err
			}
			d = &found
			mu.Lock()
			dir = d
			mu.Unlock()
		}
		loc := d.Location
		loc.Path = store.Join(loc.Path, path)
		return loc, nil
	}
}

// opener opens the stored files of a segment.
func (at segmentAt) opener(l *loaded, s *segment) func(context.Context, string) (indexfile.Reader, error) {
	locate := at.locator(l, s)
	return func(ctx context.Context, path string) (indexfile.Reader, error) {
		loc, err := locate(ctx, path)
		if err != nil {
			return nil, err
		}
		r, err := loc.Store.Open(ctx, loc.Path)
		if err != nil {
			return nil, err
		}
		if err := at.verify(path, loc, r.Stat()); err != nil {
			_ = r.Close()
			return nil, err
		}
		return r, nil
	}
}

// layout gives package indexfile the segment.
func (at segmentAt) layout(l *loaded, s *segment, files []storedFile) *indexfile.Segment {
	fs := make([]indexfile.StoredFile, len(files))
	for i, f := range files {
		fs[i] = indexfile.StoredFile{Path: f.path, Size: f.size}
	}
	return indexfile.NewSegment(l.m, s.ix, fs, at.opener(l, s))
}

// resolver tells what became of the addresses of the segment in the version.
func (at segmentAt) resolver(l *loaded, h *history, s *segment) (indexfile.Resolver, error) {
	return at.resolverInto(at.n.live(l), l, h, s)
}

// placer tells where the addresses of the segment are in the version, rows that are deleted there included. An entry of a
// remapped file keeps its address whether the row is deleted or not, so its bytes do not depend on deletion files: those
// of a version that is being cleaned up go before its manifest does.
func (at segmentAt) placer(l *loaded, h *history, s *segment) (indexfile.Resolver, error) {
	return at.resolverInto(places{at.n.live(l)}, l, h, s)
}

func (at segmentAt) resolverInto(live translate.Live, l *loaded, h *history, s *segment) (indexfile.Resolver, error) {
	tr, err := at.n.translatorInto(live, l, h)
	if err != nil {
		return nil, err
	}
	r := indexfile.NewResolver(tr, live, l.remapCoverage(h.h)[s.ix.Ordinal].Live)
	if at.n.t.resolve != nil {
		r = at.n.t.resolve(r)
	}
	return r, nil
}
