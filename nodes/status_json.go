package nodes

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/translate"
)

// Thresholds at which LanceDB Enterprise catches up with pending records by default.
const (
	dueTransitions = 5
	dueAge         = 86400 * time.Second
)

// friStatusJSON is fri/status.json: which records are pending, by whom they are needed, since when they are there, and
// what the history makes writers refuse.
func (n version) friStatusJSON(ctx context.Context) (*document, error) {
	l, h, err := n.loadHistory(ctx)
	if err != nil {
		return nil, err
	}
	segs := l.segments(true)
	ns := translate.NeededBy(h.h, l.liveSet(), segs)
	hits := indexed(l, h.h)
	ages, err := n.ages(ctx, h.h)
	if err != nil {
		return nil, err
	}
	pending, oldest := pendingOf(h.h, ns, ages)
	rules := writerRules(l.m, &l.fri, h.h)
	j := newJSONDoc()
	j.doc.costlyID = true
	j.Members(func(e *enc) {
		e.K("dataset_version").Uint(n.number())
		e.K("present").Bool(l.fri.present())
		e.K("tagged").Bool(h.h.Tagged)
		e.K("error").Err(h.h.Broken)
		e.K("transitions_total").Int(int64(len(h.h.Transitions)))
		e.K("pending")
		if h.h.Broken != nil {
			e.Null()
		} else {
			e.Int(int64(pending))
		}
		e.K("pending_counts").Str(pendingUnit(h.h))
		e.K("trimmable").Int(int64(trimmable(ns)))
		e.K("thresholds").Obj(func() {
			e.K("transitions").Int(dueTransitions)
			e.K("age_seconds").Int(int64(dueAge / time.Second))
		})
		e.K("due_by_count").Bool(pending >= dueTransitions)
		e.K("oldest_pending")
		e.oldest(h.h, ages, oldest)
		e.K("due_at")
		if oldest < 0 || ages[oldest] == nil || ages[oldest].time.IsZero() {
			e.Null()
		} else {
			e.Time(ages[oldest].time.Add(dueAge))
		}
	})
	j.ArrayOf("transitions", len(ns), func(e *enc, i int) {
		t := h.h.Transitions[i]
		e.Obj(func() {
			e.K("seq").Int(int64(t.Seq))
			e.K("record").Int(int64(t.Record))
			e.K("id").transitionID(t)
			e.needMembers(t, &ns[i], segs)
			e.K("covers_no_index").Bool(!hits[i])
			e.K("intermediate").Bool(noneLive(l, t.Destinations))
			e.K("since").since(ages[i])
		})
	})
	j.ArrayOf("writer_rules", len(rules), func(e *enc, i int) {
		e.Obj(func() {
			e.K("rule").Str(rules[i].rule)
			e.K("refuses").Str(rules[i].refuses)
			e.K("why").Str(rules[i].why)
		})
	})
	return j.Done(), nil
}

// ages dates every record.
func (n version) ages(ctx context.Context, h *fri.History) ([]*since, error) {
	d := newDater(n)
	out := make([]*since, len(h.Transitions))
	for i, t := range h.Transitions {
		s, err := d.find(ctx, t)
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
}

// pendingOf counts the pending records, the groups of one legacy Version as one unless the history is tagged, and
// returns the position of the one that came first (-1 = none).
func pendingOf(h *fri.History, ns []translate.Need, ages []*since) (count, oldest int) {
	oldest = -1
	counted := map[int]bool{}
	for i := range ns {
		if ns[i].Trimmable() {
			continue
		}
		if l := h.Transitions[i].Legacy; h.Tagged || l == nil {
			count++
		} else if !counted[l.Version] {
			counted[l.Version] = true
			count++
		}
		if oldest < 0 || (ages[i] != nil && (ages[oldest] == nil || ages[i].version < ages[oldest].version)) {
			oldest = i
		}
	}
	return count, oldest
}

// pendingUnit says what pending counts.
func pendingUnit(h *fri.History) string {
	if h.Tagged {
		return "records"
	}
	return "legacy_versions"
}

func trimmable(ns []translate.Need) int {
	n := 0
	for i := range ns {
		if ns[i].Trimmable() {
			n++
		}
	}
	return n
}

func (e *enc) oldest(h *fri.History, ages []*since, i int) {
	if i < 0 {
		e.Null()
		return
	}
	e.Obj(func() {
		e.K("seq").Int(int64(h.Transitions[i].Seq))
		e.K("record").Int(int64(h.Transitions[i].Record))
		e.K("id").transitionID(h.Transitions[i])
		e.K("since").since(ages[i])
	})
}

// since writes when a record came. age says what follows for its age: "exact", or "lower_bound" where it may be older.
func (e *enc) since(s *since) {
	if s == nil {
		e.Null()
		return
	}
	e.Obj(func() {
		e.K("version").Uint(s.version)
		e.K("time").Time(s.time)
		e.K("age")
		if s.exact {
			e.Str("exact")
		} else {
			e.Str("lower_bound")
		}
		e.K("not_before").Time(s.notBefore)
	})
}

// needMembers says by whom a record is needed.
func (e *enc) needMembers(t *fri.Transition, n *translate.Need, segs []translate.Segment) {
	e.K("needed")
	if n.Unclear {
		e.Null()
	} else {
		e.Bool(!n.Trimmable())
	}
	e.K("trimmable")
	if n.Unclear {
		e.Null()
	} else {
		e.Bool(n.Trimmable())
	}
	e.K("needed_by").Arr(func() {
		for _, b := range n.Needers {
			e.Item().Obj(func() {
				e.K("index").Str(segs[b.Segment].Name)
				e.K("uuid").Str(segs[b.Segment].UUID)
				e.K("why").Str(whyNeeded(t, b, segs[b.Segment]))
			})
		}
	})
	e.K("kept_for").Arr(func() {
		for _, seq := range n.KeptBy {
			e.Item().Int(int64(seq))
		}
	})
	e.K("note")
	switch {
	case n.Unclear:
		e.Str("a record of this history cannot be read; Lance refuses to trim it")
	case len(n.Straddles) > 0:
		e.Str("index " + strconv.Quote(segs[n.Straddles[0]].Name) + " covers only some sources of a group: Lance takes the record for corrupt and drops it")
	case n.Resolved:
		e.Str("every index covers directly what became of the rows: nothing needs the record, but Lance 14.0.2 keeps it")
	case n.Trimmable() && t.Form == fri.Tagged && t.Err != nil:
		e.Str("the record is never applied")
	default:
		e.Null()
	}
}

func whyNeeded(t *fri.Transition, n translate.Needer, s translate.Segment) string {
	switch n.Why {
	case translate.ByStamp:
		return fmt.Sprintf("it was built from version %d, not after the record's stamp %d", s.DatasetVersion, t.Legacy.DatasetVersion)
	case translate.ByBitmap:
		return "its stored bitmap names all sources of a group"
	case translate.ByProvenance:
		return "its stored bitmaps name a source, and no segment that readers can use covers every destination directly"
	case translate.ReasonUnknown:
	}
	return "unknown"
}
