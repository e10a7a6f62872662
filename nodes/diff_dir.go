package nodes

import (
	"context"
	"strconv"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
)

// diffDir is diff/: for each two versions a directory <A>..<B>, found by name and never listed (docs/DESIGN.md, "Tree").
func (t *Tree) diffDir() *dir {
	return &dir{
		base: base{ino: t.inode("diff", "diff"), path: "diff", mtime: t.start}, volatile: true,
		list: func(context.Context) (*listing, error) { return &listing{}, nil },
		find: func(ctx context.Context, name string) (Node, error) {
			from, to, ok := strings.Cut(name, "..")
			if !ok || from == "" || to == "" {
				return nil, fault.New("lookup", "diff/"+name, fault.NotFound, "no such entry: write two versions with two dots between, such as diff/3..latest")
			}
			a, err := t.versionNamed(ctx, from)
			if err != nil {
				return nil, err
			}
			b, err := t.versionNamed(ctx, to)
			if err != nil {
				return nil, err
			}
			return t.pairDir(name, a, b), nil
		},
	}
}

// pairDir is diff/<A>..<B>/.
func (t *Tree) pairDir(name string, a, b version) *dir {
	p := "diff/" + name
	at := base{ino: t.inode(p, a.key()+"\x00"+b.key()), path: p, mtime: b.v.refs[b.i].Object.Modified}
	return &dir{base: at, list: func(ctx context.Context) (*listing, error) {
		out, es := &listing{}, problems{}
		for _, n := range []version{a, b} {
			if _, err := n.load(ctx); err != nil {
				if !lasting(err) {
					return nil, err
				}
				out.leaveOut(&es, "changes.json", err)
			}
		}
		if len(es) > 0 {
			f, err := errorBytes(ctx, t.cfg.URI, p, at.mtime, es)
			if err != nil {
				return nil, err
			}
			out.add("ERROR.json", f)
			return out, nil
		}
		file := p + "/changes.json"
		out.add("changes.json", &docFile{
			base: base{ino: t.inode(file, a.key()+"\x00"+b.key()), path: file, mtime: at.mtime}, t: t, class: C1,
			build: func(ctx context.Context) (*document, error) { return diffJSON(ctx, a, b) },
		})
		return out, nil
	}}
}

// versionNamed finds a version by the name that diff/ has for it: a number, "latest", a tag as the tree writes it, or
// either of the first two after a branch and a colon. In a tree that is pinned there is only what is shown.
func (t *Tree) versionNamed(ctx context.Context, name string) (version, error) {
	if n, ok, err := t.versionHere(ctx, name); ok || err != nil {
		return n, err
	}
	main, _ := t.ds.Main()
	if main == nil || t.path == "" {
		refs, err := t.shownTags(ctx)
		if err != nil {
			return version{}, err
		}
		for _, r := range refs {
			if EncodeName(r.Name) != name {
				continue
			}
			tag, err := t.refsOf().Tag(ctx, r)
			if err != nil {
				return version{}, err
			}
			return t.versionOf(ctx, tag.Branch, strconv.FormatUint(tag.Version, 10))
		}
	}
	if i := strings.LastIndexByte(name, ':'); i > 0 && main == nil && t.pin == nil {
		branch := name[:i]
		if branch == dataset.MainBranch {
			return t.versionOf(ctx, "", name[i+1:])
		}
		refs, err := t.branchRefs(ctx)
		if err != nil {
			return version{}, err
		}
		for _, r := range refs {
			if EncodeName(r.Name) == branch || r.Name == branch {
				return t.versionOf(ctx, r.Name, name[i+1:])
			}
		}
		return version{}, fault.New("lookup", "diff", fault.NotFound, "there is no branch %q; %s", branch, thereAre("branches", refs))
	}
	refs, err := t.shownTags(ctx)
	if err != nil {
		return version{}, err
	}
	return version{}, fault.New("lookup", "diff", fault.NotFound, "%q is neither the number of a version, nor latest, nor a tag; %s", name, thereAre("tags", refs))
}

// versionHere finds a version of this tree by its number, or the latest; ok is false for other names.
func (t *Tree) versionHere(ctx context.Context, name string) (n version, ok bool, err error) {
	num := uint64(0)
	if name != "latest" {
		if num, ok = versionNumber(name); !ok {
			return n, false, nil
		}
	}
	v, err := t.view(ctx)
	if err != nil {
		return n, false, err
	}
	i := v.hi - 1
	if name == "latest" && v.hi == v.lo {
		return n, false, fault.New("lookup", "latest", fault.NotFound, "there is no version: _versions holds no manifest with a valid name")
	}
	if name != "latest" {
		if i, ok = v.find(num); !ok {
			return n, false, t.notShown(v, num)
		}
	}
	return (&versionsDir{t: t}).at(v, i), true, nil
}

// versionNumber is the number that a name is in decimal digits, as the tree writes it.
func versionNumber(name string) (num uint64, ok bool) {
	num, err := strconv.ParseUint(name, 10, 64)
	return num, err == nil && strconv.FormatUint(num, 10) == name
}

// versionOf is versionHere for a branch; "" is the main line.
func (t *Tree) versionOf(ctx context.Context, branch, name string) (version, error) {
	at := t
	if _, here := t.ds.Main(); branch != here {
		if here != "" {
			return version{}, fault.New("lookup", "diff", fault.NotFound, "this is the branch %q alone; another one cannot be compared with it", here)
		}
		var err error
		if at, err = t.branchTree(ctx, branch); err != nil {
			return version{}, err
		}
	}
	n, ok, err := at.versionHere(ctx, name)
	if err == nil && !ok {
		err = fault.New("lookup", "diff", fault.NotFound, "%q is neither the number of a version nor latest", name)
	}
	return n, err
}
