package lancefile

import (
	"context"
	"fmt"

	"github.com/frifs/frifs/internal/pb"
)

// arrayReader reads a field of version 2.0: its own column, and those of its members or items.
type arrayReader struct {
	columnInfo
	field    *field
	shape    shape // of a leaf
	pages    []arrayValues
	children []*arrayReader
	items    []uint64 // of a list: number of items before each page, and at the end
}

// arrayValues is a page of version 2.0.
type arrayValues struct {
	pageInfo
	enc *pb.ArrayEncoding
}

// openArray parses the pages of a field of version 2.0 that has so many values, and of the fields in it.
func (f *File) openArray(ctx context.Context, n *field, rows uint64) (*arrayReader, error) {
	if n.column >= len(f.columns) {
		return nil, corrupt(f.foot.cmo, "field %q is column %d, the file has %d", n.path, n.column, len(f.columns))
	}
	r := &arrayReader{field: n, items: []uint64{0}}
	r.columnInfo.name, r.columnInfo.index = n.path, n.column
	meta := f.columns[n.column].off
	var err error
	switch {
	case n.packed():
		err = &unknownError{what: "type", detail: "packed struct"}
	case n.leaf():
		r.shape, err = shapeOf(n.pb.GetLogicalType())
	case !n.list() && n.pb.GetLogicalType() != "struct":
		err = &unknownError{what: "type", detail: fmt.Sprintf("%q", n.pb.GetLogicalType())}
	}
	if err != nil {
		return nil, r.wrap(-1, meta, err)
	}
	err = r.load(ctx, f, n.column, func(p *pageInfo, e *encoding) error {
		if e.array == nil {
			return &unknownError{what: "encoding", detail: fmt.Sprintf("page of type %q in a file of version %s", e.url, f.foot.version)}
		}
		v := arrayValues{*p, e.array}
		r.pages = append(r.pages, v)
		return r.check(ctx, &v)
	})
	if err != nil {
		return nil, err
	}
	if got := r.Rows(); got != rows {
		return nil, r.wrap(-1, meta, fmt.Errorf("its %d pages hold %d rows, expected are %d", len(r.pages), got, rows))
	}
	if n.list() {
		rows = r.items[len(r.items)-1]
	}
	for _, c := range n.children {
		if n.leaf() {
			break
		}
		child, err := f.openArray(ctx, c, rows)
		if err != nil {
			return nil, err
		}
		r.children = append(r.children, child)
	}
	return r, nil
}

// check looks at the encoding of a page as far as that needs no bytes.
func (r *arrayReader) check(ctx context.Context, p *arrayValues) error {
	switch {
	case r.field.leaf():
		_, _, err := r.values(ctx, p, p.enc, r.shape, 0, 0, 0)
		return err
	case r.field.list():
		l, err := listOf(p.enc)
		if err != nil {
			return err
		}
		last := r.items[len(r.items)-1]
		if l.GetNumItems() > 1<<62-last {
			return fmt.Errorf("%d items after %d", l.GetNumItems(), last)
		}
		r.items = append(r.items, last+l.GetNumItems())
		_, err = r.ends(ctx, p, l.GetOffsets(), 0, 0)
		return err
	case p.enc.GetStruct() == nil:
		return unknownOf("encoding", p.enc)
	}
	return nil
}

func listOf(e *pb.ArrayEncoding) (*pb.ArrayEncoding_List, error) {
	if e.GetList() == nil {
		return nil, unknownOf("encoding", e)
	}
	return e.GetList(), nil
}

// read decodes values [from, from+n).
func (r *arrayReader) read(ctx context.Context, from, n uint64) (*Array, error) {
	switch {
	case r.field.leaf():
		return r.leaf(ctx, from, n)
	case r.field.list():
		return r.list(ctx, from, n)
	}
	if n > readLimit/8 {
		return nil, r.wrap(-1, 0, tooLarge(8*n))
	}
	a := &Array{Type: r.field.pb.GetLogicalType(), Len: int(n)}
	for _, c := range r.children {
		m, err := c.read(ctx, from, n)
		if err != nil {
			return nil, err
		}
		a.Fields = append(a.Fields, Member{c.field.pb.GetName(), m})
	}
	return a, nil
}

func (r *arrayReader) leaf(ctx context.Context, from, n uint64) (*Array, error) {
	if n > readLimit/8 {
		return nil, r.wrap(-1, 0, tooLarge(8*n))
	}
	out := leafArray(r.field.pb.GetLogicalType(), r.shape, block{})
	err := r.eachPage(from, n, func(k int, row, take uint64) error {
		p := &r.pages[k]
		b, valid, err := r.values(ctx, p, p.enc, r.shape, row, take, 0)
		if err == nil {
			a := leafArray(out.Type, r.shape, b)
			a.Validity = valid
			err = out.append(a)
		}
		return r.wrap(k, firstOffset(&p.pageInfo), err)
	})
	return out, err
}

// list reads where the lists end, then the items between.
func (r *arrayReader) list(ctx context.Context, from, n uint64) (*Array, error) {
	var out *Array
	err := r.eachPage(from, n, func(k int, row, take uint64) error {
		p := &r.pages[k]
		l := p.enc.GetList()
		ends, valid, err := r.cumulative(ctx, p, l.GetOffsets(), row, take, l.GetNullOffsetAdjustment(), l.GetNumItems())
		if err != nil {
			return r.wrap(k, firstOffset(&p.pageInfo), err)
		}
		child, err := r.children[0].read(ctx, r.items[k]+ends[0], ends[take]-ends[0])
		if err != nil {
			return err
		}
		a := &Array{Type: r.field.pb.GetLogicalType(), Len: int(take), Validity: valid, Child: child, Offsets: make([]int, take+1)}
		for i, e := range ends {
			a.Offsets[i] = int(e - ends[0])
		}
		if out == nil {
			out = a
			return nil
		}
		return r.wrap(k, firstOffset(&p.pageInfo), out.append(a))
	})
	if out == nil && err == nil {
		var child *Array
		child, err = r.children[0].read(ctx, 0, 0)
		out = &Array{Type: r.field.pb.GetLogicalType(), Offsets: []int{0}, Child: child}
	}
	return out, err
}

// cumulative reads the ends of values [from, from+n), with the end of the value before them in front, or 0. An end at
// or above adjust, unless that is 0, is of a null and by adjust too large. No end is past limit.
func (r *arrayReader) cumulative(ctx context.Context, p *arrayValues, e *pb.ArrayEncoding, from, n, adjust, limit uint64) ([]uint64, []uint64, error) {
	first := from
	if from > 0 {
		first--
	}
	raw, err := r.ends(ctx, p, e, first, from+n-first)
	if err != nil {
		return nil, nil, err
	}
	out := raw
	if from == 0 {
		out = append([]uint64{0}, raw...)
	}
	var valid []uint64
	for i, v := range out {
		if adjust > 0 && v >= adjust && (i > 0 || from > 0) {
			v -= adjust
			if out[i] = v; i > 0 {
				if valid == nil {
					valid = setBits(nil, 0, n)
				}
				valid[(i-1)>>6] &^= 1 << ((i - 1) & 63)
			}
		}
		if v > limit || i > 0 && v < out[i-1] {
			return nil, nil, fmt.Errorf("value %d ends at %d of %d, the one before at %d", from+uint64(i)-1, v, limit, out[max(i-1, 0)])
		}
	}
	return out, valid, nil
}

// ends reads an array of unsigned integers without nulls.
func (r *arrayReader) ends(ctx context.Context, p *arrayValues, e *pb.ArrayEncoding, from, n uint64) ([]uint64, error) {
	for range maxDepth {
		if e.GetNullable() == nil {
			break
		}
		if e.GetNullable().GetNoNulls() == nil {
			return nil, fmt.Errorf("nullable offsets or indices")
		}
		e = e.GetNullable().GetNoNulls().GetValues()
	}
	f := e.GetFlat()
	if f == nil {
		return nil, unknownOf("encoding", e)
	}
	switch f.GetBitsPerValue() {
	case 8, 16, 32, 64:
	default:
		return nil, fmt.Errorf("offsets or indices of %d bits", f.GetBitsPerValue())
	}
	w := f.GetBitsPerValue() / 8
	b, err := r.flat(ctx, p, f, from, n, w)
	if err != nil {
		return nil, err
	}
	out := make([]uint64, n)
	for i := range out {
		out[i] = loadWord[uint64](b[uint64(i)*w:][:w])
	}
	return out, nil
}

// flat reads n values of w bytes from value from on.
func (r *arrayReader) flat(ctx context.Context, p *arrayValues, f *pb.ArrayEncoding_Flat, from, n, w uint64) ([]byte, error) {
	if f.GetBuffer().GetBufferType() != 0 {
		return nil, &unknownError{what: "encoding", detail: fmt.Sprintf("flat array in a buffer of type %d", f.GetBuffer().GetBufferType())}
	}
	k := f.GetBuffer().GetBufferIndex()
	if uint64(k) >= uint64(len(p.buffers)) {
		return nil, fmt.Errorf("buffer %d of %d", k, len(p.buffers))
	}
	if s := f.GetCompression().GetScheme(); s != "" && s != "none" {
		return r.inflate(ctx, p, s, k, from, n, w)
	}
	if size := p.buffers[k].n; n > size/w || from > size/w-n {
		return nil, fmt.Errorf("buffer %d of %d bytes has no %d values of %d bytes at %d", k, size, n, w, from)
	}
	return r.slice(ctx, &p.pageInfo, int(k), from*w, n*w)
}

// inflated is a page buffer whose compression is undone.
type inflated struct {
	buffer uint32
	bytes  []byte
}

// inflate reads n values of w bytes from value from on of a buffer that is compressed as a whole. The one used last is
// kept.
func (r *arrayReader) inflate(ctx context.Context, p *arrayValues, scheme string, k uint32, from, n, w uint64) ([]byte, error) {
	var s pb.BufferCompression_Scheme
	switch scheme {
	case "zstd":
		s = pb.BufferCompression_ZSTD
	case "lz4":
		s = pb.BufferCompression_LZ4
	default:
		return nil, &unknownError{what: "encoding", detail: fmt.Sprintf("flat array compressed with %q", scheme)}
	}
	if n == 0 {
		return nil, nil
	}
	load := func() (*inflated, int, error) {
		b, err := r.slice(ctx, &p.pageInfo, int(k), 0, p.buffers[k].n)
		if err == nil {
			b, err = r.file.zstd.decompress(s, b, readLimit)
		}
		return &inflated{k, b}, len(b), err
	}
	v, err := cached(&r.cache, p.number, load)
	if err == nil && v.buffer != k {
		v, _, err = load()
	}
	if err != nil {
		return nil, err
	}
	if size := uint64(len(v.bytes)); n > size/w || from > size/w-n {
		return nil, fmt.Errorf("buffer %d of %d bytes uncompressed has no %d values of %d bytes at %d", k, size, n, w, from)
	}
	return v.bytes[from*w : (from+n)*w], nil
}
