package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

const (
	orphansName = "orphans.json"
	// orphanPeriod is how long a report is shown before another one is made, if the versions stay the same.
	orphanPeriod = 10 * time.Minute
	// freshFor is how long Lance keeps files that no manifest names: they may belong to a commit that is under way.
	freshFor = 7 * 24 * time.Hour
)

// orphanKeeper keeps the last report, so that the text of one inode never changes.
type orphanKeeper struct {
	mu     sync.Mutex // protects what follows
	ino    uint64
	report *orphanReport
}

// line is the versions of the main line or of one branch.
type line struct {
	t      *Tree
	branch string
	v      *view
}

// versionRun is retained versions that follow each other.
type versionRun struct{ first, last uint64 }

// holder is one line's versions that name a directory.
type holder struct {
	branch   string
	detached []uint64
	runs     []versionRun
}

// ownedDir is one directory below _indices or _fri of a root of the dataset.
type ownedDir struct {
	kind, path, uri string
	held            []holder

	// Of a directory that nothing holds.
	files  int
	bytes  int64
	newest time.Time
	staged bool
	err    error
}

// orphanReport is what .frifs/orphans.json shows.
type orphanReport struct {
	at     time.Time
	read   int
	unread []problem
	dirs   []*ownedDir
}

// lines are the main line and all branches, with the versions of each. A branch without a directory has none.
func (t *Tree) lines(ctx context.Context) ([]line, []problem, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, nil, err
	}
	out := []line{{t: t, v: v}}
	if main, _ := t.ds.Main(); main != nil {
		return out, nil, nil
	}
	refs, err := t.branchRefs(ctx)
	if err != nil {
		return out, []problem{{"branches", err}}, nil //nolint:nilerr // what main names is still told, and why no more
	}
	var unread []problem
	for _, r := range refs {
		sub, err := t.branchTree(ctx, r.Name)
		if err == nil {
			v, err = sub.view(ctx)
		}
		switch {
		case fault.Is(err, fault.NotFound):
		case err != nil:
			unread = append(unread, problem{"branches/" + EncodeName(r.Name), err})
		default:
			out = append(out, line{t: sub, branch: r.Name, v: v})
		}
	}
	return out, unread, nil
}

// orphansFile is .frifs/orphans.json. Its inode follows the retained versions of all branches and the time.
func (t *Tree) orphansFile(ctx context.Context) (*docFile, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	key := sha256.New()
	for _, r := range v.refs {
		key.Write([]byte(r.Object.Identity()))
	}
	key.Write(strconv.AppendInt(nil, t.now().UnixNano()/int64(orphanPeriod), 10))
	p := ".frifs/" + orphansName
	f := &docFile{base: base{ino: t.inode(p, hex.EncodeToString(key.Sum(nil))), path: p, mtime: t.start}, t: t, class: C2}
	f.build = func(ctx context.Context) (*document, error) {
		t.orphans.mu.Lock()
		report := t.orphans.report
		if t.orphans.ino != f.ino {
			report = nil
		}
		t.orphans.mu.Unlock()
		if report == nil {
			var err error
			if report, err = t.findOrphans(ctx); err != nil {
				return nil, err
			}
			t.orphans.mu.Lock()
			t.orphans.ino, t.orphans.report = f.ino, report
			t.orphans.mu.Unlock()
		}
		return report.document(t.ds.URI()), nil
	}
	return f, nil
}

// findOrphans reads the manifest and the history of every retained version, and lists the directories of each root.
func (t *Tree) findOrphans(ctx context.Context) (*orphanReport, error) {
	lines, unread, err := t.lines(ctx)
	if err != nil {
		return nil, err
	}
	r := &orphanReport{at: t.now(), unread: unread}
	held := map[string][]holder{}
	for _, l := range lines {
		if err := r.readLine(ctx, l, held); err != nil {
			return nil, err
		}
	}
	main, _ := strings.CutSuffix(t.ds.URI(), "/")
	for _, l := range lines {
		for kind, name := range map[string]string{"index": "_indices", "row_map": "_fri"} {
			objects, err := l.t.ds.Store().List(ctx, name)
			if fault.Is(err, fault.NotFound) {
				continue
			}
			rel := strings.TrimPrefix(strings.TrimPrefix(l.t.ds.URI(), main), "/")
			if err != nil {
				r.unread = append(r.unread, problem{store.Join(rel, name), err})
				continue
			}
			for _, o := range objects {
				if !o.Dir {
					continue
				}
				d := &ownedDir{kind: kind, path: store.Join(rel, o.Name), uri: store.Join(l.t.ds.URI(), o.Name)}
				if d.held = held[store.Join(realURI(l.t.ds.URI()), o.Name)]; len(d.held) == 0 {
					d.look(ctx, l.t.ds.Store(), o.Name)
				}
				r.dirs = append(r.dirs, d)
			}
		}
	}
	slices.SortFunc(r.dirs, func(a, b *ownedDir) int { return strings.Compare(a.path, b.path) })
	return r, ctx.Err()
}

// readLine notes in held which directories the versions of a line name.
func (r *orphanReport) readLine(ctx context.Context, l line, held map[string][]holder) error {
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
				hs := held[uri]
				if len(hs) == 0 || hs[len(hs)-1].branch != l.branch || before[uri] == 0 {
					hs = append(hs, holder{branch: l.branch})
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
				before[uri] = at + 1
				held[uri] = hs
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
	add := func(id *uint32, root, plain string) {
		b, berr := n.t.ds.Base(ctx, l.m, id)
		if berr != nil {
			return // outside of what may be read, and so none of our directories
		}
		if !b.DatasetRoot {
			root = plain
		}
		if uri := store.Join(realURI(b.URI), root); !slices.Contains(out, uri) {
			out = append(out, uri)
		}
	}
	if l.m.IndexErr != nil {
		return nil, l.m.IndexErr
	}
	for _, ix := range l.m.Indices {
		if ix.UUIDErr != nil {
			continue
		}
		add(ix.PB.BaseId, "_indices/"+ix.UUID, ix.UUID)
		if len(l.m.PB.GetBasePaths()) > 0 && ix.PB.BaseId != nil {
			// A wrong base: wherever the directory is, this version reads it.
			if dir, err := n.t.ds.IndexDir(ctx, l.m, ix); err == nil && dir.Moved {
				if uri := store.Join(realURI(dir.Store.URI()), dir.Path); !slices.Contains(out, uri) {
					out = append(out, uri)
				}
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
		if t.Partition != nil {
			add(t.Partition.BaseID, "_fri/"+t.Partition.MapID, "_fri/"+t.Partition.MapID)
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

// look finds out how old and how large a directory is that nothing holds.
func (d *ownedDir) look(ctx context.Context, st store.Store, dir string) {
	var files []store.Object
	if files, d.err = listFiles(ctx, st, dir); d.err != nil {
		return
	}
	d.files = len(files)
	for _, o := range files {
		d.bytes += o.Size
		if o.Modified.After(d.newest) {
			d.newest = o.Modified
		}
		d.staged = d.staged || stagedName(o.Name[strings.LastIndexByte(o.Name, '/')+1:])
	}
}

// stagedName reports whether a file is one of those that a build writes before the files of the index itself.
func stagedName(name string) bool {
	return strings.HasPrefix(name, ".tmp") || strings.HasPrefix(name, "part_") || strings.HasPrefix(name, "partial_") ||
		strings.HasPrefix(name, "staging") || strings.Contains(name, "#")
}

// document renders the report.
func (r *orphanReport) document(uri string) *document {
	count := 0
	for _, d := range r.dirs {
		if len(d.held) == 0 {
			count++
		}
	}
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.K("uri").Str(uri)
		e.K("looked_at").Time(r.at)
		e.K("versions_read").Int(int64(r.read))
		e.K("complete").Bool(len(r.unread) == 0)
		e.K("unnamed").Int(int64(count))
		e.K("note").Str("directories that no retained version of this dataset names; clones elsewhere may use them, and writers may be about to")
	})
	j.ArrayOf("unread", len(r.unread), func(e *enc, i int) {
		e.Obj(func() {
			e.K("path").Str(r.unread[i].file)
			e.K("error").Err(r.unread[i].err)
		})
	})
	j.ArrayOf("directories", len(r.dirs), func(e *enc, i int) {
		e.Obj(func() { r.dirs[i].members(e, r) })
	})
	return j.Done()
}

func (d *ownedDir) members(e *enc, r *orphanReport) {
	e.K("kind").Str(d.kind)
	e.K("path").Str(d.path)
	e.K("uri").Str(d.uri)
	e.K("held_by").Arr(func() {
		for _, h := range d.held {
			e.Item().Obj(func() {
				e.K("branch").OptStr(h.branch)
				e.K("versions").Arr(func() {
					for _, run := range h.runs {
						e.Item().Arr(func() {
							e.Item().Uint(run.first)
							e.Item().Uint(run.last)
						})
					}
				})
				e.K("detached").Arr(func() {
					for _, n := range h.detached {
						e.Item().Wide(n)
					}
				})
			})
		}
	})
	unheld := len(d.held) == 0
	e.K("orphan")
	switch {
	case !unheld:
		e.Bool(false)
	case len(r.unread) > 0:
		e.Null() // a version that could not be read may name it
	default:
		e.Bool(true)
	}
	known := unheld && d.err == nil
	e.K("fresh").OptBool(when(known && d.files > 0, r.at.Sub(d.newest) < freshFor))
	e.K("staged").OptBool(when(known, d.staged))
	e.K("files").OptUint(when(known, uint64(d.files)))
	e.K("bytes").OptUint(when(known, uint64(d.bytes)))
	e.K("newest_file_at")
	if known && d.files > 0 {
		e.Time(d.newest)
	} else {
		e.Null()
	}
	e.K("error").Err(d.err)
}
