package lancefile

import (
	"context"
	"io"
	"math"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
)

// File is an open container: its tables and schema, checked. It keeps no more than the tail of the file and the parsed
// schema in memory.
type File struct {
	src     source
	foot    footer
	buffers []span // global buffers; 0 is the schema
	columns []span // metadata of each column
	desc    *pb.FileDescriptor
	zstd    zstdPool

	treeOnce sync.Once // protects the making of tree and names
	tree     []*field
	names    []string // path of the field of each column
	items    []bool   // whether the pages of each column count items of lists, if the version is 2.0
}

// Open reads and checks footer, tables and schema of a file of size bytes. Errors are fault.Corrupt for bytes that
// violate the format (the message names the byte), fault.Unsupported for another file version, or what the reader
// gave. A reader may have ReadAtContext(ctx, p, off) beside ReadAt; it is used then.
func Open(ctx context.Context, r io.ReaderAt, size int64) (*File, error) {
	if size < 0 {
		return nil, fault.New("lancefile.Open", "", fault.Invalid, "size %d", size)
	}
	f := &File{src: source{r: r, size: uint64(size)}}
	var err error
	if f.foot, err = f.src.readTail(ctx); err != nil {
		return nil, err
	}
	t, err := f.src.slice(ctx, f.foot.gbo, 16*uint64(f.foot.buffers))
	if err != nil {
		return nil, err
	}
	f.buffers = parseTable(t)
	if err := checkBuffers(f.foot, f.src.size, f.buffers); err != nil {
		return nil, err
	}
	if t, err = f.src.slice(ctx, f.foot.cmo, 16*uint64(f.foot.columns)); err != nil {
		return nil, err
	}
	f.columns = parseTable(t)
	if err := checkColumns(f.foot, f.columns); err != nil {
		return nil, err
	}
	d, err := f.src.slice(ctx, f.buffers[0].off, f.buffers[0].n)
	if err != nil {
		return nil, err
	}
	f.desc = &pb.FileDescriptor{}
	if err := proto.Unmarshal(d, f.desc); err != nil {
		return nil, corrupt(f.buffers[0].off, "the schema does not decode: %w", err)
	}
	if f.desc.GetLength() > math.MaxInt64 {
		return nil, corrupt(f.buffers[0].off, "row count %d", f.desc.GetLength())
	}
	return f, nil
}

// Version returns the file version.
func (f *File) Version() Version { return f.foot.version }

// Size returns the size in bytes that the file was opened with.
func (f *File) Size() int64 { return int64(f.src.size) }

// Rows returns the row count that the schema states; OpenColumn checks it against the column's pages.
func (f *File) Rows() uint64 { return f.desc.GetLength() }

// Columns returns the number of columns.
func (f *File) Columns() int { return len(f.columns) }

// Fields returns the fields of the schema, depth first. The caller must not change them.
func (f *File) Fields() []*pb.FileField { return f.desc.GetSchema().GetFields() }

// Metadata returns the schema's metadata value for key.
func (f *File) Metadata(key string) ([]byte, bool) {
	v, ok := f.desc.GetSchema().GetMetadata()[key]
	return slices.Clone(v), ok
}

// GlobalBuffers returns the number of global buffers, the schema (0) included.
func (f *File) GlobalBuffers() int { return len(f.buffers) }

// GlobalBuffer returns position and length in bytes of global buffer i; i must be below GlobalBuffers.
func (f *File) GlobalBuffer(i int) (off, n uint64) { return f.buffers[i].off, f.buffers[i].n }

// ReadGlobal fills p from byte off of global buffer i. A range that is not inside the buffer is fault.Invalid.
func (f *File) ReadGlobal(ctx context.Context, i int, p []byte, off uint64) error {
	if i < 0 || i >= len(f.buffers) || off > f.buffers[i].n || uint64(len(p)) > f.buffers[i].n-off {
		return fault.New("lancefile.ReadGlobal", "", fault.Invalid, "global buffer %d has no %d bytes at %d", i, len(p), off)
	}
	return f.src.readFull(ctx, p, f.buffers[i].off+off)
}
