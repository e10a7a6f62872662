package nodes

import (
	"context"
	"strconv"
	"sync"

	"github.com/frifs/frifs/internal/mapcsv"
	"github.com/frifs/frifs/rowmap"
)

// transitionJSON is transition.json: one record as in history.json, with the place of each source in mapping.csv.
func (n version) transitionJSON(ctx context.Context, seq int) (*document, error) {
	l, h, t, err := n.transition(ctx, seq)
	if err != nil {
		return nil, err
	}
	r, err := n.record(ctx, l, t)
	if err != nil {
		return nil, err
	}
	slices, err := n.csvSlices(ctx, l, h, r)
	if err != nil {
		return nil, err
	}
	j := newJSONDoc()
	j.doc.costlyID = true
	j.Members(func(e *enc) { e.K("dataset_version").Uint(n.number()) })
	j.record(l, h, r, func(e *enc, i int) {
		if slices == nil {
			e.K("csv_offset").Null()
			e.K("csv_bytes").Null()
			return
		}
		off, size, ok := slices.of(e, i)
		e.K("csv_offset").padded(off, slices.width, ok)
		e.K("csv_bytes").padded(size, slices.width, ok)
	})
	return j.Done(), nil
}

// csvSlices returns the slices of mapping.csv; nil where there is no such file.
func (n version) csvSlices(ctx context.Context, l *loaded, h *history, r *record) (*csvSlices, error) {
	if r.err != nil || l.refusal != nil {
		return nil, nil //nolint:nilerr // the record says itself why it has none
	}
	m, err := n.mapping(ctx, l, h, r.t)
	if err != nil {
		return nil, err
	}
	return newCSVSlices(ctx, m)
}

// csvSlices finds where the lines of each source lie in mapping.csv. In the file of a stable partition a source may
// begin inside a block, and its place then depends on labels. Those are rows: they are read when the document is, never
// to learn its size. So the numbers of a partition are padded with spaces to the width of the file's size.
type csvSlices struct {
	f     *mapcsv.MappingFile
	width int // 0 = plain numbers, known at once

	mu   sync.Mutex // protects done; not held while reading
	done map[int]csvSlice
}

// csvSlice is where the lines of one source lie, in bytes.
type csvSlice struct{ off, n int64 }

func newCSVSlices(ctx context.Context, m rowmap.Mapping) (*csvSlices, error) {
	f, err := mapcsv.Mapping(m)
	if err != nil {
		return nil, err
	}
	s := &csvSlices{f: f, done: map[int]csvSlice{}}
	if _, ok := m.(*rowmap.Partition); ok {
		size, err := f.Size(ctx)
		if err != nil {
			return nil, err
		}
		s.width = len(strconv.FormatInt(size, 10))
		return s, nil
	}
	for i := range m.Sources() {
		off, n, err := f.SourceOffset(ctx, i)
		if err != nil {
			return nil, err
		}
		s.done[i] = csvSlice{off, n}
	}
	return s, nil
}

// of returns the slice of source i; ok is false where only the size of the document is wanted.
func (s *csvSlices) of(e *enc, i int) (off, n int64, ok bool) {
	s.mu.Lock()
	c, known := s.done[i]
	s.mu.Unlock()
	if known {
		return c.off, c.n, true
	}
	if e.sizing {
		return 0, 0, false
	}
	off, n, err := s.f.SourceOffset(e.ctx, i)
	if err != nil {
		e.fail(err)
		return 0, 0, false
	}
	s.mu.Lock()
	s.done[i] = csvSlice{off, n}
	s.mu.Unlock()
	return off, n, true
}

// padded writes a number with spaces before it, up to width; only the spaces where it is not known yet.
func (e *enc) padded(v int64, width int, known bool) {
	digits := ""
	if known {
		digits = strconv.FormatInt(v, 10)
	}
	for n := len(digits); n < width; n++ {
		e.b = append(e.b, ' ')
	}
	e.b = append(e.b, digits...)
}
