// Package serve shows a tree of package nodes over HTTP and WebDAV: for machines without FUSE, and for readers that
// speak HTTP. It is to HTTP what package fs is to the kernel, and knows nothing of formats.
//
// Rules it keeps (docs/DESIGN.md, "Tree", "Cost classes", "Identity", "Errors"):
//
//   - Read-only: GET, HEAD, OPTIONS and PROPFIND; what would change something is refused.
//   - A file is answered with its exact size and a strong entity tag made of its inode and size, and of what the server
//     was started with (Options.Content), so that an equal tag means equal bytes, over restarts too. Ranges, If-Range, If-Match and If-None-Match work as RFC 9110 has them.
//   - Nothing is fresh without asking: a path may come to mean another file, when a table is made anew or another one
//     is served at the same address, so every answer says no-cache, and an equal tag is answered 304.
//   - A link to a directory redirects, so that clients see the real path; a file below a link is answered at once, with
//     its real path in Content-Location. PROPFIND follows links.
//   - Directory pages show what the listing has at hand and work for nothing more. PROPFIND finds the sizes of C0 and C1
//     files, as ls -l does, and leaves out those of C2 files that are not at hand.
//   - Path segments are names of the tree, percent-encoded once more by the rules of URLs: a name may hold anything but a
//     slash. No segment leads upwards.
//   - Every call of the tree ends within its bound, whatever the tree does: the work runs in a goroutine of its own and
//     is left behind when its time is over. A bounded number runs at a time. A client that does not read is cut off; it
//     never holds a lock or a place among the workers.
//   - Where the answer has begun, a failure breaks the connection: a client never takes a part for the whole.
//
// The package reaches no network of its own and logs nothing: failures go to the callbacks of Options.
package serve
