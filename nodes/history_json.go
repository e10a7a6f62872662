package nodes

import (
	"context"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
)

// record is a transition with what its row map, if it has one, told when it was opened.
type record struct {
	t      *fri.Transition
	part   *rowmap.Partition // nil where the record has no usable row map
	checks []fri.Check
	err    error  // why the record cannot be used
	path   string // of the row map, where it was found; "" = none
	note   string // says so where that is under another base than recorded
}

// record looks at one record of the version and, for a stable partition, at its row map's head. Failures that may pass
// are returned; what is wrong with the file is part of the record.
func (n version) record(ctx context.Context, l *loaded, t *fri.Transition) (*record, error) {
	r := &record{t: t, checks: t.Checks, err: t.Err}
	if t.Partition == nil {
		return r, nil
	}
	if loc, err := n.t.ds.RowMap(ctx, l.m, t.Partition.MapID, t.Partition.BaseID); err == nil {
		r.path = loc.URI()
		if len(l.m.PB.GetBasePaths()) > 0 {
			if at, err := loc.Find(ctx); err == nil {
				r.path, r.note = at.URI(), at.Note()
			}
		}
	}
	if !t.Usable() {
		return r, nil
	}
	p, err := n.partition(ctx, l, t)
	if err != nil {
		switch fault.KindOf(err) {
		case fault.Unavailable, fault.TimedOut, fault.Cancelled, fault.Unknown:
			return nil, err
		}
		r.err = err
		r.checks = mergeChecks(t.Checks, rowMapChecks(err))
		return r, nil
	}
	r.part = p
	checks := p.Checks()
	for i := range checks {
		if checks[i].OK == nil { // how far they got depends on who read what
			checks[i].Detail = "made as the rows are read"
		}
	}
	r.checks = mergeChecks(t.Checks, checks)
	return r, nil
}

// rowMapChecks are the checks that a failed opening leaves.
func rowMapChecks(err error) []fri.Check {
	if cs := rowmap.CheckList(err); len(cs) > 0 {
		return cs
	}
	no := false
	return []fri.Check{{Name: "row_map", OK: &no, Detail: err.Error()}}
}

// mergeChecks puts the checks of the row map in the place of the record's own "row_map" check.
func mergeChecks(record, file []fri.Check) []fri.Check {
	var out []fri.Check
	for _, c := range record {
		if c.Name != "row_map" {
			out = append(out, c)
		}
	}
	return append(out, file...)
}

// records looks at every record of the history.
func (n version) records(ctx context.Context, l *loaded, h *history) ([]*record, error) {
	out := make([]*record, len(h.h.Transitions))
	for i, t := range h.h.Transitions {
		r, err := n.record(ctx, l, t)
		if err != nil {
			return nil, err
		}
		out[i] = r
	}
	return out, nil
}

// historyErrors are the history's errors, with those of row maps.
func historyErrors(h *history, rs []*record) []fri.Finding {
	out := append([]fri.Finding(nil), h.h.Errors...)
	for _, r := range rs {
		if r.err != nil && r.t.Err == nil {
			out = append(out, fri.Finding{Record: r.t.Record, Kind: fault.KindOf(r.err), Message: r.err.Error()})
		}
	}
	return out
}

// historyWarnings are the warnings of the entry and of the history.
func historyWarnings(l *loaded, h *history) []fri.Finding {
	var out []fri.Finding
	for _, w := range l.fri.warnings {
		out = append(out, fri.Finding{Message: w})
	}
	return append(out, h.h.Warnings...)
}

// historyJSON is fri/history.json: the whole history, from this manifest alone (docs/DESIGN.md, "Text formats").
func (n version) historyJSON(ctx context.Context) (*document, error) {
	l, h, err := n.loadHistory(ctx)
	if err != nil {
		return nil, err
	}
	rs, err := n.records(ctx, l, h)
	if err != nil {
		return nil, err
	}
	j := newJSONDoc()
	j.doc.costlyID = true
	j.Members(func(e *enc) { n.historyHead(e, l, h) })
	ws, es := historyWarnings(l, h), historyErrors(h, rs)
	j.ArrayOf("warnings", len(ws), func(e *enc, i int) { e.finding(ws[i]) })
	j.ArrayOf("errors", len(es), func(e *enc, i int) { e.finding(es[i]) })
	j.Array("transitions")
	for _, r := range rs {
		j.ItemObject()
		j.record(l, h, r, nil)
		j.End()
	}
	j.End()
	return j.Done(), nil
}

func (n version) historyHead(e *enc, l *loaded, h *history) {
	f := &l.fri
	e.K("dataset_version").Uint(n.number())
	e.K("present").Bool(f.present())
	e.K("index_version")
	if f.entry == nil {
		e.Null()
	} else {
		e.Int(int64(f.indexVersion()))
	}
	e.K("tagged").Bool(h.h.Tagged)
	e.K("uuid")
	if f.entry == nil {
		e.Null()
	} else {
		e.OptStr(f.entry.UUID)
	}
	e.K("created_at")
	if f.entry == nil || f.entry.PB.CreatedAt == nil {
		e.Null()
	} else {
		e.Millis(f.entry.PB.GetCreatedAt())
	}
	e.K("fragment_bitmap")
	if f.entry == nil || f.entry.Bitmap == nil {
		e.Null()
	} else {
		e.Arr(func() {
			for it := f.entry.Bitmap.Iterator(); it.HasNext(); {
				e.Item().Uint(uint64(it.Next()))
			}
		})
	}
	e.K("storage")
	if f.entry == nil || f.count > 1 || f.err != nil {
		e.Null()
	} else {
		e.Obj(func() {
			ext := f.content.External
			if ext == nil {
				e.K("kind").Str("inline")
				e.K("bytes").Int(int64(len(f.content.Inline)))
				e.K("path").Null()
				e.K("offset").Null()
				return
			}
			e.K("kind").Str("external")
			e.K("bytes").Uint(ext.Size)
			e.K("path").Str("_indices/" + f.entry.UUID + "/" + ext.Path)
			e.K("offset").Uint(ext.Offset)
		})
	}
	e.K("flags_ok").Bool(flagsOK(l, h))
}

// flagsOK reports whether the two words agree about flag 1024, and it is set where the entry is tagged.
func flagsOK(l *loaded, h *history) bool {
	const bit = 1 << 10
	r, w := l.m.PB.GetReaderFeatureFlags()&bit != 0, l.m.PB.GetWriterFeatureFlags()&bit != 0
	return r == w && (r || !h.h.Tagged)
}

// finding writes a warning or an error of a history as an object.
func (e *enc) finding(f fri.Finding) {
	e.Obj(func() {
		e.K("record")
		if f.Record == 0 {
			e.Null()
		} else {
			e.Int(int64(f.Record))
		}
		e.K("rule")
		if f.Rule == 0 {
			e.Null()
		} else {
			e.Int(int64(f.Rule))
		}
		e.K("kind")
		if f.Kind == fault.Unknown {
			e.Null()
		} else {
			e.Str(f.Kind.String())
		}
		e.K("message").Str(f.Message)
	})
}

// record adds the members of one transition. more, if set, adds members to source i.
func (j *jsonDoc) record(l *loaded, h *history, r *record, more func(e *enc, i int)) {
	t := r.t
	j.Members(func(e *enc) {
		e.K("seq").Int(int64(t.Seq))
		e.K("record").Int(int64(t.Record))
		e.K("id").transitionID(t)
		e.K("form").Str(t.Form.String())
		e.K("kind").Str(t.Kind.String())
		e.K("legacy")
		if t.Legacy == nil {
			e.Null()
		} else {
			e.Obj(func() {
				e.K("dataset_version").Uint(t.Legacy.DatasetVersion)
				e.K("version").Int(int64(t.Legacy.Version))
				e.K("group").Int(int64(t.Legacy.Group))
			})
		}
	})
	j.ArrayOf("sources", len(t.Sources), func(e *enc, i int) {
		e.Obj(func() {
			e.digest(l, h, t.Sources[i])
			if more != nil {
				more(e, i)
			}
		})
	})
	j.ArrayOf("destinations", len(t.Destinations), func(e *enc, i int) {
		e.Obj(func() { e.digest(l, h, t.Destinations[i]) })
	})
	j.Members(func(e *enc) {
		e.K("rows").Obj(func() {
			in, moved, dropped, ok := t.Rows()
			for _, kv := range []struct {
				k string
				v uint64
			}{{"in", in}, {"moved", moved}, {"dropped", dropped}} {
				e.K(kv.k)
				if ok {
					e.Uint(kv.v)
				} else {
					e.Null()
				}
			}
		})
		e.K("row_map")
		e.rowMap(r)
		e.K("checks").Arr(func() {
			for _, c := range r.checks {
				e.Item().Obj(func() {
					e.K("name").Str(c.Name)
					e.K("ok").OptBool(c.OK)
					e.K("detail").OptStr(c.Detail)
				})
			}
		})
		e.K("error")
		if r.err == nil {
			e.Null()
		} else {
			e.Str(r.err.Error())
		}
		e.K("unknown_fields").Arr(func() {
			for _, u := range t.Unknown {
				e.Item()
				e.unknownOf(u)
			}
		})
	})
}

func (e *enc) unknownOf(u fri.UnknownField) {
	e.Obj(func() {
		e.K("in").Str(u.Path)
		e.K("number").Uint(uint64(u.Number))
		e.K("wire_type").OptStr(wireTypeName(protowire.Type(u.WireType)))
		e.K("offset").Int(u.Offset)
		e.K("bytes").Int(u.Length)
		e.K("value_hex")
		if u.Value == nil && u.Length > 0 {
			e.Null()
		} else {
			e.Hex(u.Value)
		}
	})
}

// digest writes the members of one source or destination.
func (e *enc) digest(l *loaded, h *history, d fri.Digest) {
	e.K("fragment").Uint(d.ID)
	e.K("physical_rows").Uint(d.PhysicalRows)
	e.K("deleted_rows").Uint(d.DeletedRows)
	e.K("live_rows").Uint(d.LiveRows())
	valid := d.ID <= 0xFFFFFFFF
	_, live := l.m.Live()[d.Frag()]
	e.K("live_in_manifest").Bool(valid && live)
	e.K("produced_by")
	e.firstSeq(h.h.Producer(d.Frag()), valid)
	e.K("consumed_by")
	e.firstSeq(h.h.Consumer(d.Frag()), valid)
}

func (e *enc) firstSeq(ts []*fri.Transition, valid bool) {
	if !valid || len(ts) == 0 {
		e.Null()
		return
	}
	e.Int(int64(ts[0].Seq))
}

func (e *enc) rowMap(r *record) {
	p := r.t.Partition
	if p == nil {
		e.Null()
		return
	}
	e.Obj(func() {
		e.K("map_id").Str(p.MapID)
		e.K("path").OptStr(r.path)
		e.K("size_bytes").Uint(p.SizeBytes)
		e.K("base_id").OptUint32(p.BaseID)
		e.K("blocks")
		if r.part == nil {
			e.Null()
		} else {
			e.Uint(r.part.Blocks())
		}
		e.K("block_rows")
		if r.part == nil {
			e.Null()
		} else {
			e.Uint(uint64(r.part.BlockRows()))
		}
		e.K("note").OptStr(r.note)
	})
}
