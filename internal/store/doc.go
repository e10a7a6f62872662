// Package store is the one way in which frifs reaches bytes: list one level, stat, read a range, open for reading at
// any offset. Nothing here can write.
//
// A local root goes straight to the operating system: a file is opened once and read with pread; symbolic links that
// leave the root are refused unless Options.FollowOutside says otherwise. Everything else goes through
// gocloud.dev/blob: s3:// and what speaks its protocol, gs://, az:// and abfss://, file://, mem://, in the forms that
// gocloud and Lance write. Only listing and reading are used, so that list and get rights are enough, and a name that is
// denied where listing is denied too counts as absent. See docs/DESIGN.md, "Errors" and "Identity".
//
// Between a cloud and its readers stands one Layer for the whole process: it repeats what failed for a moment (429, 5xx,
// broken connections, answers cut short), asks a second time where an answer is late, bounds each call and the number of
// requests, joins equal and adjacent reads, reads ahead of who goes forward, and keeps blocks in memory and, if asked,
// on disk. Blocks are named by what they are part of, e-tag included: what was replaced under a name is never served.
//
// Invariants: names are slash-separated, relative to the root, valid UTF-8 or not, and never hold an empty, "." or ".."
// element. Every call is bounded by Options.CallTimeout or Config.CallTimeout and ends soon after its context does.
// Errors are *fault.Error values with the URI of the object; no message holds a credential or a signed URL.
//
// The package does not know what it reads, and logs nothing.
package store
