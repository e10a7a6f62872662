package lancefile

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// The messages of new pages are written field by field: their bytes are then those of the golden files, whatever the
// protobuf library does about order.

// The type URLs as writers spell them.
const (
	arrayURL  = "/" + url20
	layoutURL = "/" + url21
	planarURL = "/" + urlPlanar
	columnURL = "/lance.encodings.ColumnEncoding"
)

// appendMessage appends field num with the given content.
func appendMessage(b []byte, num protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), content)
}

// appendNumber appends field num with a number, unless it is 0.
func appendNumber(b []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

// message is field num with the given content, alone.
func message(num protowire.Number, content []byte) []byte { return appendMessage(nil, num, content) }

func number(num protowire.Number, v uint64) []byte { return appendNumber(nil, num, v) }

func packed(v []uint64) []byte {
	var b []byte
	for _, x := range v {
		b = protowire.AppendVarint(b, x)
	}
	return b
}

// directEncoding is an Encoding message with an encoding in place.
func directEncoding(url string, value []byte) []byte {
	return message(2, message(1, appendMessage(message(1, []byte(url)), 2, value)))
}

// columnMessage begins a ColumnMetadata message: the column encoding, always "values".
func columnMessage() []byte {
	return message(1, directEncoding(columnURL, message(1, nil)))
}

// appendPage appends a Page to a ColumnMetadata message.
func appendPage(b []byte, buffers []span, rows, first uint64, encoding []byte) []byte {
	var offsets, sizes []uint64
	for _, s := range buffers {
		offsets, sizes = append(offsets, s.off), append(sizes, s.n)
	}
	p := message(1, packed(offsets))
	p = appendMessage(p, 2, packed(sizes))
	p = appendNumber(p, 3, rows)
	p = appendMessage(p, 4, encoding)
	p = appendNumber(p, 5, first)
	return appendMessage(b, 2, p)
}

// zipPage says what a zipped page holds: values of a fixed number of bits, or a length word of that many bits before
// each value.
type zipPage struct {
	rows     uint64
	bits     uint64
	variable bool
	nullable bool // a control byte before each item: 0 valid, 1 null
	values   []byte
}

// flatValues is the CompressiveEncoding of plain values; it serves as ArrayEncoding too where there is no buffer.
func flatValues(bits uint64) []byte { return message(1, number(1, bits)) }

// encoding is the Encoding message of the page in a grammar of 2.1 and later.
func (z zipPage) encoding(g grammar) []byte {
	layers, def, width := []byte{1}, uint64(0), protowire.Number(3)
	if z.nullable {
		layers, def = []byte{3}, 1
	}
	if z.variable {
		width = 4
	}
	if g == grammarPlanar {
		v := message(1, z.values)
		v = appendMessage(v, 2, number(2, def))
		v = appendNumber(v, width, z.bits)
		v = appendNumber(v, 5, z.rows)
		v = appendNumber(v, 6, z.rows)
		structure := message(1, message(1, message(1, layers)))
		return directEncoding(planarURL, append(structure, message(2, message(2, v))...))
	}
	v := number(2, def)
	v = appendNumber(v, width, z.bits)
	v = appendNumber(v, 5, z.rows)
	v = appendNumber(v, 6, z.rows)
	v = appendMessage(v, 7, z.values)
	v = appendMessage(v, 8, layers)
	return directEncoding(layoutURL, message(3, v))
}

// encodingURL is the type URL in an Encoding message; "" for an encoding that is not in place.
func encodingURL(b []byte) (string, error) {
	for _, num := range []protowire.Number{2, 1, 1} {
		var err error
		if b, err = lastField(b, num); err != nil {
			return "", err
		}
	}
	return string(b), nil
}

// lastField returns the content of the last field num of a message, which is what decoders take.
func lastField(b []byte, num protowire.Number) ([]byte, error) {
	var last []byte
	for len(b) > 0 {
		k, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(k, typ, b[n:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		if k == num {
			if typ != protowire.BytesType {
				return nil, fmt.Errorf("field %d with wire type %d", num, typ)
			}
			last, _ = protowire.ConsumeBytes(b[n:])
		}
		b = b[n+size:]
	}
	return last, nil
}
