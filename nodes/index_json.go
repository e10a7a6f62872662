package nodes

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/indexfile"
	"github.com/frifs/frifs/translate"
)

// segmentFacts is what the manifest and the history say about one segment.
type segmentFacts struct {
	s      *segment
	domain string
	why    string
	cover  *translate.Coverage
	dead   []uint32 // stored bitmap without the live fragments
}

// indexFacts is what is said about one logical index.
type indexFacts struct {
	segments  []segmentFacts
	twice     []uint32 // live fragments covered by more than one segment
	unindexed []fri.FragID
	rows      *uint64 // live rows of the unindexed fragments; nil = not known
	warnings  []string
}

// factsOf judges a logical index by metadata alone.
func factsOf(l *loaded, h *history, li *logicalIndex) *indexFacts {
	f := &indexFacts{}
	live := l.liveSet()
	covers := l.coverage(h.h)
	all, twice := roaring.New(), roaring.New()
	for _, s := range li.segments {
		sf := segmentFacts{s: s, cover: &covers[s.ix.Ordinal]}
		sf.domain, sf.why = indexfile.Domain(l.m, s.ix)
		if s.ix.Bitmap != nil {
			sf.dead = roaring.AndNot(s.ix.Bitmap, live).ToArray()
		}
		if !systemEntry(s.ix) {
			twice.Or(roaring.And(all, sf.cover.Live))
			all.Or(sf.cover.Live)
			f.warn(l, h.h, sf)
		}
		f.segments = append(f.segments, sf)
	}
	f.twice = twice.ToArray()
	rows, known := uint64(0), true
	if systemEntry(li.segments[0].ix) {
		return f
	}
	for _, fr := range l.m.Fragments() {
		if fr.Duplicate || fr.Invalid != "" || all.Contains(uint32(fr.ID)) {
			continue
		}
		f.unindexed = append(f.unindexed, fr.ID)
		if n := fr.LiveRows(); n != nil {
			rows += *n
		} else {
			known = false
		}
	}
	if known {
		f.rows = &rows
	}
	return f
}

func (f *indexFacts) warn(l *loaded, h *fri.History, s segmentFacts) {
	ix := s.s.ix
	say := func(format string, args ...any) {
		f.warnings = append(f.warnings, fmt.Sprintf("segment %s: ", s.s.dir)+fmt.Sprintf(format, args...))
	}
	if ix.Duplicate {
		say("the entry stands in the index section more than once")
	}
	if ix.BitmapErr != nil {
		say("fragment_bitmap does not decode; Lance cannot list any index of this table")
	}
	for _, st := range s.cover.Straddles {
		say("coverage straddle: it covers sources %v of transition %d (record %d) but not %v; the destinations need a scan",
			st.Covered, st.Seq, h.Transitions[st.Seq-1].Record, st.Missing)
	}
	if !s.cover.Orphaned.IsEmpty() {
		say("orphaned coverage: fragments %v are gone and no record says where to (written by %s); their entries dangle",
			s.cover.Orphaned.ToArray(), orUnknown(l.m.WriterVersion()))
	}
	if ix.Bitmap == nil && ix.BitmapErr == nil {
		say("there is no fragment_bitmap (written by %s): coverage is not known", orUnknown(l.m.WriterVersion()))
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "an unknown writer"
	}
	return s
}

// indexJSON is indices/<name>/index.json.
func (n version) indexJSON(ctx context.Context, dir string) (*document, error) {
	l, h, err := n.loadHistory(ctx)
	if err != nil {
		return nil, err
	}
	li := l.index(dir)
	if li == nil {
		return nil, notFound(n.path+"/indices", dir)
	}
	f := factsOf(l, h, li)
	first := li.segments[0].ix
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.K("dataset_version").Uint(n.number())
		e.K("name").Str(li.name)
		e.K("directory").Str("indices/" + li.dir)
		e.K("type").OptStr(li.typeName())
		e.K("type_url").OptStr(first.TypeURL)
		e.K("system").Bool(systemEntry(first))
		e.K("fields").Arr(func() {
			for _, id := range first.PB.GetFields() {
				e.Item().OptStr(l.fields.path(id))
			}
		})
		e.K("domain").Str(f.segments[0].domain)
		e.K("domain_reason").Str(f.segments[0].why)
		e.K("fri").Obj(func() {
			e.K("pending_transitions").Int(int64(len(h.h.Transitions)))
			e.K("translated")
			switch {
			case f.segments[0].domain == indexfile.DomainUnknown:
				e.Null()
			default:
				e.Bool(f.segments[0].domain == indexfile.DomainAddress && l.refusal == nil)
			}
		})
		e.K("lance").Arr(func() {
			for _, fact := range lanceFacts(l.m, h.h, li) {
				e.Item().Obj(func() {
					e.K("wrong").Bool(fact.wrong)
					e.K("text").Str(fact.text)
				})
			}
		})
		e.K("warnings").Strs(f.warnings)
	})
	j.Array("segments")
	for i := range f.segments {
		j.ItemObject()
		j.segmentFacts(h.h, &f.segments[i])
		j.End()
	}
	j.End()
	j.ArrayOf("covered_twice", len(f.twice), func(e *enc, i int) { e.Uint(uint64(f.twice[i])) })
	j.ArrayOf("unindexed_fragments", len(f.unindexed), func(e *enc, i int) { e.Uint(uint64(f.unindexed[i])) })
	j.K("unindexed_rows", func(e *enc) { e.OptUint(f.rows) })
	return j.Done(), nil
}

// segmentFacts adds the members that describe one segment: stored, derived and dead coverage side by side.
func (j *jsonDoc) segmentFacts(h *fri.History, f *segmentFacts) {
	ix := f.s.ix
	j.Members(func(e *enc) {
		e.K("ordinal").Int(int64(ix.Ordinal))
		e.K("uuid").OptStr(ix.UUID)
		e.K("directory").Str(f.s.dir)
		e.K("duplicate").Bool(ix.Duplicate)
		e.K("type").OptStr(ix.Type)
		e.K("domain").Str(f.domain)
		e.K("dataset_version").Uint(ix.PB.GetDatasetVersion())
		e.K("index_version").OptInt32(ix.PB.IndexVersion)
		e.K("created_at")
		if ix.PB.CreatedAt == nil {
			e.Null()
		} else {
			e.Millis(ix.PB.GetCreatedAt())
		}
		e.K("base_id").OptUint32(ix.PB.BaseId)
		e.K("bitmap_state").Str(ix.BitmapState.String())
	})
	j.bitmap("stored_fragments", ix.Bitmap)
	if f.cover.Known && !systemEntry(ix) {
		j.bitmap("covered_fragments", f.cover.Live)
		j.bitmap("orphaned_fragments", f.cover.Orphaned)
	} else {
		j.bitmap("covered_fragments", nil)
		j.bitmap("orphaned_fragments", nil)
	}
	j.ids("dead_fragments", f.dead, ix.Bitmap == nil)
	var straddles []translate.Straddle
	if !systemEntry(ix) {
		straddles = f.cover.Straddles
	}
	j.ArrayOf("straddles", len(straddles), func(e *enc, i int) {
		s := straddles[i]
		t := h.Transitions[s.Seq-1]
		e.Obj(func() {
			e.K("straddle").Bool(true)
			e.K("seq").Int(int64(s.Seq))
			e.K("record").Int(int64(t.Record))
			e.K("covered").frags(s.Covered)
			e.K("uncovered").frags(s.Missing)
			e.K("need_scan").fragmentIDs(t.Destinations)
		})
	})
}

// bitmap adds the member k: the values of a bitmap, or null.
func (j *jsonDoc) bitmap(k string, bm *roaring.Bitmap) {
	if bm == nil {
		j.K(k, (*enc).Null)
		return
	}
	j.ids(k, bm.ToArray(), false)
}

// ids adds the member k: fragment ids, or null where they are not known.
func (j *jsonDoc) ids(k string, ids []uint32, unknown bool) {
	if unknown {
		j.K(k, (*enc).Null)
		return
	}
	j.ArrayOf(k, len(ids), func(e *enc, i int) { e.Uint(uint64(ids[i])) })
}

func (e *enc) frags(v []fri.FragID) {
	e.Arr(func() {
		for _, f := range v {
			e.Item().Uint(uint64(f))
		}
	})
}
