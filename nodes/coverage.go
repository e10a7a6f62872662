package nodes

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/indexfile"
	"github.com/frifs/frifs/translate"
)

// liveSet is the ids of the live fragments.
func (l *loaded) liveSet() *roaring.Bitmap {
	out := roaring.New()
	for f := range l.m.Live() {
		out.Add(uint32(f))
	}
	return out
}

// segments describes every entry of the index section to package translate, in the order of the section. onlyAddresses
// takes entries that store row ids for system ones: a record never concerns what is in their files.
func (l *loaded) segments(onlyAddresses bool) []translate.Segment {
	out := make([]translate.Segment, len(l.m.Indices))
	for i, ix := range l.m.Indices {
		s := translate.Segment{
			Name:           ix.Name,
			UUID:           segmentName(ix),
			DatasetVersion: ix.PB.GetDatasetVersion(),
			System:         systemEntry(ix),
			Usable:         usableWhenTagged(ix),
		}
		switch ix.BitmapState {
		case dataset.BitmapWithdrawn:
			s.State = translate.BitmapWithdrawn
		case dataset.BitmapPresent:
			s.State, s.Bitmap = translate.BitmapPresent, ix.Bitmap
		case dataset.BitmapAbsent, dataset.BitmapUndecodable:
		}
		if d, _ := indexfile.Domain(l.m, ix); onlyAddresses && d == indexfile.DomainRowID {
			s.System = true
		}
		out[i] = s
	}
	return out
}

// usableWhenTagged reports whether Lance 14.0.2 can use an entry on a tagged table: type and version are known to it,
// and the type translates in batches.
func usableWhenTagged(ix *dataset.Index) bool {
	limit, ok := maxIndexVersion(ix.Type)
	if !ok || ix.PB.GetIndexVersion() > limit {
		return false
	}
	switch ix.Type {
	case "FM", "JSON", "MINHASH_LSH":
		return false
	}
	return true
}

// systemEntry reports whether an entry is one of a system index, by name and type.
func systemEntry(ix *dataset.Index) bool { return ix.System() && recognise(ix).Class != fri.LookAlike }

// indexed finds, for each record, whether a stored bitmap names one of its fragments. A stored bitmap may have been
// taken along to later fragments, so what was made of the destinations counts too.
func indexed(l *loaded, h *fri.History) []bool {
	named := roaring.New()
	for _, ix := range l.m.Indices {
		if !systemEntry(ix) && ix.Bitmap != nil {
			named.Or(ix.Bitmap)
		}
	}
	out := make([]bool, len(h.Transitions))
	later := map[uint64]bool{} // fragments of which something that is named was made
	for i := len(h.Transitions) - 1; i >= 0; i-- {
		t := h.Transitions[i]
		for _, ds := range [][]fri.Digest{t.Sources, t.Destinations} {
			for _, d := range ds {
				out[i] = out[i] || later[d.ID] || (d.ID <= 0xFFFFFFFF && named.Contains(uint32(d.ID)))
			}
		}
		if out[i] {
			for _, d := range t.Sources {
				later[d.ID] = true
			}
		}
	}
	return out
}

// noneLive reports whether a record's destinations are all gone: only later records need it.
func noneLive(l *loaded, ds []fri.Digest) bool {
	for _, d := range ds {
		if _, ok := l.m.Live()[d.Frag()]; ok && d.ID <= 0xFFFFFFFF {
			return false
		}
	}
	return len(ds) > 0
}
