package nodes

import (
	"context"
	"path"
	"strings"

	"github.com/frifs/frifs/internal/dataset"
)

// Permission bits below remapped.lance: a copy of it can be used.
const (
	permCopyDir  = 0o755
	permCopyFile = 0o644
)

// lanceName is the name of the remapped dataset in a version's directory.
const lanceName = "remapped.lance"

// lanceDir is versions/<N>/remapped.lance: a whole dataset (docs/DESIGN.md, "Remapped dataset"). Names in it are those
// that Lance looks for, not encoded ones.
func (n version) lanceDir(l *loaded) *dir {
	d := n.copyDir(l, lanceName)
	d.list = func(ctx context.Context) (*listing, error) {
		l, err := n.load(ctx)
		if err != nil {
			return nil, err
		}
		out, err := n.keptListing(ctx, l, "")
		if err != nil {
			return nil, err
		}
		out.add("_versions", n.lanceVersions(l))
		if l.managedBlobs() {
			out.add(dataset.ManagedBlobsDir, n.managedBlobDir(l))
		}
		if n.lanceMayIndex(l) {
			out.add("_indices", n.lanceIndices(l))
		}
		return out, nil
	}
	return d
}

// copyDir is a directory at rel below the version with the permissions of a copy.
func (n version) copyDir(l *loaded, rel string) *dir {
	return &dir{base: n.base(rel, n.key(), l.mtime), perm: permCopyDir}
}

// lanceMayIndex reports whether, by the manifest alone, an index entry can be in remapped.lance.
func (n version) lanceMayIndex(l *loaded) bool {
	for _, ix := range l.m.Indices {
		if _, why := n.leftOut(l, ix); why == nil {
			return true
		}
	}
	return false
}

// lanceVersions is _versions/ with its one manifest.
func (n version) lanceVersions(l *loaded) *dir {
	rel := lanceName + "/_versions"
	d := n.copyDir(l, rel)
	d.list = func(ctx context.Context) (*listing, error) {
		l, err := n.load(ctx)
		if err != nil {
			return nil, err
		}
		out := &listing{}
		name := path.Base(l.m.Ref.Path())
		out.add(name, &lanceManifest{base: n.base(rel+"/"+name, n.key(), l.mtime), n: n})
		return out, nil
	}
	return d
}

// lanceIndices is _indices/: a directory per entry. Which there are, and their names, follow from the manifest, the
// history, and the heads of its row maps.
func (n version) lanceIndices(l *loaded) *dir {
	rel := lanceName + "/_indices"
	d := n.copyDir(l, rel)
	d.list = func(ctx context.Context) (*listing, error) {
		l, es, err := n.entriesOf(ctx, rel)
		if err != nil {
			return nil, err
		}
		out := &listing{}
		for i := range es.list {
			e := &es.list[i]
			out.add(e.dir, n.lanceSegment(l, e, rel+"/"+e.dir, ""))
		}
		return out, nil
	}
	d.find = func(ctx context.Context, name string) (Node, error) {
		l, es, err := n.entriesOf(ctx, rel)
		if err != nil {
			return nil, err
		}
		for i := range es.list {
			if e := &es.list[i]; e.dir == name {
				return n.lanceSegment(l, e, rel+"/"+e.dir, ""), nil
			}
		}
		return nil, notFound(n.path+"/"+rel, name)
	}
	return d
}

func (n version) entriesOf(ctx context.Context, rel string) (*loaded, *lanceEntries, error) {
	l, err := n.load(ctx)
	if err != nil {
		return nil, nil, err
	}
	es, err := n.lanceEntries(ctx)
	if err != nil {
		return nil, nil, n.t.failed("list", n.path+"/"+rel, err)
	}
	return l, es, nil
}

// lanceSegment is the directory of an entry, or the one below it for the files whose paths begin with sub. Files that
// readers of the type do not look for are not in it.
func (n version) lanceSegment(l *loaded, e *lanceEntry, rel, sub string) *dir {
	d := n.copyDir(l, rel)
	d.list = func(ctx context.Context) (*listing, error) {
		l, s, err := e.at.get(ctx)
		if err != nil {
			return nil, err
		}
		stored, err := n.storedFiles(ctx, l, s.ix)
		if err != nil {
			return nil, n.t.failed("list", n.path+"/"+rel, err)
		}
		seg := e.at.layout(l, s, stored)
		out := &listing{}
		dirs := map[string]bool{}
		for _, f := range stored {
			tail, ok := strings.CutPrefix(f.path, sub)
			if !ok {
				continue
			}
			name, _, deeper := strings.Cut(tail, "/")
			switch {
			case len(name) > 255 || dirs[name]:
			case deeper:
				dirs[name] = true
				out.add(name, n.lanceSegment(l, e, rel+"/"+name, sub+name+"/"))
			case e.asStored:
				out.add(name, e.at.storedNode(l, rel+"/"+name, f, permCopyFile))
			default:
				if file, err := e.at.remapped(l, seg, rel+"/"+name, f, permCopyFile); err == nil {
					out.add(name, file)
				}
			}
		}
		return out, nil
	}
	return d
}
