// Package store is the one way in which frifs reaches bytes: list one level, stat, read a range, open for reading at
// any offset. Nothing here can write.
//
// A local root goes straight to the operating system: a file is opened once and read with pread; symbolic links that
// leave the root are refused unless Options.FollowOutside says otherwise. Everything else (file:// and mem:// URLs now,
// cloud buckets by the same interface) goes through gocloud.dev/blob, of which only List, Attributes and
// NewRangeReader are used, so that list and get rights are enough. See docs/DESIGN.md, "Errors" and "Identity".
//
// Invariants: names are slash-separated, relative to the root, valid UTF-8 or not, and never hold an empty, "." or ".."
// element. Every call is bounded by Options.CallTimeout and ends soon after its context does. Errors are *fault.Error
// values with the URI of the object, without credentials.
//
// The package does not cache, retry, or know what it reads.
package store
