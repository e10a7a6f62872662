package indexfile

import (
	"context"

	"github.com/frifs/frifs/fault"
)

// File is one stored file of a segment, looked into. It is safe for concurrent use.
type File struct {
	Path      string
	How       How
	Version   string   // Lance file version ("2.1"); "" for a legacy index.idx
	Rows      uint64   // rows of the file
	Columns   []Column // leaf columns, in order
	Addresses []string // where its addresses are: column names, "metadata row_ids", "global buffer 1", "partitions"; nil = none
}

// Options are settings of Remap; the zero value is usable.
type Options struct {
	// SpillDir is where re-serialised data over SpillAbove bytes goes, in files that are removed with their Content;
	// "" keeps everything in memory, up to SpillAbove: more is fault.TooLarge.
	SpillDir string
	// SpillAbove is the bound on bytes held in memory for one file; 0 means 8 MiB.
	SpillAbove int64
}

// How says from type, index version and name alone how a file of the segment is remapped. Errors: fault.Unsupported
// for an unknown type, naming it.
func (s *Segment) How(path string) (How, error) {
	return HowUnknown, fault.New("indexfile.How", path, fault.Unsupported, "index type %q", s.Type)
}

// Open looks into one stored file: its tail, and the page descriptions of the column with addresses.
func (s *Segment) Open(_ context.Context, path string) (*File, error) {
	return nil, fault.New("indexfile.Open", path, fault.Unsupported, "index type %q", s.Type)
}

// Scan walks over the stored addresses from a position on; nil where the file holds none.
func (f *File) Scan(context.Context, Position) (Cursor, error) { return nil, nil }

// Remap makes the remapped file. For How other than Reserialised nothing is translated before it is read. The Content
// stays usable after ctx ends, and holds f open; closing it closes f.
func (f *File) Remap(context.Context, Resolver, Options) (Content, error) {
	return nil, fault.New("indexfile.Remap", f.Path, fault.Unsupported, "no layout")
}

// Close releases the stored file.
func (f *File) Close() error { return nil }
