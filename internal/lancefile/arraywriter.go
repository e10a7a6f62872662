package lancefile

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/frifs/frifs/fault"
)

// ArrayWriter writes a top-level column of plain numbers, or of lists of them, anew for a file of version 2.0
// (docs/FORMAT.md, "Lance file"). Of later versions only u64 columns (Flat) and cells (CellWriter) are replaced: no index
// has other columns there that change. It holds a page of at most about 1 MiB, or of one row, and then hands it to the
// Sink.
type ArrayWriter struct {
	sink    Sink
	column  int
	items   int    // column of the items of a list; -1: the values are numbers
	width   int    // bytes of a number
	rows    uint64 // to be written
	written uint64
	values  []byte // of the page
	ends    []byte // of the page's lists: u64, in numbers
	pages   CellPages
	err     error
}

// arrayPageBytes is where a page ends.
const arrayPageBytes = 1 << 20

// NewArrayWriter prepares to write the field of that path anew for f, whose rows it must get all of. Errors:
// fault.NotFound without the field; fault.Unsupported for a file of another version, and for a field that is neither a
// number of whole bytes at the top of the schema nor a list of such numbers.
func NewArrayWriter(f *File, path string, sink Sink) (*ArrayWriter, error) {
	n, err := f.find(path)
	if err != nil {
		return nil, err
	}
	if f.foot.version != V20 {
		return nil, fault.New("lancefile.ArrayWriter", "", fault.Unsupported, "field %q of a file of version %s: arrays are written in version 2.0 only",
			path, f.Version())
	}
	w := &ArrayWriter{sink: sink, column: n.column, items: -1, rows: f.Rows()}
	leaf := n
	if n.list() && len(n.children) == 1 {
		leaf = n.children[0]
		w.items = leaf.column
	}
	s, err := shapeOf(leaf.pb.GetLogicalType())
	if err != nil || n.parent != nil || !leaf.leaf() || s.dim > 0 || s.variable || s.bits == 0 || s.bits%8 > 0 {
		return nil, fault.New("lancefile.ArrayWriter", "", fault.Unsupported, "field %q of type %q is no top-level column of numbers or of lists of them",
			path, n.pb.GetLogicalType())
	}
	w.width = s.bits / 8
	if last := max(n.column, leaf.column); last >= len(f.columns) {
		return nil, corrupt(f.foot.cmo, "field %q is column %d, the file has %d", path, last, len(f.columns))
	}
	w.pages.Column = w.column
	if w.items >= 0 {
		w.pages.Items = &CellPages{Column: w.items}
	}
	return w, nil
}

// Append writes the next row: the bytes of a number, or of the numbers of a list. Errors: fault.Invalid for bytes that
// are not such, or more rows than the file has; the Sink's. After an error the writer is of no more use.
func (w *ArrayWriter) Append(row []byte) error {
	if w.err == nil {
		w.err = w.append(row)
	}
	return w.err
}

func (w *ArrayWriter) append(row []byte) error {
	switch {
	case w.written == w.rows:
		return invalid("more than %d rows for column %d", w.rows, w.column)
	case w.items < 0 && len(row) != w.width, len(row)%w.width > 0:
		return invalid("a row of %d bytes for column %d of numbers of %d", len(row), w.column, w.width)
	case len(w.values)+len(w.ends)+len(row) > arrayPageBytes:
		if err := w.endPage(); err != nil {
			return err
		}
	}
	w.written++
	w.values = append(w.values, row...)
	if w.items >= 0 {
		w.ends = binary.LittleEndian.AppendUint64(w.ends, uint64(len(w.values)/w.width))
	}
	return nil
}

// endPage hands the page to the sink. Items have a page for each page of lists, unless that has none.
func (w *ArrayWriter) endPage() error {
	n := uint64(len(w.values) / w.width)
	if w.items < 0 {
		if n == 0 {
			return nil
		}
		return w.page(&w.pages, n, w.written-n, flatArray(uint64(8*w.width)), &w.values)
	}
	rows := uint64(len(w.ends) / 8)
	if rows == 0 {
		return nil
	}
	// Null lists, of which there are none, would have the number of items and one more added to their end.
	list := message(4, appendNumber(appendNumber(message(1, flatArray(64)), 2, n+1), 3, n))
	if err := w.page(&w.pages, rows, w.written-rows, list, &w.ends); err != nil || n == 0 {
		return err
	}
	return w.page(w.pages.Items, n, w.written-rows, flatArray(uint64(8*w.width)), &w.values)
}

func (w *ArrayWriter) page(to *CellPages, rows, first uint64, encoding []byte, content *[]byte) error {
	at, size := w.sink.Size(), int64(len(*content))
	if err := w.sink.Append(*content); err != nil {
		return err
	}
	to.Pages = append(to.Pages, CellPage{Rows: rows, first: first, Buffers: []Piece{sinkPiece(w.sink, at, size)},
		grammar: grammarArray, encoding: directEncoding(arrayURL, encoding)})
	if *content = (*content)[:0]; cap(*content) > 4*arrayPageBytes {
		*content = nil
	}
	return nil
}

// Finish ends the column. The pages read from the Sink, which must stay open as long as a file made of them is in use.
// Fewer rows than the file has are fault.Invalid.
func (w *ArrayWriter) Finish() (CellPages, error) {
	if w.err == nil && w.written != w.rows {
		w.err = invalid("%d rows for column %d of a file of %d rows", w.written, w.column, w.rows)
	}
	if w.err == nil {
		w.err = w.endPage()
	}
	if w.err != nil {
		return CellPages{}, w.err
	}
	return w.pages, nil
}

// flatArray is the ArrayEncoding of plain values without nulls in the page's first buffer.
func flatArray(bits uint64) []byte {
	return message(2, message(1, message(1, message(1, appendMessage(number(1, bits), 2, nil)))))
}

// sinkPiece is a range of a sink.
func sinkPiece(sink Sink, base, size int64) Piece {
	return Piece{Size: size, Read: func(_ context.Context, p []byte, off int64) error {
		n, err := sink.ReadAt(p, base+off)
		if n == len(p) || (err != nil && !errors.Is(err, io.EOF)) {
			if n == len(p) {
				return nil
			}
			return err
		}
		return fault.New("lancefile.Sink", at(uint64(base+off)), fault.Unavailable, "the sink gives %d of %d bytes", n, len(p))
	}}
}
