package indexfile

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/translate"
)

const (
	// strayPlaces and strayRun say how many addresses of a file are looked at: so many in a row, at so many places.
	strayPlaces = 16
	strayRun    = 32
	// maxSurveyed bounds the addresses of a segment that are looked at once some are found to be astray.
	maxSurveyed = 1 << 26
)

// Survey tells whether a segment's files agree with its stored bitmap. Lance takes a bitmap through a rewrite long before
// the files; where the record of the rewrite is lost in between, the bitmap names fragments of which the files hold
// nothing, and addresses in fragments that are gone, which the bitmap does not name. Such addresses are astray. They are
// looked for at a few places of each file; only where there are any, all addresses are gone through, to see which
// fragments have entries at all.
type Survey struct {
	stored *roaring.Bitmap // the stored bitmap
	opaque bool
	astray bool            // an address in a fragment that is gone and that the bitmap does not name
	beside bool            // an address in a live fragment that the segment does not claim
	seen   *roaring.Bitmap // fragments of which entries were seen
	looked uint64
}

// NewSurvey starts a survey of a segment with the stored bitmap; opaque is History.Opaque.
func NewSurvey(stored *roaring.Bitmap, opaque bool) *Survey {
	return &Survey{stored: stored, opaque: opaque, seen: roaring.New()}
}

// Sample looks at a few addresses of a file. Errors are those of Scan and of the resolver.
func (s *Survey) Sample(ctx context.Context, f *File, r Resolver) error {
	step := max(f.Rows/strayPlaces, strayRun)
	for row := uint64(0); row == 0 || row < f.Rows; row += step {
		c, err := f.Scan(ctx, Position{Row: row})
		if err != nil || c == nil {
			return err
		}
		var b Batch
		if err := c.Next(ctx, &b, strayRun); err != nil {
			return fault.Wrap("indexfile.Sample", f.Path, err)
		}
		if err := s.look(ctx, f, r, b.Addrs); err != nil {
			return err
		}
	}
	return nil
}

// Suspect reports whether addresses were found that what is claimed cannot account for: some are astray, or some are in a
// live fragment beside the claim while nothing of a claimed fragment was met.
func (s *Survey) Suspect(claimed *roaring.Bitmap) bool {
	return s.astray || s.beside && !s.Missing(claimed).IsEmpty()
}

// Unproven is the part of claimed that the addresses seen do not prove. Of what a record made, a file with addresses
// astray may lack rows: those that came by way of the lost record.
func (s *Survey) Unproven(claimed *roaring.Bitmap, h *fri.History) *roaring.Bitmap {
	out := s.Missing(claimed)
	if s.astray && h != nil {
		made := roaring.New()
		for _, t := range h.Transitions {
			addAll(made, t.Destinations)
		}
		out.Or(roaring.And(claimed, made))
	}
	return out
}

// Whole goes through all addresses of a file, until entries of every fragment in claimed were seen.
func (s *Survey) Whole(ctx context.Context, f *File, r Resolver, claimed *roaring.Bitmap) error {
	c, err := f.Scan(ctx, Position{})
	if err != nil || c == nil {
		return err
	}
	var b Batch
	for s.looked < maxSurveyed && claimed.AndCardinality(s.seen) < claimed.GetCardinality() {
		if err := c.Next(ctx, &b, 1<<16); err != nil {
			return fault.Wrap("indexfile.Survey", f.Path, err)
		}
		if len(b.Addrs) == 0 {
			return nil
		}
		if err := s.look(ctx, f, r, b.Addrs); err != nil {
			return err
		}
	}
	return nil
}

// Missing is the part of claimed of which no entry was seen.
func (s *Survey) Missing(claimed *roaring.Bitmap) *roaring.Bitmap {
	return roaring.AndNot(claimed, s.seen)
}

func (s *Survey) look(ctx context.Context, f *File, r Resolver, addrs []fri.RowAddr) error {
	var a Answers
	a.Grow(len(addrs))
	if err := r.Resolve(ctx, addrs, &a); err != nil {
		return fault.Wrap("indexfile.Survey", f.Path, err)
	}
	s.looked += uint64(len(addrs))
	for i, x := range addrs {
		frag := uint32(x.Frag())
		switch o := a.Outcome[i]; {
		case o.HasAddress():
			s.seen.Add(uint32(a.New[i].Frag()))
			s.beside = s.beside || !a.Covered[i]
		case o != translate.Dangling && (o != translate.Unresolved || !s.opaque):
		case s.stored.Contains(frag) || f.blocked != nil && f.blocked.Contains(frag):
		default:
			s.astray = true
		}
	}
	return nil
}
