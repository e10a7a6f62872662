package nodes

import (
	"context"
	"slices"
	"strconv"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
)

// tagRefs lists the tags of the dataset as they were when they were last looked at. A branch has those of the dataset
// that it belongs to.
func (t *Tree) tagRefs(ctx context.Context) ([]dataset.Ref, error) {
	l, err := t.tagsSeen.get(ctx)
	if err != nil {
		return nil, err
	}
	return l.refs, nil
}

// refsOf is the dataset that holds the refs.
func (t *Tree) refsOf() *dataset.Dataset {
	if main, _ := t.ds.Main(); main != nil {
		return main
	}
	return t.ds
}

// tagsDir is tags/: a link for each tag. Names are listed without reading the tags; under a pin only those are there
// that name the version which is shown.
func (t *Tree) tagsDir() *dir {
	return &dir{
		base: base{ino: t.inode("tags", "tags"), path: "tags", mtime: t.start}, volatile: true,
		list: func(ctx context.Context) (*listing, error) {
			refs, err := t.shownTags(ctx)
			if err != nil {
				return nil, t.failed("list", "tags", err)
			}
			out := &listing{}
			for _, r := range refs {
				out.add(EncodeName(r.Name), t.tagLink(r))
			}
			return out, nil
		},
		find: func(ctx context.Context, name string) (Node, error) {
			refs, err := t.shownTags(ctx)
			if err != nil {
				return nil, t.failed("list", "tags", err)
			}
			for _, r := range refs {
				if EncodeName(r.Name) == name {
					return t.tagLink(r), nil
				}
			}
			return nil, notFound("tags", name)
		},
	}
}

func (t *Tree) shownTags(ctx context.Context) ([]dataset.Ref, error) {
	refs, err := t.tagRefs(ctx)
	if err != nil || t.pin == nil {
		return refs, err
	}
	tags, errs := t.readTags(ctx, refs)
	_, branch := t.ds.Main()
	var out []dataset.Ref
	for i, r := range refs {
		if errs[i] == nil && tags[i].Version == *t.pin && tags[i].Branch == branch {
			out = append(out, r)
		}
	}
	return out, nil
}

// readTags reads tags, some at a time.
func (t *Tree) readTags(ctx context.Context, refs []dataset.Ref) ([]*dataset.Tag, []error) {
	tags, errs := make([]*dataset.Tag, len(refs)), make([]error, len(refs))
	inParallel(len(refs), func(i int) { tags[i], errs[i] = t.refsOf().Tag(ctx, refs[i]) })
	return tags, errs
}

// tagLink is tags/<tag>. What it leads to is read when it is asked for.
type tagLink struct {
	base
	t   *Tree
	ref dataset.Ref
}

var _ Link = (*tagLink)(nil)

func (t *Tree) tagLink(r dataset.Ref) *tagLink {
	p := "tags/" + EncodeName(r.Name)
	return &tagLink{base: base{ino: t.inode(p, r.Key()), path: p, mtime: r.Object.Modified}, t: t, ref: r}
}

// Type implements Node.
func (l *tagLink) Type() Type { return TypeLink }

// Attr implements Node.
func (l *tagLink) Attr(ctx context.Context) (Attr, error) {
	target, err := l.Target(ctx)
	if err != nil {
		return Attr{}, err
	}
	return Attr{Type: TypeLink, Size: int64(len(target)), Perm: 0o777, Mtime: l.mtime, Ino: l.ino}, nil
}

// Target implements Link. The version need not be retained: then the link dangles.
func (l *tagLink) Target(ctx context.Context) (string, error) {
	tag, err := l.t.refsOf().Tag(ctx, l.ref)
	if err != nil {
		return "", l.t.failed("readlink", l.path, err)
	}
	target := "versions/" + strconv.FormatUint(tag.Version, 10)
	if _, here := l.t.ds.Main(); tag.Branch != here {
		target = "branches/" + EncodeName(tag.Branch) + "/" + target
	}
	return "../" + target, nil
}

// selectTag resolves the tag of the selectors: it sets Branch and Version.
func (cfg *Config) selectTag(ctx context.Context) error {
	const op = "nodes.New"
	if cfg.Version != nil || !cfg.AsOf.IsZero() {
		return fault.New(op, cfg.Dataset.URI(), fault.Invalid, "a tag names a version: no other can be selected with it")
	}
	refs, err := cfg.Dataset.Tags(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(refs, func(r dataset.Ref) bool { return r.Name == cfg.Tag })
	if i < 0 { // as the tree writes it
		i = slices.IndexFunc(refs, func(r dataset.Ref) bool { return EncodeName(r.Name) == cfg.Tag })
	}
	if i < 0 {
		return fault.New(op, cfg.Dataset.URI(), fault.NotFound, "there is no tag %q; %s", cfg.Tag, thereAre("tags", refs))
	}
	tag, err := cfg.Dataset.Tag(ctx, refs[i])
	if err != nil {
		return err
	}
	branch := tag.Branch
	if branch == "" {
		branch = dataset.MainBranch
	}
	if cfg.Branch != "" && cfg.Branch != branch && cfg.Branch != EncodeName(branch) {
		return fault.New(op, cfg.Dataset.URI(), fault.Invalid, "the tag %q names a version of branch %q, not of %q", cfg.Tag, branch, cfg.Branch)
	}
	cfg.Branch, cfg.Version = branch, &tag.Version
	return nil
}
