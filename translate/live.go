package translate

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
)

// Live tells what is live in the version asked about. Implementations are safe for concurrent use.
//
// A Live that also has
//
//	HasDeletions(f fri.FragID) bool
//
// is asked that before Deletions. It must answer from memory; true for a fragment without deletions is allowed. With
// it, mappings into fragments without deletions skip a look at each row.
type Live interface {
	// Rows returns the physical row count of f, whether it is known, and whether f is live. It does no IO.
	Rows(f fri.FragID) (rows uint64, known, live bool)
	// Deletions returns the deleted offsets of the live fragment f; nil where f has no deletion file. Failures are
	// the implementation's to remember. The bitmap is shared and must not change.
	Deletions(ctx context.Context, f fri.FragID) (*roaring.Bitmap, error)
}

type deletionHint interface {
	HasDeletions(f fri.FragID) bool
}

// Fragment is a live fragment of a Snapshot.
type Fragment struct {
	Rows    uint64          // physical rows; 0 = not known
	Deleted *roaring.Bitmap // deleted offsets; nil = none
}

// Snapshot is a Live held in memory, by fragment.
type Snapshot map[fri.FragID]Fragment

// Rows implements Live.
func (s Snapshot) Rows(f fri.FragID) (rows uint64, known, live bool) {
	fr, ok := s[f]
	return fr.Rows, fr.Rows > 0, ok
}

// Deletions implements Live.
func (s Snapshot) Deletions(_ context.Context, f fri.FragID) (*roaring.Bitmap, error) {
	return s[f].Deleted, nil
}

// HasDeletions reports whether f has deletions.
func (s Snapshot) HasDeletions(f fri.FragID) bool { return s[f].Deleted != nil }
