package nodes

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/rowmap"
	"github.com/frifs/frifs/translate"
)

// liveFragments is the live state of one version, read off its manifest; deletion files are read when asked for.
type liveFragments struct {
	ds *dataset.Dataset
	m  *dataset.Manifest
	// note is told of a deletion file that cannot be read: the outcome `unresolved` alone does not say why.
	note func(error)
}

var _ translate.Live = liveFragments{}

// Rows implements translate.Live.
func (v liveFragments) Rows(f fri.FragID) (rows uint64, known, live bool) {
	fr, ok := v.m.Live()[f]
	if !ok || fr.PhysicalRows == nil {
		return 0, false, ok
	}
	return *fr.PhysicalRows, true, true
}

// HasDeletions reports whether f has a deletion file.
func (v liveFragments) HasDeletions(f fri.FragID) bool {
	fr, ok := v.m.Live()[f]
	return ok && fr.HasDeletionFile()
}

// Deletions implements translate.Live.
func (v liveFragments) Deletions(ctx context.Context, f fri.FragID) (*roaring.Bitmap, error) {
	fr, ok := v.m.Live()[f]
	if !ok {
		return nil, fault.New("nodes.Deletions", "", fault.Invalid, "fragment %d is not live", f)
	}
	bm, err := v.ds.Deletions(ctx, v.m, fr)
	if err != nil {
		v.note(err)
	}
	return bm, err
}

// places is the live state for who asks where rows are, and not which of them are deleted: no deletion file is read, and
// no answer depends on one.
type places struct{ liveFragments }

// HasDeletions says no.
func (places) HasDeletions(fri.FragID) bool { return false }

// Deletions implements translate.Live.
func (places) Deletions(context.Context, fri.FragID) (*roaring.Bitmap, error) { return nil, nil }

// live is the live state of the version.
func (n version) live(l *loaded) liveFragments {
	return liveFragments{n.t.ds, l.m, func(err error) { _ = n.t.failed("translate", n.path, err) }}
}

// translator makes the translator of the version. Where translation is refused it gives the refusal.
func (n version) translator(l *loaded, h *history) (*translate.Translator, error) {
	return n.translatorInto(n.live(l), l, h)
}

// translatorInto is translator with another live state than that of l.
func (n version) translatorInto(live translate.Live, l *loaded, h *history) (*translate.Translator, error) {
	if l.refusal != nil {
		return nil, l.refusal
	}
	note := func(err error) { _ = n.t.failed("translate", n.path, err) }
	maps := func(ctx context.Context, t *fri.Transition) (rowmap.Mapping, error) {
		m, err := n.mapping(ctx, l, h, t)
		if err != nil {
			note(err)
		}
		return m, err
	}
	return translate.New(h.h, live, maps, translate.Options{}), nil
}

// openTranslator makes the translator of the version, with the history that it applies.
func (n version) openTranslator(ctx context.Context) (*translate.Translator, *history, error) {
	l, h, err := n.loadHistory(ctx)
	if err != nil {
		return nil, nil, err
	}
	tr, err := n.translator(l, h)
	return tr, h, err
}

// Translator returns a translator for one retained version, nil for the latest, with the history it uses. Errors:
// fault.NotFound for a version that is not shown, fault.Unsupported where translation is refused (the flag is named),
// and those of reading the manifest and the history.
func (t *Tree) Translator(ctx context.Context, number *uint64) (*translate.Translator, *fri.History, error) {
	n, err := t.version(ctx, number)
	if err != nil {
		return nil, nil, err
	}
	tr, h, err := n.openTranslator(ctx)
	if h == nil {
		return nil, nil, err
	}
	return tr, h.h, err
}

// version finds a version that is shown; nil means the latest.
func (t *Tree) version(ctx context.Context, number *uint64) (version, error) {
	if t.db != nil {
		return version{}, t.needTable(ctx, fault.Invalid, "only a table has versions")
	}
	v, err := t.view(ctx)
	if err != nil {
		return version{}, err
	}
	i := v.hi - 1
	if number != nil {
		var ok bool
		if i, ok = v.find(*number); !ok {
			return version{}, fault.New("nodes.Version", t.cfg.URI, fault.NotFound, "version %d is not retained; there are %s", *number, v.span())
		}
	}
	if i < v.lo {
		return version{}, fault.New("nodes.Version", t.cfg.URI, fault.NotFound, "there is no version")
	}
	return version{t: t, v: v}.sibling(i), nil
}
