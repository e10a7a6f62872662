package indexfile

import (
	"context"
	"io"

	"github.com/frifs/frifs/fri"
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

// Segment is one index entry and its stored files.
type Segment struct {
	Type    string // as dataset.Index.Type says ("BTREE"); of a JSON index, JSON
	Target  string // of a JSON index: the type of the index that it wraps
	Version int32  // index_version
	Domain  string // DomainAddress, DomainRowID or DomainUnknown
	Files   []StoredFile
	OpenRaw func(ctx context.Context, path string) (Reader, error)
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
