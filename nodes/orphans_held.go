package nodes

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

// readLine notes which directories the versions of a line name; tags are those of the line by version.
func (r *orphanReport) readLine(ctx context.Context, l line, tags map[uint64][]string) error {
	versions := make([]version, 0, len(l.v.refs)+len(l.v.listing.DetachedRefs))
	for i := range l.v.refs {
		versions = append(versions, version{t: l.t, v: l.v}.sibling(i))
	}
	for _, d := range l.v.listing.DetachedRefs {
		versions = append(versions, l.t.detached(l.v.listing, d))
	}
	const batch = 64
	before := map[string]int{} // directory → position of the last version that names it
	for from := 0; from < len(versions); from += batch {
		part := versions[from:min(from+batch, len(versions))]
		uris, errs := make([][]string, len(part)), make([]error, len(part))
		inParallel(len(part), func(i int) { uris[i], errs[i] = part[i].directories(ctx) })
		if err := ctx.Err(); err != nil {
			return fault.Wrap("nodes.Orphans", l.t.path, err)
		}
		for i, n := range part {
			if errs[i] != nil {
				r.unread = append(r.unread, problem{l.t.path + n.path, errs[i]})
			} else {
				r.read++
			}
			at := from + i
			for _, uri := range uris[i] {
				hs := r.held[uri]
				if before[uri] == 0 {
					hs = append(hs, holder{table: l.table, branch: l.branch})
				}
				h := &hs[len(hs)-1]
				switch {
				case at >= len(l.v.refs):
					h.detached = append(h.detached, n.number())
				case len(h.runs) > 0 && before[uri] == at:
					h.runs[len(h.runs)-1].last = n.number()
				default:
					h.runs = append(h.runs, versionRun{n.number(), n.number()})
				}
				if at < len(l.v.refs) {
					h.tags = append(h.tags, tags[n.number()]...)
				}
				before[uri] = at + 1
				r.held[uri] = hs
			}
		}
	}
	return nil
}

// directories lists the URIs of the index and row-map directories that the version names, each once. What can be told is
// given also with an error.
func (n version) directories(ctx context.Context) ([]string, error) {
	l, err := n.load(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	found := func(uri string) {
		if !slices.Contains(out, uri) {
			out = append(out, uri)
		}
	}
	add := func(id *uint32, root, plain string) {
		b, berr := n.t.ds.Base(ctx, l.m, id)
		if berr != nil {
			// Outside of what may be read, and so none of our directories; unless the base is wrong: then one of ours with the
			// same name is meant.
			if b, berr = n.t.ds.Base(ctx, l.m, nil); berr != nil {
				return
			}
		}
		if !b.DatasetRoot {
			root = plain
		}
		found(store.Join(realURI(b.URI), root))
	}
	if l.m.IndexErr != nil {
		return nil, l.m.IndexErr
	}
	for _, ix := range l.m.Indices {
		if ix.UUIDErr != nil {
			continue
		}
		add(ix.PB.BaseId, "_indices/"+ix.UUID, ix.UUID)
		if len(l.m.PB.GetBasePaths()) > 0 {
			// A wrong base: wherever the directory is, this version reads it.
			if dir, err := n.t.ds.IndexDir(ctx, l.m, ix); err == nil && dir.Moved {
				found(store.Join(realURI(dir.Store.URI()), dir.Path))
			}
		}
	}
	h, err := n.history(ctx, l)
	if err != nil {
		return out, err
	}
	if h.h.Broken != nil {
		return out, h.h.Broken
	}
	for _, t := range h.h.Transitions {
		if t.Partition == nil {
			continue
		}
		add(t.Partition.BaseID, "_fri/"+t.Partition.MapID, "_fri/"+t.Partition.MapID)
		if len(l.m.PB.GetBasePaths()) == 0 {
			continue
		}
		if loc, err := n.t.ds.RowMap(ctx, l.m, t.Partition.MapID, t.Partition.BaseID); err == nil {
			if at, err := loc.Find(ctx); err == nil && at.Moved {
				found(store.Join(realURI(at.Store.URI()), at.Path[:strings.LastIndexByte(at.Path, '/')]))
			}
		}
	}
	return out, nil
}

// realURI is uri with symbolic links resolved, where it is a path of this machine: a base may be recorded by another name
// than the one that the dataset was opened by.
func realURI(uri string) string {
	if !store.IsURI(uri) {
		if real, err := filepath.EvalSymlinks(uri); err == nil {
			return real
		}
	}
	return uri
}
