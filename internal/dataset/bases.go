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
	Store       store.Store
}

// String names the base in messages.
func (b Base) String() string {
	if b.ID == nil {
		return "the dataset's own root " + b.URI
	}
	return fmt.Sprintf("base %d (%s)", *b.ID, b.URI)
}

// own is the base of files without a base_id.
func (d *Dataset) own() Base { return Base{URI: d.URI(), DatasetRoot: true, Store: d.st} }

// Base resolves a base id of the manifest; nil means the dataset's own root. No request is made to the store. Errors
// name the base: fault.Corrupt for an id that the manifest does not have or a path that is not absolute, fault.Denied
// for one outside the allowed roots (the dataset's tree, its parent directory, Options.AllowBase).
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
	uri, err := canonical(d.rebase(rec.GetPath()))
	if err != nil {
		return Base{}, fault.New(op, m.where, fault.Corrupt, "base %d: %w", id, err)
	}
	b.URI = uri
	own, _ := canonical(d.URI())
	roots := d.allowedRoots(m, own)
	if roots = append(roots, realRoots(roots)...); !withinAny(roots, uri) {
		return Base{}, fault.New(op, m.where, fault.Denied,
			"base %d lies at %s, outside the dataset's tree and its parent directory: admit it with --allow-base %s, or name where it is now with --rebase OLD=NEW",
			id, uri, uri)
	}
	if !store.IsURI(uri) && !d.opt.FollowOutside {
		// A link on the way must not lead to where the path itself may not.
		if target, err := filepath.EvalSymlinks(uri); err == nil && !withinAny(roots, target) {
			return Base{}, fault.New(op, m.where, fault.Denied,
				"base %d lies at %s, which a symbolic link leads to %s, outside the allowed roots: admit it with --allow-base %s", id, uri, target, target)
		}
	}
	switch rel, inside := below(own, uri); {
	case inside && rel == "":
		b.Store = d.st
	case inside:
		b.Store = d.st.Sub(rel)
	default:
		open := d.opt.OpenStore
		if open == nil {
			open = func(ctx context.Context, uri string) (store.Store, error) {
				return store.OpenURI(ctx, uri, store.Options{FollowOutside: d.opt.FollowOutside})
			}
		}
		if b.Store, err = open(ctx, uri); err != nil {
			return Base{}, fault.Wrap(op, fmt.Sprintf("base %d (%s)", id, uri), err)
		}
	}
	return b, nil
}

// rebase applies Options.Rebase to a recorded path.
func (d *Dataset) rebase(path string) string {
	plain := strings.TrimPrefix(path, "file://")
	for _, r := range d.opt.Rebase {
		old := strings.TrimSuffix(r.Old, "/")
		for _, p := range []string{path, plain} {
			if rest, ok := strings.CutPrefix(p, old); ok && old != "" && (rest == "" || rest[0] == '/') {
				return strings.TrimSuffix(r.New, "/") + rest
			}
		}
	}
	return path
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

// allowedRoots lists where bases may be: the dataset's own tree, its parent directory unless that is the root of the
// file system, and what the user admits. A branch belongs to the dataset whose tree/ holds it.
func (d *Dataset) allowedRoots(m *Manifest, own string) []string {
	roots := []string{own}
	if branch := m.Branch(); branch != "" {
		if main, ok := strings.CutSuffix(own, "/tree/"+branch); ok && main != "" {
			own = main
			roots = append(roots, main)
		}
	}
	if i := strings.LastIndexByte(own, '/'); i > 0 && !strings.HasSuffix(own[:i], ":/") {
		roots = append(roots, own[:i])
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
