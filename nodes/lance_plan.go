package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/indexfile"
)

const (
	// inspectAtOnce bounds how many index segments are looked into at a time.
	inspectAtOnce = 8
	// maxInspected is up to how many files of a segment, of which the sizes are known, are opened to see that they can be.
	maxInspected = 16
	// maxDictionaries bounds the dictionary pages that an old manifest may have before its sections, in bytes.
	maxDictionaries = 64 << 20
)

// lancePlan is the manifest of a version's remapped.lance, made.
type lancePlan struct {
	manifest []byte
}

// lancePlan makes the manifest. No address is translated, but for zones; what cannot be read of an entry's files makes
// that entry be left out.
func (n version) lancePlan(ctx context.Context) (*lancePlan, error) {
	return n.t.lance.plans.get(ctx, n.key(), func(ctx context.Context) (*lancePlan, int64, error) {
		l, h, err := n.loadHistory(ctx)
		if err != nil {
			return nil, 0, err
		}
		es, err := n.lanceEntries(ctx)
		if err != nil {
			return nil, 0, err
		}
		found := make([]inspected, len(es.list))
		slots := make(chan struct{}, inspectAtOnce)
		var wg sync.WaitGroup
		for i := range es.list {
			wg.Add(1)
			slots <- struct{}{}
			go func() {
				defer wg.Done()
				defer func() { <-slots }()
				var err error
				found[i], _, err = guarded(ctx, func(ctx context.Context) (inspected, int64, error) {
					return n.inspect(ctx, l, h, &es.list[i]), 0, nil
				})
				if err != nil {
					found[i].err = err
				}
			}()
		}
		wg.Wait()
		claims, err := n.claims(ctx, l, h)
		if err != nil {
			return nil, 0, err
		}
		for i := range found {
			switch f, e := &found[i], &es.list[i]; {
			case f.err != nil && !absent(f.err):
				return nil, 0, f.err
			case f.err != nil:
				_ = n.t.failed("remap", n.path+"/remapped.lance/_indices/"+e.dir, fault.Wrap("left out", segmentName(e.ix), f.err))
			case f.gaps != nil:
				claims.Lose(e.ix.Ordinal, f.gaps)
			}
		}
		n.unshare(es.list, found, claims)
		var entries []indexfile.Entry
		named := map[string]bool{} // indices of which an entry names the placeholders' fragment
		for i := range found {
			f, e := &found[i], &es.list[i]
			if f.err != nil {
				continue
			}
			x := indexfile.Entry{Index: e.ix, UUID: e.uuid, Files: f.files}
			if e.holders && e.ix.Bitmap != nil && !named[e.ix.Name] {
				// Readers take the bitmaps of one index together, and writers take two that overlap for damage.
				x.Placeholders, named[e.ix.Name] = true, true
			}
			switch {
			case e.ix.Bitmap == nil:
			case !e.asStored:
				x.Covered = claims.Of(e.ix.Ordinal)
			case f.gaps != nil:
				x.Covered = claims.Of(e.ix.Ordinal).Clone()
				if x.Placeholders { // the stored files hold addresses in fragments that are gone: these are masked instead
					x.Covered.Or(goneFragments(l.m, e.ix))
				}
			}
			entries = append(entries, x)
		}
		front, err := n.dictionaries(ctx, l)
		if err != nil {
			return nil, 0, err
		}
		b, err := indexfile.BuildManifest(l.m, entries, indexfile.NameData(l.m), front)
		if err != nil {
			return nil, 0, err
		}
		return &lancePlan{manifest: b}, int64(len(b)) + 256, n.steady(b)
	})
}

// unshare gives up what entries of one name would still claim together: readers take it that a fragment's rows are all in
// one of them, and answer twice or too little.
func (n version) unshare(list []lanceEntry, found []inspected, claims *indexfile.Claims) {
	members := map[string][]int{}
	for i := range list {
		if found[i].err == nil && !list[i].asStored && list[i].ix.Bitmap != nil {
			members[list[i].ix.Name] = append(members[list[i].ix.Name], list[i].ix.Ordinal)
		}
	}
	for name, ordinals := range members {
		if lost := claims.Unshare(ordinals); !lost.IsEmpty() {
			_ = n.t.failed("remap", n.path+"/"+lanceName, fault.New("nodes.RemappedDataset", "", fault.Corrupt,
				"%d segments of index %q claim %d fragments (%d, ...) together; queries scan these fragments", len(ordinals), name,
				lost.GetCardinality(), lost.Minimum()))
		}
	}
}

// steady checks that a manifest which is made again has the bytes of before: a name never comes to mean other content.
func (n version) steady(b []byte) error {
	sum := sha256.Sum256(b)
	mark := n.t.inode(n.path+"/remapped.lance", "digest "+n.key())
	is := int64(binary.LittleEndian.Uint64(sum[:]))
	if was, ok := n.t.sizes.peek(mark); ok && was != is {
		return fault.New("nodes.RemappedDataset", n.path+"/remapped.lance", fault.Stale, "a file that the manifest depends on has come or gone since the manifest was first read")
	}
	n.t.sizes.put(mark, is, 128)
	return nil
}

// dictionaries reads what a manifest of the oldest storage has before its sections; fields point into it by offset.
func (n version) dictionaries(ctx context.Context, l *loaded) ([]byte, error) {
	var end int64
	for _, f := range l.m.PB.GetFields() {
		if d := f.GetDictionary(); d.GetLength() > 0 && d.GetOffset() >= 0 {
			end = max(end, d.GetOffset()+d.GetLength())
		}
	}
	if end <= 0 {
		return nil, nil
	}
	ref := l.m.Ref
	if end > ref.Object.Size || end > maxDictionaries {
		return nil, fault.New("nodes.RemappedDataset", l.m.Path(), fault.Corrupt,
			"dictionaries of columns end at byte %d; the manifest has %d bytes, and the limit is %d", end, ref.Object.Size, int64(maxDictionaries))
	}
	return n.t.ds.Store().ReadRange(ctx, ref.Path(), 0, end)
}
