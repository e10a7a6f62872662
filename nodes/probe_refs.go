package nodes

import (
	"context"

	"github.com/frifs/frifs/internal/dataset"
)

// refList is the tags or the branches of a dataset, as one look showed them. It is immutable.
type refList struct{ refs []dataset.Ref }

// watchTags makes the tags known.
func (t *Tree) watchTags() *watched[*refList] {
	return t.watchRefs("tags", func(ctx context.Context, _ bool) ([]dataset.Ref, error) { return t.refsOf().Tags(ctx) })
}

// watchRefs makes the tags, or the branches, known; kind is their directory. A pinned tree looks once.
func (t *Tree) watchRefs(kind string, list func(ctx context.Context, full bool) ([]dataset.Ref, error)) *watched[*refList] {
	return &watched[*refList]{
		t: t, name: kind, once: t.cfg.pinned(),
		find: func(ctx context.Context, old *refList, full bool) (*refList, error) {
			refs, err := list(ctx, full)
			switch {
			case err != nil:
				return nil, err
			case old != nil && len(changedRefs(old.refs, refs)) == 0:
				return old, nil
			}
			return &refList{refs}, nil
		},
		change: func(old, now *refList) Change {
			c := Change{Dir: t.dir()}
			for _, name := range changedRefs(old.refs, now.refs) {
				c.Refs = append(c.Refs, Name{joinPath(c.Dir, kind), EncodeName(name)})
			}
			return c
		},
	}
}

// changedRefs names the refs that are in one list only, or stand for another file in each.
func changedRefs(old, now []dataset.Ref) []string {
	known := make(map[string]dataset.Ref, len(old))
	for _, r := range old {
		known[r.Name] = r
	}
	var out []string
	for _, r := range now {
		if was, ok := known[r.Name]; !ok || was != r {
			out = append(out, r.Name)
		}
		delete(known, r.Name)
	}
	for _, r := range old {
		if _, ok := known[r.Name]; ok {
			out = append(out, r.Name)
		}
	}
	return out
}

// pinned reports whether the selectors leave one version only.
func (cfg *Config) pinned() bool {
	return cfg.Version != nil || !cfg.AsOf.IsZero() || cfg.Branch != "" || cfg.Tag != ""
}
