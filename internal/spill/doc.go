// Package spill holds bytes that are made once and read many times: in memory as long as they are few, then in a file
// without a name (docs/DESIGN.md, "Remapped index files"). It is where re-serialised posting sets wait until they are
// read, so that memory does not grow with them.
//
// A Buffer is written by one goroutine and may be read by many. Nothing is logged, and no lock is held during IO.
package spill
