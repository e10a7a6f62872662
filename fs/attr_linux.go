package fs

import "github.com/hanwen/go-fuse/v2/fuse"

// setBlksize sets the preferred size of reads.
func setBlksize(a *fuse.Attr, n uint32) { a.Blksize = n }
