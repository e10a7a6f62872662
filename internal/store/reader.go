package store

import (
	"context"
	"io"
	"sync"

	"github.com/frifs/frifs/fault"
)

// reader returns the reader of an object that is known.
func (d *layered) reader(obj Object) *layeredReader {
	return &layeredReader{d: d, c: d.l.share(d, obj)}
}

// layeredReader reads an object by blocks.
type layeredReader struct {
	d     *layered
	c     *content
	seq   sequence
	close sync.Once
}

func (r *layeredReader) Size() int64  { return r.c.obj.Size }
func (r *layeredReader) Stat() Object { return r.c.obj }

func (r *layeredReader) Close() error {
	r.close.Do(func() { r.d.l.unshare(r.c) })
	return nil
}

func (r *layeredReader) ReadAt(p []byte, off int64) (int, error) {
	return r.ReadAtContext(context.Background(), p, off)
}

func (r *layeredReader) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	const op = "store.ReadAt"
	size := r.c.obj.Size
	if off < 0 {
		return 0, fault.New(op, Join(r.d.URI(), r.c.obj.Name), fault.Invalid, "negative offset %d", off)
	}
	if off >= size {
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), size-off)]
	if err := ctx.Err(); err != nil {
		return 0, failure(ctx, nil, op, Join(r.d.URI(), r.c.obj.Name), 0, fault.Unknown, err)
	}
	if len(want) > 0 {
		r.c.readAhead(r.seq.advance(off, int64(len(want)), size, r.d.l.cfg.ReadAhead))
		if err := r.c.read(ctx, want, off); err != nil {
			return 0, r.d.hidden(ctx, r.c.obj.Name, err)
		}
	}
	if len(want) < len(p) {
		return len(want), io.EOF
	}
	return len(want), nil
}
