package nodes

import (
	"context"
	"slices"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/indexfile"
	"github.com/frifs/frifs/internal/mapcsv"
)

// scanBatch is how many addresses are looked at together.
const scanBatch = 1 << 16

// segmentScan is a segment whose stored addresses are walked over, in the version that it belongs to.
type segmentScan struct {
	at       segmentAt
	key      string // content key of what is made from it
	l        *loaded
	h        *history
	s        *segment
	seg      *indexfile.Segment
	resolver indexfile.Resolver
	files    []scannedFile // in byte order of path
}

// scannedFile is a file of the segment. err says why its role is not known.
type scannedFile struct {
	storedFile
	how indexfile.How
	err error
}

// addresses reports whether the file may hold addresses that a scan finds.
func (f *scannedFile) addresses() bool { return f.err == nil && f.how != indexfile.Verbatim }

// fresh fails where a stored file of the segment was replaced since key was its content key.
func (at segmentAt) fresh(key string) error {
	if key != at.key("") {
		return fault.New("nodes.Scan", at.path(), fault.Stale, "a stored file was replaced; look the name up again")
	}
	return nil
}

// scan prepares a walk over the segment's addresses. key is the content key of what is made from it.
func (at segmentAt) scan(ctx context.Context, key string) (*segmentScan, error) {
	if err := at.fresh(key); err != nil {
		return nil, err
	}
	l, h, err := at.n.loadHistory(ctx)
	if err != nil {
		return nil, err
	}
	_, s, err := at.get(ctx)
	if err != nil {
		return nil, err
	}
	files, err := at.n.storedFiles(ctx, l, s.ix)
	if err != nil {
		return nil, err
	}
	r, err := at.resolver(l, h, s)
	if err != nil {
		return nil, err
	}
	out := &segmentScan{at: at, key: key, l: l, h: h, s: s, seg: at.layout(l, s, files), resolver: r}
	out.seg.Rows = r.Rows
	for _, f := range files {
		how, err := out.seg.How(f.path)
		out.files = append(out.files, scannedFile{f, how, err})
	}
	slices.SortFunc(out.files, func(a, b scannedFile) int { return strings.Compare(a.path, b.path) })
	return out, nil
}

// open walks over the addresses of one file from a position on.
func (sc *segmentScan) open(ctx context.Context, path string, from indexfile.Position) (*addressCursor, error) {
	if err := sc.at.fresh(sc.key); err != nil {
		return nil, err
	}
	f, err := sc.seg.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	c, err := f.Scan(ctx, from)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &addressCursor{f: f, c: c, r: f.Resolver(sc.resolver)}, nil
}

// addressCursor walks over the stored addresses of one file and tells what became of each.
type addressCursor struct {
	f *indexfile.File
	c indexfile.Cursor // nil where the file holds none
	r indexfile.Resolver
	b indexfile.Batch
	a indexfile.Answers
}

var _ mapcsv.AddressCursor = (*addressCursor)(nil)

// next takes the next addresses into c.b and c.a, and says how many there are.
func (c *addressCursor) next(ctx context.Context, limit int) (int, error) {
	if c.c == nil {
		return 0, nil
	}
	if err := c.c.Next(ctx, &c.b, limit); err != nil {
		return 0, err
	}
	n := len(c.b.Addrs)
	c.a.Grow(n)
	if n == 0 {
		return 0, nil
	}
	return n, c.r.Resolve(ctx, c.b.Addrs, &c.a)
}

// Next implements mapcsv.AddressCursor.
func (c *addressCursor) Next(ctx context.Context, b *mapcsv.AddressBatch, limit int) error {
	n, err := c.next(ctx, limit)
	if err != nil {
		return err
	}
	*b = mapcsv.AddressBatch{Rows: c.b.Rows[:n], Addrs: c.b.Addrs[:n], New: c.a.New, Outcome: c.a.Outcome, Covered: c.a.Covered}
	return nil
}

// Position implements mapcsv.AddressCursor.
func (c *addressCursor) Position() mapcsv.AddressPosition {
	if c.c == nil {
		return mapcsv.AddressPosition{}
	}
	return mapcsv.AddressPosition(c.c.Position())
}

// Close implements mapcsv.AddressCursor.
func (c *addressCursor) Close() error { return c.f.Close() }

// unknown lists the fragments that sets name as a whole and whose rows are not known, once for each set.
func (c *addressCursor) unknown() []fri.FragID {
	if p, ok := c.c.(indexfile.Partial); ok {
		return p.Unknown()
	}
	return nil
}
