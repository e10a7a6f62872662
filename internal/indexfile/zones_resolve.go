package indexfile

import (
	"cmp"
	"context"
	"slices"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// ZoneResolver is implemented by a Resolver that can tell where a range of rows is without looking at each row.
type ZoneResolver interface {
	// ResolveZone tells where the rows from ... to-1 of a fragment are: for each fragment where an entry for one of them
	// would be kept (Answers.Keep), the first and the last of them there, ascending by fragment. Errors are those of
	// Resolve.
	ResolveZone(ctx context.Context, f fri.FragID, from, to uint64) ([]ZoneRange, error)
}

// ZoneRange is the rows of a fragment from offset First to offset Last, both included.
type ZoneRange struct {
	Frag        fri.FragID
	First, Last uint64
}

// ResolveZone implements ZoneResolver.
func (r *segmentResolver) ResolveZone(ctx context.Context, f fri.FragID, from, to uint64) ([]ZoneRange, error) {
	p, err := r.tr.Push(ctx, f, from, to)
	if fault.KindOf(err) == fault.TooLarge {
		return resolveRows(ctx, r, f, from, to)
	}
	if err != nil {
		return nil, err
	}
	var s zoneRanges
	for _, x := range p.Ranges {
		if x.From < x.To && r.covered.Contains(uint32(x.Frag)) {
			s.add(x.Frag, x.From, x.To-1)
		}
	}
	return s.sorted(), nil
}

// resolveZone asks any Resolver where the rows of a zone are.
func resolveZone(ctx context.Context, r Resolver, x zone) ([]ZoneRange, error) {
	if x.rows == 0 {
		return nil, nil
	}
	if z, ok := r.(ZoneResolver); ok {
		return z.ResolveZone(ctx, x.frag, x.start, x.start+x.rows)
	}
	return resolveRows(ctx, r, x.frag, x.start, x.start+x.rows)
}

// resolveRows looks at each row of a zone. Rows past the end of a fragment of known size are not looked at: a zone that
// claims 2^32 rows costs no more than the fragment has.
func resolveRows(ctx context.Context, r Resolver, f fri.FragID, from, to uint64) ([]ZoneRange, error) {
	if n, ok := r.Rows(f); ok {
		to = min(to, n)
	}
	var s zoneRanges
	var addrs []fri.RowAddr
	var a Answers
	for ; from < to; from += uint64(len(addrs)) {
		addrs = addrs[:0]
		for k := range min(to-from, batchRows) {
			addrs = append(addrs, fri.Addr(f, uint32(from+k)))
		}
		a.Grow(len(addrs))
		if err := r.Resolve(ctx, addrs, &a); err != nil {
			return nil, err
		}
		for i := range addrs {
			if a.Keep(i) {
				s.add(a.New[i].Frag(), uint64(a.New[i].Offset()), uint64(a.New[i].Offset()))
			}
		}
	}
	return s.sorted(), nil
}

// zoneRanges collects ranges, one per fragment.
type zoneRanges struct {
	last int
	all  []ZoneRange
	at   map[fri.FragID]int // place in all; nil while there are few
}

func (s *zoneRanges) add(f fri.FragID, first, last uint64) {
	if len(s.all) == 0 || s.all[s.last].Frag != f {
		if s.at == nil {
			s.at = map[fri.FragID]int{}
		}
		i, ok := s.at[f]
		if !ok {
			i = len(s.all)
			s.at[f] = i
			s.all = append(s.all, ZoneRange{f, first, last})
		}
		s.last = i
	}
	x := &s.all[s.last]
	x.First, x.Last = min(x.First, first), max(x.Last, last)
}

func (s *zoneRanges) sorted() []ZoneRange {
	slices.SortFunc(s.all, func(a, b ZoneRange) int { return cmp.Compare(a.Frag, b.Frag) })
	return s.all
}
