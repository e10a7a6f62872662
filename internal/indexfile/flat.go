package indexfile

import (
	"context"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/lancefile"
)

// flatFile is a file with an address in each row of a u64 column, or in the first rows of it.
type flatFile struct {
	file   *lancefile.File
	name   string // of the column
	column int
	ids    *lancefile.Column[fri.RowAddr]
	n      uint64 // rows with an address; what the rows after them hold is no address and stays
}

// newFlatFile opens the column that the file's rule names.
func newFlatFile(ctx context.Context, f *File) (body, error) {
	if f.lance == nil {
		return nil, notThisForm(f)
	}
	name, column, err := addressColumn(f)
	if err != nil {
		return nil, err
	}
	b := &flatFile{file: f.lance, name: name, column: column, n: f.Rows}
	if b.ids, err = lancefile.OpenColumn[fri.RowAddr](ctx, f.lance, column); err != nil {
		return nil, err
	}
	switch f.rule.role {
	case roleLeaves:
		b.n, err = leafItems(f.lance)
	case roleDocs:
		f.blocked, err = f.seg.blockedFragments(ctx)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// notThisForm refuses a file of the container that came before version 2 where that form is not known.
func notThisForm(f *File) error {
	return fault.New("indexfile.Open", f.Path, fault.Unsupported,
		"a file of the legacy (0.1) format; of such files only the index.idx of an IVF_PQ index is read")
}

// addressColumn finds the column that the file's rule names, which must be one of u64.
func addressColumn(f *File) (name string, column int, err error) {
	for _, name := range f.rule.columns {
		column, field, err := f.lance.Column(name)
		switch {
		case fault.Is(err, fault.NotFound):
			continue
		case err != nil:
			return "", 0, err
		case field.GetLogicalType() != "uint64":
			return "", 0, fault.New("indexfile.Open", f.Path, fault.Corrupt, "column %q is of type %q, not uint64", name, field.GetLogicalType())
		}
		return name, column, nil
	}
	return "", 0, fault.New("indexfile.Open", f.Path, fault.Corrupt, "there is no column %q, which holds the addresses of a %s index", f.rule.columns[0], f.seg.kind())
}

// leafItems is how many rows of an R-tree's page data are leaf entries: they come first, and the ids of the inner nodes
// that follow are page numbers.
func leafItems(f *lancefile.File) (uint64, error) {
	v, ok := f.Metadata("num_items")
	if !ok {
		return 0, fault.New("indexfile.Open", "", fault.Corrupt, "the schema metadata has no num_items, which tells leaves from inner nodes")
	}
	n, err := strconv.ParseUint(string(v), 10, 64)
	if err != nil || n > f.Rows() {
		return 0, fault.New("indexfile.Open", "", fault.Corrupt, "num_items %.40q of a file of %d rows", v, f.Rows())
	}
	return n, nil
}

func (b *flatFile) places() []string { return []string{b.name} }

func (b *flatFile) count() uint64 { return b.n }

func (b *flatFile) read(ctx context.Context, from uint64, dst []fri.RowAddr) error {
	_, err := b.ids.Read(ctx, from, dst, nil)
	return err
}

func (b *flatFile) scan(_ context.Context, from Position) (Cursor, error) {
	return scanRows(b, from), nil
}

func (b *flatFile) remap(ctx context.Context, r Resolver, _ Options) (Content, error) {
	t := newTranslated(b, r)
	write := func(ctx context.Context, p []byte, off int64) error { return t.bytes(ctx, p, 0, off) }
	if b.n < b.ids.Rows() {
		write = func(ctx context.Context, p []byte, off int64) error { return b.leafBytes(ctx, t, p, off) }
	}
	z, err := lancefile.Synthesise(ctx, b.file, lancefile.Edit{Flats: []lancefile.Flat{{Column: b.column, Bytes: write}}})
	if err != nil {
		return nil, err
	}
	return synthesised{z}, nil
}

// leafBytes gives the column's words from byte off on: translated before row b.n, the stored ones from there on.
func (b *flatFile) leafBytes(ctx context.Context, t *translated, p []byte, off int64) error {
	if end := 8 * int64(b.n); off < end {
		k := min(int64(len(p)), end-off)
		if err := t.bytes(ctx, p[:k], 0, off); err != nil {
			return err
		}
		p, off = p[k:], end
	}
	stored := make([]fri.RowAddr, min((len(p)+14)/8, pieceRows))
	for len(p) > 0 {
		cut := int(off % 8)
		rows := stored[:min((cut+len(p)+7)/8, len(stored))]
		if err := b.read(ctx, uint64(off/8), rows); err != nil {
			return err
		}
		for _, v := range rows {
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], uint64(v))
			k := copy(p, word[cut:])
			p, off, cut = p[k:], off+int64(k), 0
		}
	}
	return nil
}

// synthesised is a made file as Content; there is nothing to close.
type synthesised struct{ *lancefile.Synth }

func (synthesised) Close() error { return nil }

// scanRows is a Cursor over numbered addresses.
func scanRows(src numbered, from Position) *rowCursor {
	return &rowCursor{src: src, next: min(from.Row, src.count())}
}

type rowCursor struct {
	src  numbered
	next uint64
}

// Position implements Cursor.
func (c *rowCursor) Position() Position { return Position{Row: c.next} }

// Next implements Cursor.
func (c *rowCursor) Next(ctx context.Context, b *Batch, limit int) error {
	n := int(min(c.src.count()-c.next, uint64(max(limit, 0)), batchRows))
	b.Rows, b.Addrs = b.Rows[:0], b.Addrs[:0]
	if n == 0 {
		return nil
	}
	b.Addrs = slices.Grow(b.Addrs, n)[:n]
	if err := c.src.read(ctx, c.next, b.Addrs); err != nil {
		b.Addrs = b.Addrs[:0]
		return err
	}
	b.Rows = slices.Grow(b.Rows, n)[:n]
	for i := range b.Rows {
		b.Rows[i] = c.next + uint64(i)
	}
	c.next += uint64(n)
	return nil
}
