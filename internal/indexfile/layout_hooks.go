package indexfile

import (
	"context"

	"github.com/frifs/frifs/fault"
)

// newSetsFile opens a file with sets of addresses: f.rule says which (roleBitmaps, roleNGrams, roleNulls, rolePostings)
// and names the column; f.lance is the open container, f.raw its reader, f.seg the segment.
func newSetsFile(_ context.Context, f *File) (body, error) {
	return nil, fault.New("indexfile.Open", f.Path, fault.Unsupported, "sets of addresses in a %s index are not read", f.seg.kind())
}
