package rowmap

import (
	"context"
	"io"

	"github.com/frifs/frifs/fri"
)

// Status is what a mapping says about one source row.
type Status uint8

// The zero value is Unknown: no answer was given.
const (
	Unknown    Status = iota
	Moved             // the row has a new address
	Dropped           // the row was already deleted when the rewrite ran
	OutOfRange        // the offset is not below the source's known row count
)

// String names the status as the outcome it leads to.
func (s Status) String() string {
	switch s {
	case Moved:
		return "moved"
	case Dropped:
		return "dropped"
	case OutOfRange:
		return "out_of_range"
	}
	return "unknown"
}

// Mapping is the address mapping of one transition. Implementations are safe for concurrent use.
//
// out and st are the caller's and have the length of the input. Where a status is not Moved the new address written
// is unspecified. An error means that nothing in out and st may be used; its kind is invalid when an address lies
// outside the mapping, corrupt when stored bytes break a rule, else the kind of the failed read.
type Mapping interface {
	// Sources and Destinations are the digests in recorded order; the slices are shared and must not be changed.
	Sources() []fri.Digest
	Destinations() []fri.Digest

	// Forward maps old addresses in any order, duplicates included. Every fragment must be one of the sources.
	Forward(ctx context.Context, addrs []fri.RowAddr, out []fri.RowAddr, st []Status) error
	// ForwardRun maps the len(out) consecutive rows of source number src (its position in Sources) that start at
	// offset off.
	ForwardRun(ctx context.Context, src int, off uint64, out []fri.RowAddr, st []Status) error

	// Inverse maps new addresses to old ones: Moved, or OutOfRange for an offset past the destination's rows. Every
	// fragment must be one of the destinations.
	Inverse(ctx context.Context, addrs []fri.RowAddr, out []fri.RowAddr, st []Status) error
	// InverseRun maps the len(out) consecutive rows of destination number dst that start at offset off; all of them
	// must exist.
	InverseRun(ctx context.Context, dst int, off uint64, out []fri.RowAddr) error

	// Received sets counts[d], for each destination d by position, to the number of rows that d has received from the
	// sources before src and from the first off rows of src. So the rows [a, b) of src that went to d have there the
	// offsets from Received(a)[d] up to, not including, Received(b)[d]. An off past the source's rows means its end.
	Received(ctx context.Context, src int, off uint64, counts []uint64) error
}

// Options are common to all mappings; the zero value is usable.
type Options struct {
	// Cache is the budget for decoded blocks, shared between mappings; nil means a small private one.
	Cache *Cache
}

// File is the content of a row-map file. A File that also has
//
//	ReadAtContext(ctx context.Context, p []byte, off int64) (int, error)
//
// is read through that method, so that a read ends with its caller's context.
type File interface {
	io.ReaderAt
	Size() int64
}
