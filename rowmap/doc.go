// Package rowmap answers where the rows of one recorded rewrite went: the mapping of one transition of a fragment
// reuse history, forward (old address to new) and inverse (new to old).
//
// There are two kinds. An Ordered mapping (ordered compaction) is arithmetic on the survivor bitmap of the record:
// the k-th survivor, counted over the sources in recorded order, is the k-th row of the destinations in recorded
// order. A Partition (stable partition) is read from a label file: one label per physical source row, in source
// order, that names the destination; a row's new offset is the number of earlier rows with the same label
// (docs/FORMAT.md, "Survivor bitmap" and "Row map").
//
// Invariants:
//   - Opening reads headers only. Bitmap containers and label blocks are read, checked and decoded when a row in
//     them is asked for, and kept in a Cache: one byte budget for the whole process, whatever the number of rows.
//   - A mapping never answers from bytes that did not pass their checks; such a read is an error of kind corrupt for
//     the rows that need those bytes, and only for them.
//   - An offset past a source's row count is OutOfRange, never Dropped.
//   - All methods are safe for concurrent use and do no IO beyond the reader they were given.
//
// The package knows nothing of versions or of what is live: composing mappings is the task of package translate.
package rowmap
