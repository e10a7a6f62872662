package indexfile

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/lancefile"
)

// maxZones bounds the zones of a file that is remapped: their places are kept in memory, 24 bytes each.
const maxZones = 1 << 22

// ZoneGaps returns the fragments, ascending, that a remapped copy of this file cannot answer for: those among which the
// rows of a zone are now divided, since a zone lies in one fragment. They have to leave the coverage of the index
// entry; Remap makes placeholders of all that is in them. A file that has no zones has no gaps.
func (f *File) ZoneGaps(ctx context.Context, r Resolver) ([]fri.FragID, error) {
	z, ok := f.body.(*zonesFile)
	if !ok {
		return nil, nil
	}
	p, err := z.place(ctx, f.Resolver(r))
	if err != nil {
		return nil, fault.Wrap("indexfile.ZoneGaps", f.Path, err)
	}
	var out []fri.FragID
	for it := p.gaps.Iterator(); it.HasNext(); {
		out = append(out, fri.FragID(it.Next()))
	}
	return out, nil
}

// placedZones is where the zones of a file are now.
type placedZones struct {
	values  [3][]uint64 // of the three columns, a row per zone
	gaps    *roaring.Bitmap
	changed bool
}

// place finds where each zone is: in the one fragment that its rows came to, from the first of them to the last. Rows
// that came between them do no harm, since a zone's bounds and filters are upper bounds. A zone without rows, one that
// is divided, and one in a fragment that some other zone is divided into, gets the placeholder fragment.
func (z *zonesFile) place(ctx context.Context, r Resolver) (*placedZones, error) {
	n := z.file.Rows()
	if n > maxZones {
		return nil, fault.New("indexfile.Zones", "", fault.TooLarge, "%d zones; the limit is %d", n, maxZones)
	}
	p := &placedZones{gaps: roaring.New()}
	for i := range p.values {
		p.values[i] = make([]uint64, n)
	}
	err := z.each(ctx, func(row uint64, x zone) error {
		now, err := resolveZone(ctx, r, x)
		if err != nil {
			return err
		}
		y := zone{PlaceholderFragment, x.start, x.rows}
		if len(now) == 1 {
			y = zone{now[0].Frag, now[0].First, now[0].Last - now[0].First + 1}
		}
		for i := range now {
			if len(now) > 1 {
				p.gaps.Add(uint32(now[i].Frag))
			}
		}
		p.set(row, y)
		p.changed = p.changed || x != y
		return nil
	})
	if err != nil {
		return nil, err
	}
	if p.gaps.IsEmpty() {
		return p, nil
	}
	for i, f := range p.values[0] {
		if p.gaps.Contains(uint32(f)) {
			p.values[0][i] = uint64(PlaceholderFragment)
		}
	}
	return p, nil
}

func (p *placedZones) set(row uint64, x zone) {
	p.values[0][row], p.values[1][row], p.values[2][row] = uint64(x.frag), x.start, x.rows
}

// remap replaces the three columns row for row; bounds, counts and filters stay.
func (z *zonesFile) remap(ctx context.Context, r Resolver, _ Options) (Content, error) {
	p, err := z.place(ctx, r)
	if err != nil {
		return nil, err
	}
	var e lancefile.Edit
	if p.changed {
		for i := range z.columns {
			if z.columns[i].wide == nil {
				return nil, fault.New("indexfile.Remap", "", fault.Unsupported,
					"column %q is of type uint32, as no release from 0.35.0 to 14.0.2 writes it; only u64 columns are replaced", z.names[i])
			}
			values := p.values[i]
			e.Flats = append(e.Flats, lancefile.Flat{Column: z.columns[i].number,
				Fill: func(_ context.Context, from uint64, dst []uint64) error {
					copy(dst, values[from:])
					return nil
				}})
		}
	}
	if err := z.nulls.remap(ctx, r, p.gaps, &e); err != nil {
		return nil, err
	}
	s, err := lancefile.Synthesise(ctx, z.file, e)
	if err != nil {
		return nil, err
	}
	return synthesised{s}, nil
}
