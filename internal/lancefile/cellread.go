package lancefile

import (
	"context"
	"fmt"

	"github.com/frifs/frifs/fault"
)

// Cells reads the values of a column of strings or bytes one by one, without holding more than a few MiB of them, or
// one value. It is safe for concurrent use.
type Cells struct {
	leaf *leafReader  // from version 2.1 on
	old  *arrayReader // version 2.0
	rows uint64
}

// cellBytes is how much is read at once, unless a single cell is larger.
const cellBytes = 1 << 20

// OpenCells parses the page descriptions of column col, a string or binary column that is in no list. Another type is
// fault.Invalid, an encoding that is not decoded fault.Unsupported.
func OpenCells(ctx context.Context, f *File, col int) (*Cells, error) {
	n := f.fieldOf(col)
	if n == nil {
		return nil, fault.New("lancefile.OpenCells", "", fault.Invalid, "no field of the schema has column %d of %d", col, len(f.columns))
	}
	path := []*field{n}
	for p := n.parent; p != nil; p = p.parent {
		path = append(path, p)
		if p.pb.GetLogicalType() != "struct" {
			return nil, fault.New("lancefile.OpenCells", "", fault.Invalid, "column %d %q is in a list", col, n.path)
		}
	}
	if s, err := shapeOf(n.pb.GetLogicalType()); err != nil || !n.leaf() || !s.variable {
		return nil, fault.New("lancefile.OpenCells", "", fault.Invalid, "column %d %q is %q, not a string or binary column", col, n.path, n.pb.GetLogicalType())
	}
	c := &Cells{rows: f.Rows()}
	var err error
	if f.foot.version == V20 {
		c.old, err = f.openArray(ctx, n, f.Rows())
	} else {
		c.leaf, err = f.openLeaf(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// fieldOf returns the field whose column is col, or nil.
func (f *File) fieldOf(col int) *field {
	if col < 0 || col >= len(f.columns) {
		return nil
	}
	var find func(level []*field) *field
	find = func(level []*field) *field {
		for _, n := range level {
			if n.column == col {
				return n
			}
			if n.packed() {
				continue
			}
			if x := find(n.children); x != nil {
				return x
			}
		}
		return nil
	}
	return find(f.fieldTree())
}

// Rows returns the number of rows.
func (c *Cells) Rows() uint64 { return c.rows }

// Read calls fn for each of rows [from, from+n) in order. cell belongs to the reader again when fn returns; a null has
// no bytes. A compression of single values is undone. An error of fn ends the reading and is returned as it is. A range
// outside the column is fault.Invalid, a cell larger than CellLimit or than what the file holds an error.
func (c *Cells) Read(ctx context.Context, from, n uint64, fn func(row uint64, cell []byte, null bool) error) error {
	if from > c.rows || n > c.rows-from {
		return fault.New("lancefile.Cells", "", fault.Invalid, "a column of %d rows has no %d at %d", c.rows, n, from)
	}
	if c.old != nil {
		return c.old.cells(ctx, from, n, fn)
	}
	return c.leaf.cells(ctx, from, n, fn)
}

// chunkRows is how many rows are read at once where their size is not known beforehand.
const chunkRows = 4096

func (r *leafReader) cells(ctx context.Context, from, n uint64, fn func(row uint64, cell []byte, null bool) error) error {
	return r.eachPage(from, n, func(k int, row, take uint64) error {
		p := &r.pages[k]
		for end := row + take; row < end; {
			some := min(end-row, chunkRows)
			if f, ok := p.rows.(fitter); ok {
				var err error
				if some, err = f.fit(ctx, &r.columnInfo, &p.pageInfo, row, end-row, cellBytes); err != nil {
					return r.wrap(k, firstOffset(&p.pageInfo), err)
				}
			}
			s, err := p.rows.read(ctx, &r.columnInfo, &p.pageInfo, row, some)
			if fault.Is(err, fault.TooLarge) && some > 1 {
				s, some, err = r.fewer(ctx, p, row, some)
			}
			if err == nil && s.items.n != some {
				err = fmt.Errorf("%d rows have %d values", some, s.items.n)
			}
			if err != nil {
				return r.wrap(k, firstOffset(&p.pageInfo), err)
			}
			for i := range some {
				if s.def != nil && s.def[i] != 0 {
					err = fn(r.starts[k]+row+i, nil, true)
				} else {
					err = fn(r.starts[k]+row+i, s.items.cell(i), false)
				}
				if err != nil {
					return err
				}
			}
			row += some
		}
		return nil
	})
}

// fewer reads rows from row from on, fewer than some: as many as the limit of one read allows.
func (r *leafReader) fewer(ctx context.Context, p *valuePage, from, some uint64) (s *slots, n uint64, err error) {
	for n = some / 2; n > 0; n /= 2 {
		s, err = p.rows.read(ctx, &r.columnInfo, &p.pageInfo, from, n)
		if !fault.Is(err, fault.TooLarge) {
			break
		}
	}
	return s, n, err
}

// cells reads rows of a version 2.0 column: as many at once as their ends say to fit.
func (r *arrayReader) cells(ctx context.Context, from, n uint64, fn func(row uint64, cell []byte, null bool) error) error {
	return r.eachPage(from, n, func(k int, row, take uint64) error {
		p := &r.pages[k]
		for end := row + take; row < end; {
			some, err := r.fit(ctx, p, row, min(end-row, chunkRows))
			if err != nil {
				return r.wrap(k, firstOffset(&p.pageInfo), err)
			}
			b, valid, err := r.values(ctx, p, p.enc, r.shape, row, some, 0)
			if err != nil {
				return r.wrap(k, firstOffset(&p.pageInfo), err)
			}
			for i := range some {
				if null := !bit(valid, i); null {
					err = fn(r.starts[k]+row+i, nil, true)
				} else {
					err = fn(r.starts[k]+row+i, b.cell(i), false)
				}
				if err != nil {
					return err
				}
			}
			row += some
		}
		return nil
	})
}

// fit returns how many of n rows from row from on take about cellBytes, at least 1.
func (r *arrayReader) fit(ctx context.Context, p *arrayValues, from, n uint64) (uint64, error) {
	e := p.enc
	for range maxDepth {
		if no := e.GetNullable().GetNoNulls(); no != nil {
			e = no.GetValues()
		} else if some := e.GetNullable().GetSomeNulls(); some != nil {
			e = some.GetValues()
		}
	}
	b := e.GetBinary()
	if b == nil {
		return n, nil
	}
	ends, _, err := r.cumulative(ctx, p, b.GetIndices(), from, n, b.GetNullAdjustment(), 1<<62)
	if err != nil {
		return 0, err
	}
	k := uint64(1)
	for k < n && ends[k+1]-ends[0] <= cellBytes {
		k++
	}
	return k, nil
}
