package nodes

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/indexfile"
)

// foundFragments is where the stored addresses of a segment lie, whatever the version.
type foundFragments struct {
	entries fragmentCounts
	whole   map[fri.FragID]bool // fragments that some set names as a whole
}

// segmentNeeds is one segment that stores addresses, as fri/scan/needed.json judges it.
type segmentNeeds struct {
	at    segmentAt
	s     *segment
	found *foundFragments // nil where it could not be scanned
	err   error
}

// found scans the files of a segment, once for all versions that have them.
func (at segmentAt) found(ctx context.Context) (*foundFragments, error) {
	sc, err := at.scan(ctx, at.key(""))
	if err != nil {
		return nil, err
	}
	sc.seg.Rows = nil // what a version knows of a fragment's rows is nothing that the files say
	dir, err := at.n.t.ds.IndexDir(ctx, sc.l.m, sc.s.ix)
	if err != nil {
		return nil, err
	}
	key := dir.URI() + "\x00" + sc.seg.Type + at.key("")[len(at.n.key()):]
	for _, f := range sc.files {
		key += "\x00" + f.path + "\x00" + strconv.FormatInt(f.size, 10)
	}
	if out, ok := at.n.t.found.use(key); ok {
		return out, nil
	}
	out := &foundFragments{entries: fragmentCounts{}, whole: map[fri.FragID]bool{}}
	for _, f := range sc.files {
		if f.err != nil {
			return nil, f.err
		}
		if !f.addresses() {
			continue
		}
		if err := sc.count(ctx, f.path, out); err != nil {
			return nil, err
		}
	}
	at.n.t.found.put(key, out, 256+48*int64(len(out.entries)+len(out.whole)))
	return out, nil
}

// count counts the addresses of one file, without asking what became of them.
func (sc *segmentScan) count(ctx context.Context, path string, out *foundFragments) error {
	plain := *sc
	plain.resolver = nowhere{}
	return plain.walk(ctx, path, func(c *addressCursor) error { return out.entries.count(c.b.Addrs) }, func(frags []fri.FragID) {
		for _, f := range frags {
			out.whole[f] = true
		}
	})
}

// nowhere is a Resolver for those who only want to know which addresses there are.
type nowhere struct{}

func (nowhere) Resolve(context.Context, []fri.RowAddr, *indexfile.Answers) error { return nil }
func (nowhere) Rows(fri.FragID) (uint64, bool)                                   { return 0, false }

// addressSegments lists the segments of the version that store addresses, or may.
func (n version) addressSegments(ctx context.Context, l *loaded) []segmentNeeds {
	var out []segmentNeeds
	for _, li := range l.logical {
		for i, s := range li.segments {
			if systemEntry(s.ix) {
				continue
			}
			domain, _ := indexfile.Domain(l.m, s.ix)
			if domain == indexfile.DomainRowID {
				continue
			}
			at := segmentAt{n, li.dir, i}
			out = append(out, segmentNeeds{at: at, s: s, err: at.remapRefused(ctx, l, s)})
		}
	}
	return out
}

// neededJSON is fri/scan/needed.json: which records the addresses in the index files need. It goes by the addresses, not
// by bitmaps or versions. A segment that cannot be scanned makes unclear what it might need.
func (n version) neededJSON(ctx context.Context) (*document, error) {
	l, h, err := n.loadHistory(ctx)
	if err != nil {
		return nil, err
	}
	segs := n.addressSegments(ctx, l)
	var unclear []int
	for i := range segs {
		s := &segs[i]
		if s.err == nil {
			if s.found, s.err = s.at.found(ctx); passing(s.err) {
				return nil, s.err
			}
		}
		if s.err != nil {
			unclear = append(unclear, i)
		}
	}
	needs := recordNeeds(l, h, segs)
	j := newJSONDoc()
	j.doc.costlyID = true
	j.Members(func(e *enc) {
		e.K("dataset_version").Uint(n.number())
		e.K("tagged").Bool(h.h.Tagged)
		e.K("complete").Bool(len(unclear) == 0)
	})
	j.ArrayOf("segments", len(segs), func(e *enc, i int) { e.segmentNeeds(&segs[i]) })
	j.ArrayOf("transitions", len(needs), func(e *enc, i int) {
		t, need := h.h.Transitions[i], &needs[i]
		e.Obj(func() {
			e.K("seq").Int(int64(t.Seq))
			e.K("record").Int(int64(t.Record))
			e.K("id").transitionID(t)
			e.K("needed")
			if !need.needed() && len(unclear) > 0 {
				e.Null()
			} else {
				e.Bool(need.needed())
			}
			e.K("needed_by").Arr(func() {
				for _, by := range need.by {
					e.Item().Obj(func() {
						e.segmentName(segs[by.segment].s.ix)
						e.K("entries")
						if by.whole {
							e.Null() // a set names a source as a whole
						} else {
							e.Uint(by.entries)
						}
						e.K("fragments").frags(by.frags)
					})
				}
			})
			e.K("kept_for").Arr(func() {
				for _, seq := range need.keptFor {
					e.Item().Int(int64(seq))
				}
			})
			e.K("unclear").Arr(func() {
				for _, i := range unclear {
					e.Item().Obj(func() { e.segmentName(segs[i].s.ix) })
				}
			})
		})
	})
	return j.Done(), nil
}

func (e *enc) segmentName(ix *dataset.Index) {
	e.K("index").Str(ix.Name)
	e.K("uuid").OptStr(ix.UUID)
}

func (e *enc) segmentNeeds(s *segmentNeeds) {
	e.Obj(func() {
		e.segmentName(s.s.ix)
		e.K("type").OptStr(s.s.ix.Type)
		e.K("scanned").Bool(s.found != nil)
		e.K("entries")
		if s.found == nil {
			e.Null()
		} else {
			total := uint64(0)
			for _, n := range s.found.entries {
				total += n
			}
			e.Uint(total)
		}
		e.K("error").Err(s.err)
	})
}

// recordNeed is who needs one record.
type recordNeed struct {
	by      []recordNeeder
	keptFor []int // seqs of needed records whose destinations it consumes
}

type recordNeeder struct {
	segment int
	entries uint64
	frags   []fri.FragID // sources that hold addresses of the segment
	whole   bool
}

func (r *recordNeed) needed() bool { return len(r.by) > 0 || len(r.keptFor) > 0 }

// recordNeeds judges every record, in the order of application: by the addresses in its sources, and by the needed
// records before it that lead there.
func recordNeeds(l *loaded, h *history, segs []segmentNeeds) []recordNeed {
	out := make([]recordNeed, len(h.h.Transitions))
	sources := h.sources(l)
	leads := map[fri.FragID]map[int]bool{} // destinations of needed records, by seq
	for i, t := range h.h.Transitions {
		kept := map[int]bool{}
		for _, d := range t.Sources {
			if d.ID <= 0xFFFFFFFF && sources.Contains(uint32(d.ID)) {
				maps.Copy(kept, leads[d.Frag()])
			}
		}
		for k := range segs {
			if by, ok := neededFor(t, sources.Contains, &segs[k]); ok {
				by.segment = k
				out[i].by = append(out[i].by, by)
			}
		}
		out[i].keptFor = slices.Sorted(maps.Keys(kept))
		if !out[i].needed() {
			continue
		}
		for _, d := range t.Destinations {
			if d.ID > 0xFFFFFFFF {
				continue
			}
			if leads[d.Frag()] == nil {
				leads[d.Frag()] = map[int]bool{}
			}
			leads[d.Frag()][t.Seq] = true
		}
	}
	return out
}

func neededFor(t *fri.Transition, source func(uint32) bool, s *segmentNeeds) (by recordNeeder, ok bool) {
	if s.found == nil {
		return by, false
	}
	for _, d := range t.Sources {
		if d.ID > 0xFFFFFFFF || !source(uint32(d.ID)) {
			continue
		}
		n, whole := s.found.entries[d.Frag()], s.found.whole[d.Frag()]
		if n > 0 || whole {
			by.entries += n
			by.whole = by.whole || whole
			by.frags = append(by.frags, d.Frag())
		}
	}
	return by, len(by.frags) > 0
}
