package rowmap

import "github.com/frifs/frifs/fri"

// fragIndex finds a fragment's position in a list of digests. Fragment ids that lie close together, the usual case,
// are looked up in an array; its length is bounded by a small multiple of the list's.
type fragIndex struct {
	min   uint64
	dense []int32 // position by id-min, -1 for none
	far   map[uint32]int32
}

// newFragIndex indexes digests whose ids fit u32 and are distinct.
func newFragIndex(ds []fri.Digest) fragIndex {
	if len(ds) == 0 {
		return fragIndex{}
	}
	lo, hi := ds[0].ID, ds[0].ID
	for _, d := range ds {
		lo, hi = min(lo, d.ID), max(hi, d.ID)
	}
	if hi-lo < uint64(len(ds))*4+64 {
		x := fragIndex{min: lo, dense: make([]int32, hi-lo+1)}
		for i := range x.dense {
			x.dense[i] = -1
		}
		for i, d := range ds {
			x.dense[d.ID-lo] = int32(i)
		}
		return x
	}
	x := fragIndex{far: make(map[uint32]int32, len(ds))}
	for i, d := range ds {
		x.far[uint32(d.ID)] = int32(i)
	}
	return x
}

// find returns the position of f, or -1.
func (x *fragIndex) find(f uint32) int32 {
	if i := uint64(f) - x.min; i < uint64(len(x.dense)) {
		return x.dense[i]
	}
	if x.far != nil {
		if i, ok := x.far[f]; ok {
			return i
		}
	}
	return -1
}
