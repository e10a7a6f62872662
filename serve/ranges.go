package serve

import (
	"strconv"
	"strings"
)

// plainRange is a Range header of a file of size bytes as package net/http reads it: that knows no numbers beyond 63 bits,
// takes the last zero bytes for a part, and refuses units that RFC 9110 has it ignore. "" means that the header is
// ignored: it is of another unit, or of more ranges than are answered. What is no range at all stays none.
func plainRange(header string, size int64) string {
	unit, set, ok := strings.Cut(header, "=")
	if !ok || !strings.EqualFold(strings.TrimSpace(unit), "bytes") || strings.Count(set, ",") >= maxRanges {
		return ""
	}
	specs := strings.Split(set, ",")
	for i, spec := range specs {
		specs[i] = plainSpec(strings.Trim(spec, " \t"), size)
	}
	return "bytes=" + strings.Join(specs, ",")
}

// noRange is taken for a mistake by net/http, which reads some that are mistakes.
const noRange = "x"

// plainSpec is one range. A range of no byte begins at the end.
func plainSpec(spec string, size int64) string {
	first, last, ok := strings.Cut(spec, "-")
	first, last = strings.Trim(first, " \t"), strings.Trim(last, " \t")
	switch {
	case spec == "":
		return spec // RFC 9110, 5.6.1: a list may have empty elements
	case !ok || first+last == "" || strings.Trim(first+last, "0123456789") != "":
		return noRange
	}
	none := strconv.FormatInt(size, 10) + "-"
	if first == "" {
		n := clamp(last, size)
		if n == 0 {
			return none
		}
		return "-" + strconv.FormatInt(n, 10)
	}
	from := clamp(first, size)
	if last == "" {
		return strconv.FormatInt(from, 10) + "-"
	}
	if lessDigits(last, first) {
		return noRange // it ends before it begins
	}
	if from >= size {
		return none
	}
	return strconv.FormatInt(from, 10) + "-" + strconv.FormatInt(clamp(last, size), 10)
}

// clamp is a number in decimal digits, at most size.
func clamp(digits string, size int64) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil { // it has too many digits
		return size
	}
	return min(n, size)
}

// lessDigits compares two numbers in decimal digits.
func lessDigits(a, b string) bool {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return len(a) < len(b) || len(a) == len(b) && a < b
}
