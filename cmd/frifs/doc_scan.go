package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// nodeReader reads an open file of the tree from its start to its end.
type nodeReader struct {
	ctx  context.Context
	h    nodes.Handle
	path string
	off  int64
	size int64
}

// Read implements io.Reader. A file that is shorter than its size is an error.
func (r *nodeReader) Read(p []byte) (int, error) {
	if r.off >= r.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), r.size-r.off)]
	n, err := r.h.ReadAt(r.ctx, p, r.off)
	r.off += int64(n)
	if err == nil && n == 0 && len(p) > 0 {
		err = fault.New("read", r.path, fault.Corrupt, "the file ends at byte %d; its size is %d", r.off, r.size)
	}
	return n, err
}

// patience is how long a command waits for a file whose size a job of the tree works out, beyond the bound of one
// request.
const patience = time.Hour

// openNode opens a file of the tree. Where a job of the tree has to work out the file first, it waits for the job.
func openNode(ctx context.Context, root nodes.Dir, path string) (*nodeReader, error) {
	n, err := nodes.Resolve(ctx, root, path)
	if err != nil {
		return nil, err
	}
	f, ok := n.(nodes.File)
	if !ok {
		return nil, fault.Wrap("read", path, errIsDir)
	}
	slow := f.Class() != nodes.C0 && f.Class() != nodes.C1
	for begun := time.Now(); ; {
		a, err := f.Attr(ctx)
		if err == nil {
			var h nodes.Handle
			if h, err = f.Open(ctx); err == nil {
				return &nodeReader{ctx: ctx, h: h, path: path, size: a.Size}, nil
			}
		}
		if !slow || !fault.Is(err, fault.TimedOut) || time.Since(begun) > patience || ctx.Err() != nil {
			return nil, err
		}
	}
}

// close closes the file. It was only read.
func (r *nodeReader) close() { _ = r.h.Close() }

// members are the parts of a JSON document that are looked at, by their path: "fri.records_in". Each function reads the
// value that the decoder stands before.
type members map[string]func(d *json.Decoder) error

// scanDoc reads a JSON document of the tree once, however large it is, and gives the parts that are asked for to their
// functions, in the order of the document. What lies beside them is passed over.
func scanDoc(ctx context.Context, root nodes.Dir, path string, want members) error {
	r, err := openNode(ctx, root, path)
	if err != nil {
		return err
	}
	defer r.close()
	d := json.NewDecoder(r)
	if err := want.scan(d, ""); err != nil {
		if fault.KindOf(err) == fault.Unknown && ctx.Err() == nil {
			err = fault.New("read", path, fault.Corrupt, "not the expected JSON: %w", err)
		}
		return err
	}
	return nil
}

// scan reads the object that the decoder stands before; prefix is its path with a dot at the end.
func (m members) scan(d *json.Decoder, prefix string) error {
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return err // null, or something else: nothing in it is asked for
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		path := prefix + key
		switch f, ok := m[path]; {
		case ok:
			err = f(d)
		case m.below(path):
			err = m.scan(d, path+".")
		default:
			err = skipValue(d)
		}
		if err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func (m members) below(path string) bool {
	for k := range m {
		if strings.HasPrefix(k, path+".") {
			return true
		}
	}
	return false
}

// skipValue passes over a value without keeping it.
func skipValue(d *json.Decoder) error {
	for depth := 0; ; {
		t, err := d.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// into decodes a value into v.
func into(v any) func(*json.Decoder) error { return func(d *json.Decoder) error { return d.Decode(v) } }

// each decodes the elements of an array one by one; null is an empty one.
func each[T any](f func(T)) func(*json.Decoder) error {
	return func(d *json.Decoder) error {
		if t, err := d.Token(); err != nil || t != json.Delim('[') {
			return err
		}
		for d.More() {
			var v T
			if err := d.Decode(&v); err != nil {
				return err
			}
			f(v)
		}
		_, err := d.Token()
		return err
	}
}

// inOrder calls produce for 0 to n-1, some at a time, and give with what came of it, in order and one at a time. At most
// width results wait. It ends at the first error of give.
func inOrder[T any](n, width int, produce func(i int) T, give func(i int, v T) error) error {
	width = max(1, min(width, n))
	slots := newSlots[T](width)
	var wg sync.WaitGroup
	defer wg.Wait()
	start := func(i int) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			slots[i%width] <- produce(i)
		}()
	}
	for i := range width {
		if i < n {
			start(i)
		}
	}
	for i := range n {
		v := <-slots[i%width]
		if err := give(i, v); err != nil {
			return err
		}
		if next := i + width; next < n {
			start(next)
		}
	}
	return nil
}

// newSlots makes a place for each result that may wait.
func newSlots[T any](n int) []chan T {
	out := make([]chan T, n)
	for i := range out {
		out[i] = make(chan T, 1)
	}
	return out
}
