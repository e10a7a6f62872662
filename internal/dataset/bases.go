package dataset

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
)

// Base is a root that files of a version are in, resolved and admitted.
type Base struct {
	ID          *uint32 // nil: the root of the dataset that is being read
	Name        string  // as recorded, may be empty
	Recorded    string  // the path as recorded in the manifest; "" for the own root
	URI         string  // where that is: rebased, absolute, without credentials
	DatasetRoot bool    // whether data/, _indices/ and _deletions/ are below it, or the files themselves
	Moved       bool    // found by its place in the tree of a dataset that was moved, not where it is recorded
	Store       store.Store

	options string // the query of the place that the user named for it: how its store is opened
}

// String names the base in messages.
func (b Base) String() string {
	if b.ID == nil {
		return "the dataset's own root " + b.URI
	}
	if b.Moved {
		return fmt.Sprintf("base %d (%s, recorded at another place)", *b.ID, b.URI)
	}
	return fmt.Sprintf("base %d (%s)", *b.ID, b.URI)
}

// own is the base of files without a base_id.
func (d *Dataset) own() Base { return Base{URI: d.URI(), DatasetRoot: true, Store: d.st} }

// Base resolves a base id of the manifest; nil means the dataset's own root. The store is asked only about a base of a
// branch that lies outside the branch's own tree and parent directory. Errors name the base: fault.Corrupt for an id that
// the manifest does not have or a path that is not absolute, fault.Denied for one outside the allowed roots (the
// dataset's tree, its parent directory, Options.AllowBase).
func (d *Dataset) Base(ctx context.Context, m *Manifest, baseID *uint32) (Base, error) {
	if baseID == nil {
		return d.own(), nil
	}
	var rec *pb.BasePath
	for _, p := range m.PB.GetBasePaths() {
		if p.GetId() == *baseID {
			rec = p // of a duplicate id the last one counts
		}
	}
	if rec == nil {
		return Base{}, fault.New("dataset.Base", m.where, fault.Corrupt, "the manifest has no base path with id %d", *baseID)
	}
	return d.base(ctx, m, rec)
}

func (d *Dataset) base(ctx context.Context, m *Manifest, rec *pb.BasePath) (Base, error) {
	const op = "dataset.Base"
	id := rec.GetId()
	b := Base{ID: &id, Name: rec.GetName(), Recorded: rec.GetPath(), DatasetRoot: rec.GetIsDatasetRoot()}
	path, given := d.opt.Bases[id]
	to := "" // the place that the user rebased it to
	if !given {
		path, to, b.options = d.rebase(rec.GetPath())
	} else {
		path, b.options = absolute(path), optionsOf(path)
	}
	uri, err := canonical(path)
	if err != nil {
		return Base{}, fault.New(op, m.where, fault.Corrupt, "base %d: %w", id, err)
	}
	b.URI = uri
	if given { // by the user, who may name any place
		return d.openBase(ctx, b)
	}
	err = d.admit(ctx, m, b, to)
	if b.DatasetRoot && (err == nil || fault.Is(err, fault.Denied)) {
		if at, ok := d.moved(ctx, m, b, err == nil); ok {
			b.URI, b.Moved, err = at, true, nil
		}
	}
	if err != nil {
		return Base{}, err
	}
	return d.openBase(ctx, b)
}

// admit reports whether a base lies where the manifest may lead; rebased is a place that the user named for it, or "".
func (d *Dataset) admit(ctx context.Context, m *Manifest, b Base, rebased string) error {
	const op = "dataset.Base"
	roots := d.allowedRoots()
	if rebased != "" {
		roots = append(roots, rebased)
	}
	roots = append(roots, realRoots(roots)...)
	if !withinAny(roots, b.URI) {
		// The rest of the tree that a branch belongs to.
		main := d.mainRoot(ctx, m)
		if main != "" {
			more := []string{main}
			if up, ok := parent(main); ok {
				more = append(more, up)
			}
			roots = append(append(roots, more...), realRoots(more)...)
		}
		if !withinAny(roots, b.URI) {
			return fault.New(op, m.where, fault.Denied,
				"base %d lies at %s, outside the dataset's tree and its parent directory: admit it with --allow-base %s, or name where it is now with --rebase OLD=NEW or --base %d=URI",
				*b.ID, b.URI, b.URI, *b.ID)
		}
	}
	if !store.IsURI(b.URI) && !d.opt.FollowOutside {
		// A link on the way must not lead to where the path itself may not.
		if target, err := filepath.EvalSymlinks(b.URI); err == nil && !withinAny(roots, target) {
			return fault.New(op, m.where, fault.Denied,
				"base %d lies at %s, which a symbolic link leads to %s, outside the allowed roots: admit it with --allow-base %s", *b.ID, b.URI, target, target)
		}
	}
	return nil
}

// moved looks for the base of a branch by its place in the tree of the dataset, which was copied or moved since the base
// was recorded. A base that is still where it is recorded stays there.
func (d *Dataset) moved(ctx context.Context, m *Manifest, b Base, admitted bool) (string, bool) {
	if m.Branch() == "" {
		return "", false
	}
	if own, _ := canonical(d.URI()); withinAny([]string{own}, b.URI) {
		return "", false
	}
	main := d.mainRoot(ctx, m)
	if main == "" {
		return "", false
	}
	if _, inside := below(main, b.URI); inside && admitted {
		return "", false
	}
	at := main
	if i := strings.LastIndex(b.URI, "/"+treeDir+"/"); i > 0 {
		at += b.URI[i:]
	}
	if at == b.URI || admitted && d.isDataset(ctx, b.URI) || !d.isDataset(ctx, at) {
		return "", false
	}
	return at, true
}

// mainRoot is the root of the dataset that the branch of m belongs to, "" where that is not known. A manifest that merely
// says that it is on a branch leads nowhere: the root above must be a dataset.
func (d *Dataset) mainRoot(ctx context.Context, m *Manifest) string {
	if d.main != nil {
		main, _ := canonical(d.main.URI())
		return main
	}
	branch := m.Branch()
	if branch == "" {
		return ""
	}
	own, _ := canonical(d.URI())
	main, ok := strings.CutSuffix(own, "/"+treeDir+"/"+branch)
	if _, up := parent(main); !ok || !up || !d.isDataset(ctx, main) {
		return ""
	}
	return main
}

// isDataset asks whether there is a _versions directory below uri, until there is.
func (d *Dataset) isDataset(ctx context.Context, uri string) bool {
	if _, ok := d.datasets.Load(uri); ok {
		return true
	}
	st, err := d.storeAt(ctx, uri)
	if err != nil || hasVersions(ctx, st) != nil {
		return false
	}
	d.datasets.Store(uri, true)
	return true
}

func (d *Dataset) openBase(ctx context.Context, b Base) (Base, error) {
	var err error
	if b.Store, err = d.storeWith(ctx, b.URI, b.options); err != nil {
		return Base{}, fault.Wrap("dataset.Base", fmt.Sprintf("base %d (%s)", *b.ID, b.URI), err)
	}
	return b, nil
}

// maxStores bounds how many stores of bases are kept open.
const maxStores = 256

// storeAt opens the store at a canonical uri, which is admitted: once, while the manifests name no more than maxStores.
func (d *Dataset) storeAt(ctx context.Context, uri string) (store.Store, error) {
	return d.storeWith(ctx, uri, "")
}

// storeWith is storeAt with the options that the user gave for the place, as the query of a URI.
func (d *Dataset) storeWith(ctx context.Context, uri, options string) (store.Store, error) {
	own, _ := canonical(d.URI())
	switch rel, inside := below(own, uri); {
	case inside && rel == "":
		return d.st, nil
	case inside:
		return d.st.Sub(rel), nil
	}
	if options != "" {
		uri += "?" + options
	}
	d.mu.Lock()
	st, ok := d.stores[uri]
	d.mu.Unlock()
	if ok {
		return st, nil
	}
	open := d.opt.OpenStore
	if open == nil {
		open = func(ctx context.Context, uri string) (store.Store, error) {
			return store.OpenURI(ctx, uri, store.Options{FollowOutside: d.opt.FollowOutside})
		}
	}
	st, err := open(ctx, uri)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.stores) >= maxStores || d.stores == nil {
		d.stores = map[string]store.Store{}
	}
	d.stores[uri] = st
	return st, nil
}

// rebase applies Options.Rebase to a recorded path, however that and Old are written. to is the canonical New that was
// applied, "" for none: below it, but nowhere else, the user's word lets the base be. options is the query of New.
func (d *Dataset) rebase(path string) (now, to, options string) {
	written := []string{path, strings.TrimPrefix(path, "file://")}
	if c, err := canonical(path); err == nil {
		written = append(written, c)
	}
	for _, r := range d.opt.Rebase {
		olds := []string{strings.TrimSuffix(r.Old, "/")}
		if c, err := canonical(r.Old); err == nil {
			olds = append(olds, c)
		}
		to, err := canonical(absolute(r.New))
		if err != nil {
			to = r.New
		}
		for _, old := range olds {
			for _, p := range written {
				if rest, ok := strings.CutPrefix(p, old); ok && old != "" && (rest == "" || rest[0] == '/') {
					return to + rest, to, optionsOf(r.New)
				}
			}
		}
	}
	return path, "", ""
}

// optionsOf is the query of a URI.
func optionsOf(place string) string {
	if !store.IsURI(place) {
		return ""
	}
	_, query, _ := strings.Cut(place, "?")
	return query
}

// absolute makes a place that the user names absolute, if it is a path of this machine.
func absolute(place string) string {
	if !store.IsURI(place) {
		if abs, err := filepath.Abs(place); err == nil {
			return abs
		}
	}
	return place
}

// canonical makes paths and URIs comparable: local files become cleaned absolute paths, others lose credentials,
// query and the slash at the end.
func canonical(path string) (string, error) {
	if strings.IndexByte(path, 0) >= 0 {
		return "", fmt.Errorf("the path %q has a NUL byte", path)
	}
	if !store.IsURI(path) {
		if !filepath.IsAbs(path) {
			return "", fmt.Errorf("the path %q is neither absolute nor a URI", path)
		}
		return filepath.Clean(path), nil
	}
	u, err := url.Parse(path)
	if err != nil {
		return "", fmt.Errorf("the base path is a URI that cannot be parsed")
	}
	switch u.Scheme {
	case "file", "file-object-store", "file+uring":
		if u.Host != "" && u.Host != "localhost" || !filepath.IsAbs(u.Path) {
			return "", fmt.Errorf("the path %q is no file URI of this machine", path)
		}
		return filepath.Clean(u.Path), nil
	}
	for _, elem := range strings.Split(strings.Trim(u.Path, "/"), "/") {
		if elem == ".." || elem == "." {
			return "", fmt.Errorf("the path %q has an element %q", store.WithoutCredentials(u), elem)
		}
	}
	return store.WithoutCredentials(u), nil
}

// allowedRoots lists where bases may be, whatever the manifest says: the dataset's own tree, its parent directory, and
// what the user admits.
func (d *Dataset) allowedRoots() []string {
	own, _ := canonical(d.URI())
	roots := []string{own}
	if up, ok := parent(own); ok {
		roots = append(roots, up)
	}
	for _, a := range d.opt.AllowBase {
		if c, err := canonical(a); err == nil {
			roots = append(roots, c)
		} else if abs, err := filepath.Abs(a); err == nil && a != "" && !store.IsURI(a) {
			roots = append(roots, abs)
		}
	}
	return roots
}

// parent is the directory above a canonical path or URI, unless that is the root of the file system or all buckets.
func parent(uri string) (string, bool) {
	i := strings.LastIndexByte(uri, '/')
	if i <= 0 || strings.HasSuffix(uri[:i], ":/") {
		return "", false
	}
	return uri[:i], true
}

// realRoots are the roots with symbolic links resolved: a base may be recorded by either name.
func realRoots(roots []string) []string {
	out := make([]string, 0, len(roots))
	for _, r := range roots {
		if !store.IsURI(r) {
			if target, err := filepath.EvalSymlinks(r); err == nil {
				r = target
			}
		}
		out = append(out, r)
	}
	return out
}

func withinAny(roots []string, uri string) bool {
	for _, r := range roots {
		if _, ok := below(r, uri); ok {
			return true
		}
	}
	return false
}

// below returns the path of uri relative to root, if it is root or lies below it by whole elements.
func below(root, uri string) (string, bool) {
	if uri == root {
		return "", true
	}
	rest, ok := strings.CutPrefix(uri, strings.TrimSuffix(root, "/")+"/")
	return rest, ok && rest != ""
}
