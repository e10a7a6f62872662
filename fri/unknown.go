package fri

const (
	maxUnknownValue = 4096 // bytes of an unknown field's value that are kept
	maxUnknown      = 256  // unknown fields that are kept of one message tree
)

// appendUnknown keeps a field to be shown; base is what offsets count from. Only so many are kept, and only short
// values; a value that cannot be read is left out.
func appendUnknown(list []UnknownField, w *window, f field, path string, base int64) []UnknownField {
	if len(list) >= maxUnknown {
		return list
	}
	u := UnknownField{Path: path, Number: f.num, WireType: f.typ, Offset: f.off - base, Length: f.n}
	if f.n <= maxUnknownValue {
		if b, err := w.peek(f.off, int(f.n)); err == nil {
			u.Value = append([]byte{}, b...)
		}
	}
	return append(list, u)
}
