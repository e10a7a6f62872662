package nodes

import (
	"context"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
)

// refsFacts is what dataset.json says about tags and branches. A branch's own tree shows none: they belong to the
// dataset as a whole.
type refsFacts struct {
	branches, tags []dataset.Ref
	berr, terr     error // why they are not known

	tag        []*dataset.Tag
	tagErr     []error
	retained   []*bool // whether the tag's version is there; nil = not known
	branch     []*dataset.Branch
	branchErr  []error
	branchGone []error // why the branch's directory cannot be used

	self    *dataset.Branch // of a branch's own tree
	selfErr error
}

// refsFacts reads all refs. A ref that cannot be read has its error in the result; the error returned here is a
// cancellation.
func (t *Tree) refsFacts(ctx context.Context) (*refsFacts, error) {
	f := &refsFacts{}
	if main, name := t.ds.Main(); main != nil {
		return f, t.branchSelf(ctx, f, name)
	}
	f.branches, f.berr = t.branchRefs(ctx)
	f.tags, f.terr = t.tagRefs(ctx)
	f.tag, f.tagErr = t.readTags(ctx, f.tags)
	f.branch, f.branchErr = make([]*dataset.Branch, len(f.branches)), make([]error, len(f.branches))
	f.branchGone = make([]error, len(f.branches))
	inParallel(len(f.branches), func(i int) {
		f.branch[i], f.branchErr[i] = t.ds.Branch(ctx, f.branches[i])
		_, f.branchGone[i] = t.branchTree(ctx, f.branches[i].Name)
	})
	f.retained = make([]*bool, len(f.tags))
	views := map[string]*view{}
	for i, tag := range f.tag {
		if f.tagErr[i] != nil {
			continue
		}
		v, ok := views[tag.Branch]
		if !ok {
			v = t.viewOf(ctx, tag.Branch)
			views[tag.Branch] = v
		}
		if v != nil {
			_, there := v.listing.Find(tag.Version)
			f.retained[i] = &there
		}
	}
	return f, fault.Wrap("nodes.Refs", "", ctx.Err())
}

// viewOf is the view of a branch; one without a directory has no versions. nil: it cannot be listed now.
func (t *Tree) viewOf(ctx context.Context, branch string) *view {
	at := t
	if branch != "" {
		sub, err := t.branchTree(ctx, branch)
		if broken(err) {
			return &view{listing: &dataset.Listing{}}
		}
		if err != nil {
			return nil
		}
		at = sub
	}
	v, err := at.view(ctx)
	if err != nil {
		return nil
	}
	return v
}

func (t *Tree) branchSelf(ctx context.Context, f *refsFacts, name string) error {
	refs, err := t.branchRefs(ctx)
	if err != nil {
		f.selfErr = err
		return fault.Wrap("nodes.Refs", "", ctx.Err())
	}
	ref := dataset.Ref{Name: name}
	for _, r := range refs {
		if r.Name == name {
			ref = r
		}
	}
	f.self, f.selfErr = t.refsOf().Branch(ctx, ref)
	return fault.Wrap("nodes.Refs", "", ctx.Err())
}

// members writes the refs one by one.
func (f *refsFacts) members(e *enc, t *Tree) {
	e.K("tag_refs").List(f.terr, len(f.tags), func(i int) {
		r, tag := f.tags[i], f.tag[i]
		if tag == nil {
			tag = &dataset.Tag{}
		}
		known := f.tagErr[i] == nil
		e.K("name").Str(r.Name)
		e.K("path").Str("tags/" + EncodeName(r.Name))
		e.K("file").Str(r.File)
		e.K("branch").OptStr(tag.Branch)
		e.K("version").OptUint(when(known, tag.Version))
		e.K("retained").OptBool(f.retained[i])
		e.K("created_at").OptTime(tag.Created)
		e.K("updated_at").OptTime(tag.Updated)
		e.K("error").Err(f.tagErr[i])
	})
	e.K("branch_refs").List(f.berr, len(f.branches), func(i int) {
		r := f.branches[i]
		e.K("name").Str(r.Name)
		e.K("path").Str("branches/" + EncodeName(r.Name))
		e.K("file").OptStr(r.File)
		e.K("uri").Str(t.branchURI(r.Name))
		e.branchMembers(f.branch[i])
		err := f.branchErr[i]
		if f.branchGone[i] != nil {
			err = f.branchGone[i]
		}
		e.K("error").Err(err)
	})
}

// branchOf writes branch_of: of which dataset this is a branch.
func (f *refsFacts) branchOf(e *enc, t *Tree) {
	main, name := t.ds.Main()
	e.K("branch_of")
	if main == nil {
		e.Null()
		return
	}
	e.Obj(func() {
		e.K("uri").Str(main.URI())
		e.K("name").Str(name)
		e.branchMembers(f.self)
		e.K("error").Err(f.selfErr)
	})
}

// branchMembers writes what the file of a branch says; null where it cannot be read.
func (e *enc) branchMembers(b *dataset.Branch) {
	if b == nil {
		for _, k := range []string{"parent_branch", "parent_version", "created_at", "forks"} {
			e.K(k).Null()
		}
		return
	}
	e.K("parent_branch").OptStr(b.Parent)
	e.K("parent_version").Uint(b.ParentVersion)
	e.K("created_at").OptTime(b.Created)
	e.K("forks").Arr(func() {
		for _, f := range b.Forks {
			e.Item().Obj(func() {
				e.K("version").Uint(f.Version)
				e.K("id").Str(f.ID)
			})
		}
	})
}

// List writes an array of n objects, or null where err says why it is not known.
func (e *enc) List(err error, n int, member func(i int)) {
	if err != nil {
		e.Null()
		return
	}
	e.Arr(func() {
		for i := range n {
			e.Item().Obj(func() { member(i) })
		}
	})
}

// refNames writes the names of refs, or null where they are not known.
func (e *enc) refNames(key string, refs []dataset.Ref, err error) {
	e.K(key)
	if err != nil {
		e.Null()
		return
	}
	names := make([]string, len(refs))
	for i, r := range refs {
		names[i] = r.Name
	}
	e.Strs(names)
}

// OptTime writes a time, or null.
func (e *enc) OptTime(t *time.Time) {
	if t == nil {
		e.Null()
		return
	}
	e.Time(*t)
}

func when[V any](known bool, v V) *V {
	if !known {
		return nil
	}
	return &v
}
