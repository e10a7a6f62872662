package nodes

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/indexfile"
)

// inspected is what the files of an entry say.
type inspected struct {
	files []indexfile.StoredFile // all with exact sizes; nil = not all sizes are known
	gaps  *roaring.Bitmap        // fragments that the files cannot answer for; nil = none
	err   error                  // why the entry is left out, or what went wrong this time
}

// inspection is the look into the files of one entry.
type inspection struct {
	n        version
	l        *loaded
	h        *history
	e        *lanceEntry
	seg      *indexfile.Segment
	resolver indexfile.Resolver
	survey   *indexfile.Survey
	claimed  *roaring.Bitmap
	out      inspected
}

// inspect looks into the files of an entry as far as the manifest needs it: tails for their sizes, zones, and a few
// addresses to see that they go with the stored bitmap.
func (n version) inspect(ctx context.Context, l *loaded, h *history, e *lanceEntry) inspected {
	stored, err := n.storedFiles(ctx, l, e.ix)
	if err != nil {
		return inspected{err: err}
	}
	if err := n.present(ctx, l, e, stored); err != nil {
		return inspected{err: err}
	}
	s := &segment{ix: e.ix}
	i := &inspection{n: n, l: l, h: h, e: e, seg: e.at.layout(l, s, stored), claimed: l.remapCoverage(h.h)[e.ix.Ordinal].Live}
	if e.holders && e.ix.Bitmap != nil {
		if i.resolver, err = e.at.placer(l, h, s); err != nil {
			return inspected{err: err}
		}
		i.survey = indexfile.NewSurvey(e.ix.Bitmap, h.h.Opaque)
	}
	if e.asStored {
		err = i.asStored(ctx, stored)
	} else {
		err = i.remapped(ctx, stored)
	}
	if err == nil && i.survey != nil && i.survey.Suspect(i.claimed) {
		err = i.whole(ctx, stored)
	}
	if err != nil {
		return inspected{err: err}
	}
	return i.out
}

// asStored takes the files as they are. One that cannot be looked into is not judged: the reader gets what it had.
func (i *inspection) asStored(ctx context.Context, stored []storedFile) error {
	looked := 0
	for _, f := range stored {
		if len(i.e.ix.PB.GetFiles()) > 0 {
			i.out.files = append(i.out.files, indexfile.StoredFile{Path: f.path, Size: f.size})
		}
		how, err := i.seg.How(f.path)
		if i.survey == nil || err != nil || how == indexfile.Verbatim || how == indexfile.HowUnknown {
			continue
		}
		if looked++; looked > maxInspected {
			continue
		}
		if err := i.look(ctx, f.path, how); err != nil && !absent(err) {
			return err
		}
	}
	return nil
}

// remapped finds the sizes of the remapped files.
func (i *inspection) remapped(ctx context.Context, stored []storedFile) error {
	sized, looked, holders := true, 0, 0
	for _, f := range stored {
		how, err := i.seg.How(f.path)
		if err != nil {
			continue // a file that readers of the type do not look for; it is not in remapped.lance
		}
		size := f.size
		if how != indexfile.Verbatim {
			holders++
			if looked++; looked <= maxInspected || how == indexfile.Zones {
				err = i.look(ctx, f.path, how)
			}
		}
		if err == nil && (how == indexfile.Flat || how == indexfile.Zones) {
			size, err = i.size(ctx, f)
		}
		if err != nil {
			return err
		}
		sized = sized && how != indexfile.Reserialised
		i.out.files = append(i.out.files, indexfile.StoredFile{Path: f.path, Size: size})
	}
	if i.e.holders && holders == 0 {
		return fault.New("nodes.RemappedDataset", i.n.path, fault.NotFound,
			"index %q (%s): none of its %d files is one that holds addresses", i.e.ix.Name, i.e.ix.UUID, len(stored))
	}
	if !sized {
		i.out.files = nil
	}
	return nil
}

// size is the size of a remapped file.
func (i *inspection) size(ctx context.Context, f storedFile) (int64, error) {
	node, err := i.e.at.remapped(i.l, i.seg, lanceName+"/_indices/"+i.e.dir+"/"+f.path, f, permCopyFile)
	if err != nil {
		return 0, err
	}
	a, err := node.Attr(ctx)
	return a.Size, err
}

// look opens a stored file, asks for the gaps of its zones, and looks at a few addresses.
func (i *inspection) look(ctx context.Context, path string, how indexfile.How) error {
	f, err := i.seg.Open(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close()
	if i.survey == nil {
		return nil
	}
	if how == indexfile.Zones && !i.e.asStored {
		gaps, err := f.ZoneGaps(ctx, i.resolver)
		if err != nil {
			return err
		}
		for _, g := range gaps {
			i.gap(roaring.BitmapOf(uint32(g)))
		}
	}
	return i.survey.Sample(ctx, f, i.resolver)
}

// whole goes through the files of an entry with addresses that its claim cannot account for: a record was lost, or the
// bitmap lies. What the files do not prove is not covered.
func (i *inspection) whole(ctx context.Context, stored []storedFile) error {
	for _, f := range stored {
		if how, err := i.seg.How(f.path); err != nil || how == indexfile.Verbatim {
			continue
		}
		file, err := i.seg.Open(ctx, f.path)
		if err != nil {
			return err
		}
		err = i.survey.Whole(ctx, file, i.resolver, i.claimed)
		_ = file.Close() // it was only read
		if err != nil {
			return err
		}
	}
	if missing := i.survey.Unproven(i.claimed, i.h.h); !missing.IsEmpty() {
		i.gap(missing)
		_ = i.n.t.failed("remap", i.n.path+"/"+lanceName+"/_indices/"+i.e.dir, fault.New("nodes.RemappedDataset", segmentName(i.e.ix), fault.Corrupt,
			"index %q claims %d fragments (%d, ...) that its files do not prove: they hold addresses in fragments beside the claim, or that are gone without a record; queries scan these fragments",
			i.e.ix.Name, missing.GetCardinality(), missing.Minimum()))
	}
	return nil
}

func (i *inspection) gap(frags *roaring.Bitmap) {
	if i.out.gaps == nil {
		i.out.gaps = roaring.New()
	}
	i.out.gaps.Or(frags)
}

// goneFragments is every fragment id that was given out, is not live, and is named by no other entry of the index.
func goneFragments(m *dataset.Manifest, of *dataset.Index) *roaring.Bitmap {
	out, top := roaring.New(), uint64(m.PB.GetMaxFragmentId())
	for id := range m.Live() {
		top = max(top, uint64(id))
	}
	out.AddRange(0, top+1)
	for id := range m.Live() {
		out.Remove(uint32(id))
	}
	for _, ix := range m.IndicesNamed(of.Name) {
		if ix != of && ix.Bitmap != nil {
			out.AndNot(ix.Bitmap)
		}
	}
	return out
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
