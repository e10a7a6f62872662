package nodes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/translate"
)

// loaded is a manifest with what is read off it alone. It is immutable, but for what it keeps, and shared.
type loaded struct {
	m       *dataset.Manifest
	mtime   time.Time // the manifest's timestamp; the file's modification time where it has none
	fields  *fieldPaths
	logical []*logicalIndex // by name, in byte order of the encoded names
	fri     friEntry
	refusal error // why translation is refused; nil = it is not

	once   sync.Once
	covers []translate.Coverage // of every entry of the index section; set by once

	remapOnce   sync.Once
	remapCovers []translate.Coverage // the same for remapped files; set by remapOnce
}

// coverage derives what each entry of the index section may answer for. It is kept, unless the history is broken: what
// breaks it may be a file that comes back.
func (l *loaded) coverage(h *fri.History) []translate.Coverage {
	derive := func() []translate.Coverage { return translate.Cover(h, l.liveSet(), l.segments(false)) }
	if h.Broken != nil {
		return derive()
	}
	l.once.Do(func() { l.covers = derive() })
	return l.covers
}

// friEntry is what the index section says about the FRI (docs/FORMAT.md, "FRI entry").
type friEntry struct {
	entry    *dataset.Index // the entry, the first where there are several, a broken one too; nil = none
	count    int            // entries that are the FRI; more than one spoil each other
	content  fri.Content
	err      error // spoils the whole history, before its content is looked at
	rule     int   // of err, in docs/FORMAT.md, "Validation rules"; 0 = none of them, or err names it itself
	warnings []string
}

// present reports whether there is an entry, usable or not, or might be one in a section that cannot be read.
func (f *friEntry) present() bool { return f.entry != nil || f.err != nil }

// indexVersion is the entry's, 0 where there is none.
func (f *friEntry) indexVersion() int32 {
	if f.entry == nil {
		return 0
	}
	return f.entry.PB.GetIndexVersion()
}

// load returns the version's manifest.
func (n version) load(ctx context.Context) (*loaded, error) {
	ref := n.v.refs[n.i]
	l, err := n.t.loads.get(ctx, n.key(), func(ctx context.Context) (*loaded, int64, error) {
		m, err := n.t.ds.Manifest(ctx, ref)
		if err != nil {
			return nil, 0, err
		}
		return newLoaded(m), m.Memory() + 4096, nil
	})
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Stale) {
		n.t.versions.doubt(ctx)
	}
	return l, err
}

func newLoaded(m *dataset.Manifest) *loaded {
	l := &loaded{m: m, mtime: m.Ref.Object.Modified, fields: newFieldPaths(m.PB.GetFields()), refusal: dataset.Refusal(m)}
	if ts, ok := m.Timestamp(); ok {
		l.mtime = ts
	}
	l.logical = groupIndices(m)
	l.fri = findFRI(m)
	return l
}

// findFRI applies the two-part test to every entry of the section.
func findFRI(m *dataset.Manifest) friEntry {
	var f friEntry
	if m.IndexErr != nil {
		f.err = fault.Wrap("nodes.FindFRI", "", m.IndexErr)
		return f
	}
	var broken *dataset.Index
	for _, ix := range m.Indices {
		r := recognise(ix)
		switch r.Class {
		case fri.IsFRI:
			if f.count++; f.entry == nil {
				f.entry = ix
			}
		case fri.BrokenFRI:
			broken = ix
			f.err, f.rule = fault.New("nodes.FindFRI", m.Path(), fault.Corrupt, "%s", r.Warning), 2
			continue
		case fri.NotFRI, fri.LookAlike:
		}
		if r.Warning != "" {
			f.warnings = append(f.warnings, r.Warning)
		}
	}
	if broken != nil {
		f.entry = broken
	} else if f.count != 1 {
		return f
	}
	// Rule 1 comes before everything else: what a newer version means, only a newer frifs can tell.
	if err := fri.CheckIndexVersion(f.indexVersion()); err != nil {
		f.err, f.rule = err, 1
		return f
	}
	if broken != nil {
		return f
	}
	content, err := fri.ParseDetails(f.entry.PB.GetIndexDetails().GetValue())
	if err != nil {
		f.err = err // names its rule itself
		return f
	}
	f.content = content
	return f
}

func recognise(ix *dataset.Index) fri.Recognition {
	d := ix.PB.GetIndexDetails()
	return fri.IsEntry(ix.PB.GetName(), d.GetTypeUrl(), d != nil, ix.PB.GetFields())
}

// history is one decoded FRI entry.
type history struct {
	h       *fri.History
	content fri.Reader // bytes of the InlineContent message; nil where they cannot be had
	key     string     // names the content

	once sync.Once
	keys map[string]bool // recordKey of every record; set by once
}

// recordKeys is the set of the history's records by recordKey.
func (h *history) recordKeys() map[string]bool {
	h.once.Do(func() {
		h.keys = make(map[string]bool, len(h.h.Transitions))
		for _, t := range h.h.Transitions {
			h.keys[recordKey(t)] = true
		}
	})
	return h.keys
}

// noHistory is what a version without an FRI entry has.
func noHistory() *history { return &history{h: &fri.History{}} }

// maxWholeContent is up to which size an external content is read at once, in bytes.
const maxWholeContent = 8 << 20

// history decodes the version's FRI entry, sharing it with all versions that carry the same content. What is wrong with
// the entry is in the result (History.Broken); an error means that it could not be read this time.
func (n version) history(ctx context.Context, l *loaded) (*history, error) {
	f := &l.fri
	switch {
	case !f.present():
		return noHistory(), nil
	case f.count > 1:
		return &history{h: fri.TwoEntries(f.indexVersion(), f.count)}, nil
	case f.err != nil:
		return &history{h: fri.Broken(f.indexVersion(), f.rule, f.err)}, nil //nolint:nilerr // what is wrong is in the result
	}
	opt := fri.Options{
		IndexVersion: f.indexVersion(),
		FlagReader:   l.m.PB.GetReaderFeatureFlags()&dataset.FlagReuseIndex != 0,
		FlagWriter:   l.m.PB.GetWriterFeatureFlags()&dataset.FlagReuseIndex != 0,
		Cache:        n.t.records,
	}
	if ext := f.content.External; ext == nil {
		opt.Identity = fmt.Sprintf("inline %x", sha256.Sum256(f.content.Inline))
	} else {
		loc, err := n.t.ds.IndexFile(ctx, l.m, f.entry, ext.Path)
		if err != nil {
			return brokenOr(opt.IndexVersion, err)
		}
		opt.Identity = fmt.Sprintf("external %s %d %d", loc.URI(), ext.Offset, ext.Size)
		opt.Window = 1 << 20
		if _, local := loc.Store.Local(); local {
			opt.Window = 0
		}
	}
	key := fmt.Sprintf("%d %t %t %s", opt.IndexVersion, opt.FlagReader, opt.FlagWriter, opt.Identity)
	h, err := n.t.hists.get(ctx, key, func(ctx context.Context) (*history, int64, error) {
		r, err := n.content(ctx, l)
		if err != nil {
			return nil, 0, err
		}
		h, err := fri.Open(ctx, r, opt)
		if err != nil {
			return nil, 0, err
		}
		return &history{h: h, content: r, key: key}, 4096 + int64(len(h.Transitions))*1024 + int64(len(f.content.Inline)), nil
	})
	if err != nil {
		return brokenOr(opt.IndexVersion, err)
	}
	return h, nil
}

// brokenOr makes a lasting failure to get the content part of the history, and returns any other.
func brokenOr(indexVersion int32, err error) (*history, error) {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.TimedOut, fault.Cancelled, fault.Unknown:
		return nil, err
	}
	return &history{h: fri.Broken(indexVersion, 5, err)}, nil
}

// content opens the bytes of the InlineContent message.
func (n version) content(ctx context.Context, l *loaded) (fri.Reader, error) {
	ext := l.fri.content.External
	if ext == nil {
		return bytes.NewReader(l.fri.content.Inline), nil
	}
	loc, err := n.t.ds.IndexFile(ctx, l.m, l.fri.entry, ext.Path)
	if err != nil {
		return nil, err
	}
	where := loc.URI()
	end := ext.Offset + ext.Size
	if end < ext.Offset || end > 1<<63-1 {
		return nil, fault.New("nodes.Content", where, fault.Corrupt, "external details: offset %d + size %d overflows", ext.Offset, ext.Size)
	}
	if ext.Size <= maxWholeContent {
		b, err := loc.Store.ReadRange(ctx, loc.Path, int64(ext.Offset), int64(ext.Size))
		if err != nil {
			return nil, err
		}
		if uint64(len(b)) != ext.Size {
			return nil, fault.New("nodes.Content", where, fault.Corrupt,
				"external details: %d bytes from %d on are recorded, the file gives %d", ext.Size, ext.Offset, len(b))
		}
		return bytes.NewReader(b), nil
	}
	r, err := loc.Store.Open(ctx, loc.Path)
	if err != nil {
		return nil, err
	}
	if uint64(r.Size()) < end {
		_ = r.Close()
		return nil, fault.New("nodes.Content", where, fault.Corrupt,
			"external details: bytes %d to %d are recorded, the file has %d", ext.Offset, end, r.Size())
	}
	return fri.Section(r, int64(ext.Offset), int64(ext.Size)), nil
}
