package nodes

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/frifs/frifs/internal/dataset"
)

// Change is what a look at the store found to be new in one dataset. Versions are those that the tree shows, ascending.
type Change struct {
	Dir      string   // of the tree: it holds latest and versions/; "" is the root
	Was, Now *uint64  // the version that latest pointed to, and points to; nil = none
	Added    []uint64 // versions that were not there before
	Removed  []uint64 // versions that are gone: cleaned up
	Replaced []uint64 // numbers that stand for another manifest now
	Refs     []Name   // tags and branches that came, went or changed; then nothing is said of versions

	// shifted: some versions that stay have others before them now. Files in them that compare with older versions are
	// others now.
	shifted  bool
	detached []string // detached versions that came or went
	aside    bool     // the directory of detached versions came or went
}

// maxNames bounds the names that are told one by one; others expire by themselves.
const maxNames = 2048

// changeOf compares two views of one dataset.
func changeOf(dir string, old, now *view) Change {
	c := Change{Dir: dir, Was: old.latest(), Now: now.latest()}
	a, b := old.shown(), now.shown()
	for len(a) > 0 || len(b) > 0 {
		var order int
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		default:
			order = cmp.Compare(a[0].Version, b[0].Version)
		}
		switch {
		case order < 0:
			c.Removed = append(c.Removed, a[0].Version)
			a = a[1:]
			continue
		case order > 0:
			c.Added = append(c.Added, b[0].Version)
			b = b[1:]
			c.shifted = c.shifted || len(a) > 0
			continue
		case !sameRef(a[0], b[0]):
			c.Replaced = append(c.Replaced, b[0].Version)
		}
		a, b = a[1:], b[1:]
	}
	c.shifted = c.shifted || len(c.Removed)+len(c.Replaced) > 0
	was, is := old.listing.DetachedRefs, now.listing.DetachedRefs
	c.detached, c.aside = changedDetached(was, is), (len(was) == 0) != (len(is) == 0)
	return c
}

// sameRef reports whether two looks mean the same manifest.
func sameRef(a, b dataset.VersionRef) bool {
	x, y := &a.Object, &b.Object
	return a.Version == b.Version && x.Name == y.Name && x.Size == y.Size && x.ETag == y.ETag && x.Modified.Equal(y.Modified)
}

// changedDetached names the detached versions that are in one list only, or stand for another file in each.
func changedDetached(old, now []dataset.VersionRef) []string {
	known := make(map[uint64]dataset.VersionRef, len(old))
	for _, r := range old {
		known[r.Version] = r
	}
	var out []string
	for _, r := range now {
		if was, ok := known[r.Version]; !ok || !sameRef(was, r) {
			out = append(out, strconv.FormatUint(r.Version, 10))
		}
		delete(known, r.Version)
	}
	for _, r := range old {
		if _, gone := known[r.Version]; gone {
			out = append(out, strconv.FormatUint(r.Version, 10))
		}
	}
	return out
}

// shown are the versions that the tree shows.
func (v *view) shown() []dataset.VersionRef { return v.refs[v.lo:v.hi] }

// latest is the number that latest points to, nil where there is none.
func (v *view) latest() *uint64 {
	if v.hi == v.lo {
		return nil
	}
	return &v.refs[v.hi-1].Version
}

// Names lists the names of the tree that may mean something else since the change. The name of a version that stays is
// not among them: what the kernel keeps of it is right. A name */a/b stands for a/b in every directory of Dir.
func (c Change) Names() []Name {
	if len(c.Refs) > 0 {
		return append([]Name{{c.Dir, "dataset.json"}}, c.Refs...)
	}
	versions := joinPath(c.Dir, "versions")
	out := []Name{{c.Dir, "latest"}, {c.Dir, "dataset.json"}, {versions, "."}}
	if c.shifted {
		out = append(out, Name{versions, "*/changes.json"}, Name{versions, "*/fri/status.json"})
	}
	told := slices.Concat(c.Added, c.Removed, c.Replaced)
	for _, n := range told[:min(len(told), maxNames)] {
		out = append(out, Name{versions, strconv.FormatUint(n, 10)})
	}
	if c.aside {
		out = append(out, Name{c.Dir, "detached"})
	}
	for _, name := range c.detached[:min(len(c.detached), maxNames)] {
		out = append(out, Name{joinPath(c.Dir, "detached"), name})
	}
	return out
}
