package lancefile

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/pb"
)

// pageMeta is a Page message, read in place: a column of a large file has thousands of them.
type pageMeta struct {
	offsets, sizes []uint64
	length         uint64
	encoding       []byte // the Encoding message
}

// parsePage reads the fields of a Page message that matter here: 1 buffer offsets, 2 buffer sizes, 3 length, 4
// encoding.
func parsePage(b []byte) (m pageMeta, err error) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return m, protowire.ParseError(n)
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(num, typ, b)
		if size < 0 {
			return m, protowire.ParseError(size)
		}
		v := b[:size]
		b = b[size:]
		switch num {
		case 1:
			err = integers(&m.offsets, typ, v)
		case 2:
			err = integers(&m.sizes, typ, v)
		case 3:
			if typ != protowire.VarintType {
				return m, fmt.Errorf("length with wire type %d", typ)
			}
			m.length, _ = protowire.ConsumeVarint(v)
		case 4:
			if typ != protowire.BytesType {
				return m, fmt.Errorf("encoding with wire type %d", typ)
			}
			m.encoding, _ = protowire.ConsumeBytes(v)
		}
		if err != nil {
			return m, err
		}
	}
	return m, nil
}

// integers appends a repeated integer field, packed or not.
func integers(list *[]uint64, typ protowire.Type, v []byte) error {
	switch typ {
	case protowire.VarintType:
		x, _ := protowire.ConsumeVarint(v)
		*list = append(*list, x)
		return nil
	case protowire.BytesType:
	default:
		return fmt.Errorf("repeated integer with wire type %d", typ)
	}
	for b, _ := protowire.ConsumeBytes(v); len(b) > 0; {
		x, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		*list = append(*list, x)
		b = b[n:]
	}
	return nil
}

// encoding is a decoded page encoding: its type URL, and one of the messages, which is nil where the URL calls for
// another one.
type encoding struct {
	url    string
	array  *pb.ArrayEncoding
	layout *pb.PageLayout
	planar *pb.PlanarLayout
}

// parseEncoding decodes an Encoding message and the encoding in it.
func parseEncoding(b []byte) (*encoding, error) {
	m := &pb.ColumnEncoding{}
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("page encoding does not decode: %w", err)
	}
	if m.GetDirect() == nil {
		return nil, &unknownError{what: "encoding", detail: "page encoding that is not in place"}
	}
	a := &pb.AnyValue{}
	if err := proto.Unmarshal(m.GetDirect().GetEncoding(), a); err != nil {
		return nil, fmt.Errorf("page encoding does not decode: %w", err)
	}
	e := &encoding{url: a.GetTypeUrl()}
	var inner proto.Message
	switch base(e.url) {
	case url20:
		e.array = &pb.ArrayEncoding{}
		inner = e.array
	case url21:
		e.layout = &pb.PageLayout{}
		inner = e.layout
	case urlPlanar:
		e.planar = &pb.PlanarLayout{}
		inner = e.planar
	default:
		return e, nil
	}
	if err := proto.Unmarshal(a.GetValue(), inner); err != nil {
		return nil, fmt.Errorf("page layout does not decode: %w", err)
	}
	return e, nil
}

func isUnknown(err error) bool {
	var u *unknownError
	return errors.As(err, &u)
}
