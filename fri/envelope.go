package fri

import (
	"bytes"
	"context"
	"math"

	"github.com/frifs/frifs/fault"
)

// External says where an external content lies. Path is relative to the directory of the entry's own index files
// (_indices/<uuid>/ under the entry's base), not to the table.
type External struct {
	Path         string
	Offset, Size uint64 // in bytes, within the file; Offset+Size does not overflow an int64
}

// Content is the value of the entry's details: exactly one of Inline and External is set. Either form may have any
// size.
type Content struct {
	Inline   []byte         // the InlineContent message, a part of the value given to ParseDetails; never nil when inline
	External *External      // nil when inline
	Unknown  []UnknownField // fields of the envelope that frifs does not know; they change nothing
}

// ParseDetails reads the value of the Any in the entry's index_details, a FragmentReuseIndexDetails message, by rules
// 3 to 5 of docs/FORMAT.md, "Validation rules". A violation gives fault.Corrupt: the whole history is then broken, and
// Broken takes the error and finds the rule in it.
func ParseDetails(value []byte) (Content, error) {
	var c Content
	r := bytes.NewReader(value)
	cur := &cursor{w: &window{ctx: context.Background(), r: r, size: r.Size(), ahead: len(value)}, end: r.Size()}
	found := 0
	for {
		f, ok, err := cur.next()
		if err != nil {
			return Content{}, envelopeError(3, err)
		}
		if !ok {
			break
		}
		if f.num != 1 && f.num != 2 {
			c.Unknown = appendUnknown(c.Unknown, cur.w, f, "envelope", 0)
			continue
		}
		if f.typ != wireBytes {
			return Content{}, envelopeError(4, violationf(f.key, "content field %d has wire type %d, want 2", f.num, f.typ))
		}
		if found++; found > 1 {
			return Content{}, envelopeError(4, violationf(f.key, "a second content field (%d)", f.num))
		}
		if f.num == 1 {
			c.Inline = value[f.off : f.off+f.n : f.off+f.n]
			continue
		}
		if c.External, err = parseExternal(cur.sub(f)); err != nil {
			return Content{}, err
		}
	}
	if found == 0 {
		return Content{}, envelopeError(4, violationf(0, "missing FRI content"))
	}
	return c, nil
}

// parseExternal reads an ExternalFile message.
func parseExternal(cur *cursor) (*External, error) {
	var e External
	for {
		f, ok, err := cur.next()
		if err != nil {
			return nil, envelopeError(3, err)
		}
		if !ok {
			break
		}
		want := uint8(wireVarint)
		switch f.num {
		case 1:
			want = wireBytes
		case 2, 3:
		default:
			continue
		}
		if f.typ != want {
			return nil, envelopeError(3, violationf(f.key, "field %d of the external file has wire type %d, want %d", f.num, f.typ, want))
		}
		switch f.num {
		case 1:
			b, err := cur.w.peek(f.off, int(f.n))
			if err != nil {
				return nil, err
			}
			e.Path = string(b)
		case 2:
			e.Offset = f.val
		case 3:
			e.Size = f.val
		}
	}
	if e.Offset > math.MaxInt64 || e.Size > math.MaxInt64-e.Offset {
		return nil, envelopeError(5, violationf(cur.end, "external content: offset %d + size %d overflows", e.Offset, e.Size))
	}
	return &e, nil
}

// envelopeError names a violation of the envelope.
func envelopeError(rule int, err error) error {
	return &fault.Error{Op: "fri.ParseDetails", Path: "details", Kind: fault.Corrupt, Err: &ruleError{rule, err}}
}
