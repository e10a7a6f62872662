package lancefile

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/frifs/frifs/internal/pb"
)

// constantValues is a page with one value in every slot that is not null, or with nulls and empty lists only.
type constantValues struct {
	nesting
	shape    shape
	value    []byte // inline
	scalar   bool   // buffer 0 has the value
	rep, def int    // buffers of levels, or -1
	repEnc   *pb.CompressiveEncoding
	defEnc   *pb.CompressiveEncoding // nil: raw u16
	repCount uint64
	defCount uint64
	null     bool // no slot holds a value
	cd       *codec
}

// buildConstantValues builds a constant page; the number of its buffers tells the form (docs/FORMAT.md, "Lance file").
func buildConstantValues(cd *codec, p *pageInfo, m *pb.PageLayout_Constant, n nesting, s shape) (pageReader, error) {
	d := &constantValues{nesting: n, shape: s, rep: -1, def: -1, cd: cd}
	count := len(p.buffers)
	first := 0
	switch {
	case m.InlineValue != nil && (count == 0 || count == 2):
		d.value = m.InlineValue
		if s.variable {
			return nil, &unknownError{what: "layout", detail: "an inline constant of variable width"}
		}
		if uint64(len(d.value)) != s.valueBytes() {
			return nil, fmt.Errorf("constant of %d bytes for values of %d", len(d.value), s.valueBytes())
		}
	case m.InlineValue == nil && (count == 0 || count == 2):
		d.null = true
	case m.InlineValue == nil && (count == 1 || count == 3):
		d.scalar, first = true, 1
	default:
		return nil, fmt.Errorf("constant page with %d buffers, inline value %v", count, m.InlineValue != nil)
	}
	d.repEnc, d.defEnc, d.repCount, d.defCount = m.GetRepCompression(), m.GetDefCompression(), m.GetNumRepValues(), m.GetNumDefValues()
	if count > first {
		if err := d.levels(p, first); err != nil {
			return nil, err
		}
	} else if d.repEnc != nil || d.defEnc != nil {
		return nil, fmt.Errorf("compressed levels without a buffer")
	}
	if n.lists > 0 && d.rep < 0 {
		return nil, fmt.Errorf("constant page of lists without repetition levels")
	}
	if d.null && d.def < 0 && (n.maxDef == 0 || n.lists > 0) {
		return nil, fmt.Errorf("constant page without a value whose layers %v allow no null", n.layers)
	}
	return d, nil
}

// levels finds the buffers of levels, the first of which is number k.
func (d *constantValues) levels(p *pageInfo, k int) error {
	check := func(k int, e *pb.CompressiveEncoding, count uint64, lists bool) (int, error) {
		n := p.buffers[k].n
		if e == nil {
			switch {
			case n == 0:
				return -1, nil
			case n%2 != 0, !lists && n/2 != p.length, n/2 < p.length:
				return 0, fmt.Errorf("%d bytes of levels for %d rows", n, p.length)
			}
			return k, nil
		}
		bits, err := valueBits(e)
		switch {
		case err != nil:
			return 0, err
		case bits != 16:
			return 0, fmt.Errorf("levels of %d bits, not 16", bits)
		case count < p.length, !lists && count != p.length:
			return 0, fmt.Errorf("%d levels for %d rows", count, p.length)
		case count > maxPackedLevels:
			return 0, &unknownError{what: "layout", detail: fmt.Sprintf("%d compressed levels in one page, at most %d", count, maxPackedLevels)}
		}
		return k, nil
	}
	lists := d.lists > 0
	var err error
	if d.rep, err = check(k, d.repEnc, d.repCount, lists); err != nil {
		return fmt.Errorf("repetition: %w", err)
	}
	if d.rep >= 0 && !lists {
		return fmt.Errorf("repetition in a page without lists")
	}
	if d.def, err = check(k+1, d.defEnc, d.defCount, lists); err != nil {
		return fmt.Errorf("definition: %w", err)
	}
	return nil
}

// pageLevels are all levels of a page.
type pageLevels struct{ rep, def []uint16 }

func (d *constantValues) all(ctx context.Context, c *columnInfo, p *pageInfo) (*pageLevels, error) {
	return cached(&c.cache, p.number, func() (*pageLevels, int, error) {
		load := func(k int, e *pb.CompressiveEncoding, count uint64) ([]uint16, error) {
			if k < 0 {
				return nil, nil
			}
			b, err := c.slice(ctx, p, k, 0, p.buffers[k].n)
			if err != nil {
				return nil, err
			}
			if e == nil {
				out := make([]uint16, len(b)/2)
				loadWords(b, out)
				return out, nil
			}
			out := make([]uint16, count)
			return out, decodeWords(d.cd, e, b, out)
		}
		l := &pageLevels{}
		var err error
		if l.rep, err = load(d.rep, d.repEnc, d.repCount); err != nil {
			return nil, 0, fmt.Errorf("repetition levels: %w", err)
		}
		if l.def, err = load(d.def, d.defEnc, d.defCount); err != nil {
			return nil, 0, fmt.Errorf("definition levels: %w", err)
		}
		if l.rep != nil && l.def != nil && len(l.rep) != len(l.def) {
			return nil, 0, fmt.Errorf("%d repetition and %d definition levels", len(l.rep), len(l.def))
		}
		_, err = d.count(l.rep, l.def)
		return l, 2 * (len(l.rep) + len(l.def)), err
	})
}

func (d *constantValues) read(ctx context.Context, c *columnInfo, p *pageInfo, from, n uint64) (*slots, error) {
	out := &slots{levels: n}
	take := n
	switch {
	case d.rep >= 0:
		l, err := d.all(ctx, c, p)
		if err != nil {
			return nil, err
		}
		out.rep, out.def = l.rep, l.def
		if _, take, err = d.cut(out, 0, from, n); err != nil {
			return nil, err
		}
	case d.def >= 0 && d.defEnc == nil:
		b, err := c.slice(ctx, p, d.def, 2*from, 2*n)
		if err != nil {
			return nil, err
		}
		out.def = make([]uint16, n)
		loadWords(b, out.def)
		if _, err := d.count(nil, out.def); err != nil {
			return nil, err
		}
	case d.def >= 0:
		l, err := d.all(ctx, c, p)
		if err != nil {
			return nil, err
		}
		out.def = l.def[from : from+n]
	case d.null:
		// Nothing says how deep the null is: the item itself, unless only a parent can be null.
		if n > readLimit/2 {
			return nil, tooLarge(2 * n)
		}
		out.def = make([]uint16, n)
		for i := range out.def {
			out.def[i] = 1
		}
	}
	if d.null {
		for i, l := range out.def {
			if l == 0 {
				return nil, fmt.Errorf("level %d of a page without a value is not null", i)
			}
		}
		var err error
		out.items, err = nullBlock(d.shape, take)
		return out, err
	}
	value := d.value
	if d.scalar {
		var err error
		if value, err = d.scalarValue(ctx, c, p); err != nil {
			return nil, err
		}
	}
	var err error
	out.items, err = repeat(d.shape, take, value)
	return out, err
}

// scalarValue reads the value in buffer 0: u32 number of buffers, u32 length of each, then the buffers of an array of
// one element, of which the last has the value. Offsets, where there are any, come before it.
func (d *constantValues) scalarValue(ctx context.Context, c *columnInfo, p *pageInfo) ([]byte, error) {
	v, err := cached(&c.cache, p.number, func() (*[]byte, int, error) {
		b, err := c.slice(ctx, p, 0, 0, p.buffers[0].n)
		if err != nil {
			return nil, 0, err
		}
		if len(b) < 4 {
			return nil, 0, fmt.Errorf("constant value of %d bytes", len(b))
		}
		n := uint64(binary.LittleEndian.Uint32(b))
		if n == 0 || n > 4 || 4+4*n > uint64(len(b)) {
			return nil, 0, fmt.Errorf("constant value of %d bytes in %d buffers", len(b), n)
		}
		at := 4 + 4*n
		var parts [][]byte
		for i := range n {
			size := uint64(binary.LittleEndian.Uint32(b[4+4*i:]))
			if size > uint64(len(b))-at {
				return nil, 0, fmt.Errorf("buffer %d of a constant value has %d bytes, %d are left", i, size, uint64(len(b))-at)
			}
			parts = append(parts, b[at:at+size])
			at += size
		}
		value := parts[n-1]
		if d.shape.variable {
			if n < 2 {
				return nil, 0, fmt.Errorf("constant value of variable width in %d buffers", n)
			}
			bits := 4 * len(parts[n-2]) // two offsets
			if bits != 32 && bits != 64 {
				return nil, 0, fmt.Errorf("offsets of a constant value take %d bytes", len(parts[n-2]))
			}
			ends, err := checkEnds(offsetsOf(parts[n-2], bits), uint64(len(value)))
			if err != nil {
				return nil, 0, err
			}
			value = value[ends[0]:ends[1]]
		} else if uint64(len(value)) != d.shape.valueBytes() {
			return nil, 0, fmt.Errorf("constant value of %d bytes for values of %d", len(value), d.shape.valueBytes())
		}
		return &value, len(value), nil
	})
	if err != nil {
		return nil, err
	}
	return *v, nil
}
