package lancefile

import (
	"context"
	"io"

	"github.com/frifs/frifs/fault"
)

// Edit says how a synthesised file differs from the original. Rows stay: their number, and their order in the columns
// that are not named. The zero value changes nothing.
type Edit struct {
	Flats   []Flat
	Cells   []CellPages
	Globals map[int]Piece // replaced global buffers by number; 0, the schema, cannot be replaced
	// Overlays are written over the original's bytes, wherever those come to stand. They must not overlap each other.
	Overlays []Overlay
}

// Flat is a u64 column without nulls that takes the place of the column of that number. Fill writes the values of rows
// [from, from+len(dst)) into dst, at most 65,536 of them at a time; it is called from ReadAt, by several goroutines at
// once. Reads ask for the rows they need and keep nothing.
type Flat struct {
	Column int
	Fill   func(ctx context.Context, from uint64, dst []uint64) error
	// Bytes, where it is not nil, is called instead of Fill: it writes the column's little-endian words from byte off of
	// the column on, in pieces of any size. It saves a copy.
	Bytes func(ctx context.Context, p []byte, off int64) error
	// PageRows bounds the rows of a page in a file of version 2.1 and later: a positive multiple of 8, at most 2^31.
	// 0 means one page, or pages of 2^31 rows where one cannot hold all. A file of version 2.0 keeps its pages.
	PageRows uint64
}

// Piece is a run of Size bytes. Read fills p from byte off of it, for any range within it; it is called from ReadAt, by
// several goroutines at once.
type Piece struct {
	Size int64
	Read func(ctx context.Context, p []byte, off int64) error
}

// Bytes is a Piece with the given content, which must not change any more.
func Bytes(b []byte) Piece {
	return Piece{Size: int64(len(b)), Read: memory(b).fill}
}

// Overlay replaces the bytes of the original from Off on.
type Overlay struct {
	Off int64
	Piece
}

// Synthesise plans the file that an Edit makes of f (docs/FORMAT.md, "Lance file"): new pages and global buffers stand
// where f's schema stood, each at a multiple of 64, and schema, page descriptions and tables follow. All bytes before
// them are the original's, so that the columns that are not named stay as they are; replaced pages become dead bytes.
// Without a Flat or an Overlay the dead bytes at the end of the data are left out.
// In a file of version 2.0 a Flat is written over the pages of its column, which must all be plain arrays without nulls.
// An Edit of nothing but overlays keeps size and layout.
//
// Nothing is translated here: f's page descriptions are read, and Edit's functions are not called.
//
// Errors: fault.Invalid for an Edit that does not fit f; fault.Unsupported for a file that cannot be changed this way
// (a column that is no top-level uint64 column, pages of version 2.0 that are not flat, both page grammars of 2.3 in one
// file, data behind the schema); fault.Corrupt for broken page descriptions; fault.TooLarge for a size beyond 2^63-1.
func Synthesise(ctx context.Context, f *File, e Edit) (*Synth, error) {
	p := &plan{file: f, edit: e}
	if err := p.checkEdit(); err != nil {
		return nil, err
	}
	if len(e.Flats)+len(e.Cells)+len(e.Globals) == 0 {
		return overlaid(&f.src, e.Overlays)
	}
	if err := p.survey(ctx); err != nil {
		return nil, err
	}
	if err := p.lay(ctx); err != nil {
		return nil, err
	}
	return p.out.synth()
}

// Overlaid is the file of r, of the given size, with overlays written over it. r need not be a Lance file.
// Errors: fault.Invalid for overlays that overlap or lie outside the file.
func Overlaid(r io.ReaderAt, size int64, overlays []Overlay) (*Synth, error) {
	if size < 0 {
		return nil, fault.New("lancefile.Overlaid", "", fault.Invalid, "size %d", size)
	}
	return overlaid(&source{r: r, size: uint64(size)}, overlays)
}

func overlaid(src *source, overlays []Overlay) (*Synth, error) {
	l := layout{src: src}
	if err := l.setOverlays(overlays); err != nil {
		return nil, err
	}
	l.original(span{0, src.size})
	return l.synth()
}
