package addrset

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
)

// pendingOffsets is how many offsets of a fragment are collected before they enter its bitmap.
const pendingOffsets = 2048

// Builder collects row addresses in any order, repeated or not. The zero value is an empty one. It takes about as much
// memory as the encoded set, and up to 8 KiB for each fragment.
type Builder struct {
	frags map[fri.FragID]*building
	last  *building
}

type building struct {
	frag    fri.FragID
	bitmap  *roaring.Bitmap
	pending []uint32
}

// Add adds addresses.
func (b *Builder) Add(addrs ...fri.RowAddr) {
	for lo := 0; lo < len(addrs); {
		f := addrs[lo].Frag()
		g := b.of(f)
		for lo < len(addrs) && addrs[lo].Frag() == f {
			g.pending = append(g.pending, addrs[lo].Offset())
			if lo++; len(g.pending) == pendingOffsets {
				g.flush()
			}
		}
	}
}

func (b *Builder) of(f fri.FragID) *building {
	if b.last != nil && b.last.frag == f {
		return b.last
	}
	g := b.frags[f]
	if g == nil {
		if b.frags == nil {
			b.frags = map[fri.FragID]*building{}
		}
		g = &building{frag: f, bitmap: roaring.New()}
		b.frags[f] = g
	}
	b.last = g
	return g
}

func (g *building) flush() {
	g.bitmap.AddMany(g.pending)
	g.pending = g.pending[:0]
}

// Set returns the set of what was added, and empties the builder.
func (b *Builder) Set() *Set {
	s := &Set{Entries: make([]Entry, 0, len(b.frags))}
	for f, g := range b.frags {
		g.flush()
		s.Entries = append(s.Entries, Entry{Frag: f, Bitmap: g.bitmap})
	}
	slices.SortFunc(s.Entries, func(x, y Entry) int { return cmp.Compare(x.Frag, y.Frag) })
	*b = Builder{}
	return s
}
