package lancetest

import (
	"encoding/binary"
	"fmt"
	"io"
	"sort"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/pb"
)

// The type URLs of page encodings.
const (
	ArrayURL  = "/lance.encodings.ArrayEncoding"
	LayoutURL = "/lance.encodings21.PageLayout"
	PlanarURL = "/lance.encodings23.PlanarLayout"
)

// Buffer is a piece of a file: Size bytes that Fill writes, for any range within them.
type Buffer struct {
	Size int64
	Fill func(p []byte, off int64)
}

// Bytes is a buffer with the given content.
func Bytes(b []byte) Buffer {
	return Buffer{int64(len(b)), func(p []byte, off int64) { copy(p, b[off:]) }}
}

// Repeat is a buffer of size bytes that repeats unit.
func Repeat(unit []byte, size int64) Buffer {
	return Buffer{size, func(p []byte, off int64) {
		for len(p) > 0 {
			n := copy(p, unit[off%int64(len(unit)):])
			p, off = p[n:], off+int64(n)
		}
	}}
}

// Page is a page of a column. Encoding is an ArrayEncoding, a PageLayout or a PlanarLayout; its type decides the type
// URL, unless URL is set.
type Page struct {
	Rows     uint64
	Buffers  []Buffer
	Encoding proto.Message
	URL      string
	Raw      []byte // the encoding's bytes, if not nil, in place of Encoding
}

// Column is a top-level column of integers.
type Column struct {
	Name     string
	Type     string // logical type
	Nullable bool
	Pages    []Page
}

// File describes a file.
type File struct {
	Major, Minor uint16
	Rows         uint64
	Columns      []Column
	Fields       []*pb.FileField // the schema, in place of a field per column
	Metadata     map[string]string
	Globals      []Buffer // global buffers after the schema; they get the numbers 1, 2, ...
}

// Content is a rendered file.
type Content struct {
	parts []part // ascending, without gaps
	size  int64
}

type part struct {
	off int64
	Buffer
}

// Size returns the size of the file in bytes.
func (c *Content) Size() int64 { return c.size }

// ReadAt implements io.ReaderAt.
func (c *Content) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("lancetest: offset %d", off)
	}
	done := 0
	k := sort.Search(len(c.parts), func(k int) bool { return c.parts[k].off+c.parts[k].Size > off })
	for ; k < len(c.parts) && done < len(p); k++ {
		x := c.parts[k]
		at := off + int64(done) - x.off
		n := int(min(int64(len(p)-done), x.Size-at))
		x.Fill(p[done:done+n], at)
		done += n
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// All returns the whole file, which must be small.
func (c *Content) All() []byte {
	b := make([]byte, c.size)
	if _, err := c.ReadAt(b, 0); err != nil {
		panic(err)
	}
	return b
}

func (c *Content) add(b Buffer) (off int64) {
	off = c.size
	if b.Size == 0 {
		return off
	}
	c.parts = append(c.parts, part{off, b})
	c.size += b.Size
	return off
}

// align pads to a multiple of 64, as writers do.
func (c *Content) align() {
	if n := -c.size & 63; n > 0 {
		c.add(Buffer{n, func(p []byte, _ int64) {
			for i := range p {
				p[i] = 'H'
			}
		}})
	}
}

// Build lays out the file.
func (f File) Build() *Content {
	c := &Content{}
	var metas []*pb.ColumnMetadata
	desc := &pb.FileDescriptor{Length: f.Rows, Schema: &pb.FileSchema{Metadata: map[string][]byte{}}}
	for k, v := range f.Metadata {
		desc.Schema.Metadata[k] = []byte(v)
	}
	for i, col := range f.Columns {
		desc.Schema.Fields = append(desc.Schema.Fields, &pb.FileField{Name: col.Name, Id: int32(i), ParentId: -1,
			LogicalType: col.Type, Nullable: col.Nullable, Encoding: 1})
		m := &pb.ColumnMetadata{Encoding: direct("/lance.encodings.ColumnEncoding", []byte{0x0a, 0x00})}
		var row uint64
		for _, p := range col.Pages {
			m.Pages = append(m.Pages, c.page(p, row))
			row += p.Rows
		}
		metas = append(metas, m)
	}
	if f.Fields != nil {
		desc.Schema.Fields = f.Fields
	}
	gbo := make([]byte, 16) // the schema's entry is filled in below
	for _, g := range f.Globals {
		c.align()
		gbo = entry(gbo, c.add(g), g.Size)
	}
	c.align()
	d := marshal(desc)
	binary.LittleEndian.PutUint64(gbo, uint64(c.add(Bytes(d))))
	binary.LittleEndian.PutUint64(gbo[8:], uint64(len(d)))
	start := c.size
	var cmo []byte
	for _, m := range metas {
		b := marshal(m)
		cmo = entry(cmo, c.add(Bytes(b)), int64(len(b)))
	}
	foot := binary.LittleEndian.AppendUint64(nil, uint64(start))
	foot = binary.LittleEndian.AppendUint64(foot, uint64(c.add(Bytes(cmo))))
	foot = binary.LittleEndian.AppendUint64(foot, uint64(c.add(Bytes(gbo))))
	foot = binary.LittleEndian.AppendUint32(foot, uint32(len(f.Globals)+1))
	foot = binary.LittleEndian.AppendUint32(foot, uint32(len(f.Columns)))
	foot = binary.LittleEndian.AppendUint16(foot, f.Major)
	foot = binary.LittleEndian.AppendUint16(foot, f.Minor)
	c.add(Bytes(append(foot, "LANC"...)))
	return c
}

func (c *Content) page(p Page, first uint64) *pb.ColumnMetadata_Page {
	m := &pb.ColumnMetadata_Page{Length: p.Rows, Priority: first}
	for _, b := range p.Buffers {
		c.align()
		m.BufferOffsets = append(m.BufferOffsets, uint64(c.add(b)))
		m.BufferSizes = append(m.BufferSizes, uint64(b.Size))
	}
	url := p.URL
	if url == "" {
		switch p.Encoding.(type) {
		case *pb.ArrayEncoding:
			url = ArrayURL
		case *pb.PlanarLayout:
			url = PlanarURL
		default:
			url = LayoutURL
		}
	}
	raw := p.Raw
	if raw == nil {
		raw = marshal(p.Encoding)
	}
	m.Encoding = direct(url, raw)
	return m
}

func direct(url string, value []byte) *pb.ColumnEncoding {
	value = marshal(&pb.AnyValue{TypeUrl: url, Value: value})
	return &pb.ColumnEncoding{Location: &pb.ColumnEncoding_Direct_{Direct: &pb.ColumnEncoding_Direct{Encoding: value}}}
}

func entry(t []byte, off, n int64) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(t, uint64(off)), uint64(n))
}

func marshal(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}
