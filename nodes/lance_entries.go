package nodes

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/indexfile"
)

// lanceEntry is an index entry that remapped.lance has.
type lanceEntry struct {
	at   segmentAt
	ix   *dataset.Index
	uuid [16]byte
	dir  string // the uuid as the directory's name
	// asStored: the files are the stored ones and the bitmap keeps its bytes.
	asStored bool
	// holders: its files hold addresses, so that there may be placeholders in them.
	holders bool
}

// lanceEntries is the index entries of a version's remapped.lance, in manifest order, as the manifest and the history
// tell: whether their files can be read shows later.
type lanceEntries struct{ list []lanceEntry }

// leftOut says, from the manifest alone, why remapped.lance does not have an entry; nil if it may have it. silent is set
// where that needs no explanation: the entry is the FRI, or the user named it.
func (n version) leftOut(l *loaded, ix *dataset.Index) (silent bool, why error) {
	const op = "nodes.RemappedDataset"
	no := func(kind fault.Kind, format string, args ...any) (bool, error) {
		return false, fault.New(op, l.m.Path(), kind, format, args...)
	}
	label := fmt.Sprintf("index entry %d (%q)", ix.Ordinal, ix.Name)
	switch class := recognise(ix).Class; {
	case class == fri.IsFRI || class == fri.BrokenFRI:
		return true, fault.New(op, "", fault.NotFound, "the fragment reuse index")
	case n.t.lance.leave.has(ix):
		return true, fault.New(op, "", fault.NotFound, "left out by --for-reader or --omit-index")
	case class == fri.LookAlike && ix.Name == dataset.ReuseIndexName:
		return no(fault.Corrupt, "%s has the name of the fragment reuse index: Lance cannot list the indices of a table with such an entry", label)
	case systemEntry(ix):
		return no(fault.Unsupported, "%s is a system index over files outside of this dataset's data; they are not part of remapped.lance", label)
	case ix.UUIDErr != nil:
		return false, ix.UUIDErr
	case ix.BitmapState == dataset.BitmapUndecodable:
		return false, fault.Wrap(op, "", ix.BitmapErr)
	case !coveringFits(l.m, ix):
		return no(fault.Corrupt, "%s: covering_fields %v are no suffix of fields %v; Lance refuses the whole list of indices for that", label, ix.PB.GetCoveringFields(), ix.PB.GetFields())
	}
	if why := unreadable(l.m, ix); why != nil {
		return false, fault.Wrap(op, l.m.Path(), why)
	}
	if !l.fri.present() {
		return false, nil
	}
	switch domain, reason := indexfile.Domain(l.m, ix); {
	case domain == indexfile.DomainUnknown:
		return no(fault.Unsupported, "%s: what it stores is not known (%s), and the version has a history", label, reason)
	case domain == indexfile.DomainAddress && ix.BitmapState == dataset.BitmapAbsent:
		return no(fault.Unsupported, "%s has no fragment_bitmap: which fragments it covered before the rewrites of the history is not known", label)
	}
	return false, nil
}

// unreadable says why Lance, meeting an entry, gives up more than that entry: it refuses the list of indices, every filter,
// or the dataset.
func unreadable(m *dataset.Manifest, ix *dataset.Index) error {
	no := func(format string, args ...any) error {
		return fault.New("index entry", fmt.Sprintf("%d (%q)", ix.Ordinal, ix.Name), fault.Corrupt, format, args...)
	}
	fields := ix.PB.GetFields()
	switch {
	case !utf8.ValidString(ix.Name):
		return no("the name is no UTF-8, so Lance cannot open the dataset")
	case ix.PB.GetIndexVersion() < 0:
		return no("index_version %d: Lance fails on every filter", ix.PB.GetIndexVersion())
	case len(fields) == 0:
		return no("it names no field, so Lance cannot list the indices")
	}
	for _, id := range fields {
		if _, ok := m.FieldPath(id); !ok {
			return no("it names field %d, which the schema does not have: Lance fails on every filter", id)
		}
	}
	for _, other := range m.IndicesNamed(ix.Name) {
		switch {
		case other == ix:
			return nil
		case other.UUID == ix.UUID:
			return no("it stands in the index section more than once; the first one (entry %d) counts", other.Ordinal)
		case !slices.Equal(other.PB.GetFields(), fields) || other.Type != ix.Type:
			return no("entry %d has the same name, but other fields or another type: Lance refuses both; the first one counts", other.Ordinal)
		}
	}
	return nil
}

// coveringFits reports whether an entry's covering fields are what Lance accepts beside its fields.
func coveringFits(m *dataset.Manifest, ix *dataset.Index) bool {
	const independent = 1 << 13
	fields, covering := ix.PB.GetFields(), ix.PB.GetCoveringFields()
	if m.PB.GetReaderFeatureFlags()&independent != 0 {
		return true
	}
	return len(covering) <= len(fields) && slices.Equal(fields[len(fields)-len(covering):], covering)
}

// lanceLeftOut lists the entries that remapped.lance does not have, as ERROR.json names them.
func (n version) lanceLeftOut(l *loaded) problems {
	var es problems
	if l.m.IndexErr != nil {
		es.add("remapped.lance/_indices", l.m.IndexErr)
	}
	for _, ix := range l.m.Indices {
		if silent, why := n.leftOut(l, ix); why != nil && !silent {
			es.add("remapped.lance/_indices/ (instead of "+segmentName(ix)+")", why)
		}
	}
	return es
}

// lanceEntries decides which entries remapped.lance has, and their uuids.
func (n version) lanceEntries(ctx context.Context) (*lanceEntries, error) {
	return n.t.lance.entries.get(ctx, n.key(), func(ctx context.Context) (*lanceEntries, int64, error) {
		l, h, err := n.loadHistory(ctx)
		if err != nil {
			return nil, 0, err
		}
		out := &lanceEntries{}
		seed := indexfile.Seed{Fragments: indexfile.FragmentsDigest(l.m), Options: n.t.lance.leave.label}
		if seed.History, err = n.historyDigest(ctx, l, h); err != nil {
			return nil, 0, err
		}
		places := l.segmentPlaces(n)
		live := l.liveSet()
		covers := l.remapCoverage(h.h)
		times := map[string]int{}
		for i, ix := range l.m.Indices {
			if _, why := n.leftOut(l, ix); why != nil {
				continue
			}
			domain, _ := indexfile.Domain(l.m, ix)
			e := lanceEntry{at: places[i], ix: ix, holders: domain == indexfile.DomainAddress}
			e.asStored = !l.fri.present() && (!e.holders || ix.Bitmap == nil || roaring.AndNot(ix.Bitmap, live).IsEmpty())
			key := ix.Name + "\x00" + ix.UUID
			e.uuid = seed.NewUUID(l.m, ix, covers[i].Live, times[key])
			e.dir = uuidString(e.uuid[:])
			times[key]++
			out.list = append(out.list, e)
		}
		return out, 512 + int64(len(l.m.Indices))*512, nil
	})
}

// segmentPlaces finds where the tree shows each entry of the index section.
func (l *loaded) segmentPlaces(n version) []segmentAt {
	out := make([]segmentAt, len(l.m.Indices))
	for _, li := range l.logical {
		for i, s := range li.segments {
			out[s.ix.Ordinal] = segmentAt{n, li.dir, i}
		}
	}
	return out
}
