package indexfile

import (
	"context"
	"io"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
)

// How says how a remapped file is made from the stored one.
type How uint8

// The ways. The zero value stands for a file that cannot be remapped.
const (
	HowUnknown   How = iota
	Verbatim         // it holds no addresses (or row ids, which are never translated): the same bytes
	Flat             // a column with an address per row is replaced: exact size without a translation
	InPlace          // addresses stand in the file's metadata or between other data, and are overlaid
	Reserialised     // sets of addresses are written anew: the size is known after all are translated
	Zones            // ranges of addresses: small files, made at once
)

// String is the way as segment.json names it.
func (h How) String() string {
	return [...]string{"unknown", "verbatim", "flat", "in_place", "reserialised", "zones"}[min(int(h), 5)]
}

// StoredFile is one file of a segment: its path below the segment's directory, and its size in bytes.
type StoredFile struct {
	Path string
	Size int64
}

// Reader is an open stored file.
type Reader interface {
	io.ReaderAt
	io.Closer
	ReadAtContext(ctx context.Context, p []byte, off int64) (int, error)
	Size() int64
}

// Segment is one index entry and its stored files. It is made by NewSegment, and safe for concurrent use.
type Segment struct {
	Type      string // as dataset.Index.Type says ("BTREE"); of a JSON index, JSON; of an entry without details, by its files
	TypeName  string // the name of the details message; "" without details
	Target    string // of a JSON index: the type of the index that it wraps
	Inferred  bool   // Type comes from the names of the files, since the entry has no details
	Version   int32  // index_version
	Newest    int32  // highest index_version of the type that Lance 14.0.2 reads
	Domain    string // DomainAddress, DomainRowID or DomainUnknown
	DomainWhy string
	Files     []StoredFile
	OpenRaw   func(ctx context.Context, path string) (Reader, error)
	// Rows tells a scan how many rows a fragment has that a set names as a whole, and whether that is known (Resolver.Rows
	// does). It may be set before files are opened; nil: nothing is known.
	Rows func(f fri.FragID) (uint64, bool)

	layout *layout   // nil for a type that is not known
	fts    *ftsFacts // of full text in its present form, else nil
}

// NewSegment makes the segment of an index entry: files are all files below its directory, open opens one of them. No
// file is opened here. The result is never nil; a type that is not known shows when a file is asked about.
func NewSegment(m *dataset.Manifest, ix *dataset.Index, files []StoredFile,
	open func(ctx context.Context, path string) (Reader, error)) *Segment {
	s := &Segment{
		Type: ix.Type, TypeName: ix.TypeName, Version: ix.PB.GetIndexVersion(), Files: files, OpenRaw: open,
	}
	s.Domain, s.DomainWhy = Domain(m, ix)
	if s.Type == "JSON" {
		s.Target, _ = JSONTarget(ix)
	}
	names := make(map[string]bool, len(files))
	for _, f := range files {
		names[f.Path] = true
	}
	if s.Type == "" && ix.PB.GetIndexDetails() == nil {
		s.Type = inferType(files, names)
		s.Inferred = s.Type != ""
	}
	if !System(ix) {
		s.setLayout(func(name string) bool { return names[name] })
	}
	return s
}

func (s *Segment) setLayout(has func(string) bool) {
	if s.layout = layoutOf(s.kind(), has); s.layout != nil {
		s.Newest = s.layout.newest
		if s.Type == "JSON" {
			s.Newest = 0
		}
		if s.kind() == "INVERTED" && has(ftsMetadata) {
			s.fts = &ftsFacts{}
		}
	}
}

// kind is the type that says how the files are laid out: of a JSON index, its target's.
func (s *Segment) kind() string {
	if s.Type == "JSON" {
		return s.Target
	}
	return s.Type
}

// TooNew reports whether Lance 14.0.2 ignores the segment because of its index_version. It is handled all the same.
func (s *Segment) TooNew() bool { return s.layout != nil && s.Version > s.Newest }

// inferType tells the type of an index from the names of its files, as Lance does for entries without details; "" where
// they are not those of exactly one type. A BITMAP and a LABEL_LIST look alike, and are stored alike too.
func inferType(files []StoredFile, has map[string]bool) string {
	switch {
	case has["index.idx"]:
		return "VECTOR"
	case has["page_data.lance"] && has["page_lookup.lance"]:
		return "BTREE"
	case has["bitmap_page_lookup.lance"]:
		return "BITMAP"
	case has["ngram_postings.lance"]:
		return "NGRAM"
	case has["tokens.lance"] && has["invert.lance"] && has["docs.lance"]:
		return "INVERTED"
	}
	if !has["metadata.lance"] {
		return ""
	}
	for _, f := range files {
		if matches("part_*_docs.lance", f.Path) {
			return "INVERTED"
		}
	}
	return ""
}

// How says from type, index version, domain and name alone how a file of the segment is remapped. Errors:
// fault.Unsupported for an unknown type, a name that is none of the type's, or where it is not known whether the index
// holds addresses.
func (s *Segment) How(path string) (How, error) {
	const op = "indexfile.How"
	if s.Domain == DomainRowID {
		return Verbatim, nil
	}
	r, err := s.rule(op, path)
	if err != nil {
		return HowUnknown, err
	}
	if s.Domain != DomainAddress {
		return HowUnknown, fault.New(op, path, fault.Unsupported, "addresses or row ids? %s", s.DomainWhy)
	}
	return r.how, nil
}

// Content is a remapped file: its exact size, and any range of its bytes. ReadAt fills p unless the file ends before;
// a read at or past the end gives 0 and no error. It is safe for concurrent use.
type Content interface {
	Size() int64
	ReadAt(ctx context.Context, p []byte, off int64) (int, error)
	Close() error
}

// Column is one column of a stored file, for display.
type Column struct {
	Name string // dotted for nested fields
	Type string // logical type
}

// Position is a place in the order of a file's stored addresses: the member of the set of a row (0 where a row holds
// one address). Row NoRow stands for the sets in global buffers, which follow the rows.
type Position struct {
	Row    uint64
	Member uint64
}

// NoRow is the row of an address that belongs to no row of the file.
const NoRow = ^uint64(0)

// Batch is consecutive stored addresses.
type Batch struct {
	Rows  []uint64
	Addrs []fri.RowAddr
}

// Cursor walks over the stored addresses of a file, in file order.
type Cursor interface {
	// Next fills b with the next addresses, at most limit; none at the end.
	Next(ctx context.Context, b *Batch, limit int) error
	// Position is the place of the next address.
	Position() Position
}
