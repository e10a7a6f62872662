package indexfile

import (
	"context"
	"errors"
	"io"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/lancefile"
)

// File is one stored file of a segment, looked into. It is safe for concurrent use.
type File struct {
	Path      string
	How       How
	Version   string   // Lance file version ("2.1"); "" for a legacy index.idx
	Rows      uint64   // rows of the file
	Columns   []Column // leaf columns, in order
	Addresses []string // where its addresses are: column names, "metadata row_ids", "global buffer 1", "partitions"; nil = none

	seg     *Segment
	rule    *rule
	raw     Reader
	lance   *lancefile.File // nil for a legacy index.idx
	body    body            // nil where the file holds no addresses
	blocked *roaring.Bitmap // stored fragments whose entries readers ignore; nil = none
}

// Options are settings of Remap; the zero value is usable.
type Options struct {
	// SpillDir is where re-serialised data over SpillAbove bytes goes, in files that are removed with their Content;
	// "" keeps everything in memory, up to SpillAbove: more is fault.TooLarge.
	SpillDir string
	// SpillAbove is the bound on bytes held in memory for one file; 0 means 8 MiB.
	SpillAbove int64
}

// Open looks into one stored file: its tail, and the page descriptions of the column with addresses. Errors are those of
// How and of the reader, fault.Corrupt for a file that violates its format, and fault.Unsupported for one that frifs
// cannot read, naming what.
func (s *Segment) Open(ctx context.Context, path string) (*File, error) {
	how, err := s.How(path)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, How: how, seg: s}
	f.rule, _ = s.rule("", path)
	if f.raw, err = s.OpenRaw(ctx, path); err != nil {
		return nil, fault.Wrap("indexfile.Open", path, err)
	}
	if err := f.look(ctx); err != nil {
		f.raw.Close()
		return nil, fault.Wrap("indexfile.Open", path, err)
	}
	return f, nil
}

// look reads the container and makes the body.
func (f *File) look(ctx context.Context) error {
	if old, err := beforeV2(ctx, f.raw); err != nil {
		return err
	} else if !old {
		if f.lance, err = lancefile.Open(ctx, f.raw, f.raw.Size()); err != nil {
			return err
		}
		f.Version, f.Rows = f.lance.Version().String(), f.lance.Rows()
		for _, l := range f.lance.Leaves() {
			f.Columns = append(f.Columns, Column{l.Path, l.Type})
		}
	}
	if f.How == Verbatim {
		return nil
	}
	var err error
	if f.body, err = f.rule.open(ctx, f); err != nil {
		return err
	}
	f.Addresses = f.body.places()
	return nil
}

// Resolver wraps a resolver of the segment for this file. It differs where readers ignore entries of the file whatever
// becomes of their rows: those are masked.
func (f *File) Resolver(r Resolver) Resolver {
	if f.blocked == nil {
		return r
	}
	return &blocking{r, f.blocked}
}

// Scan walks over the stored addresses from a position on; nil where the file holds none.
func (f *File) Scan(ctx context.Context, from Position) (Cursor, error) {
	if f.body == nil {
		return nil, nil
	}
	c, err := f.body.scan(ctx, from)
	return c, fault.Wrap("indexfile.Scan", f.Path, err)
}

// Remap makes the remapped file. For How other than Reserialised nothing is translated before it is read. The Content
// stays usable after ctx ends, and holds f open; closing it closes f.
func (f *File) Remap(ctx context.Context, r Resolver, o Options) (Content, error) {
	if f.body == nil {
		return &stored{f}, nil
	}
	c, err := f.body.remap(ctx, f.Resolver(r), o)
	if err != nil {
		return nil, fault.Wrap("indexfile.Remap", f.Path, err)
	}
	return &remapped{c, f}, nil
}

// Close releases the stored file.
func (f *File) Close() error { return f.raw.Close() }

// remapped closes the stored file with the Content, and names it in errors.
type remapped struct {
	Content
	f *File
}

func (c *remapped) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := c.Content.ReadAt(ctx, p, off)
	if errors.Is(err, io.EOF) && fault.KindOf(err) == fault.Unknown {
		err = nil // the end of the made file, as an io.ReaderAt tells it
	}
	return n, fault.Wrap("indexfile.Read", c.f.Path, err)
}

func (c *remapped) Close() error {
	err := c.Content.Close()
	if e := c.f.Close(); err == nil {
		err = e
	}
	return err
}

// stored is the Content of a file without addresses.
type stored struct{ f *File }

func (c *stored) Size() int64  { return c.f.raw.Size() }
func (c *stored) Close() error { return c.f.Close() }

func (c *stored) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	left := c.Size() - off
	if left <= 0 {
		return 0, nil
	}
	p = p[:min(int64(len(p)), left)]
	return len(p), fault.Wrap("indexfile.Read", c.f.Path, readFull(ctx, c.f.raw, p, off))
}

// blocking is a Resolver that masks the entries of some stored fragments.
type blocking struct {
	Resolver
	frags *roaring.Bitmap
}

func (b *blocking) Resolve(ctx context.Context, addrs []fri.RowAddr, a *Answers) error {
	if err := b.Resolver.Resolve(ctx, addrs, a); err != nil {
		return err
	}
	for i, x := range addrs {
		if a.Covered[i] && b.frags.Contains(uint32(x.Frag())) {
			a.Covered[i] = false
		}
	}
	return nil
}
