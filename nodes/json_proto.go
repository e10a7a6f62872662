package nodes

import (
	"encoding/hex"
	"fmt"
	"sort"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/frifs/frifs/internal/pb"
)

// protoStyle says how single fields of the table messages are shown, where the plain form would mislead. Keys are
// full names below frifs.pb.table.
type protoStyle uint8

const (
	styleWide    protoStyle = iota + 1 // u64 that may exceed 2^53
	styleZeroNil                       // 0 and absent both mean unknown
	styleNil                           // absent means unset, 0 is a value
	styleTime                          // Timestamp
	styleMillis                        // milliseconds since the epoch
	styleUUID                          // UUID message, or 16 bytes
	styleSize                          // bytes whose content is of no use as text: only their number
	styleSkip                          // shown elsewhere in the same document
)

// styleOf gives the style of a field by its full name; the zero value is the plain form.
func styleOf(name string) protoStyle {
	switch name {
	case "DeletionFile.id":
		return styleWide
	case "DeletionFile.num_deleted_rows", "DataFragment.physical_rows", "DataFile.file_size_bytes":
		return styleZeroNil
	case "Manifest.index_section", "Manifest.max_fragment_id", "Manifest.branch", "Manifest.transaction_section_deprecated",
		"Manifest.transaction_section", "Manifest.max_allocated_field_id", "Manifest.next_row_id", "Manifest.max_clustering_id",
		"WriterVersion.prerelease", "WriterVersion.build_metadata", "DataFragment.clustering_id", "DataFile.base_id",
		"DeletionFile.base_id", "BasePath.name", "IndexMetadata.index_version", "IndexMetadata.base_id",
		"IndexMetadata.clustering_id", "Clone.ref_name", "Clone.branch_name", "UpdateMap.Entry.value", "Update.update_mode",
		"Delete.predicate", "RewrittenIndex.new_index_version", "Merge.preserves_nullability", "Project.preserves_nullability",
		"Manifest.transaction_file", "Manifest.tag":
		return styleNil
	case "Manifest.timestamp":
		return styleTime
	case "IndexMetadata.created_at":
		return styleMillis
	case "IndexMetadata.uuid", "RewrittenIndex.old_id", "RewrittenIndex.new_id", "FragmentTree.root_uuid":
		return styleUUID
	case "DataFragment.inline_row_ids", "DataFragment.inline_last_updated_at_versions", "DataFragment.inline_created_at_versions",
		"DataOverlayFile.shared_offset_bitmap", "FragmentTree.inline_root":
		return styleSize
	case "Manifest.fragments", "Manifest.fields":
		return styleSkip
	}
	return 0
}

// shortName is the full name of a field below the package, without outer messages but the innermost one, except where
// that would be ambiguous.
func shortName(f protoreflect.FieldDescriptor) string {
	n := string(f.ContainingMessage().Name()) + "." + string(f.Name())
	if n == "Entry.value" {
		return "UpdateMap." + n
	}
	return n
}

// Proto writes a message as an object: known fields by name in the order of the .proto file, then unknown_fields where there
// are any. Absent scalars show their default, or null where absence is a value of its own.
func (e *enc) Proto(m protoreflect.Message) {
	e.Obj(func() { e.protoMembers(m) })
}

// protoFields is how the fields of one message type are shown, in the order of the .proto file.
type protoFields []protoField

type protoField struct {
	protoreflect.FieldDescriptor
	name    string
	style   protoStyle
	inOneof bool
}

func (e *enc) fieldsOf(d protoreflect.MessageDescriptor) protoFields {
	if fs, ok := e.protos[d.FullName()]; ok {
		return fs
	}
	fds := d.Fields()
	fs := make(protoFields, 0, fds.Len())
	for i := range fds.Len() {
		f := fds.Get(i)
		if style := styleOf(shortName(f)); style != styleSkip {
			fs = append(fs, protoField{f, string(f.Name()), style, f.ContainingOneof() != nil})
		}
	}
	if e.protos == nil {
		e.protos = map[protoreflect.FullName]protoFields{}
	}
	e.protos[d.FullName()] = fs
	return fs
}

func (e *enc) protoMembers(m protoreflect.Message) {
	for _, f := range e.fieldsOf(m.Descriptor()) {
		if f.inOneof && !m.Has(f) {
			continue
		}
		e.K(f.name)
		e.protoField(m, f.FieldDescriptor, f.style)
	}
	if u := m.GetUnknown(); len(u) > 0 {
		e.K("unknown_fields")
		e.Unknown(u)
	}
}

func (e *enc) protoField(m protoreflect.Message, f protoreflect.FieldDescriptor, style protoStyle) {
	switch {
	case f.IsMap():
		e.protoMap(m.Get(f).Map(), f)
	case f.IsList():
		l := m.Get(f).List()
		e.Arr(func() {
			for i := range l.Len() {
				e.Item()
				e.protoValue(l.Get(i), f, style)
			}
		})
	case !m.Has(f) && (f.Kind() == protoreflect.MessageKind || f.Kind() == protoreflect.BytesKind || style == styleNil ||
		style == styleZeroNil || style == styleMillis):
		e.Null()
	default:
		e.protoValue(m.Get(f), f, style)
	}
}

func (e *enc) protoMap(m protoreflect.Map, f protoreflect.FieldDescriptor) {
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	sort.Slice(keys, func(i, j int) bool {
		if f.MapKey().Kind() == protoreflect.StringKind {
			return keys[i].String() < keys[j].String()
		}
		return keys[i].Int() < keys[j].Int()
	})
	e.Obj(func() {
		for _, k := range keys {
			e.K(k.String())
			if f.MapValue().Kind() == protoreflect.BytesKind {
				e.Text(m.Get(k).Bytes())
				continue
			}
			e.protoValue(m.Get(k), f.MapValue(), 0)
		}
	})
}

func (e *enc) protoValue(v protoreflect.Value, f protoreflect.FieldDescriptor, style protoStyle) {
	switch f.Kind() {
	case protoreflect.MessageKind:
		switch {
		case style == styleUUID:
			e.UUID(v.Message().Get(v.Message().Descriptor().Fields().ByNumber(1)).Bytes())
		case style == styleTime:
			if ts, ok := v.Message().Interface().(*pb.Timestamp); ok {
				e.Time(time.Unix(ts.GetSeconds(), int64(ts.GetNanos())))
			}
		default:
			e.Proto(v.Message())
		}
	case protoreflect.BytesKind:
		switch style {
		case styleUUID:
			e.UUID(v.Bytes())
		case styleSize:
			n := len(v.Bytes())
			e.Obj(func() { e.K("bytes").Int(int64(n)) })
		default:
			e.Hex(v.Bytes())
		}
	case protoreflect.StringKind:
		e.Str(v.String())
	case protoreflect.BoolKind:
		e.Bool(v.Bool())
	case protoreflect.Uint64Kind, protoreflect.Uint32Kind:
		switch {
		case style == styleWide:
			e.Wide(v.Uint())
		case style == styleZeroNil && v.Uint() == 0:
			e.Null()
		case style == styleMillis:
			e.Millis(v.Uint())
		default:
			e.Uint(v.Uint())
		}
	default:
		e.Int(v.Int())
	}
}

// Text writes bytes that are usually text: as a string if they are UTF-8, else as hex digits after "hex:".
func (e *enc) Text(b []byte) {
	if validText(b) {
		e.Str(string(b))
		return
	}
	e.Str("hex:" + hex.EncodeToString(b))
}

// UUID writes 16 bytes in the usual form, anything else as hex digits, nothing as null.
func (e *enc) UUID(b []byte) { e.OptStr(uuidString(b)) }

func uuidString(b []byte) string {
	if len(b) != 16 {
		return hex.EncodeToString(b)
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// maxMillis is the last millisecond of year 9999, the end of RFC 3339.
const maxMillis = 253402300799999

// Millis writes milliseconds since the epoch as a time; one past year 9999 as a string of digits.
func (e *enc) Millis(ms uint64) {
	if ms > maxMillis {
		e.Wide(ms)
		return
	}
	e.Time(time.UnixMilli(int64(ms)))
}

// Unknown writes the raw fields of a message as an array of {number, wire_type, value_hex}. Bytes that are no fields
// end the array with one element of wire_type null.
func (e *enc) Unknown(b []byte) {
	e.Arr(func() {
		for len(b) > 0 {
			num, typ, n := protowire.ConsumeTag(b)
			m := 0
			if n > 0 {
				m = protowire.ConsumeFieldValue(num, typ, b[n:])
			}
			if n <= 0 || m < 0 {
				e.unknownField(0, "", b)
				return
			}
			v := b[n : n+m]
			if typ == protowire.BytesType {
				v, _ = protowire.ConsumeBytes(v)
			}
			e.unknownField(int64(num), wireTypeName(typ), v)
			b = b[n+m:]
		}
	})
}

func (e *enc) unknownField(num int64, typ string, v []byte) {
	e.Item().Obj(func() {
		e.K("number").Int(num)
		e.K("wire_type").OptStr(typ)
		e.K("value_hex").Hex(v)
	})
}

func wireTypeName(t protowire.Type) string {
	switch t {
	case protowire.VarintType:
		return "varint"
	case protowire.Fixed64Type:
		return "fixed64"
	case protowire.BytesType:
		return "bytes"
	case protowire.StartGroupType, protowire.EndGroupType:
		return "group"
	case protowire.Fixed32Type:
		return "fixed32"
	}
	return ""
}
