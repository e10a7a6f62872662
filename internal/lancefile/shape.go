package lancefile

import (
	"fmt"
	"strconv"
	"strings"
)

// shape is how one value of a logical type is stored: as bits per value, or with any length, or as dim items of bits
// each.
type shape struct {
	bits     int    // per value or item; a multiple of 8, or 1; 0 for variable width
	dim      uint64 // items of a fixed-size list; 0 for any other type
	variable bool
}

// maxValueBytes bounds the size of one fixed-width value, a whole fixed-size list included.
const maxValueBytes = 1 << 24

// shapeOf reads a logical type. Parameters that do not change the size, such as a time zone, are not looked at.
func shapeOf(logical string) (shape, error) {
	name, args, _ := strings.Cut(logical, ":")
	switch name {
	case "bool":
		return shape{bits: 1}, nil
	case "int8", "uint8":
		return shape{bits: 8}, nil
	case "int16", "uint16", "halffloat":
		return shape{bits: 16}, nil
	case "int32", "uint32", "float", "date32", "time32":
		return shape{bits: 32}, nil
	case "int64", "uint64", "double", "date64", "time64", "timestamp", "duration":
		return shape{bits: 64}, nil
	case "string", "large_string", "binary", "large_binary", "json":
		return shape{variable: true}, nil
	case "null":
		return shape{}, nil // no bytes at all
	case "dict": // dict:<type>:<index type>:<ordered>; the file holds the values, indices are made when it is read
		if k := strings.LastIndexByte(args, ':'); k > 0 {
			if k = strings.LastIndexByte(args[:k], ':'); k > 0 {
				return shapeOf(args[:k])
			}
		}
	case "decimal":
		switch width, _, _ := strings.Cut(args, ":"); width {
		case "128":
			return shape{bits: 128}, nil
		case "256":
			return shape{bits: 256}, nil
		}
	case "fixed_size_binary":
		if n, err := strconv.ParseUint(args, 10, 32); err == nil && n > 0 && n <= maxValueBytes {
			return shape{bits: int(8 * n)}, nil
		}
	case "fixed_size_list":
		k := strings.LastIndexByte(args, ':')
		if k < 0 {
			break
		}
		n, err := strconv.ParseUint(args[k+1:], 10, 32)
		if err != nil || n == 0 {
			break
		}
		inner := args[:k]
		if inner == "lance.bfloat16" {
			inner = "halffloat"
		}
		s, err := shapeOf(inner)
		if err != nil || s.variable || s.none() || s.dim > 0 {
			break
		}
		if s.dim = n; s.valueBytes() > maxValueBytes {
			return shape{}, fmt.Errorf("values of type %q take %d bytes, at most %d are read", logical, s.valueBytes(), maxValueBytes)
		}
		return s, nil
	}
	return shape{}, &unknownError{what: "type", detail: strconv.Quote(logical)}
}

// none reports whether the type has no values, but nulls.
func (s shape) none() bool { return s.bits == 0 && !s.variable }

// itemBytes is the size of one decoded value or item: a bit becomes a byte.
func (s shape) itemBytes() uint64 { return uint64(s.bits+7) / 8 }

// valueBytes is the size of one decoded fixed-width value.
func (s shape) valueBytes() uint64 { return s.itemBytes() * max(s.dim, 1) }
