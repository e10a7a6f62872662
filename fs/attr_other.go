//go:build !linux

package fs

import "github.com/hanwen/go-fuse/v2/fuse"

// setBlksize does nothing: the attribute does not exist here.
func setBlksize(*fuse.Attr, uint32) {}
