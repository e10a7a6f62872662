package lancefile

import (
	"context"
	"fmt"
	"slices"

	"github.com/frifs/frifs/internal/pb"
)

// rowSet is a set of rows of a page, in the form that is smallest: an arithmetic sequence, a bitmap, or a list.
type rowSet struct {
	nulls bool // the rows are the null ones; else the valid ones

	start, step, count uint64 // sequence; count 0 unless this form is used
	words              []uint64
	list               []uint64 // ascending
}

// mark sets the null rows of [from, from+n) in out, whose row 0 is from.
func (r *rowSet) mark(from uint64, n int, out *nulls) {
	end := from + uint64(n)
	switch {
	case r.words != nil:
		for i := 0; i < n; i += 64 {
			w, sh := (from+uint64(i))>>6, (from+uint64(i))&63
			m := r.words[w] >> sh
			if sh > 0 && w+1 < uint64(len(r.words)) {
				m |= r.words[w+1] << (64 - sh)
			}
			if !r.nulls {
				m = ^m
			}
			if left := n - i; left < 64 {
				m &= 1<<left - 1
			}
			out.setBits(i, m)
		}
		return
	case r.nulls:
		r.each(from, end, func(p uint64) { out.set(int(p - from)) })
		return
	}
	at := from
	r.each(from, end, func(p uint64) {
		out.setRun(int(at-from), int(p-from))
		at = p + 1
	})
	out.setRun(int(at-from), n)
}

// each calls f for the positions in [from, end) of a sequence or list, ascending.
func (r *rowSet) each(from, end uint64, f func(uint64)) {
	if r.count > 0 {
		p, i := r.start, uint64(0)
		if from > p && r.step > 0 {
			i = (from - p + r.step - 1) / r.step
			p += i * r.step
		}
		for ; i < r.count && p < end; i, p = i+1, p+r.step {
			if p >= from {
				f(p)
			}
		}
		return
	}
	k, _ := slices.BinarySearch(r.list, from)
	for ; k < len(r.list) && r.list[k] < end; k++ {
		f(r.list[k])
	}
}

// sparsePage is a planar page with one validity layer over a constant, or over no value at all.
type sparsePage[T Element] struct {
	value T
	set   *rowSet // nil: decoded from buffer 0 when needed
	cd    *codec
	enc   *pb.CompressiveEncoding
	count uint64
	nulls bool
}

func buildSparse[T Element](cd *codec, p *pageInfo, m *pb.PlanarLayout_Sparse, v *pb.PlanarLayout_Values) (decoder[T], error) {
	if len(m.GetLayers()) != 1 {
		return nil, &unknownError{what: "layers", detail: fmt.Sprintf("sparse structure of %d layers", len(m.GetLayers()))}
	}
	set := m.GetLayers()[0].GetValidity()
	if set == nil {
		return nil, unknownOf("sparse layer", m.GetLayers()[0])
	}
	d := &sparsePage[T]{cd: cd, enc: set.GetPositions(), count: set.GetNumPositions()}
	switch set.GetMeaning() {
	case pb.PlanarLayout_PositionSet_NULLS:
		d.nulls = true
	case pb.PlanarLayout_PositionSet_VALIDS:
	default:
		return nil, &unknownError{what: "meaning of positions", number: int(set.GetMeaning())}
	}
	if d.enc == nil {
		return nil, fmt.Errorf("set without positions")
	}
	if d.count > p.length {
		return nil, fmt.Errorf("%d positions in a page of %d rows", d.count, p.length)
	}
	valid := d.count
	if d.nulls {
		valid = p.length - d.count
	}
	switch {
	case v.GetConstant() != nil:
		scalar := v.GetConstant().GetScalar()
		if len(scalar) != width[T]() {
			return nil, fmt.Errorf("constant of %d bytes for values of %d bits", len(scalar), 8*width[T]())
		}
		d.value = loadWord[T](scalar)
	case v.GetNone() != nil:
		if valid != 0 {
			return nil, fmt.Errorf("%d valid rows in a page without values", valid)
		}
	case v.GetChunked() != nil:
		return nil, &unknownError{what: "values", detail: "chunked values under a sparse structure"}
	case v.GetZipped() != nil:
		return nil, &unknownError{what: "values", detail: "zipped values under a sparse structure"}
	default:
		return nil, unknownOf("values", v)
	}
	want, err := d.analyse(p)
	if err != nil {
		return nil, fmt.Errorf("positions: %w", err)
	}
	if len(p.buffers) != want {
		return nil, fmt.Errorf("sparse page has %d buffers, its positions take %d", len(p.buffers), want)
	}
	return d, nil
}

// analyse finds the number of buffers that the positions take. Those that follow from the message alone are kept as a
// sequence, whatever their number; so a page of many rows costs nothing.
func (d *sparsePage[T]) analyse(p *pageInfo) (buffers int, err error) {
	e := d.enc
	seq := func(start, step uint64) error {
		if d.count == 0 {
			d.set = &rowSet{nulls: d.nulls, list: []uint64{}}
			return nil
		}
		if d.count > 1 && step == 0 {
			return fmt.Errorf("%d positions do not ascend", d.count)
		}
		if start >= p.length || (d.count > 1 && (p.length-1-start)/(d.count-1) < step) {
			return fmt.Errorf("%d positions from %d by %d go past %d rows", d.count, start, step, p.length)
		}
		d.set = &rowSet{nulls: d.nulls, start: start, step: step, count: d.count}
		return nil
	}
	scalar := func(c *pb.CompressiveEncoding_Constant) (uint64, error) {
		if len(c.GetValue()) > 8 {
			return 0, fmt.Errorf("constant of %d bytes", len(c.GetValue()))
		}
		return loadWord[uint64](c.GetValue()), nil
	}
	switch {
	case e.GetConstant() != nil:
		v, err := scalar(e.GetConstant())
		if err != nil {
			return 0, err
		}
		return 0, seq(v, 0)
	case e.GetRange() != nil:
		if err := wantBits("range", e.GetRange().GetBits(), 8); err != nil {
			return 0, err
		}
		return 0, seq(e.GetRange().GetStart(), e.GetRange().GetStep())
	case e.GetDelta() != nil:
		if err := wantBits("delta", e.GetDelta().GetBits(), 8); err != nil {
			return 0, err
		}
		if d.count == 0 {
			return 0, fmt.Errorf("differences for no positions")
		}
		child := e.GetDelta().GetDeltas()
		if c := child.GetConstant(); c != nil {
			v, err := scalar(c)
			if err != nil {
				return 0, err
			}
			return 0, seq(e.GetDelta().GetBase(), v)
		}
		if r := child.GetRange(); r != nil {
			// Positions that ascend by a growing step: their number is bounded by the root of the rows, unless the
			// steps are constant.
			if r.GetStep() == 0 {
				return 0, seq(e.GetDelta().GetBase(), r.GetStart())
			}
			if d.count > maxPackedLevels {
				return 0, fmt.Errorf("%d positions with growing steps", d.count)
			}
			return 0, nil
		}
		if _, err := valueBits(child); err != nil {
			return 0, err
		}
		return 1, d.bounded(p, child)
	}
	bits, err := valueBits(e)
	if err != nil {
		return 0, err
	}
	return 1, errOr(wantBits("position", uint64(bits), 8), d.bounded(p, e))
}

func errOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// bounded checks that the positions' number agrees with the size of their buffer, before it is used for an
// allocation: no position takes less than a bit, unless it is packed to nothing, and then it does not ascend. A general
// compression makes 8-byte positions at most some hundred times smaller.
func (d *sparsePage[T]) bounded(p *pageInfo, e *pb.CompressiveEncoding) error {
	if len(p.buffers) != 1 {
		return nil // reported by the caller
	}
	limit := 8*min(p.buffers[0].n, 1<<48) + unitValues
	if e.GetGeneral() != nil {
		limit = min(64*min(p.buffers[0].n, 1<<48)+unitValues, 1<<23)
	}
	if d.count > limit {
		return fmt.Errorf("%d positions in a buffer of %d bytes", d.count, p.buffers[0].n)
	}
	return nil
}

func (d *sparsePage[T]) read(ctx context.Context, c *Column[T], p *pageInfo, s *scratch[T], from uint64, dst []T, n *nulls) error {
	set := d.set
	if set == nil {
		var err error
		set, err = cached(&c.cache, p.number, func() (*rowSet, int, error) {
			var b []byte
			if len(p.buffers) > 0 {
				var err error
				if b, err = piece(ctx, c, p, s, 0, 0, p.buffers[0].n); err != nil {
					return nil, 0, err
				}
			}
			return d.decode(p, b)
		})
		if err != nil {
			return err
		}
	}
	fill(dst, d.value)
	set.mark(from, len(dst), n)
	return nil
}

// decode expands and checks the positions: strictly ascending, below the row count.
func (d *sparsePage[T]) decode(p *pageInfo, b []byte) (*rowSet, int, error) {
	list := make([]uint64, d.count)
	if err := decodeWords(d.cd, d.enc, b, list); err != nil {
		return nil, 0, fmt.Errorf("positions: %w", err)
	}
	for i, v := range list {
		if i > 0 && v <= list[i-1] {
			return nil, 0, fmt.Errorf("position %d (%d) does not ascend from %d", i, v, list[i-1])
		}
		if v >= p.length {
			return nil, 0, fmt.Errorf("position %d (%d) is not below the row count %d", i, v, p.length)
		}
	}
	set := &rowSet{nulls: d.nulls, list: list}
	if words := (p.length + 63) / 64; words <= uint64(len(list)) {
		set.words, set.list = make([]uint64, words), nil
		for _, v := range list {
			set.words[v>>6] |= 1 << (v & 63)
		}
		return set, int(8 * words), nil
	}
	return set, 8 * len(list), nil
}
