package lancefile

import (
	"context"
	"fmt"

	"github.com/frifs/frifs/internal/pb"
)

// sparsePage is a planar page with one validity layer over a constant, or over no value at all.
type sparsePage[T Element] struct {
	*positions
	value T
	cd    *codec
}

func buildSparse[T Element](cd *codec, p *pageInfo, m *pb.PlanarLayout_Sparse, v *pb.PlanarLayout_Values) (decoder[T], error) {
	if len(m.GetLayers()) != 1 {
		return nil, &unknownError{what: "layers", detail: fmt.Sprintf("sparse structure of %d layers", len(m.GetLayers()))}
	}
	set := m.GetLayers()[0].GetValidity()
	if set == nil {
		return nil, unknownOf("sparse layer", m.GetLayers()[0])
	}
	pos, err := newPositions(set, p.length)
	if err != nil {
		return nil, err
	}
	d := &sparsePage[T]{positions: pos, cd: cd}
	switch {
	case v.GetConstant() != nil:
		scalar := v.GetConstant().GetScalar()
		if len(scalar) != width[T]() {
			return nil, fmt.Errorf("constant of %d bytes for values of %d bits", len(scalar), 8*width[T]())
		}
		d.value = loadWord[T](scalar)
	case v.GetNone() != nil:
		if d.valid() != 0 {
			return nil, fmt.Errorf("%d valid rows in a page without values", d.valid())
		}
	case v.GetChunked() != nil:
		return nil, &unknownError{what: "values", detail: "chunked values under a sparse structure"}
	case v.GetZipped() != nil:
		return nil, &unknownError{what: "values", detail: "zipped values under a sparse structure"}
	default:
		return nil, unknownOf("values", v)
	}
	want, err := d.analyse()
	if err == nil && want == 1 && len(p.buffers) == 1 {
		err = d.bounded(p.buffers[0].n)
	}
	if err != nil {
		return nil, fmt.Errorf("positions: %w", err)
	}
	if len(p.buffers) != want {
		return nil, fmt.Errorf("sparse page has %d buffers, its positions take %d", len(p.buffers), want)
	}
	return d, nil
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
			return d.decode(d.cd, b)
		})
		if err != nil {
			return err
		}
	}
	fill(dst, d.value)
	set.mark(from, len(dst), n)
	return nil
}
