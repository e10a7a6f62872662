package nodes

import (
	"crypto/sha256"
	"encoding/binary"
)

// inode hashes its parts (dataset, path, content key) to an inode number in [2, 2^63): never 0, 1 or a value with the
// top bit set, and the same after a remount (docs/DESIGN.md, "Identity"). Parts are length-prefixed, so that two
// different lists never hash alike by concatenation.
func inode(parts ...string) uint64 {
	var stack [512]byte
	b := stack[:0]
	for _, p := range parts {
		b = appendPart(b, p)
	}
	return hashInode(b)
}

// appendPart appends one part to what hashInode hashes.
func appendPart(b []byte, p string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(p))), p...)
}

func hashInode(b []byte) uint64 {
	sum := sha256.Sum256(b)
	n := binary.LittleEndian.Uint64(sum[:8]) &^ (1 << 63)
	if n < 2 {
		n = 2
	}
	return n
}
