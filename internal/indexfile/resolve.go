package indexfile

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/translate"
)

// PlaceholderFragment is the fragment id of placeholders. Lance never gives it to a fragment, and accepts it in a
// fragment bitmap.
const PlaceholderFragment fri.FragID = 0xFFFFFFFE

// Placeholder is the address that stands where a row is gone: distinct for each row of a file of up to 2^32 rows.
func Placeholder(row uint64) fri.RowAddr { return fri.Addr(PlaceholderFragment, uint32(row)) }

// Resolver tells where stored addresses are in the version that is looked at. It is safe for concurrent use.
type Resolver interface {
	// Resolve answers for addrs in any order; the slices of a are as long as addrs. Errors are those of
	// translate.Translator.Translate, corrupt data of a mapping included: then a holds nothing.
	Resolve(ctx context.Context, addrs []fri.RowAddr, a *Answers) error
	// Rows returns the physical row count of a fragment, live or recorded as a source, and whether it is known.
	Rows(f fri.FragID) (uint64, bool)
}

// Answers is what a Resolver says, an element per address.
type Answers struct {
	New     []fri.RowAddr // where Outcome has an address, else unspecified
	Outcome []translate.Outcome
	// Covered: the final fragment is live and in the segment's derived coverage. An entry that is not covered is masked:
	// readers ignore it, and a remapped file has a placeholder in its place.
	Covered []bool
}

// Grow makes the slices n long; old content is lost.
func (a *Answers) Grow(n int) {
	if cap(a.New) < n {
		a.New, a.Outcome, a.Covered = make([]fri.RowAddr, n), make([]translate.Outcome, n), make([]bool, n)
	}
	a.New, a.Outcome, a.Covered = a.New[:n], a.Outcome[:n], a.Covered[:n]
}

// Keep reports whether entry i keeps an address in a remapped file; else it gets a placeholder, or leaves its set.
func (a *Answers) Keep(i int) bool { return a.Covered[i] && a.Outcome[i].HasAddress() }

// segmentResolver is the Resolver of one segment in one version.
type segmentResolver struct {
	tr      *translate.Translator
	live    translate.Live
	covered *fragments
	rows    map[fri.FragID]uint64 // of the sources
}

// NewResolver returns the resolver of a segment: tr translates into the version, covered is the derived coverage of the
// segment there, live tells row counts.
func NewResolver(tr *translate.Translator, live translate.Live, covered *roaring.Bitmap) Resolver {
	r := &segmentResolver{tr: tr, live: live, covered: newFragments(covered), rows: map[fri.FragID]uint64{}}
	for _, s := range tr.Sources() {
		if s.Rows > 0 {
			r.rows[s.Frag] = s.Rows
		}
	}
	return r
}

// Rows implements Resolver.
func (r *segmentResolver) Rows(f fri.FragID) (uint64, bool) {
	if n, known, live := r.live.Rows(f); known && live {
		return n, true
	}
	n, ok := r.rows[f]
	return n, ok
}

// Resolve implements Resolver.
func (r *segmentResolver) Resolve(ctx context.Context, addrs []fri.RowAddr, a *Answers) error {
	if len(a.Covered) != len(addrs) {
		return fault.New("indexfile.Resolve", "", fault.Invalid, "answers for %d addresses", len(addrs))
	}
	if err := r.translate(ctx, addrs, a); err != nil {
		return err
	}
	for lo := 0; lo < len(addrs); lo += groupRows {
		hi := min(lo+groupRows, len(addrs))
		r.cover(a.New[lo:hi], a.Outcome[lo:hi], a.Covered[lo:hi])
	}
	return nil
}

// translate answers but for the coverage.
func (r *segmentResolver) translate(ctx context.Context, addrs []fri.RowAddr, a *Answers) error {
	res := translate.Results{New: a.New, Outcome: a.Outcome, Strict: true}
	return r.tr.Translate(ctx, addrs, &res)
}

// groupRows is how many answers are looked at together: mostly all of them are in the same fragment.
const groupRows = 64

// cover tells which of a few answers are covered.
func (r *segmentResolver) cover(addrs []fri.RowAddr, outcomes []translate.Outcome, covered []bool) {
	outcomes, covered = outcomes[:len(addrs)], covered[:len(addrs)]
	if f, ok := together(addrs, outcomes); ok {
		in := r.covered.Contains(f)
		for i, o := range outcomes {
			covered[i] = in && addressed(o) != 0
		}
		return
	}
	for i, o := range outcomes {
		covered[i] = addressed(o) != 0 && r.covered.Contains(uint32(addrs[i]>>32))
	}
}

// together reports whether all answers that have an address are in one fragment, and which. It is not inlined, to keep
// its loop in registers.
//
//go:noinline
func together(addrs []fri.RowAddr, outcomes []translate.Outcome) (uint32, bool) {
	outcomes = outcomes[:len(addrs)]
	k := 0
	for k < len(outcomes) && addressed(outcomes[k]) == 0 {
		k++
	}
	if k == len(addrs) {
		return 0, true
	}
	f, other := addrs[k]>>32, fri.RowAddr(0)
	for i, a := range addrs {
		other |= (a>>32 ^ f) & -fri.RowAddr(addressed(outcomes[i]))
	}
	return uint32(f), other == 0
}

// addressed is 1 for an outcome that has an address, else 0: Outcome.HasAddress without a branch.
func addressed(o translate.Outcome) uint64 {
	const with = 1<<translate.Moved | 1<<translate.Same | 1<<translate.DeletedNow
	return with >> (o & 63) & 1
}

// fragments is a set of fragment ids that is asked for each address.
type fragments struct {
	least uint32
	bits  []uint64 // of the ids from least on
	all   *roaring.Bitmap
}

// fragmentBits bounds the ids, from the least on, that a set has a bit for: 128 KiB.
const fragmentBits = 1 << 20

func newFragments(all *roaring.Bitmap) *fragments {
	s := &fragments{all: all}
	if all.IsEmpty() {
		return s
	}
	s.least = all.Minimum()
	s.bits = make([]uint64, (min(uint64(all.Maximum()-s.least)+1, fragmentBits)+63)/64)
	for i := all.Iterator(); i.HasNext(); {
		k := i.Next() - s.least
		if k >= fragmentBits {
			break
		}
		s.bits[k/64] |= 1 << (k % 64)
	}
	return s
}

func (s *fragments) Contains(f uint32) bool {
	k := f - s.least
	if k/64 < uint32(len(s.bits)) {
		return s.bits[k/64]>>(k%64)&1 != 0
	}
	return f >= s.least && len(s.bits) == fragmentBits/64 && s.all.Contains(f)
}
