package nodes

import (
	"cmp"
	"context"
	"strconv"
	"sync/atomic"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/indexfile"
	"github.com/frifs/frifs/internal/spill"
)

const (
	// flatCost is what an open remapped file is taken to hold, in bytes.
	flatCost = 256 << 10
	// spillAbove is the size up to which a re-serialised file stays in memory.
	spillAbove = 1 << 20
	// diskShare: of a re-serialised file that lies on disk one byte in so many counts as memory.
	diskShare = 64
)

// held is a remapped file that is open, shared by all who read it. The cache is one holder; when the last has let go it
// is closed.
type held struct {
	content indexfile.Content
	size    int64
	of      version
	holders atomic.Int32
}

// acquire makes the caller a holder; false if it is closed already.
func (h *held) acquire() bool {
	for {
		n := h.holders.Load()
		if n == 0 {
			return false
		}
		if h.holders.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release lets go of one hold.
func (h *held) release() {
	if h.holders.Add(-1) == 0 {
		_ = h.content.Close() // it was only read
	}
}

// remapCost is what a re-serialised file costs the cache.
func remapCost(size int64) int64 {
	if size <= spillAbove {
		return size
	}
	return size / diskShare
}

// load opens the stored file and plans the remapped one; for a re-serialised one this is all the work.
func (f *remapFile) load(ctx context.Context) (*held, error) {
	n := f.at.n
	l, h, err := n.loadHistory(ctx)
	if err != nil {
		return nil, err
	}
	_, s, err := f.at.get(ctx)
	if err != nil {
		return nil, err
	}
	files, err := n.storedFiles(ctx, l, s.ix)
	if err != nil {
		return nil, err
	}
	r, err := f.at.placer(l, h, s)
	if err != nil {
		return nil, err
	}
	file, err := f.at.layout(l, s, files).Open(ctx, f.file.path)
	if err != nil {
		return nil, err
	}
	opt := indexfile.Options{SpillDir: cmp.Or(n.t.cfg.CacheDir, spill.TempDir()), SpillAbove: spillAbove}
	c, err := file.Remap(ctx, r, opt)
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	out := &held{content: c, size: c.Size(), of: n}
	out.holders.Store(1)
	return out, nil
}

// hold opens the remapped file, or gives it as it was opened before; the caller releases it. fresh says that the stored
// file was opened just now. A file that is opened again must have the size that was told before.
func (f *remapFile) hold(ctx context.Context) (h *held, fresh bool, err error) {
	t := f.at.n.t
	if f.key != f.at.key(f.file.path) {
		return nil, false, fault.New("open", f.path, fault.Stale, "the stored file was replaced; look the name up again")
	}
	var loaded atomic.Bool
	for range 3 {
		if f.how == indexfile.Reserialised {
			h, err = f.made(ctx, &loaded)
		} else {
			h, err = t.remaps.get(ctx, f.id, func(ctx context.Context) (*held, int64, error) {
				h, err := f.load(ctx)
				loaded.Store(true)
				return h, flatCost, err
			})
		}
		if err != nil {
			return nil, false, err
		}
		if h != nil && h.acquire() {
			break
		}
		h = nil
	}
	if h == nil {
		return nil, false, fault.New("open", f.path, fault.Unavailable, "the remapped file does not stay in the cache; raise --memory")
	}
	if told, ok := t.sizes.peek(f.id); !ok {
		f.tell(ctx, h.size)
	} else if told != h.size {
		h.release()
		f.untell(ctx)
		return nil, false, resized("open", f.path, h.size, told)
	}
	return h, loaded.Load(), nil
}

// shared names the size of a remapped file that is the same in all versions: it depends on the stored file alone. ok is
// false for the other kinds.
func (f *remapFile) shared(ctx context.Context) (id uint64, ok bool) {
	if f.how != indexfile.Flat && f.how != indexfile.InPlace {
		return 0, false
	}
	l, s, err := f.at.get(ctx)
	if err != nil {
		return 0, false
	}
	loc, err := f.at.locator(l, s)(ctx, f.file.path)
	if err != nil {
		return 0, false
	}
	return f.at.n.t.inode(loc.URI(), "remapped size "+s.ix.Type+" "+strconv.FormatInt(f.file.size, 10)+f.key[len(f.at.n.key()):]), true
}

// told gives the size that was told before, for this version or another one with the same stored file.
func (f *remapFile) told(ctx context.Context) (int64, bool) {
	sizes := f.at.n.t.sizes
	if size, ok := sizes.peek(f.id); ok {
		return size, true
	}
	id, ok := f.shared(ctx)
	if !ok {
		return 0, false
	}
	size, ok := sizes.peek(id)
	if ok {
		sizes.put(f.id, size, 128)
	}
	return size, ok
}

// tell remembers the size.
func (f *remapFile) tell(ctx context.Context, size int64) {
	sizes := f.at.n.t.sizes
	sizes.put(f.id, size, 128)
	if id, ok := f.shared(ctx); ok {
		sizes.put(id, size, 128)
	}
}

// untell has looking the name up again give another node, after a size turned out to be that of another stored file.
func (f *remapFile) untell(ctx context.Context) {
	t := f.at.n.t
	id, ok := f.shared(ctx)
	if !ok {
		return
	}
	t.sizes.forget(func(k uint64) bool { return k == id || k == f.id })
	mark := f.at.mark(f.file.path)
	if o, ok := t.opened.peek(mark); ok {
		t.opened.put(mark, openedObject{object: o.object, replaced: true}, 256)
	}
}

// made gives a re-serialised file: as a job made it before, or by a job. Where it has left the cache, the job runs
// again. It is nil where the cache let go of it at once.
func (f *remapFile) made(ctx context.Context, loaded *atomic.Bool) (*held, error) {
	t := f.at.n.t
	if h, ok := t.made.use(f.id); ok {
		return h, nil
	}
	key := "remapped " + strconv.FormatUint(f.id, 16)
	if _, ok := t.jobs.known(key); ok {
		t.jobs.forgetOne(key)
	}
	_, err := t.jobs.size(ctx, key, f.path, func(ctx context.Context) (int64, error) {
		h, err := f.load(ctx)
		if err != nil {
			return 0, err
		}
		loaded.Store(true)
		size := h.size
		t.made.put(f.id, h, remapCost(size))
		if ctx.Err() != nil { // the tree was closed meanwhile
			t.forgetRemapped()
		}
		return size, nil
	})
	if err != nil {
		return nil, err
	}
	h, _ := t.made.use(f.id)
	return h, nil
}

// forgetGone closes the remapped files of versions that are gone, as far as nobody reads them: what a clean-up has removed
// is not kept on the disk by this process.
func (s *shared) forgetGone() {
	gone := func(h *held) bool { return h.of.gone() }
	s.remaps.forgetValues(gone)
	s.made.forgetValues(gone)
}

// forgetRemapped closes the remapped files that nobody reads.
func (t *Tree) forgetRemapped() {
	all := func(uint64) bool { return true }
	t.remaps.forget(all)
	t.made.forget(all)
}
