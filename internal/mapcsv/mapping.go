package mapcsv

import (
	"context"
	"sync"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/rowmap"
)

// MappingFile is mapping.csv of one transition: a line for each source row, in source order.
type MappingFile struct {
	text
	sections interface {
		section(ctx context.Context, src int) (off, n int64, err error)
	}
	sources int
}

// Mapping returns mapping.csv of a mapping. It reads nothing: nor do Size and, for an ordered compaction,
// SourceOffset.
func Mapping(m rowmap.Mapping) (*MappingFile, error) {
	f := &MappingFile{text: text{header: mappingHeader, idle: idleReaders}}
	switch m := m.(type) {
	case *rowmap.Ordered:
		b := &orderedBody{m: m}
		f.body, f.sections = b, b
	case *rowmap.Partition:
		b := &partitionBody{m: m}
		f.body, f.sections = b, b
		f.idle = idleFor(m)
	default:
		return nil, unknownMapping(m)
	}
	f.sources = len(m.Sources())
	return f, nil
}

// SourceOffset returns where in the file the lines of source src, its position in the recorded list, begin, and how
// many bytes they have. For a stable partition it reads the label blocks in which that source and the next begin,
// where these are not at block edges.
func (f *MappingFile) SourceOffset(ctx context.Context, src int) (off, n int64, err error) {
	if src < 0 || src >= f.sources {
		return 0, 0, fault.New("mapcsv.SourceOffset", "", fault.Invalid, "source %d of %d", src, f.sources)
	}
	off, n, err = f.sections.section(ctx, src)
	return off + int64(len(f.header)), n, err
}

// Inverse returns inverse.csv of a mapping: a line for each destination row, in destination order. Its size needs some
// blocks: those in which the number of digits of an old address changes.
func Inverse(m rowmap.Mapping) (File, error) {
	switch m := m.(type) {
	case *rowmap.Ordered:
		return newText(inverseHeader, &orderedInverse{m: m}), nil
	case *rowmap.Partition:
		return newText(inverseHeader, &partitionInverse{m: m}), nil
	}
	return nil, unknownMapping(m)
}

// MappingArrow returns mapping.arrow of a mapping: the columns of mapping.csv as an Arrow IPC file, in batches of
// 65,536 rows, or for a stable partition of the smallest multiple of its block rows that is not below. Its size is
// known without reading anything.
func MappingArrow(m rowmap.Mapping) (File, error) {
	switch m := m.(type) {
	case *rowmap.Ordered:
		return &arrowFile{m: m, batch: batchRows, dropped: orderedDropped(m)}, nil
	case *rowmap.Partition:
		n := uint64(m.BlockRows())
		return &arrowFile{m: m, batch: (batchRows + n - 1) / n * n, dropped: partitionDropped(m)}, nil
	}
	return nil, unknownMapping(m)
}

func unknownMapping(m rowmap.Mapping) error {
	return fault.New("mapcsv", "", fault.Unsupported, "no way to render a mapping of type %T", m)
}

// idleFor is the number of readers to keep for a partition: those with a state per destination take 64 bytes times
// the destinations.
func idleFor(m partition) int {
	const budget = 1 << 20
	return min(max(budget/(64*(len(m.Destinations())+1)), 2), idleReaders)
}

// orderedDropped counts the dropped rows between two positions of an ordered compaction, by rank: at most two
// containers are looked into.
func orderedDropped(m *rowmap.Ordered) func(context.Context, uint64, uint64) (uint64, error) {
	starts := sync.OnceValues(func() (spans, error) { return newSpans(m.Sources()) })
	return func(ctx context.Context, lo, hi uint64) (uint64, error) {
		s, err := starts()
		if err != nil {
			return 0, err
		}
		var rank [2]uint64
		for i, pos := range [2]uint64{lo, hi} {
			k := s.at(pos)
			if k == len(s.list) {
				rank[i] = m.Rows()
				continue
			}
			in, err := m.Rank(ctx, s.list[k].pos, pos-s.list[k].start)
			if err != nil {
				return 0, err
			}
			rank[i] = m.First(s.list[k].pos) + in
		}
		return hi - lo - (rank[1] - rank[0]), nil
	}
}

// partitionDropped counts the dropped rows between two positions of a partition, both at the edges of stored blocks
// or at the end, by the counts grid.
func partitionDropped(m partition) func(context.Context, uint64, uint64) (uint64, error) {
	return func(ctx context.Context, lo, hi uint64) (uint64, error) {
		n := uint64(m.BlockRows())
		moved := uint64(0)
		for i, pos := range [2]uint64{lo, hi} {
			row, err := m.GridRow(ctx, int64((pos+n-1)/n)-1)
			if err != nil {
				return 0, err
			}
			for _, c := range row {
				if i == 0 {
					moved -= uint64(c)
				} else {
					moved += uint64(c)
				}
			}
		}
		return hi - lo - moved, nil
	}
}

// The mappings have what the files need.
var (
	_ ordered  = (*rowmap.Ordered)(nil)
	_ inverter = (*rowmap.Partition)(nil)
	_ runner   = rowmap.Mapping(nil)
)
