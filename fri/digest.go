package fri

// Digest describes one fragment as a rewrite saw it (docs/FORMAT.md, "FRI entry", message FragmentDigest). The
// numbers are kept as they stand on the wire, so ID may exceed the range of a fragment id; such a digest makes its
// record unusable.
type Digest struct {
	ID           uint64 // fragment id; a usable record has only ids below 2^32
	PhysicalRows uint64 // rows with an offset, deleted ones included
	DeletedRows  uint64 // rows already deleted at rewrite time; legacy histories may be wrong about it
}

// Frag returns the fragment id. It is meaningful only where ID < 2^32, which holds for every digest of a usable
// transition.
func (d Digest) Frag() FragID { return FragID(d.ID) }

// LiveRows returns the rows that were not deleted; 0 where the digest claims more deleted rows than rows.
func (d Digest) LiveRows() uint64 {
	if d.DeletedRows > d.PhysicalRows {
		return 0
	}
	return d.PhysicalRows - d.DeletedRows
}

// validID reports whether the id fits a fragment id.
func (d Digest) validID() bool { return d.ID <= 0xFFFFFFFF }
