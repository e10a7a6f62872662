// Package translate composes a fragment reuse history: it answers where the row that once had a row address is in one
// version of a table, in batches, forward and inverse. It also derives from a history which live fragments an index
// segment may answer for (coverage) and which records are still needed.
//
// A Translator is made for one version: its history (package fri), what is live in it (Live), and a way to open each
// transition's mapping (package rowmap). Both generations are followed as docs/DESIGN.md, "Meaning", says:
//
//   - A legacy history applies its versions in list order, all groups of one version at once; an address whose
//     fragment is no source passes through, and a live fragment that is a source is mapped all the same.
//   - A tagged history is one graph: a live fragment ends the walk, the start included; else its consumer is followed.
//
// Invariants:
//   - Never a wrong address: where a needed record or file is missing, unknown or broken the outcome is Unresolved,
//     and every other address of the batch is still answered. Only errors that may pass (cancelled, timed out,
//     unavailable) fail a call.
//   - Input order and duplicates are kept.
//   - Memory is bounded by the batch, the caches of the mappings, and a fixed budget for deletions.
//
// The package does no IO of its own, starts no goroutines and logs nothing.
package translate
