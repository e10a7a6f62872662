// Package lancefile reads the Lance v2 file container: footer, tables, schema and its metadata, global buffers, and
// the rows of a fixed-width integer column by range (docs/FORMAT.md, "Lance file").
//
// Open reads the tail of the file and checks every offset, length and count in it against the file's real size before
// anything is allocated. OpenColumn parses the page descriptions of one column, in whichever grammar the file version
// or the page itself calls for, and refuses what it does not know by name and number. Column.Read then fetches only
// what a row range needs: exact bytes of flat and zipped pages, the chunks concerned of a chunked page.
//
// Decoded are nullable u16, u32 and u64 columns without nesting: in version 2.0 flat, nullable and constant arrays; in
// 2.1 and 2.2 mini-block, full-zip and constant pages with every value encoding and level encoding that writers use
// for integers; in 2.3 the same and the planar grammar, whose sparse pages are limited to one validity layer over a
// constant. Strings, lists and floats are not decoded here.
//
// Synthesise makes a file that differs from an original in some u64 columns, columns of cells, global buffers or bytes,
// and is computed as it is read. Its size follows from the plan, and what is not named stays byte for byte
// (docs/DESIGN.md, "Remapped index files"). CellWriter writes columns of cells for it.
//
// The package needs an io.ReaderAt and a size, starts no goroutines and logs nothing. Files and columns are safe for
// concurrent use.
package lancefile
