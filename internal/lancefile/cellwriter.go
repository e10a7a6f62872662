package lancefile

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"math/bits"

	"github.com/klauspost/compress/zstd"

	"github.com/frifs/frifs/fault"
)

// Sink takes bytes in order and gives them back; a spill.Buffer is one. ReadAt works at any time, also from several goroutines once the last
// Append has returned.
type Sink interface {
	io.ReaderAt
	Append(p []byte) error
	Size() int64
}

// A page of cells ends when it holds this much. Both are far below what a reader's i32 offsets take.
const (
	cellPageBytes = 8 << 20
	cellPageRows  = 1 << 20
)

// compressAbove is the length in bytes from which a value makes Lance compress the values of its page one by one.
const compressAbove = 32 << 10

// CellWriter writes a binary, large_binary or string column anew, cell by cell, in the grammar of the file that it is
// made for (docs/FORMAT.md, "Lance file"): from 2.1 on zipped pages of variable width, in 2.0 offsets and bytes. Data
// goes to a Sink at once; the writer holds eight bytes a cell of the page it is at, at most 8 MiB.
//
// A page holds cells of one kind. From the first null, or the first cell that calls for compression, a new page
// begins, so that pages without them look as Lance writes them.
type CellWriter struct {
	sink    Sink
	grammar grammar
	column  int
	rows    uint64 // to be written
	written uint64
	null    bool // the field is nullable
	plain   bool // never compress
	kind    cellKind

	start  int64    // of the page, in the sink
	ends   []uint64 // of each cell, within the page; nullMark added for nulls of 2.0
	zstd   *zstd.Encoder
	buf    []byte // of a cell's head
	packed []byte // of a compressed cell
	pages  []CellPage
	err    error
}

// nullMark marks an end as that of a null cell.
const nullMark = 1 << 63

// CellOptions are settings of a CellWriter; the zero value writes as Lance does.
type CellOptions struct {
	Plain bool // never compress
}

// NewCellWriter prepares to write column anew for f, whose rows it must get all of. Values are compressed one by one
// where a page has one of more than 32 KiB, unless the field's metadata or the options say no, or the file is of
// version 2.0. Errors: fault.Unsupported for a column that holds no cells or is not at the top of the schema, and for a
// 2.3 file that mixes page grammars; fault.Invalid for a number that no column has; fault.Corrupt, or the reader's, where
// page descriptions had to be read.
func NewCellWriter(ctx context.Context, f *File, column int, sink Sink, o CellOptions) (*CellWriter, error) {
	field, err := f.topField(column)
	if err != nil {
		return nil, err
	}
	var width uint64
	switch t := field.GetLogicalType(); t {
	case "binary", "string":
		width = 32
	case "large_binary", "large_string":
		width = 64
	default:
		return nil, fault.New("lancefile.CellWriter", "", fault.Unsupported, "column %d %q is of type %s, which has no cells of bytes",
			column, field.GetName(), t)
	}
	g, err := f.pageGrammar(ctx)
	if err != nil {
		return nil, err
	}
	w := &CellWriter{sink: sink, grammar: g, column: column, rows: f.Rows(), null: field.GetNullable(), plain: o.Plain, start: sink.Size()}
	if g == grammarArray || string(field.GetMetadata()["lance-encoding:compression"]) == "none" {
		w.plain = true
	}
	w.kind.offsetBits = width
	return w, nil
}

// Append writes the next cell. A null has no bytes. Errors: fault.Invalid for more cells than the file has rows, or a
// null in a field without nulls; fault.TooLarge for a cell whose length does not fit the type's offsets; the Sink's.
// After an error the writer is of no more use.
func (w *CellWriter) Append(cell []byte, null bool) error {
	if null {
		cell = nil
	}
	return w.next(cellSource{cell: cell, size: len(cell)}, null)
}

// AppendFrom writes the next cell, of size bytes, which write writes: a large one need not be in memory. Errors are those
// of Append and of write; fault.Invalid for another number of bytes.
func (w *CellWriter) AppendFrom(size int, write func(io.Writer) error) error {
	return w.next(cellSource{size: size, write: write}, false)
}

func (w *CellWriter) next(c cellSource, null bool) error {
	if w.err == nil {
		w.err = w.append(c, null)
	}
	return w.err
}

// cellSource is the content of a cell: bytes, or what write writes.
type cellSource struct {
	cell  []byte
	size  int
	write func(io.Writer) error
}

// to writes the content to a sink.
func (c cellSource) to(sink Sink) error {
	if c.write == nil {
		return sink.Append(c.cell)
	}
	from := sink.Size()
	if err := c.write(sinkWriter{sink}); err != nil {
		return err
	}
	return c.check(sink.Size() - from)
}

func (c cellSource) check(n int64) error {
	if n != int64(c.size) {
		return invalid("a cell of %d bytes instead of %d", n, c.size)
	}
	return nil
}

// sinkWriter appends to a Sink what is written to it.
type sinkWriter struct{ Sink }

func (s sinkWriter) Write(p []byte) (int, error) {
	if err := s.Append(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *CellWriter) append(c cellSource, null bool) error {
	switch {
	case w.written == w.rows:
		return invalid("more than %d cells for column %d", w.rows, w.column)
	case null && !w.null:
		return invalid("a null for column %d, which has none", w.column)
	case w.kind.offsetBits == 32 && c.size > math.MaxInt32:
		return fault.New("lancefile.CellWriter", "", fault.TooLarge, "cell %d of column %d has %d bytes, its type allows %d",
			w.written, w.column, c.size, math.MaxInt32)
	}
	need := w.kind
	need.compressed = need.compressed || (!w.plain && c.size > compressAbove)
	need.nullable = need.nullable || (null && w.grammar != grammarArray)
	if need != w.kind || len(w.ends) >= cellPageRows || w.pageBytes()+uint64(c.size) > cellPageBytes {
		if err := w.endPage(); err != nil {
			return err
		}
		w.kind = cellKind{
			offsetBits: w.kind.offsetBits,
			compressed: !w.plain && c.size > compressAbove,
			nullable:   null && w.grammar != grammarArray,
		}
		if need.nullable && w.kind.compressed {
			w.kind.nullable = true // nulls were just there; a page more for the next one is not worth it
		}
	}
	w.written++
	if w.grammar == grammarArray {
		end := w.pageBytes() + uint64(c.size)
		if null {
			end |= nullMark
		}
		w.ends = append(w.ends, end)
		return c.to(w.sink)
	}
	return w.zip(c, null)
}

// pageBytes is how much data the page holds so far.
func (w *CellWriter) pageBytes() uint64 {
	if len(w.ends) == 0 {
		return 0
	}
	return w.ends[len(w.ends)-1] &^ nullMark
}

// zip writes a cell of a zipped page: control byte, length, bytes.
func (w *CellWriter) zip(c cellSource, null bool) error {
	b := w.buf[:0]
	if w.kind.nullable {
		if b = append(b, 0); null {
			b[0] = 1
		}
	}
	if w.kind.compressed && !null {
		packed, err := w.compress(c)
		if err != nil {
			return err
		}
		c = cellSource{cell: packed, size: len(packed)}
	}
	switch {
	case null:
	case w.kind.offsetBits == 32:
		b = binary.LittleEndian.AppendUint32(b, uint32(c.size))
	default:
		b = binary.LittleEndian.AppendUint64(b, uint64(c.size))
	}
	w.buf = b
	w.ends = append(w.ends, w.pageBytes()+uint64(len(b)+c.size))
	if err := w.sink.Append(b); err != nil {
		return err
	}
	return c.to(w.sink)
}

// compress gives the length of a cell and a ZSTD frame of its content, valid until the next call.
func (w *CellWriter) compress(c cellSource) ([]byte, error) {
	if w.zstd == nil {
		z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
		if err != nil {
			return nil, fault.Wrap("lancefile.CellWriter", "", err)
		}
		w.zstd = z
	}
	b := binary.LittleEndian.AppendUint64(w.packed[:0], uint64(c.size))
	if w.packed = nil; c.write == nil {
		b = w.zstd.EncodeAll(c.cell, b)
	} else {
		out := bytes.NewBuffer(b)
		n := countingWriter{to: w.zstd}
		w.zstd.ResetContentSize(out, int64(c.size))
		if err := c.write(&n); err != nil {
			return nil, err
		}
		if err := c.check(n.n); err != nil {
			return nil, err
		}
		if err := w.zstd.Close(); err != nil {
			return nil, fault.Wrap("lancefile.CellWriter", "", err)
		}
		b = out.Bytes()
	}
	if cap(b) <= 1<<20 {
		w.packed = b
	}
	return b, nil
}

// countingWriter counts what passes.
type countingWriter struct {
	to io.Writer
	n  int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.n += int64(n)
	return n, err
}

// endPage writes the offsets of the page's cells behind them, and describes the page.
func (w *CellWriter) endPage() error {
	if len(w.ends) == 0 {
		return nil
	}
	total := w.pageBytes()
	p := CellPage{Rows: uint64(len(w.ends)), first: w.written - uint64(len(w.ends)), grammar: w.grammar, encoding: w.kind.describe(w.grammar, uint64(len(w.ends)), total)}
	data := sinkPiece(w.sink, w.start, int64(total))
	at := w.sink.Size()
	if w.grammar == grammarArray {
		if err := w.appendWords(w.ends, 8, total+1); err != nil {
			return err
		}
		p.Buffers = []Piece{sinkPiece(w.sink, at, w.sink.Size()-at), data}
	} else {
		size := (bits.Len64(total) + 7) / 8
		for size&(size-1) != 0 { // 1, 2, 4 or 8
			size++
		}
		if err := w.appendWords([]uint64{0}, size, 0); err != nil {
			return err
		}
		if err := w.appendWords(w.ends, size, 0); err != nil {
			return err
		}
		p.Buffers = []Piece{data, sinkPiece(w.sink, at, w.sink.Size()-at)}
	}
	w.pages = append(w.pages, p)
	w.start, w.ends = w.sink.Size(), w.ends[:0]
	return nil
}

// appendWords writes numbers of size bytes. To those with the null mark, which goes, adjust is added.
func (w *CellWriter) appendWords(v []uint64, size int, adjust uint64) error {
	var b []byte
	for _, x := range v {
		if x&nullMark != 0 {
			x = x&^nullMark + adjust
		}
		var le [8]byte
		binary.LittleEndian.PutUint64(le[:], x)
		if b = append(b, le[:size]...); len(b) >= 1<<16 {
			if err := w.sink.Append(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	return w.sink.Append(b)
}

// Finish ends the column. The pages read from the Sink, which must stay open as long as a file made of them is in use.
// Fewer cells than rows are fault.Invalid.
func (w *CellWriter) Finish() (CellPages, error) {
	if w.err == nil && w.written != w.rows {
		w.err = invalid("%d cells for column %d of a file of %d rows", w.written, w.column, w.rows)
	}
	if w.err == nil {
		w.err = w.endPage()
	}
	if w.err != nil {
		return CellPages{}, w.err
	}
	return CellPages{Column: w.column, Pages: w.pages}, nil
}
