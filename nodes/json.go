package nodes

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// enc appends JSON text with a two-space indent to b. K and Item start a member or an element and return the encoder,
// on which exactly one value method follows. The rules are those of docs/DESIGN.md, "Text formats": unknown is null,
// u64 values that may exceed 2^53 are strings, times are RFC 3339 UTC with nanoseconds.
//
// In sizing mode values of fixed width that cost reading (a transition's id) are written as zeros.
type enc struct {
	ctx    context.Context
	b      []byte
	depth  int
	first  bool // nothing written yet in the innermost container
	sizing bool
	err    error // first failure of a value that had to be read
	protos map[protoreflect.FullName]protoFields
}

func (e *enc) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

func (e *enc) newline(comma bool) {
	if comma {
		e.b = append(e.b, ',')
	}
	e.b = append(e.b, '\n')
	for range e.depth {
		e.b = append(e.b, ' ', ' ')
	}
}

// Item starts the next element of the innermost array.
func (e *enc) Item() *enc {
	e.newline(!e.first)
	e.first = false
	return e
}

// K starts the member k of the innermost object.
func (e *enc) K(k string) *enc {
	e.Item()
	e.b = append(appendJSONString(e.b, k), ':', ' ')
	return e
}

func (e *enc) container(open, end byte, f func()) {
	e.b = append(e.b, open)
	e.depth++
	e.first = true
	f()
	e.depth--
	if !e.first {
		e.newline(false)
	}
	e.b = append(e.b, end)
	e.first = false
}

// Obj writes an object whose members f writes.
func (e *enc) Obj(f func()) { e.container('{', '}', f) }

// Arr writes an array whose elements f writes.
func (e *enc) Arr(f func()) { e.container('[', ']', f) }

// Null writes null.
func (e *enc) Null() { e.b = append(e.b, "null"...) }

// Str writes a string; bytes that are not UTF-8 become U+FFFD.
func (e *enc) Str(s string) { e.b = appendJSONString(e.b, s) }

// OptStr writes a string, or null for an empty one.
func (e *enc) OptStr(s string) {
	if s == "" {
		e.Null()
		return
	}
	e.Str(s)
}

// Bool writes true or false.
func (e *enc) Bool(v bool) { e.b = strconv.AppendBool(e.b, v) }

// OptBool writes a boolean, or null.
func (e *enc) OptBool(v *bool) {
	if v == nil {
		e.Null()
		return
	}
	e.Bool(*v)
}

// Uint writes a number that stays below 2^53: versions, counts, sizes, fragment ids.
func (e *enc) Uint(v uint64) { e.b = strconv.AppendUint(e.b, v, 10) }

// Int writes a number.
func (e *enc) Int(v int64) { e.b = strconv.AppendInt(e.b, v, 10) }

// OptUint writes a number, or null.
func (e *enc) OptUint(v *uint64) {
	if v == nil {
		e.Null()
		return
	}
	e.Uint(*v)
}

// OptUint32 writes a number, or null.
func (e *enc) OptUint32(v *uint32) {
	if v == nil {
		e.Null()
		return
	}
	e.Uint(uint64(*v))
}

// OptInt32 writes a number, or null.
func (e *enc) OptInt32(v *int32) {
	if v == nil {
		e.Null()
		return
	}
	e.Int(int64(*v))
}

// StrMap writes an object with its keys in byte order.
func (e *enc) StrMap(m map[string]string) {
	e.Obj(func() {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			e.K(k).Str(m[k])
		}
	})
}

// Wide writes a u64 that may exceed 2^53 (hash, deletion id, row address) as a string.
func (e *enc) Wide(v uint64) {
	e.b = append(e.b, '"')
	e.b = strconv.AppendUint(e.b, v, 10)
	e.b = append(e.b, '"')
}

// Hex writes bytes as lower-case hex digits.
func (e *enc) Hex(v []byte) {
	e.b = append(e.b, '"')
	e.b = hex.AppendEncode(e.b, v)
	e.b = append(e.b, '"')
}

// timeLayout is RFC 3339 with exactly nine fractional digits.
const timeLayout = "2006-01-02T15:04:05.000000000Z"

// Time writes a time in UTC with nanoseconds, or null for the zero time.
func (e *enc) Time(t time.Time) {
	if t.IsZero() {
		e.Null()
		return
	}
	e.b = append(e.b, '"')
	e.b = t.UTC().AppendFormat(e.b, timeLayout)
	e.b = append(e.b, '"')
}

// Strs writes an array of strings.
func (e *enc) Strs(v []string) {
	e.Arr(func() {
		for _, s := range v {
			e.Item().Str(s)
		}
	})
}

// appendJSONString quotes s: control characters, quotes and backslashes are escaped, everything else stands as it is.
func appendJSONString(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[start:i]...), "\ufffd"...)
				i++
				start = i
				continue
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' && c != 0x7F {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// validText reports whether bytes can stand in JSON as a string without loss.
func validText(b []byte) bool { return utf8.Valid(b) }
