package translate

import (
	"context"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
)

const (
	pageRows  = 1 << 16
	pageBytes = pageRows / 8
)

// page is the deletions among 65,536 offsets of a fragment.
type page [pageRows / 64]uint64

// noneDeleted stands for a page without deletions. It is never written.
var noneDeleted = new(page)

// deletions holds the deleted offsets of one fragment as bits, page by page as they are asked for: a bit test is an
// order of magnitude cheaper than a search in a compressed bitmap.
type deletions struct {
	t     *Translator
	bm    *roaring.Bitmap
	pages []atomic.Pointer[page] // by offset / 65,536, up to the highest deleted one
	seen  []atomic.Uint32        // look-ups per page that is not decoded
}

// deletionsOf returns the deletions of a live fragment; nil for none. ok is false where they cannot be read.
func (t *Translator) deletionsOf(ctx context.Context, n *node) (d *deletions, ok bool, err error) {
	if !n.hasDel {
		return nil, true, nil
	}
	n.mu.Lock()
	d = n.del
	n.mu.Unlock()
	if d != nil {
		return d, true, nil
	}
	bm, err := t.live.Deletions(ctx, n.id)
	switch {
	case err != nil && fatal(err):
		return nil, false, err
	case err != nil:
		return nil, false, nil //nolint:nilerr // ok says it: what ends here is unresolved
	case bm == nil || bm.IsEmpty():
		return nil, true, nil
	}
	pages := bm.Maximum()/pageRows + 1
	d = &deletions{t: t, bm: bm, pages: make([]atomic.Pointer[page], pages), seen: make([]atomic.Uint32, pages)}
	if t.delUsed.Add(int64(pages)*12) > t.budget {
		t.forget()
		return d, true, nil
	}
	n.mu.Lock()
	if n.del == nil {
		n.del = d
	}
	d = n.del
	n.mu.Unlock()
	return d, true, nil
}

// forget drops all decoded deletions; those in use stay valid for their users.
func (t *Translator) forget() {
	t.delUsed.Store(0)
	drop := func(n *node) {
		if n != nil {
			n.mu.Lock()
			n.del = nil
			n.mu.Unlock()
		}
	}
	for _, n := range t.dense {
		drop(n)
	}
	for _, n := range t.far {
		drop(n)
	}
	t.more.Range(func(_, n any) bool {
		drop(n.(*node))
		return true
	})
}

// build decodes page i.
func (d *deletions) build(i uint32) *page {
	first := i * pageRows
	it := d.bm.Iterator()
	it.AdvanceIfNeeded(first)
	p := noneDeleted
	for it.HasNext() {
		v := it.Next()
		if v-first >= pageRows {
			break
		}
		if p == noneDeleted {
			p = new(page)
		}
		p[v%pageRows/64] |= 1 << (v % 64)
	}
	d.pages[i].Store(p)
	if p != noneDeleted && d.t.delUsed.Add(pageBytes) > d.t.budget {
		d.t.forget()
	}
	return p
}

// worthPage is how many look-ups a page has to get before it is decoded: decoding costs as much as some hundred of
// them.
const worthPage = 256

// deletionCursor remembers the page of the last look-up.
type deletionCursor struct {
	d   *deletions
	key uint32
	p   *page
	n   int // look-ups since key changed
}

func (d *deletions) cursor() deletionCursor { return deletionCursor{d: d, key: 1 << 31} }

// has reports whether the row at an offset is deleted.
func (c *deletionCursor) has(off uint32) bool {
	if off/pageRows != c.key {
		c.key, c.n, c.p = off/pageRows, 0, noneDeleted
		if int(c.key) < len(c.d.pages) {
			c.p = c.d.pages[c.key].Load()
		}
	}
	if c.p != nil {
		return c.p[off%pageRows/64]>>(off%64)&1 != 0
	}
	return c.slow(off)
}

// slow looks into the compressed bitmap, until the page is worth decoding: a run through it always is; look-ups here
// and there are only while there is room, or pages would push each other out.
func (c *deletionCursor) slow(off uint32) bool {
	c.n++
	seen := c.d.seen[c.key].Add(1)
	if c.n > worthPage || seen > worthPage && c.d.t.delUsed.Load()+pageBytes <= c.d.t.budget {
		c.p = c.d.build(c.key)
	}
	return c.d.bm.Contains(off)
}

// between counts the deleted offsets in [from, to).
func (d *deletions) between(from, to uint64) uint64 {
	if d == nil || from >= to {
		return 0
	}
	n := d.bm.Rank(uint32(to - 1))
	if from > 0 {
		n -= d.bm.Rank(uint32(from - 1))
	}
	return n
}
