package lancefile

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/frifs/frifs/fault"
)

// contextReaderAt is implemented by readers whose calls can be cancelled. It is used where a reader has it.
type contextReaderAt interface {
	ReadAtContext(ctx context.Context, p []byte, off int64) (int, error)
}

// tailBytes is how much of the end of a file is fetched first and kept: footer, tables and schema of most files.
const tailBytes = 16 << 10

// source is a reader of known size with its tail in memory.
type source struct {
	r       io.ReaderAt
	size    uint64
	tail    []byte
	tailOff uint64
}

// readFull fills p from off. The caller has checked that the range lies within the size. A reader that ends early
// gives fault.Corrupt; other errors keep their kind.
func (s *source) readFull(ctx context.Context, p []byte, off uint64) error {
	if len(p) == 0 {
		return nil
	}
	if s.tail != nil && off >= s.tailOff && off+uint64(len(p)) <= s.tailOff+uint64(len(s.tail)) {
		copy(p, s.tail[off-s.tailOff:])
		return nil
	}
	if err := ctx.Err(); err != nil {
		return fault.Wrap("lancefile.Read", at(off), err)
	}
	var n int
	var err error
	if c, ok := s.r.(contextReaderAt); ok {
		n, err = c.ReadAtContext(ctx, p, int64(off))
	} else {
		n, err = s.r.ReadAt(p, int64(off))
	}
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fault.New("lancefile.Read", at(off), fault.Corrupt,
			"the file ends after byte %d, and is said to hold %d", off+uint64(max(n, 0)), s.size)
	}
	return fault.Wrap("lancefile.Read", at(off), err)
}

// slice reads n bytes at off into a new slice.
func (s *source) slice(ctx context.Context, off, n uint64) ([]byte, error) {
	if off > s.size || n > s.size-off {
		return nil, corrupt(off, "%d bytes lie beyond the end of the file (%d bytes)", n, s.size)
	}
	p := make([]byte, n)
	return p, s.readFull(ctx, p, off)
}

func at(off uint64) string { return fmt.Sprintf("@%d", off) }

func corrupt(off uint64, format string, args ...any) error {
	return fault.New("lancefile.Open", at(off), fault.Corrupt, format, args...)
}
