package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
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
	table  string // of a database
	branch string
	v      *view
}

// site is one root of a dataset, where directories are looked for.
type site struct {
	ds  *dataset.Dataset
	rel string // its path relative to the root of the mount's dataset or database
}

// versionRun is retained versions that follow each other.
type versionRun struct{ first, last uint64 }

// holder is one line's versions that name a directory, and the tags on them.
type holder struct {
	table    string
	branch   string
	detached []uint64
	runs     []versionRun
	tags     []string
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
	read   int // versions
	unread []problem
	dirs   []*ownedDir

	held  map[string][]holder // by the directory's real URI
	sites []site
}

// lines are the main line and all branches of a whole tree, with the versions of each. A branch without a directory has
// none.
func (t *Tree) lines(ctx context.Context) ([]line, []problem, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, nil, err
	}
	out := []line{{t: t, v: v}}
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

// orphansFile is .frifs/orphans.json. Its inode follows the retained versions, or the tables of a database, and the time.
func (t *Tree) orphansFile(ctx context.Context) (*docFile, error) {
	key := sha256.New()
	if t.db != nil {
		l, err := t.tableNames(ctx)
		if err != nil {
			return nil, err
		}
		for _, table := range l.Tables {
			key.Write(append([]byte(table.Dir), 0))
		}
	} else {
		v, err := t.view(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range v.refs {
			key.Write([]byte(r.Object.Identity()))
		}
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
		return report.document(t.cfg.URI), nil
	}
	return f, nil
}

// findOrphans reads the manifest and the history of every retained version, and lists the directories of each root: of the
// dataset, or of every table of a database, whose clones hold the directories of other tables.
func (t *Tree) findOrphans(ctx context.Context) (*orphanReport, error) {
	r := &orphanReport{at: t.now(), held: map[string][]holder{}}
	if t.db == nil {
		if err := r.readTable(ctx, t, ""); err != nil {
			return nil, err
		}
		return r, r.findDirs(ctx)
	}
	l, err := t.tableNames(ctx)
	if err != nil {
		return nil, err
	}
	for i, table := range l.Tables {
		sub, err := t.tableTree(ctx, l.names[i], table)
		if err == nil {
			err = r.readTable(ctx, sub, l.names[i])
		}
		switch {
		case ctx.Err() != nil:
			return nil, fault.Wrap("nodes.Orphans", "tables/"+l.names[i], ctx.Err())
		case err != nil && !fault.Is(err, fault.NotFound): // a half-made table holds nothing
			r.unread = append(r.unread, problem{"tables/" + l.names[i], err})
		}
	}
	return r, r.findDirs(ctx)
}

// readTable reads the versions of one dataset, and notes its roots.
func (r *orphanReport) readTable(ctx context.Context, t *Tree, table string) error {
	whole, here, err := t.wholeTree(ctx)
	if err != nil {
		return err
	}
	lines, unread, err := whole.lines(ctx)
	if err != nil {
		return err
	}
	r.unread = append(r.unread, unread...)
	tags := whole.tagsByLine(ctx)
	main := strings.TrimSuffix(t.ds.URI(), "/")
	dir := ""
	if table != "" {
		dir = main[strings.LastIndexByte(main, '/')+1:]
	}
	for _, l := range lines {
		l.table = table
		if err := r.readLine(ctx, l, tags[l.branch]); err != nil {
			return err
		}
		if here != "" && l.branch != here {
			continue // its directories are not what is shown
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(l.t.ds.URI(), main), "/")
		r.sites = append(r.sites, site{l.t.ds, store.Join(dir, rel)})
	}
	if branch := t.strayBranch(ctx, lines[0].v); branch != "" {
		r.unread = append(r.unread, problem{"branches", fault.New("nodes.Orphans", t.ds.URI(), fault.Unsupported,
			"this is branch %q, opened by its directory: other branches of its dataset may name what it holds; open the dataset itself, with --branch", branch)})
	}
	return nil
}

// wholeTree is the tree with all branches of the dataset: t, or, where t shows the branch here alone, that of the dataset
// which the branch belongs to.
func (t *Tree) wholeTree(ctx context.Context) (whole *Tree, here string, err error) {
	main, here := t.ds.Main()
	if main == nil {
		return t, "", nil
	}
	whole, err = t.trees.get(ctx, main.URI(), func(context.Context) (*Tree, int64, error) {
		return t.below(main, ""), treeCost, nil
	})
	return whole, here, err
}

// strayBranch is the branch that the newest manifest is of, where the tree does not know its dataset; else "".
func (t *Tree) strayBranch(ctx context.Context, v *view) string {
	if main, _ := t.ds.Main(); main != nil || len(v.refs) == 0 {
		return ""
	}
	l, err := version{t: t, v: v}.sibling(len(v.refs) - 1).load(ctx)
	if err != nil {
		return ""
	}
	return l.m.Branch()
}

// tagsByLine are the tags of each branch by the version that they name. Tags that cannot be read are left out: they hold
// nothing, they only say why something is held.
func (t *Tree) tagsByLine(ctx context.Context) map[string]map[uint64][]string {
	refs, err := t.tagRefs(ctx)
	if err != nil {
		return nil
	}
	out := map[string]map[uint64][]string{}
	tags, errs := t.readTags(ctx, refs)
	for i, tag := range tags {
		if errs[i] != nil {
			continue
		}
		if out[tag.Branch] == nil {
			out[tag.Branch] = map[uint64][]string{}
		}
		out[tag.Branch][tag.Version] = append(out[tag.Branch][tag.Version], refs[i].Name)
	}
	return out
}

// findDirs lists the directories below _indices and _fri of every root.
func (r *orphanReport) findDirs(ctx context.Context) error {
	for _, s := range r.sites {
		for kind, name := range map[string]string{"index": "_indices", "row_map": "_fri"} {
			objects, err := s.ds.Store().List(ctx, name)
			if fault.Is(err, fault.NotFound) {
				continue
			}
			if err != nil {
				r.unread = append(r.unread, problem{store.Join(s.rel, name), err})
				continue
			}
			for _, o := range objects {
				if !o.Dir {
					continue
				}
				d := &ownedDir{kind: kind, path: store.Join(s.rel, o.Name), uri: store.Join(s.ds.URI(), o.Name)}
				if d.held = r.held[store.Join(realURI(s.ds.URI()), o.Name)]; len(d.held) == 0 {
					d.look(ctx, s.ds.Store(), o.Name)
				}
				r.dirs = append(r.dirs, d)
			}
		}
	}
	slices.SortFunc(r.dirs, func(a, b *ownedDir) int { return strings.Compare(a.path, b.path) })
	slices.SortFunc(r.unread, func(a, b problem) int { return strings.Compare(a.file, b.file) })
	return fault.Wrap("nodes.Orphans", "", ctx.Err())
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
