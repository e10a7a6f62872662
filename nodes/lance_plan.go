package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/indexfile"
)

const (
	// inspectAtOnce bounds how many index segments are looked into at a time.
	inspectAtOnce = 8
	// maxInspected is up to how many files of a segment, of which the sizes are known, are opened to see that they can be.
	maxInspected = 16
	// maxDictionaries bounds the dictionary pages that an old manifest may have before its sections, in bytes.
	maxDictionaries = 64 << 20
)

// lancePlan is the manifest of a version's remapped.lance, made.
type lancePlan struct {
	manifest []byte
}

// lancePlan makes the manifest. No address is translated, but for zones; what cannot be read of an entry's files makes
// that entry be left out.
func (n version) lancePlan(ctx context.Context) (*lancePlan, error) {
	return n.t.lance.plans.get(ctx, n.key(), func(ctx context.Context) (*lancePlan, int64, error) {
		l, h, err := n.loadHistory(ctx)
		if err != nil {
			return nil, 0, err
		}
		es, err := n.lanceEntries(ctx)
		if err != nil {
			return nil, 0, err
		}
		found := make([]inspected, len(es.list))
		slots := make(chan struct{}, inspectAtOnce)
		var wg sync.WaitGroup
		for i := range es.list {
			wg.Add(1)
			slots <- struct{}{}
			go func() {
				defer wg.Done()
				defer func() { <-slots }()
				var err error
				found[i], _, err = guarded(ctx, func(ctx context.Context) (inspected, int64, error) {
					return n.inspect(ctx, l, h, &es.list[i]), 0, nil
				})
				if err != nil {
					found[i].err = err
				}
			}()
		}
		wg.Wait()
		claims, err := n.claims(ctx, l, h)
		if err != nil {
			return nil, 0, err
		}
		for _, i := range es.out {
			claims.LeaveOut(i)
		}
		for i := range found {
			switch f, e := &found[i], &es.list[i]; {
			case f.err != nil && !absent(f.err):
				return nil, 0, f.err
			case f.err != nil:
				claims.LeaveOut(e.ix.Ordinal)
				_ = n.t.failed("remap", n.path+"/remapped.lance/_indices/"+e.dir, fault.Wrap("left out", segmentName(e.ix), f.err))
			case f.gaps != nil:
				claims.Lose(e.ix.Ordinal, f.gaps)
			}
		}
		var entries []indexfile.Entry
		for i := range found {
			f, e := &found[i], &es.list[i]
			if f.err != nil {
				continue
			}
			x := indexfile.Entry{Index: e.ix, UUID: e.uuid, Files: f.files, Placeholders: e.holders}
			if !e.asStored && e.ix.Bitmap != nil {
				x.Covered = claims.Of(e.ix.Ordinal)
			}
			entries = append(entries, x)
		}
		front, err := n.dictionaries(ctx, l)
		if err != nil {
			return nil, 0, err
		}
		b, err := indexfile.BuildManifest(l.m, entries, indexfile.NameData(l.m), front)
		if err != nil {
			return nil, 0, err
		}
		return &lancePlan{manifest: b}, int64(len(b)) + 256, n.steady(b)
	})
}

// steady checks that a manifest which is made again has the bytes of before: a name never comes to mean other content.
func (n version) steady(b []byte) error {
	sum := sha256.Sum256(b)
	mark := n.t.inode(n.path+"/remapped.lance", "digest "+n.key())
	is := int64(binary.LittleEndian.Uint64(sum[:]))
	if was, ok := n.t.sizes.peek(mark); ok && was != is {
		return fault.New("nodes.RemappedDataset", n.path+"/remapped.lance", fault.Stale, "a file that the manifest depends on has come or gone since the manifest was first read")
	}
	n.t.sizes.put(mark, is, 128)
	return nil
}

// inspected is what the files of an entry say.
type inspected struct {
	files []indexfile.StoredFile // all with exact sizes; nil = not all sizes are known
	gaps  *roaring.Bitmap        // fragments that the files cannot answer for; nil = none
	err   error                  // why the entry is left out, or what went wrong this time
}

// inspect looks into the files of an entry as far as the manifest needs it.
func (n version) inspect(ctx context.Context, l *loaded, h *history, e *lanceEntry) inspected {
	fail := func(err error) inspected { return inspected{err: err} }
	stored, err := n.storedFiles(ctx, l, e.ix)
	if err != nil {
		return fail(err)
	}
	if err := n.present(ctx, l, e, stored); err != nil {
		return fail(err)
	}
	var out inspected
	if e.asStored {
		if len(e.ix.PB.GetFiles()) > 0 {
			for _, f := range stored {
				out.files = append(out.files, indexfile.StoredFile{Path: f.path, Size: f.size})
			}
		}
		return out
	}
	s := &segment{ix: e.ix}
	seg := e.at.layout(l, s, stored)
	resolver, err := e.at.resolver(l, h, s)
	if err != nil {
		return fail(err)
	}
	sized, opened, holders := true, 0, 0
	for _, f := range stored {
		how, err := seg.How(f.path)
		if err != nil {
			continue // a file that readers of the type do not look for; it is not in remapped.lance
		}
		size := f.size
		if how != indexfile.Verbatim {
			holders++
		}
		switch how {
		case indexfile.Flat, indexfile.Zones:
			size, err = n.remappedSize(ctx, l, seg, e, f)
		case indexfile.InPlace, indexfile.Reserialised:
			if opened++; opened <= maxInspected {
				err = canOpen(ctx, seg, f.path)
			}
			sized = sized && how == indexfile.InPlace
		case indexfile.Verbatim, indexfile.HowUnknown:
		}
		if err == nil && how == indexfile.Zones {
			err = out.zoneGaps(ctx, seg, f.path, resolver)
		}
		if err != nil {
			return fail(err)
		}
		out.files = append(out.files, indexfile.StoredFile{Path: f.path, Size: size})
	}
	if e.holders && holders == 0 {
		return fail(fault.New("nodes.RemappedDataset", n.path, fault.NotFound,
			"index %q (%s): none of its %d files is one that holds addresses", e.ix.Name, e.ix.UUID, len(stored)))
	}
	if !sized {
		out.files = nil
	}
	return out
}

// remappedSize is the size of a remapped file.
func (n version) remappedSize(ctx context.Context, l *loaded, seg *indexfile.Segment, e *lanceEntry, f storedFile) (int64, error) {
	node, err := e.at.remapped(l, seg, "remapped.lance/_indices/"+e.dir+"/"+f.path, f, permCopyFile)
	if err != nil {
		return 0, err
	}
	a, err := node.Attr(ctx)
	return a.Size, err
}

// canOpen looks into a stored file and closes it.
func canOpen(ctx context.Context, seg *indexfile.Segment, path string) error {
	f, err := seg.Open(ctx, path)
	if err != nil {
		return err
	}
	return f.Close()
}

// zoneGaps adds the fragments that the zones of a file cannot answer for.
func (out *inspected) zoneGaps(ctx context.Context, seg *indexfile.Segment, path string, r indexfile.Resolver) error {
	f, err := seg.Open(ctx, path)
	if err != nil {
		return err
	}
	gaps, err := f.ZoneGaps(ctx, r)
	_ = f.Close() // it was only read
	if err != nil {
		return err
	}
	for _, g := range gaps {
		if out.gaps == nil {
			out.gaps = roaring.New()
		}
		out.gaps.Add(uint32(g))
	}
	return nil
}

// present checks that the files of an entry are there, with the sizes that the entry records. One request, or none
// where the listing has told the files in the first place; a directory that must not be listed passes.
func (n version) present(ctx context.Context, l *loaded, e *lanceEntry, files []storedFile) error {
	const op = "nodes.RemappedDataset"
	dir, err := n.t.ds.IndexDir(ctx, l.m, e.ix)
	if err != nil {
		return err
	}
	there, err := n.listDir(ctx, dir.Location)
	if fault.Is(err, fault.Denied) {
		return nil
	}
	if err != nil {
		return err
	}
	sizes := make(map[string]int64, len(there))
	for _, f := range there {
		sizes[f.path] = f.size
	}
	for _, f := range files {
		switch size, ok := sizes[f.path]; {
		case !ok:
			return fault.New(op, dir.URI(), fault.NotFound, "file %q of index %q is not there", f.path, e.ix.Name)
		case size != f.size:
			return fault.New(op, dir.URI(), fault.Corrupt, "file %q of index %q has %d bytes, the manifest says %d", f.path, e.ix.Name, size, f.size)
		}
	}
	return nil
}

// dictionaries reads what a manifest of the oldest storage has before its sections; fields point into it by offset.
func (n version) dictionaries(ctx context.Context, l *loaded) ([]byte, error) {
	var end int64
	for _, f := range l.m.PB.GetFields() {
		if d := f.GetDictionary(); d.GetLength() > 0 && d.GetOffset() >= 0 {
			end = max(end, d.GetOffset()+d.GetLength())
		}
	}
	if end <= 0 {
		return nil, nil
	}
	ref := l.m.Ref
	if end > ref.Object.Size || end > maxDictionaries {
		return nil, fault.New("nodes.RemappedDataset", l.m.Path(), fault.Corrupt,
			"dictionaries of columns end at byte %d; the manifest has %d bytes, and the limit is %d", end, ref.Object.Size, int64(maxDictionaries))
	}
	return n.t.ds.Store().ReadRange(ctx, ref.Path(), 0, end)
}
