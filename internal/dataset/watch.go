package dataset

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

const (
	// relistAfter is how many looks in a row may do without a listing. What they miss (a version cleaned up in the
	// middle, one replaced) shows after so many at the latest.
	relistAfter = 6
	// shortListing is up to how many names a listing of an object store counts as one cheap request.
	shortListing = 100
	// firstNames is how many names the beginning of a listing is asked for: the newest version may have names beside it
	// that are none, and a few versions may have come at once.
	firstNames = 32
	// maxHint bounds latest_version_hint.json.
	maxHint = 256
	// settled is how old the last change of a directory has to be when it is listed, to be told from a later one: clocks
	// of file systems are coarse.
	settled = 2 * time.Second
)

// Watch looks at the versions of a dataset time and again, for less than a listing each time where the store allows:
//
//   - a local directory: its own modification time, and the newest manifest's identity
//   - a store that lists in order, V2 names: the first keys, and whether the oldest version is still there
//   - a store that does not list in order: the hint, the number after the newest, and both ends
//   - anything else, and short directories of object stores: a listing
//
// It is not safe for concurrent use.
type Watch struct {
	d     *Dataset
	now   func() time.Time
	last  *Listing
	dir   store.Object // _versions before last was listed; local stores only
	at    time.Time    // when last was asked for
	looks int          // without a listing since then

	// Listings and Probes count looks that took a listing, and looks that did not.
	Listings, Probes uint64
}

// Watch begins to watch the versions. now is the clock that modification times of local files are compared with.
func (d *Dataset) Watch(now func() time.Time) *Watch { return &Watch{d: d, now: now} }

// Look returns the versions as they are now: the listing of the last look where nothing has changed. full asks for a
// listing in any case. Errors are the store's; the next look is then a listing.
func (w *Watch) Look(ctx context.Context, full bool) (*Listing, error) {
	if !full && w.last != nil && w.looks < relistAfter {
		w.looks++
		l, err := w.probe(ctx)
		if err != nil {
			w.looks = relistAfter
			return nil, fault.Wrap("dataset.Watch", w.d.URI(), err)
		}
		if l != nil {
			w.Probes++
			w.last = l
			return l, nil
		}
	}
	w.looks = relistAfter
	w.Listings++
	_, local := w.d.st.Local()
	var dir store.Object
	if local {
		// An unknown directory (zero) equals none.
		dir, _ = w.d.st.Stat(ctx, versionsDir)
	}
	at := w.now()
	l, err := w.d.Versions(ctx)
	if err != nil {
		return nil, err
	}
	if w.last != nil && w.last.same(l) {
		l = w.last
	}
	w.last, w.dir, w.at, w.looks = l, dir, at, 0
	return l, nil
}

// probe returns the listing as it is now, nil where only a listing can tell.
func (w *Watch) probe(ctx context.Context) (*Listing, error) {
	newest, ok := w.last.Latest()
	if !ok {
		return nil, nil
	}
	if _, local := w.d.st.Local(); local {
		return w.probeLocal(ctx, newest)
	}
	names := len(w.last.Versions)
	for _, n := range w.last.Ignored {
		names += n
	}
	switch {
	case names <= shortListing:
		return nil, nil
	case !store.ListsInOrder(w.d.st):
		return w.probeUnordered(ctx, newest)
	case w.last.V1 == 0:
		return w.probeFirst(ctx, newest)
	}
	return nil, nil
}

// unchanged returns the last listing if these manifests are still what they were.
func (w *Watch) unchanged(ctx context.Context, refs ...VersionRef) (*Listing, error) {
	for _, r := range refs {
		now, err := w.d.st.Stat(ctx, r.Path())
		switch {
		case fault.Is(err, fault.NotFound):
			return nil, nil
		case err != nil:
			return nil, err
		case !now.SameContent(r.Object):
			return nil, nil
		}
	}
	return w.last, nil
}

func (w *Watch) probeLocal(ctx context.Context, newest VersionRef) (*Listing, error) {
	dir, err := w.d.st.Stat(ctx, versionsDir)
	if err != nil || !w.dir.Dir || !dir.Modified.Equal(w.dir.Modified) || w.at.Sub(dir.Modified) < settled {
		return nil, nil //nolint:nilerr // the listing says what is wrong
	}
	return w.unchanged(ctx, newest)
}

// probeFirst asks for the first names. New versions that join those known before are put in front of them.
func (w *Watch) probeFirst(ctx context.Context, newest VersionRef) (*Listing, error) {
	objects, err := store.ListFirst(ctx, w.d.st, versionsDir, firstNames)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	head := classify(objects[:min(len(objects), firstNames)])
	was, ok := head.Find(newest.Version)
	if !ok || was != newest || head.V1 > 0 {
		return nil, nil
	}
	if l, err := w.unchanged(ctx, w.last.Versions[0]); l == nil || err != nil {
		return nil, err
	}
	i, _ := slices.BinarySearchFunc(head.Versions, newest.Version, func(r VersionRef, v uint64) int { return cmp.Compare(r.Version, v) })
	fresh := head.Versions[i+1:]
	if len(fresh) == 0 {
		return w.last, nil
	}
	l := *w.last
	l.Versions = append(slices.Clip(slices.Clone(l.Versions)), fresh...)
	l.Ignored = maps.Clone(l.Ignored)
	l.V2 += len(fresh)
	return &l, nil
}

func (w *Watch) probeUnordered(ctx context.Context, newest VersionRef) (*Listing, error) {
	if n, ok := w.hint(ctx); ok && n > newest.Version {
		return nil, nil
	}
	if newest.Version < 1<<63-1 {
		next := strconv.FormatUint(newest.Version+1, 10) + manifestSuffix
		if newest.Scheme == V2 {
			next = strconv.FormatUint(^(newest.Version + 1), 10)
			next = strings.Repeat("0", 20-len(next)) + next + manifestSuffix
		}
		_, err := w.d.st.Stat(ctx, store.Join(versionsDir, next))
		if err == nil || !tolerable(err) {
			return nil, err
		}
	}
	return w.unchanged(ctx, newest, w.last.Versions[0])
}

// hint reads the version that the last writer wrote down, if it did.
func (w *Watch) hint(ctx context.Context) (uint64, bool) {
	b, err := w.d.st.ReadRange(ctx, store.Join(versionsDir, "latest_version_hint.json"), 0, maxHint)
	if err != nil {
		return 0, false
	}
	var h struct{ Version *uint64 }
	if json.Unmarshal(b, &h) != nil || h.Version == nil {
		return 0, false
	}
	return *h.Version, true
}

// same reports whether two listings say the same.
func (l *Listing) same(o *Listing) bool {
	return l.V1 == o.V1 && l.V2 == o.V2 && l.LegacyLatest == o.LegacyLatest && slices.Equal(l.Versions, o.Versions) &&
		slices.Equal(l.Detached, o.Detached) && maps.Equal(l.Ignored, o.Ignored)
}
