package dataset

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/frifs/frifs/fault"
)

const (
	// guardFrom is the message size from which the decoded size is estimated first: below it, even two-byte entries
	// that decode to some hundred bytes each stay harmless.
	guardFrom = 128 << 10
	// maxGrowth bounds decoded bytes per encoded byte. The narrowest real manifests stay near 15.
	maxGrowth = 32
)

// decode unmarshals b into m. What a hostile message would take in memory is bounded before that: fault.TooLarge. A
// message that does not decode is fault.Corrupt, and the error gives the offset within b of the field that breaks it,
// counted from base.
func decode(b []byte, m proto.Message, where string, base int64) error {
	const op = "dataset.decode"
	if len(b) > guardFrom {
		if grown := decodedSize(b, m.ProtoReflect().Descriptor()); grown > maxGrowth*int64(len(b)) {
			return fault.New(op, at(where, base), fault.TooLarge,
				"the message of %d bytes would take about %d bytes decoded (limit: %d times its size)", len(b), grown, maxGrowth)
		}
	}
	if err := proto.Unmarshal(b, m); err != nil {
		return undecodable(b, m, where, base, err)
	}
	return nil
}

// undecodable is the error of a message of m's type that does not decode, with the place of the field that breaks it.
func undecodable(b []byte, m proto.Message, where string, base int64, err error) error {
	return fault.New("dataset.decode", at(where, base+brokenField(b, m)), fault.Corrupt, "the %s message does not decode: %v",
		m.ProtoReflect().Descriptor().Name(), err)
}

// at adds a byte offset to a path.
func at(where string, off int64) string { return fmt.Sprintf("%s @%d", where, off) }

// decodedSize estimates the memory of a decoded message: a constant for each length-delimited field, the message
// structures that they stand for, and the bytes themselves.
func decodedSize(b []byte, md protoreflect.MessageDescriptor) int64 {
	fields := md.Fields()
	size := int64(64 + 8*fields.Len())
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return size
		}
		b = b[n:]
		if typ != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
				return size
			}
			b = b[n:]
			size += 8
			continue
		}
		v, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return size
		}
		b = b[n:]
		size += 32
		fd := fields.ByNumber(num)
		switch {
		case fd == nil:
			size += int64(len(v))
		case fd.Message() != nil:
			size += decodedSize(v, fd.Message())
		case fd.IsPacked():
			size += 8 * int64(len(v))
		default:
			size += int64(len(v))
		}
	}
	return size
}

// brokenField returns the offset of the first top-level field of b that cannot be read, 0 if none stands out.
func brokenField(b []byte, m proto.Message) int64 {
	fields := m.ProtoReflect().Descriptor().Fields()
	for off := 0; off < len(b); {
		num, typ, n := protowire.ConsumeField(b[off:])
		if n < 0 {
			return int64(off)
		}
		if fd := fields.ByNumber(num); fd != nil && typ == protowire.BytesType && fd.Message() != nil {
			one := m.ProtoReflect().New().Interface()
			if proto.Unmarshal(b[off:off+n], one) != nil {
				return int64(off)
			}
		}
		off += n
	}
	return 0
}
