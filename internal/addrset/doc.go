// Package addrset reads and writes sets of row addresses as index files store them (docs/FORMAT.md, "Index files"):
// RowAddrTreeMap bytes of bitmap, label list, spatial and zone indexes, and RoaringTreemap bytes of n-gram indexes.
//
// Both hold, for each fragment, a portable 32-bit Roaring bitmap of row offsets; a RowAddrTreeMap may also name a
// fragment as a whole. Decode checks every byte that decides what is in the set before it is used, and takes no more
// memory than the containers' headers: the payloads stay where they are. Encode writes each set in one way only, with
// run containers where they are the shortest, within what Lance's strict reader accepts.
//
// The package does no IO, starts no goroutines and logs nothing.
package addrset
