// Package nodes is the virtual tree of frifs: directories, files and links as plain values with exact sizes and random
// access, without any kernel knowledge. The FUSE layer, the commands and the tests all serve from it, so their bytes
// agree (docs/DESIGN.md, "Tree").
//
// Invariants:
//   - What Attr says is what reading gives: sizes are exact, content never changes under one inode number.
//   - A listing is decided from the manifest and the FRI entry alone and never works to find attributes.
//   - Nodes hold references (dataset, version, path), not loaded data: manifests, histories and rendered documents live
//     in bounded caches with single flight, keyed by content.
//   - What is impossible for a version is left out of its listings and explained in ERROR.json; what fails later stays
//     listed and gives its own error. One bad file stays one bad file.
//
// The package implements docs/DESIGN.md, "Tree", "Cost classes", "Identity" and "Text formats". It writes no log and
// changes nothing in the dataset.
package nodes
