package nodes

import (
	"context"
	"sync"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/store"
)

// statWorkers is how many files are asked for at a time by scan/files.json.
const statWorkers = 16

// found is what the store says about a file.
type found struct {
	present bool
	size    int64
	err     error
	uri     string  // where it was found, if not where it is recorded; "" else
	base    *uint32 // the base of uri; nil = the dataset's own root
}

// scanFilesJSON is scan/files.json: files.json with what is really there. One request per file.
func (n version) scanFilesJSON(ctx context.Context) (*document, error) {
	f, err := n.fileList(ctx)
	if err != nil {
		return nil, err
	}
	got := make([]found, len(f.items))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(statWorkers, len(f.items)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range next {
				got[i] = look(ctx, f.items[i].kind, f.place(i))
				if fault.Is(got[i].err, fault.NotFound) {
					f.lookElsewhere(ctx, i, &got[i])
				}
			}
		}()
	}
	for i := range f.items {
		next <- i
	}
	close(next)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fault.Wrap("nodes.ScanFiles", n.path, err)
	}
	missing, differ := 0, 0
	for i, g := range got {
		p := f.place(i)
		if !g.present {
			if !f.items[i].kind.optional() {
				missing++
			}
		} else if p.size != nil && *p.size != uint64(g.size) && f.items[i].kind != fileIndexDir {
			differ++
		}
	}
	j := newJSONDoc()
	f.head(j)
	j.Members(func(e *enc) {
		e.K("missing").Int(int64(missing))
		e.K("size_differs").Int(int64(differ))
	})
	j.ArrayOf("files", len(f.items), func(e *enc, i int) {
		p, g := f.place(i), got[i]
		e.Obj(func() {
			e.placeMembers(f.items[i].kind, p)
			e.K("present")
			switch {
			case g.err != nil && !g.present && !fault.Is(g.err, fault.NotFound):
				e.Null()
			default:
				e.Bool(g.present)
			}
			e.K("bytes")
			if g.present {
				e.Int(g.size)
			} else {
				e.Null()
			}
			e.K("found_uri").OptStr(g.uri)
			e.K("error").Err(g.err)
			e.K("found_base_id").OptUint32(g.base)
		})
	})
	return j.Done(), nil
}

// lookElsewhere looks for a file that is not where it is recorded under the other bases of the manifest, as readers of it
// do.
func (f *fileList) lookElsewhere(ctx context.Context, i int, g *found) {
	it := f.items[i]
	if len(f.l.m.PB.GetBasePaths()) == 0 {
		return
	}
	var ix *dataset.Index
	name := ""
	switch it.kind {
	case fileData, fileOverlay, fileDeletion, fileRowMap:
		loc, err := f.location(ctx, it)
		if err != nil {
			return
		}
		at, err := loc.Find(ctx)
		if err == nil && at.Moved {
			*g = found{present: true, size: at.Object.Size, uri: at.URI(), base: at.Base.ID}
		} else if err != nil {
			g.err = err
		}
		return
	case fileIndex:
		ix = f.l.m.Indices[it.a]
		name = ix.PB.GetFiles()[it.b].GetPath()
	case fileIndexDir:
		ix = f.l.m.Indices[it.a]
	case fileDetails:
		ix, name = f.l.fri.entry, f.l.fri.content.External.Path
	default:
		return
	}
	dir, err := f.n.t.ds.IndexDir(ctx, f.l.m, ix)
	if err != nil {
		g.err = err
		return
	}
	if !dir.Moved {
		return
	}
	p := place{path: store.Join(dir.Path, name), store: dir.Store}
	if p.err = store.CheckName(p.path); p.err != nil {
		return
	}
	if at := look(ctx, it.kind, p); at.present {
		*g = at
		g.uri, g.base = store.Join(dir.URI(), name), dir.Base.ID
	}
}

// location is where the dataset reads a file that is no part of an index.
func (f *fileList) location(ctx context.Context, it fileItem) (dataset.Location, error) {
	ds, m := f.n.t.ds, f.l.m
	switch it.kind {
	case fileData:
		return ds.DataFile(ctx, m, m.Fragments()[it.a].File(int(it.b)))
	case fileOverlay:
		return ds.DataFile(ctx, m, m.Fragments()[it.a].Overlay(int(it.b)).GetDataFile())
	case fileDeletion:
		return ds.DeletionFile(ctx, m, m.Fragments()[it.a])
	}
	part := f.h.h.Transitions[it.a].Partition
	return ds.RowMap(ctx, m, part.MapID, part.BaseID)
}

// look asks the store for one file; of an index directory it sums up the files.
func look(ctx context.Context, k fileKind, p place) found {
	if p.err != nil {
		return found{err: p.err}
	}
	if k == fileIndexDir || k.optional() {
		files, err := listFiles(ctx, p.store, p.path)
		g := found{present: err == nil && len(files) > 0, err: err}
		for _, o := range files {
			g.size += o.Size
		}
		if k.optional() && (err == nil || fault.Is(err, fault.NotFound)) {
			g.err = nil
			return g
		}
		if err == nil && len(files) == 0 {
			g.err = fault.New("nodes.ScanFiles", p.uri, fault.NotFound, "the directory is empty")
		}
		return g
	}
	o, err := p.store.Stat(ctx, p.path)
	if err == nil && o.Dir {
		err = fault.New("nodes.ScanFiles", p.uri, fault.Corrupt, "is a directory")
	}
	return found{present: err == nil, size: o.Size, err: err}
}

// maxListed bounds how many files of one directory tree are listed.
const maxListed = 100_000

// listFiles lists the files below dir, recursively, with names relative to the store's root, in byte order per level.
// Directories without files do not show.
func listFiles(ctx context.Context, st store.Store, dir string) ([]store.Object, error) {
	var out []store.Object
	todo := []string{dir}
	for len(todo) > 0 && len(out) < maxListed {
		d := todo[0]
		todo = todo[1:]
		objects, err := st.List(ctx, d)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if o.Dir {
				todo = append(todo, o.Name)
			} else {
				out = append(out, o)
			}
		}
	}
	return out, nil
}
