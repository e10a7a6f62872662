// Package dataset reads a Lance table as a directory of versions: the names in _versions, the manifest of each with its
// fragments and raw index section, deletion vectors, transactions, and where the files of a version are (base paths).
// It implements docs/FORMAT.md, "Versions", "Manifest", "Deletion files", "Base paths", "Transactions", "Index details"
// and "Feature flags".
//
// Invariants: the number in the file name is the version; what an old writer did not record is nil, never 0; one
// damaged part spoils that part only (a manifest its version, an index section the indices, a deletion file its
// fragment); no length or count is believed before it was compared with what is there; a manifest is untrusted, so its
// base paths and names reach only the dataset's own tree, its parent directory and what Options.AllowBase admits.
// A failure is never cached.
//
// The package does not write, does not interpret the fragment reuse index (package fri), reads no data or index files,
// and logs nothing.
package dataset
