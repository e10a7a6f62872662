package nodes

import (
	"context"

	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/pb"
)

// maxHexDetails bounds the details of an index entry that are shown as hex digits, in bytes. Longer ones are a history:
// fri/details.binpb has those.
const maxHexDetails = 4096

// manifestJSON is manifest.json: the decoded manifest, complete.
func (n version) manifestJSON(ctx context.Context) (*document, error) {
	l, err := n.load(ctx)
	if err != nil {
		return nil, err
	}
	m := l.m
	p := m.PB
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.K("dataset_version").Uint(n.number())
		e.K("file").Str(m.Ref.Name)
		e.K("file_bytes").Int(m.Ref.Object.Size)
		e.K("naming_scheme").Str(m.Ref.Scheme.String())
		e.K("manifest").Obj(func() { e.protoMembers(p.ProtoReflect()) })
		e.K("reader_flags").Flags(p.GetReaderFeatureFlags())
		e.K("writer_flags").Flags(p.GetWriterFeatureFlags())
	})
	fields := p.GetFields()
	j.ArrayOf("schema", len(fields), func(e *enc, i int) { e.Proto(fields[i].ProtoReflect()) })
	frags := m.Fragments()
	j.ArrayOf("fragments", len(frags), func(e *enc, i int) { e.Proto(frags[i].Message().ProtoReflect()) })
	j.Members(func(e *enc) { e.K("index_error").Err(m.IndexErr) })
	j.ArrayOf("indices", len(m.Indices), func(e *enc, i int) { e.indexEntry(l, m.Indices[i]) })
	j.Members(func(e *enc) {
		e.K("warnings").Strs(m.Warnings)
		e.K("unknown_fields").Unknown(p.ProtoReflect().GetUnknown())
	})
	return j.Done(), nil
}

// Flags writes a feature flag word as an array of {bit, value, name}.
func (e *enc) Flags(word uint64) {
	e.Arr(func() {
		for _, f := range dataset.Flags(word) {
			e.Item().Obj(func() { e.flag(f) })
		}
	})
}

func (e *enc) flag(f dataset.Flag) {
	e.K("bit").Int(int64(f.Bit))
	e.K("value")
	if f.Value > 1<<53 {
		e.Wide(f.Value)
	} else {
		e.Uint(f.Value)
	}
	e.K("name").OptStr(f.Name)
}

// indexEntry writes one entry of the index section as an object: every field of the message, nothing hidden.
func (e *enc) indexEntry(l *loaded, ix *dataset.Index) {
	e.Obj(func() { e.indexMembers(l, ix) })
}

func (e *enc) indexMembers(l *loaded, ix *dataset.Index) {
	p := ix.PB
	e.K("ordinal").Int(int64(ix.Ordinal))
	e.K("uuid").OptStr(ix.UUID)
	e.K("name").Str(p.GetName())
	e.K("type").OptStr(ix.TypeName)
	e.K("fields").Arr(func() {
		for _, f := range p.GetFields() {
			e.Item().Int(int64(f))
		}
	})
	e.K("field_names").Arr(func() {
		for _, f := range p.GetFields() {
			e.Item().OptStr(l.fields.path(f))
		}
	})
	e.K("dataset_version").Uint(p.GetDatasetVersion())
	e.K("index_version").OptInt32(p.IndexVersion)
	e.K("created_at")
	if p.CreatedAt == nil {
		e.Null()
	} else {
		e.Millis(p.GetCreatedAt())
	}
	e.K("base_id").OptUint32(p.BaseId)
	e.K("fragment_bitmap").Obj(func() { e.bitmapMembers(ix) })
	e.K("details")
	e.details(p.GetIndexDetails())
	e.K("files").Arr(func() {
		for _, f := range p.GetFiles() {
			e.Item().Obj(func() {
				e.K("path").Str(f.GetPath())
				e.K("size_bytes").Uint(f.GetSizeBytes())
			})
		}
	})
	e.K("covering_fields").Arr(func() {
		for _, f := range p.GetCoveringFields() {
			e.Item().Int(int64(f))
		}
	})
	e.K("clustering_id").OptUint32(p.ClusteringId)
	e.K("metadata").StrMap(p.GetMetadata())
	e.K("unknown_fields").Unknown(p.ProtoReflect().GetUnknown())
}

// bitmapMembers writes the stored bitmap of an entry: state unknown, withdrawn, present or undecodable, and the fragments as
// ranges [first, last].
func (e *enc) bitmapMembers(ix *dataset.Index) {
	e.K("state").Str(ix.BitmapState.String())
	e.K("error").Err(ix.BitmapErr)
	if ix.Bitmap == nil {
		e.K("count").Null()
		e.K("ranges").Null()
		return
	}
	e.K("count").Uint(ix.Bitmap.GetCardinality())
	e.K("ranges").Arr(func() {
		var first, last uint64
		flush := func() {
			e.Item().Arr(func() {
				e.Item().Uint(first)
				e.Item().Uint(last)
			})
		}
		open := false
		for it := ix.Bitmap.Iterator(); it.HasNext(); {
			f := uint64(it.Next())
			switch {
			case !open:
				first, last, open = f, f, true
			case f == last+1:
				last = f
			default:
				flush()
				first, last = f, f
			}
		}
		if open {
			flush()
		}
	})
}

func (e *enc) details(d *pb.Any) {
	if d == nil {
		e.Null()
		return
	}
	e.Obj(func() {
		e.K("type_url").Str(d.GetTypeUrl())
		e.K("value_bytes").Int(int64(len(d.GetValue())))
		e.K("value_hex")
		if len(d.GetValue()) > maxHexDetails {
			e.Null()
		} else {
			e.Hex(d.GetValue())
		}
		if u := d.ProtoReflect().GetUnknown(); len(u) > 0 {
			e.K("unknown_fields").Unknown(u)
		}
	})
}
