package addrset

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
)

// Format is how a set is written.
type Format uint8

// The formats. The zero value stands for none.
const (
	FormatUnknown Format = iota
	// Tree is a RowAddrTreeMap: u32 number of fragments; for each a u32 fragment id, a u32 byte size (0 stands for the
	// whole fragment) and a bitmap of that many bytes.
	Tree
	// Treemap64 is a RoaringTreemap: u64 number of fragments; for each a u32 fragment id and a bitmap.
	Treemap64
)

// Set is a set of row addresses.
type Set struct {
	// Entries are the fragments, strictly ascending.
	Entries []Entry
}

// Entry is what a set holds of one fragment.
type Entry struct {
	Frag fri.FragID
	// Whole stands for every row offset of the fragment, however many it has; Bitmap is nil then.
	Whole bool
	// Bitmap holds the row offsets. One that Decode made refers to the decoded bytes, and copies what is changed.
	Bitmap *roaring.Bitmap
}

// RowCount tells the physical row count of a fragment, and whether it is known.
type RowCount func(f fri.FragID) (uint64, bool)

// rows returns how many addresses an entry stands for, and whether that is known. rows may be nil: nothing is known.
func (e *Entry) rows(rows RowCount) (uint64, bool) {
	switch {
	case !e.Whole && e.Bitmap == nil:
		return 0, true
	case !e.Whole:
		return e.Bitmap.GetCardinality(), true
	case rows == nil:
		return 0, false
	}
	n, ok := rows(e.Frag)
	if !ok {
		return 0, false
	}
	return min(n, 1<<32), true
}

// Len returns how many addresses the set holds. Whole fragments whose row count is not known are left out, and counted
// by unknown.
func (s *Set) Len(rows RowCount) (n uint64, unknown int) {
	for i := range s.Entries {
		k, ok := s.Entries[i].rows(rows)
		if !ok {
			unknown++
			continue
		}
		n += k
	}
	return n, unknown
}
