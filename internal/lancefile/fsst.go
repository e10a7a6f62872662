package lancefile

import "fmt"

// symbols is an FSST table: codes 0 to n-1 stand for strings of 1 to 8 bytes, code 255 for the byte after it. A table
// that is switched off leaves values as they are.
type symbols struct {
	on  bool
	sym [255][]byte
	n   int
}

// symbolTableBytes is the size of a table as writers store it: a header, room for 256 symbols of 8 bytes, and for as
// many lengths.
const symbolTableBytes = 8 + 8*256 + 256

// fsstEscape is the code before a literal byte.
const fsstEscape = 255

// parseSymbols reads a symbol table: the header's byte 0 is the number of symbols, bit 0 of byte 3 switches them on;
// the symbols follow in 8 bytes each, then their lengths.
func parseSymbols(b []byte) (*symbols, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("symbol table of %d bytes, it has %d", len(b), symbolTableBytes)
	}
	t := &symbols{on: b[3]&1 != 0, n: int(b[0])}
	if !t.on {
		return t, nil
	}
	if t.n > len(t.sym) || len(b) < 8+9*t.n {
		return nil, fmt.Errorf("symbol table of %d bytes for %d symbols", len(b), t.n)
	}
	for i := range t.n {
		size := b[8+8*t.n+i]
		if size == 0 || size > 8 {
			return nil, fmt.Errorf("symbol %d of %d bytes", i, size)
		}
		t.sym[i] = b[8+8*i:][:size]
	}
	return t, nil
}

// expand decodes each value of a block. No value grows to more than eight times its size.
func (t *symbols) expand(b block) (block, error) {
	if !t.on || b.n == 0 {
		return b, nil
	}
	out := block{n: b.n, offsets: make([]int, 1, b.n+1), bytes: make([]byte, 0, 2*(b.offsets[b.n]-b.offsets[0]))}
	var err error
	for i := range b.n {
		if out.bytes, err = t.decode(out.bytes, b.cell(i)); err != nil {
			return block{}, fmt.Errorf("value %d: %w", i, err)
		}
		if len(out.bytes) > readLimit {
			return block{}, tooLarge(uint64(len(out.bytes)))
		}
		out.offsets = append(out.offsets, len(out.bytes))
	}
	return out, nil
}

// decode appends one decoded value.
func (t *symbols) decode(out, in []byte) ([]byte, error) {
	for i := 0; i < len(in); i++ {
		c := int(in[i])
		switch {
		case c < t.n:
			out = append(out, t.sym[c]...)
		case c == fsstEscape:
			if i++; i == len(in) {
				return nil, fmt.Errorf("ends within an escape")
			}
			out = append(out, in[i])
		default:
			return nil, fmt.Errorf("code %d in a table of %d symbols", c, t.n)
		}
	}
	return out, nil
}
