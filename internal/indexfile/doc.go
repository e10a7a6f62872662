// Package indexfile knows where the files of each Lance index type hold row addresses, and how a file with other
// addresses in their place is made (docs/FORMAT.md, "Index files"; docs/DESIGN.md, "Remapped index files").
//
// A Segment is one index entry with a way to its stored files. Its type and version, which come from the manifest, say
// what each file of it is for; no file is opened to tell. Segment.Open looks into one file: rows, columns, the column or
// buffer with addresses. From that a File lists its stored addresses (Scan) and makes the remapped file (Remap), whose
// exact size is known without a translation for every type but the re-serialised ones.
//
// Invariants: an address that is not proven right becomes a placeholder, never a guess; positions tie an index's files
// together, so no row is added, removed or moved in a file with a row per address; a damaged file costs that file only;
// lengths and counts are checked against what is there before anything is allocated.
//
// The package makes the manifest of a remapped dataset too. It starts no goroutines and logs nothing.
package indexfile
