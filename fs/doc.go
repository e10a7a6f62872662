// Package fs shows a tree of package nodes through FUSE. It is the only importer of go-fuse, and knows nothing of
// formats: it turns nodes into inodes, errors into errnos (package fault), and a mount into something that can be
// unmounted cleanly.
//
// Rules it keeps (docs/DESIGN.md, "Tree", "Identity", "Errors"):
//
//   - Read-only twice over: the kernel mounts with ro, and every changing request is answered EROFS here.
//   - Sizes are exact; a read is never short before the end of the file (the kernel would shrink the file for good).
//   - One inode number, one content. Everything may be cached by the kernel for long, targets of links too; only names
//     in a volatile directory expire, after a second.
//   - A listing costs what Dir.Entries costs: an entry without attributes at hand is declined in a READDIRPLUS
//     answer, so that plain ls never makes a lookup.
//   - Every request ends within its bound, whatever the tree below does: another goroutine does the work and is left
//     behind when its time is over. An interrupted request goes on for a second, then ends with EINTR.
//   - A failure is remembered for two seconds, since the kernel asks again, page by page.
//   - A panic below costs one request: EIO and a stack in the log.
//   - No lock is held while the tree works or the kernel is notified.
//
// A process must never read its own mount; tests do all client work in child processes.
package fs
