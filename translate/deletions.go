package translate

import (
	"context"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
)

const pageRows = 1 << 16

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
		return nil, false, nil
	case bm == nil || bm.IsEmpty():
		return nil, true, nil
	}
	d = &deletions{t: t, bm: bm, pages: make([]atomic.Pointer[page], bm.Maximum()/pageRows+1)}
	if t.delUsed.Add(int64(len(d.pages))*8) > t.budget {
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

// page returns the page that holds offset off.
func (d *deletions) page(off uint32) *page {
	i := off / pageRows
	if d == nil || int(i) >= len(d.pages) {
		return noneDeleted
	}
	if p := d.pages[i].Load(); p != nil {
		return p
	}
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
	if p != noneDeleted && d.t.delUsed.Add(pageRows/8) > d.t.budget {
		d.t.forget()
	}
	return p
}

// has reports whether the offset within the page is deleted.
func (p *page) has(off uint32) bool { return p[off%pageRows/64]>>(off%64)&1 != 0 }

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
