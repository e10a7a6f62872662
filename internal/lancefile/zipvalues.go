package lancefile

import (
	"context"
	"fmt"
	"sort"

	"github.com/frifs/frifs/internal/pb"
)

// zippedValues is a full-zip page of any type: for each level a control word of 0 to 4 bytes with repetition and
// definition, and, where the slot is visible, the value. A value of variable width has its length in front, and is
// there only where it is not null.
type zippedValues struct {
	nesting
	control int // bytes
	bitsRep uint32
	bitsDef uint32
	shape   shape
	length  int  // bytes of a length; 0 for fixed width
	masked  int  // bytes of validity in front of a fixed-size list with null items
	indexed bool // buffer 1 has the byte where each row begins, and the end
	levels  uint64
	values  *pb.CompressiveEncoding
	cd      *codec
}

// CellLimit is the size in bytes of the longest single value that is read.
const CellLimit = 1 << 30

func buildZippedValues(cd *codec, p *pageInfo, z zippedSpec, offset uint32, n nesting, s shape) (pageReader, error) {
	d := &zippedValues{nesting: n, bitsRep: z.bitsRep, bitsDef: z.bitsDef, shape: s, levels: z.items, values: z.values, cd: cd}
	if z.bitsRep > 16 || z.bitsDef > 16 {
		return nil, fmt.Errorf("levels of %d and %d bits, at most 16", z.bitsRep, z.bitsDef)
	}
	d.control = int(z.bitsRep+z.bitsDef+7) / 8
	if s.variable {
		if offset != 32 && offset != 64 {
			return nil, fmt.Errorf("lengths of %d bits, not 32 or 64", offset)
		}
		d.length = int(offset) / 8
		if err := d.checkVariable(z.values, 0); err != nil {
			return nil, err
		}
	} else if err := d.checkFixed(z); err != nil {
		return nil, err
	}
	if (n.lists > 0) != (z.bitsRep > 0) {
		return nil, fmt.Errorf("repetition levels of %d bits for %d lists", z.bitsRep, n.lists)
	}
	if n.lists == 0 && z.items != p.length {
		return nil, fmt.Errorf("%d items in a page of %d rows", z.items, p.length)
	}
	d.indexed = s.variable || n.lists > 0
	want := 1
	if d.indexed {
		want = 2
	}
	if len(p.buffers) != want {
		return nil, fmt.Errorf("zipped page has %d buffers, not %d", len(p.buffers), want)
	}
	if d.indexed {
		rows := p.length + 1
		switch w := p.buffers[1].n / rows; {
		case p.buffers[1].n%rows != 0, w != 1 && w != 2 && w != 4 && w != 8:
			return nil, fmt.Errorf("%d bytes of positions for %d rows", p.buffers[1].n, p.length)
		}
		return d, nil
	}
	size := d.slotBytes()
	if p.length > 0 && p.buffers[0].n/p.length < size {
		return nil, fmt.Errorf("%d zipped values of %d bytes in a buffer of %d", p.length, size, p.buffers[0].n)
	}
	return d, nil
}

// slotBytes is the size of a visible slot of fixed width.
func (d *zippedValues) slotBytes() uint64 {
	return uint64(d.control+d.masked) + d.shape.valueBytes()
}

// checkVariable accepts what zipped values of variable width may be compressed with, one by one.
func (d *zippedValues) checkVariable(e *pb.CompressiveEncoding, depth int) error {
	switch {
	case depth >= maxDepth:
		return fmt.Errorf("encodings nested deeper than %d", maxDepth)
	case e.GetGeneral() != nil:
		switch s := e.GetGeneral().GetCompression().GetScheme(); s {
		case pb.BufferCompression_LZ4, pb.BufferCompression_ZSTD:
		default:
			return &unknownError{what: "compression", number: int(s)}
		}
		return d.checkVariable(e.GetGeneral().GetValues(), depth+1)
	case e.GetFsst() != nil:
		if _, err := parseSymbols(e.GetFsst().GetSymbolTable()); err != nil {
			return err
		}
		return d.checkVariable(e.GetFsst().GetValues(), depth+1)
	case e.GetVariable() != nil:
		return nil
	}
	return unknownOf("encoding", e)
}

func (d *zippedValues) checkFixed(z zippedSpec) error {
	e, bits := z.values, uint64(d.shape.bits)
	if l := e.GetFixedSizeList(); l != nil && d.shape.dim > 0 {
		if l.GetHasValidity() {
			d.masked = int(d.shape.dim+7) / 8
		}
		if l.GetItemsPerValue() != d.shape.dim {
			return fmt.Errorf("lists of %d items where %d are expected", l.GetItemsPerValue(), d.shape.dim)
		}
		e = l.GetValues()
	} else if d.shape.dim > 0 {
		bits *= d.shape.dim
	}
	if d.shape.bits == 1 && d.shape.dim == 0 {
		bits = 8 // a byte for each
	}
	want := 8 * (uint64(d.masked) + d.shape.valueBytes())
	f := e.GetFlat()
	switch {
	case f == nil:
		return unknownOf("encoding", e)
	case f.GetCompression().GetScheme() != pb.BufferCompression_UNSPECIFIED:
		return &unknownError{what: "encoding", detail: "compressed flat values in a zipped page"}
	case bits%8 != 0:
		return &unknownError{what: "encoding", detail: "lists of single bits in a zipped page"}
	case uint64(z.bits) != want || f.GetBitsPerValue() != bits:
		return fmt.Errorf("zipped values of %d bits, flat of %d, where %d are expected", z.bits, f.GetBitsPerValue(), want)
	}
	return nil
}

// positions returns the byte where each of rows [from, from+n] begins.
func (d *zippedValues) positions(ctx context.Context, c *columnInfo, p *pageInfo, from, n uint64) ([]uint64, error) {
	w := p.buffers[1].n / (p.length + 1)
	b, err := c.slice(ctx, p, 1, from*w, (n+1)*w)
	if err != nil {
		return nil, err
	}
	out := make([]uint64, n+1)
	for i := range out {
		out[i] = loadWord[uint64](b[uint64(i)*w:][:w])
		if i > 0 && out[i] < out[i-1] || out[i] > p.buffers[0].n {
			return nil, fmt.Errorf("row %d begins at byte %d of %d", from+uint64(i), out[i], p.buffers[0].n)
		}
	}
	return out, nil
}

// fitRows is how many positions are looked at to choose a range.
const fitRows = 8192

func (d *zippedValues) fit(ctx context.Context, c *columnInfo, p *pageInfo, from, n, budget uint64) (uint64, error) {
	if !d.indexed {
		return min(n, max(1, budget/max(d.slotBytes(), 1))), nil
	}
	n = min(n, fitRows)
	at, err := d.positions(ctx, c, p, from, n)
	if err != nil {
		return 0, err
	}
	k := sort.Search(int(n), func(k int) bool { return at[k+1]-at[0] > budget })
	return uint64(max(k, 1)), nil
}

func (d *zippedValues) read(ctx context.Context, c *columnInfo, p *pageInfo, from, n uint64) (*slots, error) {
	var lo, hi uint64
	if d.indexed {
		at, err := d.positions(ctx, c, p, from, n)
		if err != nil {
			return nil, err
		}
		lo, hi = at[0], at[n]
	} else {
		size := d.slotBytes()
		lo, hi = from*size, (from+n)*size
	}
	b, err := c.slice(ctx, p, 0, lo, hi-lo)
	if err != nil {
		return nil, err
	}
	out := &slots{}
	if d.control == 0 && d.masked == 0 && !d.shape.variable {
		out.items = block{n: n, fixed: b}
		out.levels = n
		return out, nil
	}
	if err := d.unzip(out, b, n); err != nil {
		return nil, fmt.Errorf("rows [%d, %d): %w", from, from+n, err)
	}
	return out, nil
}

// unzip splits the bytes of n rows into levels and values.
func (d *zippedValues) unzip(out *slots, b []byte, n uint64) error {
	size := d.shape.valueBytes()
	rows := uint64(0)
	items := &out.items
	if d.shape.variable {
		items.offsets = append(make([]int, 0, min(n, uint64(len(b)))+1), 0)
	}
	for len(b) > 0 {
		if len(b) < d.control {
			return fmt.Errorf("%d bytes of a control word of %d", len(b), d.control)
		}
		var word uint64
		switch d.control {
		case 0:
		case 1:
			word = uint64(b[0])
		default:
			word = loadWord[uint64](b[:d.control])
		}
		b = b[d.control:]
		rep, def := uint16(word>>d.bitsDef), uint16(word&(1<<d.bitsDef-1))
		if def > d.maxDef || int(rep) > d.lists {
			return fmt.Errorf("level %d repeats %d of %d lists with definition %d, at most %d", out.levels, rep, d.lists, def, d.maxDef)
		}
		out.levels++
		if d.bitsRep > 0 {
			out.rep = append(out.rep, rep)
		}
		if d.bitsDef > 0 {
			out.def = append(out.def, def)
		}
		if int(rep) == d.lists {
			rows++
		}
		if def > d.visible {
			continue
		}
		items.n++
		if !d.shape.variable {
			if uint64(len(b)) < uint64(d.masked)+size {
				return fmt.Errorf("%d bytes of a value of %d", len(b), uint64(d.masked)+size)
			}
			if d.masked > 0 {
				items.valid = addBits(items.valid, (items.n-1)*d.shape.dim, bitWords(b, 0, d.shape.dim), d.shape.dim)
				b = b[d.masked:]
			}
			items.fixed = append(items.fixed, b[:size]...)
			b = b[size:]
			continue
		}
		if def == 0 {
			if len(b) < d.length {
				return fmt.Errorf("%d bytes of a length of %d", len(b), d.length)
			}
			k := loadWord[uint64](b[:d.length])
			if b = b[d.length:]; k > uint64(len(b)) {
				return fmt.Errorf("value of %d bytes, %d are there", k, len(b))
			}
			var err error
			if items.bytes, err = d.value(items.bytes, b[:k], d.values); err != nil {
				return fmt.Errorf("value %d: %w", items.n-1, err)
			}
			b = b[k:]
		}
		items.offsets = append(items.offsets, len(items.bytes))
	}
	if rows != n {
		return fmt.Errorf("%d rows, %d are expected", rows, n)
	}
	return nil
}

// value appends one value, its own compression undone.
func (d *zippedValues) value(out, b []byte, e *pb.CompressiveEncoding) ([]byte, error) {
	var err error
	switch {
	case e.GetGeneral() != nil:
		if b, err = d.cd.zstd.decompress(e.GetGeneral().GetCompression().GetScheme(), b, CellLimit); err != nil {
			return nil, err
		}
		return d.value(out, b, e.GetGeneral().GetValues())
	case e.GetFsst() != nil:
		t, err := parseSymbols(e.GetFsst().GetSymbolTable())
		if err != nil {
			return nil, err
		}
		if t.on {
			if b, err = t.decode(nil, b); err != nil {
				return nil, err
			}
		}
		return d.value(out, b, e.GetFsst().GetValues())
	}
	if size := uint64(len(out) + len(b)); size > readLimit && len(out) > 0 {
		return nil, tooLarge(size)
	}
	return append(out, b...), nil
}
