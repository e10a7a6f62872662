// Package rowmaptest makes synthetic histories for tests and benchmarks: records and row maps of any size that are
// rendered as they are read.
package rowmaptest
