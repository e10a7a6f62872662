package nodes

import (
	"context"
	"strconv"

	"github.com/frifs/frifs/internal/dataset"
)

// detachedDir is detached/: the versions that stand outside the history, by their numbers. It is there only if there are
// any.
func (t *Tree) detachedDir() *dir {
	return &dir{
		base: base{ino: t.inode("detached", "detached"), path: "detached", mtime: t.start}, volatile: true,
		list: func(ctx context.Context) (*listing, error) {
			v, err := t.view(ctx)
			if err != nil {
				return nil, err
			}
			out := &listing{}
			for _, r := range v.listing.DetachedRefs {
				n := t.detached(v.listing, r)
				out.add(strconv.FormatUint(r.Version, 10), n.dir())
			}
			return out, nil
		},
		find: func(ctx context.Context, name string) (Node, error) {
			v, err := t.view(ctx)
			if err != nil {
				return nil, err
			}
			for _, r := range v.listing.DetachedRefs {
				if strconv.FormatUint(r.Version, 10) == name {
					return t.detached(v.listing, r).dir(), nil
				}
			}
			return nil, notFound("detached", name)
		},
	}
}

// detached makes the version: the only one of a view of its own, since none comes before it.
func (t *Tree) detached(l *dataset.Listing, r dataset.VersionRef) version {
	v := &view{listing: l, refs: []dataset.VersionRef{r}, hi: 1, order: []int32{0}}
	return version{t: t, v: v, path: "detached/" + strconv.FormatUint(r.Version, 10)}
}
