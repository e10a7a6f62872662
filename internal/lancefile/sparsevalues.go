package lancefile

import (
	"context"
	"fmt"

	"github.com/frifs/frifs/internal/pb"
)

// sparseValues is a planar page of sparse structure, of any type: layer by layer from the outside, which slots are null
// and how many items lists have, as positions; then values, of all slots, of the valid ones, or of none.
type sparseValues struct {
	cd     *codec
	shape  shape
	layers []sparseLayer // outermost first
	slots  uint64        // of the leaf

	page     pageInfo // of the values: their buffers and number
	values   pageReader
	valid    bool   // values are there for valid slots alone
	constant []byte // the value of each valid slot; nil: none has one, or values
}

// sparseLayer is one level of nesting.
type sparseLayer struct {
	slots  uint64
	valid  *positions
	buffer int // of the positions, or -1

	// of a list
	some                     *positions // slots of lists that are not empty
	items                    uint64     // slots of the next layer
	counts                   *pb.CompressiveEncoding
	someBuffer, countsBuffer int
}

// maxSparseLists bounds the lists that are not empty in one page; the message alone may describe any number.
const maxSparseLists = 1 << 22

// sparseSets is the decoded structure of a page.
type sparseSets struct {
	valid []*rowSet  // of each layer
	some  []*rowSet  // of lists: those that are not empty
	ends  [][]uint64 // of lists: items up to and with each that is not empty, from 0
}

// buildSparseValues builds a planar page of sparse structure. Buffers of the values come first, then those of the
// layers.
func buildSparseValues(cd *codec, p *pageInfo, m *pb.PlanarLayout_Sparse, v *pb.PlanarLayout_Values, path []*field, s shape) (pageReader, nesting, error) {
	d := &sparseValues{cd: cd, shape: s, slots: p.length}
	if len(m.GetLayers()) != len(path) {
		return nil, nesting{}, &unknownError{what: "layers", detail: fmt.Sprintf("%d of a sparse structure for a field with %d parents", len(m.GetLayers()), len(path)-1)}
	}
	next := valueBuffers(v, s)
	take := func(buffers int) (int, error) {
		if buffers == 0 {
			return -1, nil
		}
		if next >= len(p.buffers) {
			return 0, fmt.Errorf("sparse page has %d buffers, its structure takes more", len(p.buffers))
		}
		next++
		return next - 1, nil
	}
	for i, l := range m.GetLayers() {
		x, err := d.layer(l, path[len(path)-1-i].list(), take, p)
		if err != nil {
			return nil, nesting{}, fmt.Errorf("layer %d: %w", i, err)
		}
		d.layers = append(d.layers, x)
	}
	if next != len(p.buffers) {
		return nil, nesting{}, fmt.Errorf("sparse page has %d buffers, its values and structure take %d", len(p.buffers), next)
	}
	return d, nesting{}, d.plane(p, v, valueBuffers(v, s))
}

// valueBuffers is the number of buffers of a value plane.
func valueBuffers(v *pb.PlanarLayout_Values, s shape) int {
	switch {
	case v.GetChunked() != nil && v.GetChunked().GetDictionary() != nil:
		return 3
	case v.GetChunked() != nil, v.GetZipped() != nil && s.variable:
		return 2
	case v.GetZipped() != nil:
		return 1
	}
	return 0
}

// layer builds the next layer, over d.slots slots, and leaves in d.slots those of the one below.
func (d *sparseValues) layer(l *pb.PlanarLayout_SparseLayer, list bool, take func(int) (int, error), p *pageInfo) (x sparseLayer, err error) {
	x = sparseLayer{slots: d.slots, buffer: -1, someBuffer: -1, countsBuffer: -1}
	place := func(s *positions, k *int) error {
		n, err := s.analyse()
		if err != nil {
			return err
		}
		if *k, err = take(n); err == nil && n > 0 {
			err = s.bounded(p.buffers[*k].n)
		}
		return err
	}
	set := l.GetValidity()
	if g := l.GetList(); g != nil {
		if set = g.GetValidity(); set == nil {
			return x, fmt.Errorf("list layer without validity")
		}
		x.items, x.counts = g.GetNumChildSlots(), g.GetCounts()
		x.some, err = newPositions(&pb.PlanarLayout_PositionSet{Meaning: pb.PlanarLayout_PositionSet_VALIDS,
			Positions: g.GetNonEmptyPositions(), NumPositions: g.GetNumNonEmptyPositions()}, d.slots)
		switch {
		case err != nil:
			return x, err
		case x.counts == nil:
			return x, fmt.Errorf("list layer without counts")
		case x.some.count > maxSparseLists:
			return x, &unknownError{what: "layout", detail: fmt.Sprintf("%d lists in one page, at most %d", x.some.count, maxSparseLists)}
		case x.items > 1<<48:
			return x, fmt.Errorf("%d items", x.items)
		}
		if err := place(x.some, &x.someBuffer); err != nil {
			return x, fmt.Errorf("lists that are not empty: %w", err)
		}
		if x.countsBuffer, err = take(payloads(x.counts)); err != nil {
			return x, err
		}
		d.slots = x.items
	}
	if (l.GetList() != nil) != list || set == nil {
		if l.GetFixedSizeList() != nil || l.Kind == nil {
			return x, unknownOf("sparse layer", l)
		}
		return x, fmt.Errorf("layer does not match the schema")
	}
	if x.valid, err = newPositions(set, x.slots); err != nil {
		return x, err
	}
	return x, place(x.valid, &x.buffer)
}

// plane builds the value plane, whose buffers are the first ones.
func (d *sparseValues) plane(p *pageInfo, v *pb.PlanarLayout_Values, buffers int) (err error) {
	leaf := d.layers[len(d.layers)-1].valid
	d.page = pageInfo{number: p.number, length: d.slots, buffers: p.buffers[:buffers]}
	n := nesting{layers: []pb.RepDefLayer{pb.RepDefLayer_REPDEF_ALL_VALID_ITEM}}
	switch {
	case v.GetChunked() != nil:
		b := v.GetChunked()
		if b.GetLevels() != nil {
			return fmt.Errorf("levels in the chunks of a sparse page")
		}
		d.values, err = buildChunkedValues(d.cd, &d.page, chunkedSpec{
			values: b.GetCompression(), dictionary: b.GetDictionary(), dictItems: b.GetNumDictionaryItems(),
			buffers: b.GetNumBuffers(), items: d.slots, large: true,
		}, nil, 0, n, d.shape)
	case v.GetZipped() != nil:
		b := v.GetZipped()
		if b.GetLevels() != nil {
			return fmt.Errorf("levels in the values of a sparse page")
		}
		d.valid, d.page.length = true, leaf.valid()
		d.values, err = buildZippedValues(d.cd, &d.page, zippedSpec{values: b.GetCompression(), bits: b.GetBitsPerValue(),
			items: b.GetNumItems(), visible: b.GetNumVisibleItems()}, b.GetBitsPerOffset(), n, d.shape)
	case v.GetConstant() != nil:
		if d.constant = v.GetConstant().GetScalar(); d.shape.variable || len(d.constant) == 0 || uint64(len(d.constant)) != d.shape.valueBytes() {
			return fmt.Errorf("constant of %d bytes for values of %d", len(d.constant), d.shape.valueBytes())
		}
	case v.GetNone() != nil:
		if leaf.valid() > 0 {
			return fmt.Errorf("%d valid slots in a page without values", leaf.valid())
		}
	default:
		return unknownOf("values", v)
	}
	return err
}

// sets decodes the structure of the page.
func (d *sparseValues) sets(ctx context.Context, c *columnInfo, p *pageInfo) (*sparseSets, error) {
	return cached(&c.cache, p.number, func() (*sparseSets, int, error) {
		out, total := &sparseSets{}, 0
		buffer := func(k int) ([]byte, error) {
			if k < 0 {
				return nil, nil
			}
			return c.slice(ctx, p, k, 0, p.buffers[k].n)
		}
		load := func(s *positions, k int) (*rowSet, error) {
			if s == nil || s.set != nil {
				return s.sequence(), nil
			}
			b, err := buffer(k)
			if err != nil {
				return nil, err
			}
			set, n, err := s.decode(d.cd, b)
			total += n
			return set, err
		}
		for i := range d.layers {
			l := &d.layers[i]
			valid, err := load(l.valid, l.buffer)
			if err != nil {
				return nil, 0, fmt.Errorf("validity of layer %d: %w", i, err)
			}
			some, err := load(l.some, l.someBuffer)
			if err != nil {
				return nil, 0, fmt.Errorf("lists of layer %d: %w", i, err)
			}
			var ends []uint64
			if l.some != nil {
				b, err := buffer(l.countsBuffer)
				if err == nil {
					ends, err = d.sums(l, b)
				}
				if err != nil {
					return nil, 0, fmt.Errorf("counts of layer %d: %w", i, err)
				}
				total += 8 * len(ends)
			}
			out.valid, out.some, out.ends = append(out.valid, valid), append(out.some, some), append(out.ends, ends)
		}
		return out, total, nil
	})
}

// sequence is the set that follows from the message alone; nil for no set.
func (d *positions) sequence() *rowSet {
	if d == nil {
		return nil
	}
	return d.set
}

// sums decodes the item counts of a list layer and adds them up.
func (d *sparseValues) sums(l *sparseLayer, b []byte) ([]uint64, error) {
	counts := make([]uint64, l.some.count)
	if err := d.counts(l.counts, b, counts); err != nil {
		return nil, err
	}
	ends := make([]uint64, len(counts)+1)
	for i, n := range counts {
		if n == 0 || n > l.items-ends[i] {
			return nil, fmt.Errorf("list %d has %d items, %d are left", i, n, l.items-ends[i])
		}
		ends[i+1] = ends[i] + n
	}
	if ends[len(counts)] != l.items {
		return nil, fmt.Errorf("lists have %d items of %d", ends[len(counts)], l.items)
	}
	return ends, nil
}

// counts decodes integers of 32 or 64 bits.
func (d *sparseValues) counts(e *pb.CompressiveEncoding, b []byte, out []uint64) error {
	if encodedBits(e) != 32 {
		return decodeWords(d.cd, e, b, out)
	}
	t := make([]uint32, len(out))
	if err := decodeWords(d.cd, e, b, t); err != nil {
		return err
	}
	for i, v := range t {
		out[i] = uint64(v)
	}
	return nil
}

// read returns rows of a page without lists. Whatever is null, the leaf or a parent, gives level 1.
func (d *sparseValues) read(ctx context.Context, c *columnInfo, p *pageInfo, from, n uint64) (*slots, error) {
	sets, err := d.sets(ctx, c, p)
	if err != nil {
		return nil, err
	}
	out := &slots{levels: n, def: make([]uint16, n)}
	for i, v := range sets.valid {
		if d.layers[i].some != nil {
			return nil, fmt.Errorf("lists in a column of plain values")
		}
		words := make([]uint64, (n+63)/64)
		v.mark(from, int(n), &nulls{words: words})
		for k := range out.def {
			out.def[k] |= uint16(words[k>>6] >> (k & 63) & 1)
		}
	}
	out.items, err = d.leaf(ctx, c, sets, from, n)
	return out, err
}

// array returns rows [from, from+n) within the arrays of their parents.
func (d *sparseValues) array(ctx context.Context, c *columnInfo, p *pageInfo, from, n uint64, path []*field) (*Array, error) {
	sets, err := d.sets(ctx, c, p)
	if err != nil {
		return nil, err
	}
	return d.level(ctx, c, sets, 0, from, n, path)
}

// level returns slots [from, from+n) of layer i.
func (d *sparseValues) level(ctx context.Context, c *columnInfo, sets *sparseSets, i int, from, n uint64, path []*field) (a *Array, err error) {
	if n > readLimit/8 {
		return nil, tooLarge(8 * n)
	}
	k := len(path) - 1 - i
	logical := path[k].pb.GetLogicalType()
	switch {
	case sets.some[i] != nil:
		some, ends := sets.some[i], sets.ends[i]
		lo, hi := some.rank(from), some.rank(from+n)
		a = &Array{Type: logical, Len: int(n), Offsets: make([]int, n+1)}
		j := lo
		some.each(from, from+n, func(p uint64) {
			a.Offsets[p-from+1] = int(ends[j+1] - ends[j])
			j++
		})
		for j := range n {
			a.Offsets[j+1] += a.Offsets[j]
		}
		a.Child, err = d.level(ctx, c, sets, i+1, ends[lo], ends[hi]-ends[lo], path)
	case k > 0:
		a = &Array{Type: logical, Len: int(n)}
		var m *Array
		m, err = d.level(ctx, c, sets, i+1, from, n, path)
		a.Fields = []Member{{path[k-1].pb.GetName(), m}}
	default:
		var b block
		b, err = d.leaf(ctx, c, sets, from, n)
		a = leafArray(logical, d.shape, b)
	}
	if err != nil {
		return nil, err
	}
	words := make([]uint64, (n+63)/64)
	marks := nulls{words: words}
	sets.valid[i].mark(from, int(n), &marks)
	if marks.seen > 0 {
		for j := range words {
			words[j] = ^words[j]
		}
		if n&63 != 0 {
			words[len(words)-1] &= 1<<(n&63) - 1
		}
		a.Validity = words
	}
	return a, nil
}

// leaf returns the values of leaf slots [from, from+n).
func (d *sparseValues) leaf(ctx context.Context, c *columnInfo, sets *sparseSets, from, n uint64) (block, error) {
	switch {
	case n == 0:
		return block{}, nil
	case d.constant != nil:
		return repeat(d.shape, n, d.constant)
	case d.values == nil:
		return nullBlock(d.shape, n)
	case !d.valid:
		s, err := d.values.read(ctx, c, &d.page, from, n)
		if err != nil {
			return block{}, err
		}
		return s.items, nil
	}
	set := sets.valid[len(sets.valid)-1]
	lo, hi := set.validRank(from), set.validRank(from+n)
	var got block
	if lo < hi {
		s, err := d.values.read(ctx, c, &d.page, lo, hi-lo)
		if err != nil {
			return block{}, err
		}
		got = s.items
	}
	words := make([]uint64, (n+63)/64)
	set.mark(from, int(n), &nulls{words: words})
	null, err := nullBlock(d.shape, 1)
	if err != nil {
		return block{}, err
	}
	out, k := block{}, uint64(0)
	for i := range n {
		x := null
		if words[i>>6]>>(i&63)&1 == 0 {
			x = got.slice(d.shape, k, k+1)
			k++
		}
		if err := out.add(d.shape, x); err != nil {
			return block{}, err
		}
	}
	return out, nil
}

// fit keeps single reads small where values are large: some rows at a time.
func (d *sparseValues) fit(_ context.Context, _ *columnInfo, _ *pageInfo, _, n, _ uint64) (uint64, error) { //nolint:unparam // as the other kinds of pages have it
	return min(n, sparseRows), nil
}

// sparseRows is how many rows of a sparse page are read at once.
const sparseRows = 256
