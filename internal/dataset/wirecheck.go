package dataset

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// shape is what makes a message of one type decode or not: its fields that hold messages or packed numbers, by number.
// All other fields are only passed over. It lets a message be found good without being decoded, and without allocating.
type shape struct {
	fields []shapeField
}

type shapeField struct {
	message *shape // of a field that holds messages; nil = none
	packed  bool   // a field of varints that may be packed
}

// shapeOf makes the shape of a message type and of all that it holds. The types of manifests do not hold themselves.
func shapeOf(md protoreflect.MessageDescriptor) *shape {
	s := &shape{}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		f := shapeField{}
		switch {
		case fd.Message() != nil:
			f.message = shapeOf(fd.Message())
		case fd.IsList() && fd.Kind() != protoreflect.StringKind && fd.Kind() != protoreflect.BytesKind:
			f.packed = true // all numbers of these messages are varints
		default:
			continue
		}
		for len(s.fields) <= int(fd.Number()) {
			s.fields = append(s.fields, shapeField{})
		}
		s.fields[fd.Number()] = f
	}
	return s
}

// broken returns the offset of the field that keeps b from being decoded, -1 if there is none.
func (s *shape) broken(b []byte) int {
	for off := 0; off < len(b); {
		num, typ, n := protowire.ConsumeTag(b[off:])
		if n < 0 || num > protowire.MaxValidNumber {
			return off
		}
		m := protowire.ConsumeFieldValue(num, typ, b[off+n:])
		if m < 0 {
			return off
		}
		if typ == protowire.BytesType && int(num) < len(s.fields) {
			v, _ := protowire.ConsumeBytes(b[off+n : off+n+m])
			f := s.fields[num]
			if f.message != nil && f.message.broken(v) >= 0 || f.packed && !varints(v) {
				return off
			}
		}
		off += n + m
	}
	return -1
}

// varints reports whether b is a row of whole varints.
func varints(b []byte) bool {
	for len(b) > 0 {
		_, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

// wire goes through the fields of an encoded message that is known to decode.
type wire struct {
	num  protowire.Number
	typ  protowire.Type
	val  []byte // the encoded value
	rest []byte // what comes behind it
}

// next steps to the next field, false at the end.
func (w *wire) next() bool {
	num, typ, n := protowire.ConsumeTag(w.rest)
	if n < 0 {
		return false
	}
	m := protowire.ConsumeFieldValue(num, typ, w.rest[n:])
	if m < 0 {
		return false
	}
	w.num, w.typ, w.val, w.rest = num, typ, w.rest[n:n+m], w.rest[n+m:]
	return true
}

// number is the value of a varint field.
func (w *wire) number() uint64 {
	v, _ := protowire.ConsumeVarint(w.val)
	return v
}

// bytes is the value of a length-delimited field.
func (w *wire) bytes() []byte {
	v, _ := protowire.ConsumeBytes(w.val)
	return v
}

// number is the value of a varint field of a message: the last one counts, 0 where there is none.
func number(b []byte, field protowire.Number) uint64 {
	n := uint64(0)
	for w := (wire{rest: b}); w.next(); {
		if w.num == field && w.typ == protowire.VarintType {
			n = w.number()
		}
	}
	return n
}
