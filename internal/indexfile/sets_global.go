package indexfile

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/addrset"
	"github.com/frifs/frifs/internal/lancefile"
)

// maxSet bounds the bytes of one set.
const maxSet = 1 << 30

// globalSet is a RowAddrTreeMap in a global buffer, which a key of the schema metadata names.
type globalSet struct {
	file   *lancefile.File
	key    string
	number int
	rows   func(fri.FragID) (uint64, bool) // as Segment.Rows
}

// findGlobalSet looks for the set that a metadata key names; nil where the file has no such key.
func findGlobalSet(file *File, key string) (*globalSet, error) {
	f := file.lance
	v, ok := f.Metadata(key)
	if !ok {
		return nil, nil
	}
	n, err := strconv.ParseUint(string(v), 10, 31)
	if err != nil || n == 0 || n >= uint64(f.GlobalBuffers()) {
		return nil, fault.New("indexfile.Open", "", fault.Corrupt,
			"schema metadata %s says global buffer %.40q; the file has the buffers 0 (its schema) to %d", key, v, f.GlobalBuffers()-1)
	}
	g := &globalSet{f, key, int(n), file.seg.Rows}
	if _, size := f.GlobalBuffer(g.number); size > maxSet {
		return nil, fault.New("indexfile.Open", "", fault.TooLarge, "%s of %d bytes; the limit is %d", g.place(), size, maxSet)
	}
	return g, nil
}

func (g *globalSet) place() string { return fmt.Sprintf("global buffer %d", g.number) }

// load reads the set.
func (g *globalSet) load(ctx context.Context) (*addrset.Set, error) {
	_, size := g.file.GlobalBuffer(g.number)
	b := make([]byte, size)
	if err := g.file.ReadGlobal(ctx, g.number, b, 0); err != nil {
		return nil, err
	}
	s, err := addrset.Decode(b, addrset.Tree)
	if err != nil {
		return nil, fmt.Errorf("%s (%s): %w", g.place(), g.key, err)
	}
	return s, nil
}

// remap puts the translated set into an Edit, without the rows that are now in some fragments. A set whose addresses
// all stay is left alone.
func (g *globalSet) remap(ctx context.Context, r Resolver, without *roaring.Bitmap, e *lancefile.Edit) error {
	if g == nil {
		return nil
	}
	s, err := g.load(ctx)
	if err != nil {
		return err
	}
	var now []byte
	m := setMapper{r: r, format: addrset.Tree, without: without, emit: func(cell []byte, _ bool) error {
		now = bytes.Clone(cell)
		return nil
	}}
	if err := m.add(ctx, s); err != nil {
		return err
	}
	if err := m.flush(ctx); err != nil {
		return err
	}
	if m.changed {
		e.Globals = map[int]lancefile.Piece{g.number: lancefile.Bytes(now)}
	}
	return nil
}

// globalCursor walks over a set in a global buffer; g may be nil.
type globalCursor struct {
	g      *globalSet
	member uint64 // of the next address
	w      *addrset.Members
}

func (c *globalCursor) Position() Position { return Position{NoRow, c.member} }

func (c *globalCursor) Next(ctx context.Context, b *Batch, limit int) error {
	b.Rows, b.Addrs = b.Rows[:0], b.Addrs[:0]
	if c.g == nil {
		return nil
	}
	if c.w == nil {
		s, err := c.g.load(ctx)
		if err != nil {
			return err
		}
		c.w = s.Members(c.g.rows)
		c.w.Skip(c.member)
	}
	b.take(c.w, NoRow, limit)
	c.member += uint64(len(b.Addrs))
	return nil
}

// Unknown implements Partial.
func (c *globalCursor) Unknown() []fri.FragID {
	if c.w == nil {
		return nil
	}
	return c.w.Unknown()
}

// take appends up to limit members of a row's set and returns how many there were: 0 at its end.
func (b *Batch) take(w *addrset.Members, row uint64, limit int) int {
	if limit <= 0 {
		return 0
	}
	from := len(b.Addrs)
	if cap(b.Addrs)-from < min(limit, 512) {
		b.Addrs = slices.Grow(b.Addrs, min(limit, max(from, 512)))
	}
	n := w.Next(b.Addrs[from:min(from+limit, cap(b.Addrs))])
	b.Addrs = b.Addrs[:from+n]
	for range n {
		b.Rows = append(b.Rows, row)
	}
	return n
}

// Partial is implemented by cursors over sets. A set may name a fragment as a whole: as long as it is not known how
// many rows that has, the cursor passes over it.
type Partial interface {
	// Unknown lists the fragments that were passed over so far, once for each set.
	Unknown() []fri.FragID
}
