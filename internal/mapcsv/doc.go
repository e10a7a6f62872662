// Package mapcsv renders the mappings of a history as files that are never materialised: mapping.csv, inverse.csv,
// mapping.arrow and counts.csv of one transition, composed.csv of a whole history (docs/DESIGN.md, "Text formats").
//
// A File tells its exact size without rendering, and reads any range of itself at the cost of that range. Sizes are
// digit sums in closed form over digests, container headers and rows of the counts grid; a byte leads to its block the
// same way, and only that block is then read. Where closed forms do not reach, the work that Size does is bounded: the
// blocks in which an old address gets another digit (inverse.csv), the grid rows in which a count does (counts.csv),
// and one pass over the rows of fragments that go through a partition (composed.csv).
//
// Invariants:
//   - Size and content of a File never change, and what Size says is what reading gives. Data that turn out corrupt
//     when they are read are an error of that read.
//   - Memory does not grow with rows. A File keeps a few readers at the offsets where reads ended, so that reading in
//     sequence goes on where it was; each is small, but for partitions has 64 bytes per destination.
//   - Nothing is allocated per row: lines are rendered from templates straight into the reader's buffer.
//   - All methods are safe for concurrent use. Constructors read nothing.
//
// The text of rows is made in half.go and pair.go; all other files find out which rows. The package does no IO beyond
// the mappings it is given, starts no goroutines and logs nothing. A File is worth keeping while its transition is
// read: a new one measures anew.
package mapcsv
