package nodes

import (
	"context"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/indexfile"
)

// versionJSON is version.json: the version in short, and what is to be known about it.
func (n version) versionJSON(ctx context.Context) (*document, error) {
	l, h, err := n.loadHistory(ctx)
	if err != nil {
		return nil, err
	}
	t, err := n.transaction(ctx, l)
	if err != nil {
		return nil, err
	}
	m := l.m
	sv, inferred := m.StorageVersion()
	rs, err := n.records(ctx, l, h)
	if err != nil {
		return nil, err
	}
	notes := append(n.advice(l, h), unusableAdvice(rs)...)
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.K("dataset_version").Uint(n.number())
		ts, _ := m.Timestamp()
		e.K("timestamp").Time(ts)
		e.K("branch").OptStr(m.Branch())
		e.K("operation").OptStr(t.Operation)
		e.K("rows").rowCount(m)
		e.K("physical_rows").sum(m.Fragments(), func(f *dataset.Fragment) *uint64 { return f.PhysicalRows })
		e.K("deleted_rows").sum(m.Fragments(), func(f *dataset.Fragment) *uint64 { return f.DeletedRows })
		e.K("fragments").Int(int64(len(m.Fragments())))
		e.K("data_bytes").sum(m.Fragments(), (*dataset.Fragment).Bytes)
		e.K("writer").OptStr(m.WriterVersion())
		e.K("storage_version").OptStr(sv)
		e.K("storage_version_inferred").Bool(inferred)
		e.K("stable_row_ids").Bool(m.StableRowIDs())
		e.K("reader_flags").FlagNotes(m.PB.GetReaderFeatureFlags())
		e.K("writer_flags").FlagNotes(m.PB.GetWriterFeatureFlags())
		e.K("flag_findings").Strs(dataset.FlagFindings(m.PB.GetReaderFeatureFlags(), m.PB.GetWriterFeatureFlags()))
		e.K("translation_refused").Err(l.refusal)
		e.K("fri").Obj(func() { e.friSummary(l, h, rs) })
	})
	j.ArrayOf("indices", len(l.logical), func(e *enc, i int) { e.indexSummary(l, l.logical[i]) })
	j.Members(func(e *enc) {
		e.K("warnings").Strs(m.Warnings)
		e.K("advice").Strs(notes)
	})
	return j.Done(), nil
}

func (e *enc) rowCount(m *dataset.Manifest) {
	rows, ok := m.Rows()
	if !ok {
		e.Null()
		return
	}
	e.Uint(rows)
}

// sum writes the sum of a count over all fragments, null where one is not known.
func (e *enc) sum(frags []*dataset.Fragment, of func(*dataset.Fragment) *uint64) {
	var total uint64
	for _, f := range frags {
		v := of(f)
		if v == nil || total+*v < total {
			e.Null()
			return
		}
		total += *v
	}
	e.Uint(total)
}

// FlagNotes writes a flag word with what each bit means to readers.
func (e *enc) FlagNotes(word uint64) {
	e.Arr(func() {
		for _, f := range dataset.Flags(word) {
			e.Item().Obj(func() {
				e.flag(f)
				e.K("note").Str(f.Note)
			})
		}
	})
}

// friSummary counts what the history holds; rs are its records with what their row maps told.
func (e *enc) friSummary(l *loaded, h *history, rs []*record) {
	e.K("present").Bool(l.fri.present())
	e.K("usable").Bool(l.fri.present() && h.h.Broken == nil)
	e.K("uuid")
	if l.fri.entry == nil {
		e.Null()
	} else {
		e.OptStr(l.fri.entry.UUID)
	}
	e.K("index_version")
	if l.fri.entry == nil {
		e.Null()
	} else {
		e.Int(int64(l.fri.indexVersion()))
	}
	e.K("tagged").Bool(h.h.Tagged)
	var legacy, tagged, bad int
	for _, r := range rs {
		switch {
		case r.err != nil:
			bad++
		case r.t.Form == fri.Legacy:
			legacy++
		default:
			tagged++
		}
	}
	e.K("transitions").Int(int64(len(h.h.Transitions)))
	e.K("legacy").Int(int64(legacy))
	e.K("tagged_transitions").Int(int64(tagged))
	e.K("unusable").Int(int64(bad))
	e.K("errors").Int(int64(len(historyErrors(h, rs))))
	e.K("warnings").Int(int64(len(h.h.Warnings) + len(l.fri.warnings)))
	e.K("bytes")
	if h.content == nil {
		e.Null()
	} else {
		e.Int(h.h.Size)
	}
}

func (e *enc) indexSummary(l *loaded, li *logicalIndex) {
	e.Obj(func() {
		e.K("name").Str(li.name)
		e.K("directory").Str("indices/" + li.dir)
		e.K("type").OptStr(li.typeName())
		e.K("fields").Arr(func() {
			for _, f := range li.segments[0].ix.PB.GetFields() {
				e.Item().OptStr(l.fields.path(f))
			}
		})
		d, _ := indexfile.Domain(l.m, li.segments[0].ix)
		e.K("domain").Str(d)
		e.K("segments").Int(int64(len(li.segments)))
	})
}

// typeName is the type that all segments share, "" where it is not known or differs.
func (li *logicalIndex) typeName() string {
	name := li.segments[0].ix.Type
	if name == "" {
		name = li.segments[0].ix.TypeName
	}
	for _, s := range li.segments[1:] {
		if s.ix.Type != li.segments[0].ix.Type {
			return ""
		}
	}
	return name
}
