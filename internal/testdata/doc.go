// Package testdata gives tests the real datasets of the folder testdata/ at the root of the project, and what is to be
// expected of each address in them (testdata/README.md).
//
// Datasets are named "<family>/<name>", for example "legacy/basic", "tagged/chain" or "spliced/s_v0". The archives of
// a family are unpacked once per user and content into the temporary directory of the system; that copy is shared by
// all test processes and must not be written to (Copy makes a private one). Nothing is fetched over a network.
//
// The package imports no other package of the project, so that every test may use it.
package testdata
