package dataset

import (
	"context"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

// maxSearched bounds under how many other bases a missing file is looked for.
const maxSearched = 256

// search is how to look for a file that is not where the manifest records it.
type search struct {
	d     *Dataset
	m     *Manifest
	base  *uint32                      // as recorded
	under func(Base) (Location, error) // where the file would be under another base
}

// Found is a file that is there, and where.
type Found struct {
	Location
	Object   store.Object
	Recorded Base // where the manifest says it is
	Moved    bool // it was not there, but under Location.Base
}

// Note says, for people, that the file was found elsewhere than recorded; "" if it was not.
func (f Found) Note() string {
	if !f.Moved {
		return ""
	}
	return foundNote(f.Recorded, f.Base)
}

func foundNote(recorded, base Base) string {
	return "recorded under " + recorded.String() + ", found under " + base.String()
}

// Find looks at the file. One that is missing under its base is looked for under the dataset's own root and then under
// every other base of the manifest: clones of clones were recorded with wrong ones (docs/FORMAT.md, "Base paths"). The
// bases other than the recorded one cost nothing while the file is where it should be. Errors: fault.NotFound if no base
// has it, naming those tried, and the store's.
func (l Location) Find(ctx context.Context) (Found, error) {
	obj, err := l.Store.Stat(ctx, l.Path)
	if err == nil || !fault.Is(err, fault.NotFound) {
		return Found{Location: l, Object: obj, Recorded: l.Base}, err
	}
	return l.elsewhere(ctx, err)
}

// Open opens the file, wherever Find finds it, and says where that is.
func (l Location) Open(ctx context.Context) (Location, store.Reader, error) {
	r, err := l.Store.Open(ctx, l.Path)
	if err == nil || !fault.Is(err, fault.NotFound) {
		return l, r, err
	}
	f, err := l.elsewhere(ctx, err)
	if err != nil {
		return l, nil, err
	}
	r, err = f.Store.Open(ctx, f.Path)
	return f.Location, r, err
}

// elsewhere is Find for a file that is missing where it is recorded; missing is the store's answer.
func (l Location) elsewhere(ctx context.Context, missing error) (Found, error) {
	if l.search == nil || len(l.search.m.PB.GetBasePaths()) == 0 {
		return Found{}, missing
	}
	bases, tried := l.search.d.otherBases(ctx, l.search.m, l.search.base)
	tried = append([]string{l.Base.String()}, tried...)
	for _, b := range bases {
		at, err := l.search.under(b)
		if err != nil {
			continue // no base of this kind holds such files
		}
		obj, err := at.Store.Stat(ctx, at.Path)
		switch {
		case err == nil && !obj.Dir:
			return Found{Location: at, Object: obj, Recorded: l.Base, Moved: true}, nil
		case err == nil || fault.Is(err, fault.NotFound):
			tried = append(tried, b.String())
		case ctx.Err() != nil:
			return Found{}, err
		default:
			tried = append(tried, err.Error())
		}
	}
	return Found{}, fault.New("dataset.Find", l.URI(), fault.NotFound, "the file is not there, nor under another base; tried: %s",
		strings.Join(tried, "; "))
}

// otherBases are the bases of the manifest but for the recorded one: the dataset's own root first, then in the order of
// the manifest, each id and each place once. tried says why others cannot be used.
func (d *Dataset) otherBases(ctx context.Context, m *Manifest, recorded *uint32) (bases []Base, tried []string) {
	type place struct {
		uri  string
		root bool
	}
	seen := map[place]bool{}
	if recorded != nil {
		own := d.own()
		bases = append(bases, own)
		seen[place{own.URI, true}] = true
	}
	ids := map[uint32]bool{}
	for _, p := range m.PB.GetBasePaths() {
		id := p.GetId()
		if ids[id] || recorded != nil && id == *recorded {
			continue
		}
		if ids[id] = true; len(ids) > maxSearched {
			break
		}
		b, err := d.Base(ctx, m, &id) // of a duplicate id the last one counts
		if err != nil {
			tried = append(tried, err.Error())
			continue
		}
		if at := (place{b.URI, b.DatasetRoot}); !seen[at] {
			seen[at] = true
			bases = append(bases, b)
		}
	}
	return bases, tried
}
