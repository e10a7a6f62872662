package nodes

import (
	"sort"

	"github.com/frifs/frifs/internal/dataset"
)

// logicalIndex is all entries of one name, in manifest order. Nothing is left out or joined.
type logicalIndex struct {
	name     string // as stored
	dir      string // encoded, unique
	segments []*segment
}

// segment is one entry of the index section.
type segment struct {
	ix  *dataset.Index
	dir string // the uuid; a second entry of that uuid and name gets ~2
}

// groupIndices groups the entries of a manifest by name. Directory names are given out in manifest order; the result is
// in byte order of them.
func groupIndices(m *dataset.Manifest) []*logicalIndex {
	var out []*logicalIndex
	byName := map[string]*logicalIndex{}
	names := newUniqueNames()
	uuids := map[*logicalIndex]*uniqueNames{}
	for _, ix := range m.Indices {
		name := ix.PB.GetName()
		li := byName[name]
		if li == nil {
			li = &logicalIndex{name: name, dir: names.take(EncodeName(name))}
			byName[name] = li
			uuids[li] = newUniqueNames()
			// index.json and ERROR.json are names of the same directory.
			uuids[li].take("index.json")
			uuids[li].take("ERROR.json")
			out = append(out, li)
		}
		li.segments = append(li.segments, &segment{ix: ix, dir: uuids[li].take(segmentName(ix))})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].dir < out[j].dir })
	return out
}

// segmentName is the uuid, or the raw bytes as hex digits where they are none.
func segmentName(ix *dataset.Index) string {
	if ix.UUID != "" {
		return ix.UUID
	}
	return EncodeName(uuidString(ix.PB.GetUuid().GetUuid()))
}

// index returns the logical index with an encoded name.
func (l *loaded) index(dir string) *logicalIndex {
	i := sort.Search(len(l.logical), func(i int) bool { return l.logical[i].dir >= dir })
	if i < len(l.logical) && l.logical[i].dir == dir {
		return l.logical[i]
	}
	return nil
}
