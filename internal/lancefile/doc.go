// Package lancefile reads the Lance v2 file container: footer, tables, schema and its metadata, global buffers, and
// the rows of any column by range (docs/FORMAT.md, "Lance file").
//
// Open reads the tail of the file and checks every offset, length and count in it against the file's real size before
// anything is allocated. Page descriptions are parsed when a column is opened, in whichever grammar the file version or
// the page itself calls for, and what is not known is refused by name and number; it costs that column only. A read
// then fetches what a row range needs: exact bytes of flat and zipped pages, the chunks concerned of a chunked page.
//
// There are three readers. Column gives nullable u16, u32 and u64 columns without nesting to the caller's memory, as
// fast as it goes: row maps and addresses. Cells gives the values of a string or binary column one by one, in bounded
// memory: posting sets. Values gives an Array of any field: numbers, strings, fixed-size lists, and lists and structs in
// any nesting. They cover what official writers of 2.0, 2.1, 2.2 and both forms of 2.3 make, but for packed structs,
// fixed-size lists of structs and blobs.
//
// Synthesise makes a file that differs from an original in some u64 columns, columns of cells, arrays of version 2.0,
// global buffers or bytes, and is computed as it is read. Its size follows from the plan, and what is not named stays
// byte for byte (docs/DESIGN.md, "Remapped index files"). CellWriter and ArrayWriter write columns for it.
//
// The package needs an io.ReaderAt and a size, starts no goroutines and logs nothing. Files and columns are safe for
// concurrent use.
package lancefile
