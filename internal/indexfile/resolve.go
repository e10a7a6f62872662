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
	covered *roaring.Bitmap
	rows    map[fri.FragID]uint64 // of the sources
}

// NewResolver returns the resolver of a segment: tr translates into the version, covered is the derived coverage of the
// segment there, live tells row counts.
func NewResolver(tr *translate.Translator, live translate.Live, covered *roaring.Bitmap) Resolver {
	r := &segmentResolver{tr: tr, live: live, covered: covered, rows: map[fri.FragID]uint64{}}
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
	if len(a.New) != len(addrs) || len(a.Outcome) != len(addrs) || len(a.Covered) != len(addrs) {
		return fault.New("indexfile.Resolve", "", fault.Invalid, "answers for %d addresses", len(addrs))
	}
	res := translate.Results{New: a.New, Outcome: a.Outcome, Strict: true}
	if err := r.tr.Translate(ctx, addrs, &res); err != nil {
		return err
	}
	last, in := ^uint64(0), false
	for i, o := range a.Outcome {
		if !o.HasAddress() {
			a.Covered[i] = false
			continue
		}
		if f := uint64(a.New[i].Frag()); f != last {
			last, in = f, r.covered.Contains(uint32(f))
		}
		a.Covered[i] = in
	}
	return nil
}
