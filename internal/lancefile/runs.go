package lancefile

import (
	"fmt"

	"github.com/frifs/frifs/internal/pb"
)

// runs decodes run-length encoded values: run values in vb, run lengths in lb. In a chunk (clamp) the runs may go past
// the last value: old writers rolled a chunk back to a power of two after a run had crossed it, and the rest of that
// run opens the next chunk. In a block they must fit exactly.
func runs[T Word](c *codec, r *pb.CompressiveEncoding_Rle, vb, lb []byte, out []T, clamp bool, depth int) error {
	ve, le := r.GetValues(), r.GetRunLengths()
	bits, err := valueBits(le)
	if err != nil {
		return fmt.Errorf("run lengths: %w", err)
	}
	if c.version < V23 && (ve.GetFlat() == nil || le.GetFlat() == nil || bits != 8 ||
		ve.GetFlat().GetCompression() != nil || le.GetFlat().GetCompression() != nil) {
		return fmt.Errorf("run-length children other than flat values and 8-bit flat lengths, in file version %s", c.version)
	}
	switch bits {
	case 8:
		return runsOf[T, uint8](c, ve, le, vb, lb, out, clamp, depth)
	case 16:
		return runsOf[T, uint16](c, ve, le, vb, lb, out, clamp, depth)
	case 32:
		return runsOf[T, uint32](c, ve, le, vb, lb, out, clamp, depth)
	}
	return fmt.Errorf("run lengths of %d bits", bits)
}

func runsOf[T, L Word](c *codec, ve, le *pb.CompressiveEncoding, vb, lb []byte, out []T, clamp bool, depth int) error {
	// At most one of the children needs to be told the number of runs; the other one gives it.
	n, err := runCount(c, le, &lb, width[L](), len(out))
	if err != nil {
		return fmt.Errorf("run lengths: %w", err)
	}
	m, err := runCount(c, ve, &vb, width[T](), len(out))
	if err != nil {
		return fmt.Errorf("run values: %w", err)
	}
	switch {
	case n < 0 && m < 0:
		return &unknownError{what: "encoding", detail: "run lengths and run values that both need the number of runs"}
	case n < 0:
		n = m
	case m >= 0 && m != n:
		return fmt.Errorf("%d run values and %d run lengths", m, n)
	}
	if isFlat(ve) && isFlat(le) {
		return expand(func(i int) T { return word[T](vb, i) }, func(i int) uint64 { return uint64(word[L](lb, i)) }, n, out, clamp)
	}
	lengths := make([]L, n)
	if err := runChild(c, le, lb, lengths, depth); err != nil {
		return fmt.Errorf("run lengths: %w", err)
	}
	values := make([]T, n)
	if err := runChild(c, ve, vb, values, depth); err != nil {
		return fmt.Errorf("run values: %w", err)
	}
	return expand(func(i int) T { return values[i] }, func(i int) uint64 { return uint64(lengths[i]) }, n, out, clamp)
}

// isFlat reports whether a child whose general compression is undone is a plain array.
func isFlat(e *pb.CompressiveEncoding) bool {
	if g := e.GetGeneral(); g != nil {
		e = g.GetValues()
	}
	return e.GetFlat() != nil
}

// expand writes n runs to out.
func expand[T Word](value func(int) T, length func(int) uint64, n int, out []T, clamp bool) error {
	at := 0
	for i := range n {
		l := length(i)
		if l == 0 {
			return fmt.Errorf("run %d has length 0", i)
		}
		if l > uint64(len(out)-at) {
			if !clamp {
				return fmt.Errorf("run %d ends past the last of %d values", i, len(out))
			}
			fill(out[at:], value(i))
			return nil
		}
		fill(out[at:at+int(l)], value(i))
		at += int(l)
	}
	if at != len(out) {
		return fmt.Errorf("%d runs give %d values, not %d", n, at, len(out))
	}
	return nil
}

// runCount returns how many values a child holds, or -1 if its encoding does not say. A general compression is undone
// here, in place, since its content says.
func runCount(c *codec, e *pb.CompressiveEncoding, b *[]byte, size, limit int) (int, error) {
	if g := e.GetGeneral(); g != nil {
		// A run holds at least one value; twice as much leaves room for runs that are clamped away.
		d, err := c.zstd.decompress(g.GetCompression().GetScheme(), *b, uint64(2*limit+16)*uint64(size))
		if err != nil {
			return 0, err
		}
		*b, e = d, g.GetValues()
	}
	if e.GetFlat() == nil {
		return -1, nil
	}
	if e.GetFlat().GetCompression().GetScheme() != pb.BufferCompression_UNSPECIFIED {
		return 0, &unknownError{what: "encoding", detail: "compressed flat runs"}
	}
	if len(*b)%size != 0 {
		return 0, fmt.Errorf("%d bytes are no multiple of %d", len(*b), size)
	}
	return len(*b) / size, nil
}

// runChild decodes a child whose general compression, if any, is already undone.
func runChild[T Word](c *codec, e *pb.CompressiveEncoding, b []byte, out []T, depth int) error {
	if g := e.GetGeneral(); g != nil {
		e = g.GetValues()
	}
	return blockAt(c, e, b, out, depth+1)
}
