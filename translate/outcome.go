package translate

import (
	"unsafe"

	"github.com/frifs/frifs/rowmap"
)

// Outcome says what became of an address in the version asked about (docs/DESIGN.md, "Words").
type Outcome uint8

// The outcomes. The zero value means that no answer was given. The first ones have the values of rowmap.Status.
const (
	Unknown    Outcome = iota
	Moved              // the walk ends in another fragment, which is live
	Dropped            // a mapping says that the row was deleted before the rewrite
	OutOfRange         // the fragment is live or a source, and the offset is past its known row count
	Same               // its fragment is live
	DeletedNow         // Same or Moved, but the deletion file of that fragment names the row
	Dangling           // the fragment where the walk ends is not live, and nothing consumes it
	Unresolved         // what would be needed to tell is missing, unknown or broken
)

// NumOutcomes is the number of values of Outcome, for arrays indexed by it.
const NumOutcomes = 8

// A mapping writes its statuses where the outcomes go; this does not compile if the values part.
var _ = [1]struct{}{}[int(Moved)-int(rowmap.Moved)|int(Dropped)-int(rowmap.Dropped)|int(OutOfRange)-int(rowmap.OutOfRange)]

var outcomeNames = [NumOutcomes]string{
	"unknown", "moved", "dropped", "out_of_range", "same", "deleted_now", "dangling", "unresolved",
}

// String is the outcome as it stands in CSV and JSON.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return outcomeNames[Unknown]
}

// HasAddress reports whether the outcome comes with a new address.
func (o Outcome) HasAddress() bool { return o == Same || o == Moved || o == DeletedNow }

// statuses views outcomes as the mapping statuses that share their values.
func statuses(o []Outcome) []rowmap.Status {
	return unsafe.Slice((*rowmap.Status)(unsafe.SliceData(o)), len(o))
}

// outcomeBytes views outcomes as the bytes that they are.
func outcomeBytes(o []Outcome) []byte {
	return unsafe.Slice((*byte)(unsafe.SliceData(o)), len(o))
}

func fill(o []Outcome, v Outcome) {
	for i := range o {
		o[i] = v
	}
}
