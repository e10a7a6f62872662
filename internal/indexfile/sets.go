package indexfile

import (
	"context"
	"errors"
	"fmt"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/addrset"
	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/spill"
)

// setsFile is a file with a set of addresses in each row of a binary column, and perhaps one more in a global buffer
// (docs/FORMAT.md, "Index files"): BITMAP and LABEL_LIST by key, NGRAM by token, the null rows of an RTREE.
type setsFile struct {
	file   *lancefile.File
	name   string // of the column
	column int
	format addrset.Format
	cells  *lancefile.Cells
	nulls  *globalSet // rows whose list is null; nil = none
	rows   func(fri.FragID) (uint64, bool)
}

// newSetsFile opens the column that the file's rule names.
func newSetsFile(ctx context.Context, f *File) (body, error) {
	if f.lance == nil {
		return nil, notThisForm(f)
	}
	s := &setsFile{file: f.lance, name: f.rule.columns[0], format: addrset.Tree, rows: f.seg.Rows}
	if f.rule.role == roleNGrams {
		s.format = addrset.Treemap64
	}
	column, field, err := f.lance.Column(s.name)
	if fault.KindOf(err) == fault.NotFound {
		return nil, fault.New("indexfile.Open", f.Path, fault.Corrupt, "there is no column %q, which holds the sets of a %s index", s.name, f.seg.kind())
	}
	if err != nil {
		return nil, err
	}
	if typ := field.GetLogicalType(); typ != "binary" && typ != "large_binary" {
		return nil, fault.New("indexfile.Open", f.Path, fault.Corrupt, "column %q is of type %q, not binary", s.name, typ)
	}
	s.column = column
	if s.cells, err = lancefile.OpenCells(ctx, f.lance, column); err != nil {
		return nil, err
	}
	if f.rule.role == roleBitmaps {
		s.nulls, err = findGlobalSet(f, "lance:label_list_nulls")
	}
	return s, err
}

func (s *setsFile) places() []string {
	if s.nulls == nil {
		return []string{s.name}
	}
	return []string{s.name, s.nulls.place()}
}

// decode reads the set of a row.
func (s *setsFile) decode(row uint64, cell []byte) (*addrset.Set, error) {
	if len(cell) > maxSet {
		return nil, fault.New("indexfile.Sets", "", fault.TooLarge, "row %d: a set of %d bytes; the limit is %d", row, len(cell), maxSet)
	}
	x, err := addrset.Decode(cell, s.format)
	if err != nil {
		return nil, fmt.Errorf("column %q, row %d: %w", s.name, row, err)
	}
	return x, nil
}

// remap writes every set anew, in one pass. What is gone leaves its set; a key that loses its last row stays with an
// empty one. A file in which no address changes is the stored one.
func (s *setsFile) remap(ctx context.Context, r Resolver, o Options) (Content, error) {
	if o.SpillAbove <= 0 {
		o.SpillAbove = 8 << 20
	}
	sink := spill.New(o.SpillDir, o.SpillAbove)
	z, err := s.translate(ctx, r, sink)
	if err != nil {
		sink.Close() //nolint:errcheck // what it held is of no use
		return nil, err
	}
	return &setsContent{synthesised{z}, sink}, nil
}

func (s *setsFile) translate(ctx context.Context, r Resolver, sink *spill.Buffer) (*lancefile.Synth, error) {
	w, err := lancefile.NewCellWriter(ctx, s.file, s.column, sink, lancefile.CellOptions{})
	if err != nil {
		return nil, err
	}
	m := setMapper{r: r, format: s.format, emit: w.Append, large: w.AppendFrom}
	err = s.cells.Read(ctx, 0, s.cells.Rows(), func(row uint64, cell []byte, null bool) error {
		if null {
			return m.end(ctx, true)
		}
		return m.addCell(ctx, cell, func() (*addrset.Set, error) { return s.decode(row, cell) })
	})
	if err == nil {
		err = m.flush(ctx)
	}
	if err != nil {
		return nil, err
	}
	pages, err := w.Finish()
	if err != nil {
		return nil, err
	}
	var e lancefile.Edit
	if m.changed {
		e.Cells = []lancefile.CellPages{pages}
	}
	if err := s.nulls.remap(ctx, r, nil, &e); err != nil {
		return nil, err
	}
	return lancefile.Synthesise(ctx, s.file, e)
}

// setsContent gives up what the sets take when it is closed.
type setsContent struct {
	synthesised
	sink *spill.Buffer
}

// Close implements Content.
func (c *setsContent) Close() error { return c.sink.Close() }

func (s *setsFile) scan(_ context.Context, from Position) (Cursor, error) {
	c := &setCursor{s: s, row: min(from.Row, s.cells.Rows()), nulls: globalCursor{g: s.nulls}}
	switch {
	case from.Row == NoRow:
		c.nulls.member = from.Member
	case c.row == from.Row:
		c.member = from.Member
	}
	return c, nil
}

// What a cursor reads ahead: rows, and bytes of their cells.
const (
	aheadRows  = 1024
	aheadBytes = 1 << 20
)

// setCursor walks over the members of the sets of a file, row by row.
type setCursor struct {
	s       *setsFile
	row     uint64 // of the next address
	member  uint64 // of the next address in the row's set
	w       *addrset.Members
	ahead   []*addrset.Set // of the rows from row on, or from row+1 on if w is not nil; nil = null
	rows    uint64         // how many the next read takes: few at first, for those who look at a few addresses
	nulls   globalCursor
	unknown []fri.FragID
}

// Position implements Cursor.
func (c *setCursor) Position() Position {
	if c.row == c.s.cells.Rows() {
		return c.nulls.Position()
	}
	return Position{c.row, c.member}
}

// Unknown implements Partial.
func (c *setCursor) Unknown() []fri.FragID {
	all := append([]fri.FragID(nil), c.unknown...)
	if c.w != nil {
		all = append(all, c.w.Unknown()...)
	}
	return append(all, c.nulls.Unknown()...)
}

// Next implements Cursor.
func (c *setCursor) Next(ctx context.Context, b *Batch, limit int) error {
	b.Rows, b.Addrs = b.Rows[:0], b.Addrs[:0]
	for len(b.Addrs) < limit && c.row < c.s.cells.Rows() {
		if c.w == nil {
			if len(c.ahead) == 0 {
				if err := c.read(ctx); err != nil {
					return err
				}
			}
			if x := c.ahead[0]; x != nil {
				c.w = x.Members(c.s.rows)
				c.w.Skip(c.member)
			}
			c.ahead = c.ahead[1:]
		}
		n := 0
		if c.w != nil {
			n = b.take(c.w, c.row, limit-len(b.Addrs))
		}
		if c.member += uint64(n); n > 0 {
			continue
		}
		if c.w != nil {
			c.unknown = append(c.unknown, c.w.Unknown()...)
		}
		c.w, c.member = nil, 0
		c.row++
	}
	if len(b.Addrs) == 0 && c.row == c.s.cells.Rows() {
		return c.nulls.Next(ctx, b, limit)
	}
	return nil
}

// errEnough ends a read of cells early.
var errEnough = errors.New("enough cells")

// read reads the set of c.row and some of those that follow.
func (c *setCursor) read(ctx context.Context) error {
	n := min(c.s.cells.Rows()-c.row, max(c.rows, 1))
	c.rows = min(4*n, aheadRows)
	bytes := 0
	err := c.s.cells.Read(ctx, c.row, n, func(row uint64, cell []byte, null bool) error {
		if null {
			c.ahead = append(c.ahead, nil)
			return nil
		}
		if bytes += len(cell); bytes > aheadBytes && len(c.ahead) > 0 {
			return errEnough
		}
		x, err := c.s.decode(row, append([]byte(nil), cell...))
		if err != nil {
			if len(c.ahead) > 0 {
				return errEnough // it is met again, and told then
			}
			return err
		}
		c.ahead = append(c.ahead, x)
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		return nil
	case err == nil && len(c.ahead) == 0:
		return fault.New("indexfile.Scan", "", fault.Corrupt, "column %q has no cell for row %d", c.s.name, c.row)
	}
	return err
}
