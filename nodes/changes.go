package nodes

import (
	"context"
	"slices"
	"sort"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/pb"
)

// changes is what differs between two retained versions of one dataset.
type changes struct {
	added, removed []*dataset.Fragment
	changed        []fragmentChange

	ixAdded, ixRemoved []*dataset.Index
	ixRewritten        []*dataset.Index // same name and uuid, another bitmap or dataset_version
	merged             []mergedIndex
	namesAdded         []string // logical names
	namesRemoved       []string

	friIn, friOut []*fri.Transition
	lost          []lostRecord
	friOK         bool // both histories could be read as a whole
}

type fragmentChange struct {
	from, to *dataset.Fragment
}

// mergedIndex says that the segments From of one logical index became Into.
type mergedIndex struct {
	name string
	into string
	from []string
}

// lostRecord is a record that went although an index still covers one of its sources (docs/FORMAT.md, "Trimming").
type lostRecord struct {
	t      *fri.Transition
	needed []*dataset.Index
}

// compareFragments finds fragments that came, went or changed; order is that of the manifests.
func (c *changes) compareFragments(a, b *dataset.Manifest) {
	for _, f := range a.Fragments() {
		if g, ok := b.Live()[f.ID]; !ok {
			c.removed = append(c.removed, f)
		} else if !f.Duplicate && fragmentDiffers(f, g) {
			c.changed = append(c.changed, fragmentChange{f, g})
		}
	}
	for _, f := range b.Fragments() {
		if _, ok := a.Live()[f.ID]; !ok {
			c.added = append(c.added, f)
		}
	}
}

func fragmentDiffers(f, g *dataset.Fragment) bool {
	if f.Same(g) {
		return false // nearly all of them: nothing is decoded
	}
	a, b := f.Message(), g.Message()
	return a.GetPhysicalRows() != b.GetPhysicalRows() || deletionsDiffer(a, b) || filesDiffer(a, b)
}

func deletionsDiffer(a, b *pb.DataFragment) bool {
	x, y := a.GetDeletionFile(), b.GetDeletionFile()
	return (x == nil) != (y == nil) || x.GetId() != y.GetId() || x.GetReadVersion() != y.GetReadVersion() ||
		x.GetFileType() != y.GetFileType() || x.GetNumDeletedRows() != y.GetNumDeletedRows()
}

func filesDiffer(a, b *pb.DataFragment) bool {
	if len(a.GetOverlays()) != len(b.GetOverlays()) {
		return true
	}
	return !slices.EqualFunc(a.GetFiles(), b.GetFiles(), func(x, y *pb.DataFile) bool {
		return x.GetPath() == y.GetPath() && slices.Equal(x.GetFields(), y.GetFields())
	})
}

// indexID tells entries apart: a second entry of the same name and uuid is another one.
type indexID struct {
	name, uuid string
	nth        int
}

func indexIDs(m *dataset.Manifest) (ids []indexID, by map[indexID]*dataset.Index) {
	by = map[indexID]*dataset.Index{}
	seen := map[indexID]int{}
	for _, ix := range m.Indices {
		id := indexID{name: ix.Name, uuid: segmentName(ix)}
		nth := seen[id]
		seen[id] = nth + 1
		id.nth = nth
		ids = append(ids, id)
		by[id] = ix
	}
	return ids, by
}

// compareIndices finds entries that came, went or were merged. A transaction that names which uuid replaced which is
// believed; else removed and added entries of one name are taken to be one merge.
func (c *changes) compareIndices(a, b *dataset.Manifest, t *dataset.Transaction) {
	aIDs, aBy := indexIDs(a)
	bIDs, bBy := indexIDs(b)
	names := func(m *dataset.Manifest) map[string]bool {
		out := map[string]bool{}
		for _, ix := range m.Indices {
			out[ix.Name] = true
		}
		return out
	}
	aNames, bNames := names(a), names(b)
	removedOf := map[string][]string{}
	addedOf := map[string][]string{}
	for _, id := range aIDs {
		if _, ok := bBy[id]; !ok {
			c.ixRemoved = append(c.ixRemoved, aBy[id])
			removedOf[id.name] = append(removedOf[id.name], id.uuid)
		}
	}
	for _, id := range bIDs {
		x, ok := aBy[id]
		switch y := bBy[id]; {
		case !ok:
			c.ixAdded = append(c.ixAdded, y)
			addedOf[id.name] = append(addedOf[id.name], id.uuid)
		case string(x.PB.GetFragmentBitmap()) != string(y.PB.GetFragmentBitmap()) || x.PB.GetDatasetVersion() != y.PB.GetDatasetVersion():
			c.ixRewritten = append(c.ixRewritten, y)
		}
	}
	for n := range bNames {
		if !aNames[n] {
			c.namesAdded = append(c.namesAdded, n)
		}
	}
	for n := range aNames {
		if !bNames[n] {
			c.namesRemoved = append(c.namesRemoved, n)
		}
	}
	sort.Strings(c.namesAdded)
	sort.Strings(c.namesRemoved)
	c.merged = mergedIndices(addedOf, removedOf, t)
}

func mergedIndices(added, removed map[string][]string, t *dataset.Transaction) []mergedIndex {
	replaced := map[string]string{} // old uuid → new uuid
	if t != nil && t.PB != nil {
		for _, r := range t.PB.GetRewrite().GetRewrittenIndices() {
			replaced[uuidString(r.GetOldId().GetUuid())] = uuidString(r.GetNewId().GetUuid())
		}
	}
	var out []mergedIndex
	for name, olds := range removed {
		if name == dataset.ReuseIndexName || name == dataset.MemWalIndexName {
			continue
		}
		for _, into := range added[name] {
			m := mergedIndex{name: name, into: into}
			for _, old := range olds {
				if to, ok := replaced[old]; !ok || to == into {
					m.from = append(m.from, old)
				}
			}
			if len(m.from) > 0 {
				out = append(out, m)
			}
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].name != out[j].name {
			return out[i].name < out[j].name
		}
		return out[i].into < out[j].into
	})
	return out
}

// recordKey names a record across versions without reading its bytes: stamp and digests. Two records that agree in it
// describe the same rewrite.
func recordKey(t *fri.Transition) string {
	b := make([]byte, 0, 32+24*(len(t.Sources)+len(t.Destinations)))
	b = append(b, byte(t.Mapping))
	if t.Legacy != nil {
		b = appendWide(b, t.Legacy.DatasetVersion)
	}
	if t.Partition != nil {
		b = append(b, t.Partition.MapID...)
	}
	for _, ds := range [][]fri.Digest{t.Sources, t.Destinations} {
		b = appendWide(b, uint64(len(ds)))
		for _, d := range ds {
			b = appendWide(appendWide(appendWide(b, d.ID), d.PhysicalRows), d.DeletedRows)
		}
	}
	return string(b)
}

func appendWide(b []byte, v uint64) []byte {
	for ; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}

// compareHistories finds records that came and went, and among the latter those that an index still needs.
func (c *changes) compareHistories(a, b *history, am, bm *dataset.Manifest) {
	c.friOK = a.h.Broken == nil && b.h.Broken == nil
	if !c.friOK {
		return
	}
	count := map[string]int{}
	for _, t := range a.h.Transitions {
		count[recordKey(t)]++
	}
	for _, t := range b.h.Transitions {
		if k := recordKey(t); count[k] > 0 {
			count[k]--
		} else {
			c.friIn = append(c.friIn, t)
		}
	}
	for _, t := range a.h.Transitions {
		if k := recordKey(t); count[k] > 0 {
			count[k]--
			c.friOut = append(c.friOut, t)
		}
	}
	if len(c.friOut) == 0 {
		return
	}
	_, old := indexIDs(am)
	ids, now := indexIDs(bm)
	for _, t := range c.friOut {
		var l lostRecord
		for _, id := range ids {
			x, y := now[id], old[id]
			if y == nil || x.System() || !addressDomain(bm, x) {
				continue
			}
			if stillNeeds(t, x, y, bm) {
				l.needed = append(l.needed, x)
			}
		}
		if len(l.needed) > 0 {
			l.t = t
			c.lost = append(c.lost, l)
		}
	}
}

// stillNeeds reports whether the files of an index entry still hold addresses from before record t, judged by metadata:
// x is the entry now, y the same uuid before t went, m the manifest now. A legacy record: the entry is not newer than the
// stamp and covers a source, or a destination (stored bitmaps are swapped early). A tagged one: the bitmap names a
// source, and some destination is not directly covered by the segments of that index.
func stillNeeds(t *fri.Transition, x, y *dataset.Index, m *dataset.Manifest) bool {
	if t.Legacy != nil {
		return y.PB.GetDatasetVersion() <= t.Legacy.DatasetVersion &&
			(covers(x, t.Sources) || covers(y, t.Sources) || covers(x, t.Destinations))
	}
	if !covers(x, t.Sources) {
		return false
	}
	for i := range t.Destinations {
		direct := false
		for _, s := range m.IndicesNamed(x.Name) {
			direct = direct || covers(s, t.Destinations[i:i+1])
		}
		if !direct {
			return true
		}
	}
	return false
}

// covers reports whether the stored bitmap of an entry names one of the fragments.
func covers(ix *dataset.Index, ds []fri.Digest) bool {
	if ix.Bitmap == nil {
		return false
	}
	for _, d := range ds {
		if d.ID <= 0xFFFFFFFF && ix.Bitmap.Contains(uint32(d.ID)) {
			return true
		}
	}
	return false
}

// remapOf says how indices followed a rewrite (docs/FORMAT.md, "Transactions"): none_recorded, eager, deferred_v0,
// deferred_tagged, or unknown where the transaction or a history cannot be read.
func (c *changes) remapOf(t *dataset.Transaction, tagged bool) (remap, why string) {
	if t == nil || t.Operation == "" {
		return "unknown", "the transaction of this version cannot be had"
	}
	if t.Operation != "Rewrite" {
		return "none_recorded", "the operation " + t.Operation + " is no rewrite"
	}
	if !c.friOK {
		return "unknown", "one of the two histories cannot be read"
	}
	switch {
	case len(c.friIn) > 0 && tagged:
		return "deferred_tagged", "a tagged record came with the rewrite"
	case len(c.friIn) > 0:
		return "deferred_v0", "a legacy record came with the rewrite"
	case len(t.PB.GetRewrite().GetRewrittenIndices()) > 0:
		return "eager", "the rewrite replaced index files"
	case len(c.merged) > 0:
		return "eager", "index uuids were replaced in the version of the rewrite"
	}
	return "none_recorded", "no record came and no index was replaced: nothing indexed was rewritten, or row ids are stable"
}

// diff compares this version with an older retained one.
func (n version) diff(ctx context.Context, older version, t *dataset.Transaction) (*changes, error) {
	a, ah, err := older.loadHistory(ctx)
	if err != nil {
		return nil, err
	}
	b, bh, err := n.loadHistory(ctx)
	if err != nil {
		return nil, err
	}
	c := &changes{}
	c.compareFragments(a.m, b.m)
	c.compareIndices(a.m, b.m, t)
	c.compareHistories(ah, bh, a.m, b.m)
	return c, nil
}
