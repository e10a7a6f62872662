package nodes

import (
	"context"
	"sort"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// maxSinceVersions bounds how many other versions one status.json looks at to date the records.
const maxSinceVersions = 64

// since says when a record came: the first retained version that has it. exact: it came with that very version;
// otherwise it may be older, and notBefore is the time of a version that did not have it yet.
type since struct {
	version   uint64
	time      time.Time // zero = the manifest does not say
	exact     bool
	notBefore time.Time // zero = not known
}

// dater finds out since when records are there, by looking them up in older retained versions (docs/FORMAT.md,
// "Trimming"). Which records a version holds is looked up once.
type dater struct {
	n    version
	seen map[int]*presence
}

// presence is what one retained version knows.
type presence struct {
	keys map[string]bool // nil = its history cannot be read
	time time.Time
}

func newDater(n version) *dater { return &dater{n: n, seen: map[int]*presence{}} }

// at looks at the retained version at position i; ok is false where the bound on versions is reached.
func (d *dater) at(ctx context.Context, i int) (p *presence, ok bool, err error) {
	if p, ok := d.seen[i]; ok {
		return p, true, nil
	}
	if len(d.seen) >= maxSinceVersions {
		return nil, false, nil
	}
	p = &presence{}
	l, h, err := d.n.sibling(i).loadHistory(ctx)
	switch {
	case err == nil:
		p.time, _ = l.m.Timestamp()
		if h.h.Broken == nil {
			p.keys = h.recordKeys()
		}
	case !lasting(err) && !fault.Is(err, fault.NotFound):
		return nil, false, err
	}
	d.seen[i] = p
	return p, true, nil
}

// find returns since when t is there, nil where that took too many versions to find out. The version itself has t. It
// bisects: a record stays until it is trimmed, and a trimmed one does not come back but by a restore.
func (d *dater) find(ctx context.Context, t *fri.Transition) (*since, error) {
	key := recordKey(t)
	refs := d.n.v.refs
	lo, hi := 0, d.n.i // hi has it
	if t.Legacy != nil {
		stamp := t.Legacy.DatasetVersion
		lo = min(sort.Search(d.n.i, func(i int) bool { return refs[i].Version > stamp }), hi)
		// Writers stamp one or two versions before the commit, or a few more: look there first.
		for near := lo + 1; near < hi && near <= lo+4; near++ {
			p, ok, err := d.at(ctx, near)
			if err != nil || !ok {
				return nil, err
			}
			if p.keys[key] {
				hi = near
				break
			}
		}
	}
	for lo < hi {
		mid := lo + (hi-lo)/2
		if lo == hi-1 {
			mid = lo
		}
		p, ok, err := d.at(ctx, mid)
		if err != nil || !ok {
			return nil, err
		}
		if p.keys[key] {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	p, ok, err := d.at(ctx, hi)
	if err != nil || !ok {
		return nil, err
	}
	s := &since{version: refs[hi].Version, time: p.time}
	switch {
	case t.Legacy != nil && refs[hi].Version > 0 && t.Legacy.DatasetVersion == refs[hi].Version-1:
		s.exact = true
	case hi > 0:
		before, ok, err := d.at(ctx, hi-1)
		if err != nil {
			return nil, err
		}
		if ok && before.keys != nil && !before.keys[key] {
			s.notBefore = before.time
			s.exact = refs[hi-1].Version == refs[hi].Version-1
		}
	case t.Legacy == nil && refs[hi].Version == 1:
		s.exact = true
	}
	return s, nil
}
