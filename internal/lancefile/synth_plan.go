package lancefile

import (
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
)

// Rows of a flat page: the item counts of the 2.1 grammar are u32, and where one page is not enough, pages are cut at a
// multiple of 8 rows, so that they follow each other without padding.
const (
	maxPageRows   = 1<<32 - 1
	splitPageRows = 1 << 31
)

// maxPages bounds the pages of a flat column: a broken file may claim any number of rows.
const maxPages = 1 << 16

// plan is a synthesis under way.
type plan struct {
	file    *File
	edit    Edit
	flats   map[int]*Flat
	cells   map[int]*CellPages
	appends bool   // something new stands behind the original's data
	keptTo  uint64 // end of the last buffer of a column that stays
	grammar grammar
	pool    *sync.Pool // of the buffers that Fill writes to
	out     layout

	last      *encoding // of the page looked at last: those of a column mostly say the same
	lastBytes []byte
}

func invalid(format string, args ...any) error {
	return fault.New("lancefile.Synthesise", "", fault.Invalid, format, args...)
}

// checkEdit checks the Edit against the file's tables, and indexes it.
func (p *plan) checkEdit() error {
	f, e := p.file, p.edit
	p.out.src, p.pool = &f.src, &sync.Pool{}
	p.flats, p.cells = map[int]*Flat{}, map[int]*CellPages{}
	claim := func(column int) error {
		switch {
		case column < 0 || column >= len(f.columns):
			return invalid("column %d of a file of %d columns", column, len(f.columns))
		case p.flats[column] != nil || p.cells[column] != nil:
			return invalid("column %d is replaced twice", column)
		}
		return nil
	}
	for i := range e.Flats {
		x := &e.Flats[i]
		if err := claim(x.Column); err != nil {
			return err
		}
		field, err := f.topField(x.Column)
		if err != nil {
			return err
		}
		if t := field.GetLogicalType(); t != "uint64" {
			return fault.New("lancefile.Synthesise", "", fault.Unsupported, "column %d %q is of type %s; only uint64 columns are replaced",
				x.Column, field.GetName(), t)
		}
		if x.Fill == nil && x.Bytes == nil {
			return invalid("column %d is to be filled by nothing", x.Column)
		}
		if x.PageRows%8 != 0 || x.PageRows > splitPageRows {
			return invalid("pages of %d rows; a multiple of 8, at most 2^31, is possible", x.PageRows)
		}
		p.flats[x.Column] = x
	}
	for i := range e.Cells {
		x := &e.Cells[i]
		if err := claim(x.Column); err != nil {
			return err
		}
		if got := x.Rows(); got != f.Rows() {
			return invalid("%d cells for column %d of a file of %d rows", got, x.Column, f.Rows())
		}
		p.cells[x.Column] = x
		if x.Items != nil {
			if err := claim(x.Items.Column); err != nil {
				return err
			}
			p.cells[x.Items.Column] = x.Items
		}
	}
	for i, g := range e.Globals {
		if i < 1 || i >= len(f.buffers) {
			return invalid("global buffer %d of a file that has buffers 1 to %d beside the schema", i, len(f.buffers)-1)
		}
		if g.Size < 0 || (g.Size > 0 && g.Read == nil) {
			return invalid("global buffer %d is replaced by %d bytes of nothing", i, g.Size)
		}
	}
	p.appends = len(e.Cells)+len(e.Globals) > 0 || (len(e.Flats) > 0 && f.foot.version != V20)
	return nil
}

// topField is the field of a column, which must stand at the top of the schema: pages of a nested column have more
// layers than the ones made here.
func (f *File) topField(column int) (*pb.FileField, error) {
	if column < 0 || column >= len(f.columns) {
		return nil, invalid("column %d of a file of %d columns", column, len(f.columns))
	}
	for _, n := range f.fieldTree() {
		if n.column == column && n.leaf() {
			return n.pb, nil
		}
	}
	return nil, fault.New("lancefile.Synthesise", "", fault.Unsupported,
		"column %d %q is no top-level column of plain values", column, f.columnName(column))
}

// lay lays the file out (docs/FORMAT.md, "Lance file").
func (p *plan) lay(ctx context.Context) error {
	f, l := p.file, &p.out
	if err := l.setOverlays(p.edit.Overlays); err != nil {
		return err
	}
	if !p.appends {
		l.original(span{0, f.src.size})
		return nil
	}
	schema := f.buffers[0]
	for i, b := range f.buffers[1:] {
		_, replaced := p.edit.Globals[i+1]
		if !replaced && (b.off > schema.off || b.n > schema.off-b.off) {
			return behindSchema(f.foot.gbo+16*uint64(i+1), "a global buffer", b, schema.off)
		}
	}
	foot, err := f.src.slice(ctx, f.src.size-footerBytes, footerBytes)
	if err != nil {
		return err
	}
	l.original(span{0, p.dataEnd(schema.off)})
	metas := map[int][]byte{}
	for i := range f.columns {
		if x := p.flats[i]; x != nil && f.foot.version != V20 {
			metas[i] = p.layFlat(x)
		} else if x := p.cells[i]; x != nil {
			if metas[i], err = p.layCells(x); err != nil {
				return err
			}
		}
	}
	buffers := slices.Clone(f.buffers)
	for _, i := range slices.Sorted(maps.Keys(p.edit.Globals)) {
		buffers[i] = l.buffer(p.edit.Globals[i])
	}
	l.align()
	buffers[0].off = l.size
	l.original(schema)

	columns := make([]span, len(f.columns))
	start := l.size
	for i, c := range f.columns {
		columns[i] = span{l.size, c.n}
		if m, ok := metas[i]; ok {
			columns[i].n = uint64(len(m))
			l.add(memory(m), 0, uint64(len(m)))
		} else {
			l.original(c)
		}
	}
	le := binary.LittleEndian
	cmo := l.size
	tail := appendTable(nil, columns)
	gbo := cmo + uint64(len(tail))
	tail = appendTable(tail, buffers)
	le.PutUint64(foot, start)
	le.PutUint64(foot[8:], cmo)
	le.PutUint64(foot[16:], gbo)
	tail = append(tail, foot...) // counts, version and magic are the original's
	l.add(memory(tail), 0, uint64(len(tail)))
	return nil
}

// dataEnd is where the new buffers begin: behind the original's data, which end at the schema. Where no column is made
// on the fly, what stands behind the last buffer that stays is left out: most of such a file is in the cells replaced.
func (p *plan) dataEnd(schema uint64) uint64 {
	if len(p.flats) > 0 || len(p.edit.Overlays) > 0 {
		return schema
	}
	end := p.keptTo
	for i, b := range p.file.buffers[1:] {
		if _, replaced := p.edit.Globals[i+1]; !replaced {
			end = max(end, b.end())
		}
	}
	return end
}

func appendTable(b []byte, t []span) []byte {
	for _, s := range t {
		b = binary.LittleEndian.AppendUint64(b, s.off)
		b = binary.LittleEndian.AppendUint64(b, s.n)
	}
	return b
}

// buffer appends a buffer at a multiple of 64.
func (l *layout) buffer(x Piece) span {
	l.align()
	s := span{l.size, uint64(x.Size)}
	l.add(x, 0, s.n)
	return s
}

// rows is the filler of a page of x that begins with row first.
func (p *plan) rows(x *Flat, first uint64) filler {
	if x.Bytes != nil {
		return rowBytes{x.Bytes, int64(8 * first)}
	}
	return &words{fillRows: x.Fill, first: first, pool: p.pool}
}

// layFlat lays the pages of a flat column and returns its metadata.
func (p *plan) layFlat(x *Flat) []byte {
	l, rows := &p.out, p.file.Rows()
	step := x.PageRows
	if step == 0 {
		if step = maxPageRows; rows > maxPageRows {
			step = splitPageRows
		}
	}
	meta := columnMessage()
	if rows/maxPages > step {
		l.tooLarge = true
		return meta
	}
	for first := uint64(0); first < rows; first += step {
		n := min(step, rows-first)
		l.align()
		s := span{l.size, 8 * n}
		l.add(p.rows(x, first), 0, s.n)
		e := zipPage{rows: n, bits: 64, values: flatValues(64)}.encoding(p.grammar)
		meta = appendPage(meta, []span{s}, n, first, e)
	}
	return meta
}
