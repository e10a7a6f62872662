// Package fri decodes and checks a Lance fragment reuse index (FRI): the record of how rewrites moved rows from one
// fragment to another.
//
// An FRI is the one index entry of a manifest that [IsEntry] calls [IsFRI]. The value of its details is read with
// [ParseDetails], which says where the content lies: inline, or in an external file. [Open] reads that content in
// place and gives a [History]: every recorded rewrite as a [Transition], in the order in which they apply, with each
// violation of the format named in Errors and everything odd in Warnings.
//
// Invariants:
//   - The content is never unmarshalled whole. Open reads tags, digests and the headers of survivor bitmaps; bitmap
//     payloads stay in the [Reader] until [Survivors.Load] asks for one container. Memory is proportional to headers.
//   - Nothing is allocated from a length or a count that was not checked against the bytes that are really there.
//   - A bad record spoils only what depends on it: a violation makes its record unusable (Err is set) and leaves the
//     others as they are. Only violations of the envelope and of the wire spoil the whole history (History.Broken).
//   - Both generations are covered: the legacy form (index_version 0) is lenient and ordered by its list, the tagged
//     form (index_version 1) is strict and ordered by dependency.
//
// The package implements the sections "FRI entry", "Survivor bitmap", "Legacy history", "Tagged history" and
// "Validation rules" of docs/FORMAT.md and
// "Meaning" of docs/DESIGN.md; "rule N" in messages is a row of the table "Validation rules". It does not translate
// addresses (package translate), does not read row-map files (package rowmap), opens no files and logs nothing.
package fri
