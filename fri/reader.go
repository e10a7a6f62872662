package fri

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/frifs/frifs/fault"
)

// Reader gives the bytes of a content. ReadAt must not return fewer bytes than asked for before the end, and must be
// safe for concurrent use; bytes.Reader and io.SectionReader are Readers. A Reader that also has
//
//	ReadAtContext(ctx context.Context, p []byte, off int64) (int, error)
//
// is read through that method, so that a slow store can be interrupted.
type Reader interface {
	io.ReaderAt
	Size() int64
}

// contextReader is the optional method of a Reader.
type contextReader interface {
	ReadAtContext(ctx context.Context, p []byte, off int64) (int, error)
}

// readFull fills p from off. A reader that ends early gives fault.Corrupt; other errors keep their kind.
func readFull(ctx context.Context, r Reader, p []byte, off int64) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap("fri.Read", "", err)
	}
	var n int
	var err error
	if cr, ok := r.(contextReader); ok {
		n, err = cr.ReadAtContext(ctx, p, off)
	} else {
		n, err = r.ReadAt(p, off)
	}
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.New("fri.Read", fmt.Sprintf("@%d", off), fault.Corrupt,
			"the content ends after %d of %d bytes", n, len(p))
	}
	return fault.Wrap("fri.Read", fmt.Sprintf("@%d", off), err)
}

// section is the part [off, off+n) of a Reader.
type section struct {
	r      Reader
	off, n int64
}

// Section returns the n bytes of r from off on as a Reader of their own. Reads past its end give io.EOF.
func Section(r Reader, off, n int64) Reader { return &section{r: r, off: off, n: n} }

func (s *section) Size() int64 { return s.n }

func (s *section) ReadAt(p []byte, off int64) (int, error) {
	return s.ReadAtContext(context.Background(), p, off)
}

func (s *section) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 || off >= s.n {
		return 0, io.EOF
	}
	short := false
	if int64(len(p)) > s.n-off {
		p, short = p[:s.n-off], true
	}
	var n int
	var err error
	if cr, ok := s.r.(contextReader); ok {
		n, err = cr.ReadAtContext(ctx, p, s.off+off)
	} else {
		n, err = s.r.ReadAt(p, s.off+off)
	}
	if n == len(p) {
		err = nil
	}
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}
