package dataset

import (
	"fmt"
	"math"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/pb"
)

// maxRows is the largest row count of a fragment: its offsets are 32 bits.
const maxRows = 1 << 32

// Fragment is one fragment of a manifest, in manifest order.
type Fragment struct {
	ID           fri.FragID
	PB           *pb.DataFragment
	PhysicalRows *uint64 // nil: not known (old writers, or an impossible number)
	DeletedRows  *uint64 // nil: not known; 0 without a deletion file
	Duplicate    bool    // another fragment of the manifest has the same id
	Invalid      string  // why the id is none ("" = it is one); ID is meaningless then
}

// LiveRows is physical less deleted rows, nil if either is unknown.
func (f *Fragment) LiveRows() *uint64 {
	if f.PhysicalRows == nil || f.DeletedRows == nil {
		return nil
	}
	n := *f.PhysicalRows - *f.DeletedRows
	return &n
}

// Bytes is the sum of the recorded sizes of the data files, nil if one is unknown.
func (f *Fragment) Bytes() *uint64 {
	var n uint64
	for _, df := range f.PB.GetFiles() {
		size := df.GetFileSizeBytes()
		if size == 0 || n+size < n {
			return nil
		}
		n += size
	}
	return &n
}

// makeFragments wraps the fragments of a manifest, finds duplicates and impossible numbers, and returns what there is
// to warn about.
func makeFragments(list []*pb.DataFragment) (all []*Fragment, live map[fri.FragID]*Fragment, warnings []string) {
	flat := make([]Fragment, len(list))
	all = make([]*Fragment, len(list))
	live = make(map[fri.FragID]*Fragment, len(list))
	for i, p := range list {
		f := &flat[i]
		all[i] = f
		f.PB = p
		if id := p.GetId(); id >= math.MaxUint32 {
			f.Invalid = fmt.Sprintf("fragment id %d is no 32-bit id", id)
			warnings = append(warnings, f.Invalid)
			continue
		}
		f.ID = fri.FragID(p.GetId())
		warnings = append(warnings, f.count()...)
		if first, ok := live[f.ID]; ok {
			if !first.Duplicate {
				warnings = append(warnings, fmt.Sprintf("fragment %d is listed more than once", f.ID))
			}
			first.Duplicate, f.Duplicate = true, true
			continue
		}
		live[f.ID] = f
	}
	return all, live, warnings
}

// count takes over the row counts as far as they are known and possible.
func (f *Fragment) count() (warnings []string) {
	if n := f.PB.GetPhysicalRows(); n > maxRows {
		warnings = append(warnings, fmt.Sprintf("fragment %d: physical_rows %d is more than 2^32: taken as unknown", f.ID, n))
	} else if n > 0 {
		f.PhysicalRows = &n
	}
	df := f.PB.GetDeletionFile()
	if df == nil {
		f.DeletedRows = new(uint64)
		return warnings
	}
	switch n := df.GetNumDeletedRows(); {
	case n == 0:
	case n > maxRows, f.PhysicalRows != nil && n > *f.PhysicalRows:
		warnings = append(warnings, fmt.Sprintf("fragment %d: %d deleted rows are more than the fragment has: taken as unknown", f.ID, n))
	default:
		f.DeletedRows = &n
	}
	return warnings
}
