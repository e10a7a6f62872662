package lancefile

import (
	"context"
	"fmt"

	"github.com/frifs/frifs/internal/pb"
)

// slots are rows of a leaf column as a page holds them: levels that say how they nest and what is null, and the values
// of the visible slots in order. A slot is invisible where a list is null or empty.
type slots struct {
	rep, def []uint16 // each nil: all 0; else one per level
	levels   uint64   // number of levels; that of the values unless some are invisible
	items    block
}

// pageReader reads rows [from, from+n) of a page of a leaf column, n > 0.
type pageReader interface {
	read(ctx context.Context, c *columnInfo, p *pageInfo, from, n uint64) (*slots, error)
}

// fitter is a pageReader whose rows may be large: fit returns how many rows from row from on, at least 1 and at most
// n, take about budget bytes.
type fitter interface {
	fit(ctx context.Context, c *columnInfo, p *pageInfo, from, n, budget uint64) (uint64, error)
}

// nesting is what the layers of a page mean for its levels.
type nesting struct {
	layers  []pb.RepDefLayer // innermost first
	lists   int              // list layers; the highest repetition level
	visible uint16           // definition levels up to this one are of slots with a value, null or not
	maxDef  uint16
}

// levelsOf is the number of definition levels that a layer adds.
func levelsOf(l pb.RepDefLayer) uint16 {
	switch l {
	case pb.RepDefLayer_REPDEF_NULLABLE_ITEM, pb.RepDefLayer_REPDEF_NULLABLE_LIST, pb.RepDefLayer_REPDEF_EMPTYABLE_LIST:
		return 1
	case pb.RepDefLayer_REPDEF_NULL_AND_EMPTY_LIST:
		return 2
	}
	return 0
}

func isList(l pb.RepDefLayer) bool {
	switch l {
	case pb.RepDefLayer_REPDEF_ALL_VALID_LIST, pb.RepDefLayer_REPDEF_NULLABLE_LIST,
		pb.RepDefLayer_REPDEF_EMPTYABLE_LIST, pb.RepDefLayer_REPDEF_NULL_AND_EMPTY_LIST:
		return true
	}
	return false
}

// nestingOf checks the layers of a page against the parents of the leaf, path[0], up to the top: one layer each, a
// list layer where there is a list.
func nestingOf(layers []pb.RepDefLayer, path []*field) (nesting, error) {
	n := nesting{layers: layers}
	if len(layers) == 0 {
		return n, fmt.Errorf("page without layers")
	}
	if len(layers) != len(path) {
		return n, &unknownError{what: "layers", detail: fmt.Sprintf("%v for a field with %d parents", layers, len(path)-1)}
	}
	for i, l := range layers {
		if l <= 0 || l > pb.RepDefLayer_REPDEF_NULL_AND_EMPTY_LIST {
			return n, &unknownError{what: "layer", number: int(l)}
		}
		if isList(l) != (i > 0 && path[i].list()) {
			return n, fmt.Errorf("layers %v do not match field %q", layers, path[0].path)
		}
		if isList(l) {
			n.lists++
		}
		if n.maxDef += levelsOf(l); n.lists == 0 {
			n.visible = n.maxDef
		}
	}
	return n, nil
}

// count checks levels and counts the visible ones.
func (n *nesting) count(rep, def []uint16) (visible uint64, err error) {
	for i, r := range rep {
		if int(r) > n.lists {
			return 0, fmt.Errorf("level %d repeats %d of %d lists", i, r, n.lists)
		}
	}
	for i, d := range def {
		if d > n.maxDef {
			return 0, fmt.Errorf("level %d has definition %d, at most %d", i, d, n.maxDef)
		}
		if d <= n.visible {
			visible++
		}
	}
	if def == nil {
		visible = uint64(len(rep))
	}
	return visible, nil
}

// cut reduces decoded levels to rows [from, from+n), of which the first level belongs to row first; it returns how
// many values to skip, and how many follow. rep is not nil.
func (n *nesting) cut(s *slots, first, from, rows uint64) (skip, take uint64, err error) {
	row, lo, hi := first, -1, len(s.rep)
	for i, r := range s.rep {
		if i > 0 && int(r) == n.lists {
			row++
		}
		if row == from && lo < 0 {
			lo = i
		}
		if row == from+rows {
			hi = i
			break
		}
	}
	if lo < 0 || (hi == len(s.rep) && row != from+rows-1) {
		return 0, 0, fmt.Errorf("levels of rows [%d, %d) end in row %d", first, from+rows, row)
	}
	if int(s.rep[lo]) != n.lists {
		return 0, 0, fmt.Errorf("row %d does not begin with a new list", from)
	}
	visible := func(def []uint16, size int) uint64 {
		if def == nil {
			return uint64(size)
		}
		k := uint64(0)
		for _, d := range def {
			if d <= n.visible {
				k++
			}
		}
		return k
	}
	var before, within []uint16
	if s.def != nil {
		before, within = s.def[:lo], s.def[lo:hi]
		s.def = within
	}
	skip, take = visible(before, lo), visible(within, hi-lo)
	s.rep, s.levels = s.rep[lo:hi], uint64(hi-lo)
	return skip, take, nil
}

// list reports whether a field is a list with items of its own.
func (n *field) list() bool {
	switch t := n.pb.GetLogicalType(); {
	case n.leaf():
		return false
	case t == "list", t == "large_list", t == "list.struct", t == "large_list.struct", t == "map":
		return len(n.children) == 1
	}
	return false
}
