package lancefile

import (
	"fmt"
	"slices"

	"github.com/frifs/frifs/internal/pb"
)

// unravel turns levels and values of a leaf into its array within those of its parents, path[0] being the leaf. Layer
// by layer from the leaf outwards, it takes what the layer's definition levels say, and drops the levels that only
// tell list items apart (docs/FORMAT.md, "Lance file").
func (n *nesting) unravel(s *slots, path []*field, sh shape) (*Array, error) {
	rep, def := s.rep, s.def
	if n.lists > 0 {
		rep = slices.Clone(rep)
		if def == nil {
			def = make([]uint16, len(rep))
		} else {
			def = slices.Clone(def)
		}
	}
	cur := leafArray(path[0].pb.GetLogicalType(), sh, s.items)
	done := uint16(0) // definition levels of the layers so far
	for i, l := range n.layers {
		node := path[i]
		if isList(l) {
			var a *Array
			rep, def, a = n.list(i, done, rep, def)
			if items := a.Offsets[a.Len]; items != cur.Len {
				return nil, fmt.Errorf("lists of %q hold %d items, %d are there", node.path, items, cur.Len)
			}
			a.Type, a.Child = node.pb.GetLogicalType(), cur
			cur = a
		} else {
			if i > 0 {
				cur = &Array{Type: node.pb.GetLogicalType(), Len: cur.Len, Fields: []Member{{path[i-1].pb.GetName(), cur}}}
			}
			if l == pb.RepDefLayer_REPDEF_NULLABLE_ITEM && def != nil {
				k, valid := validityOf(def, done, n.top(i, done))
				if k != cur.Len {
					return nil, fmt.Errorf("%d levels for %d values of %q", k, cur.Len, node.path)
				}
				cur.Validity = valid
			}
		}
		done += levelsOf(l)
	}
	return cur, nil
}

// top is the highest definition level of a slot that has a value at layer i, which is not a list.
func (n *nesting) top(i int, done uint16) uint16 {
	for _, l := range n.layers[i:] {
		if isList(l) {
			break
		}
		done += levelsOf(l)
	}
	return done
}

// validityOf returns the number of visible levels, those up to top, and which of them are at most done, as bits; nil
// if all are.
func validityOf(def []uint16, done, top uint16) (int, []uint64) {
	k, nulls := 0, false
	bits := make([]uint64, (len(def)+63)/64)
	for _, d := range def {
		if d > top {
			continue
		}
		if d <= done {
			bits[k>>6] |= 1 << (k & 63)
		} else {
			nulls = true
		}
		k++
	}
	if !nulls {
		return k, nil
	}
	return k, bits[:(k+63)/64]
}

// list takes layer i, a list: where each list ends and which are null. The levels that remain begin a list each.
func (n *nesting) list(i int, done uint16, rep, def []uint16) ([]uint16, []uint16, *Array) {
	var null, empty uint16
	switch n.layers[i] {
	case pb.RepDefLayer_REPDEF_NULLABLE_LIST:
		null = done + 1
	case pb.RepDefLayer_REPDEF_EMPTYABLE_LIST:
		empty = done + 1
	case pb.RepDefLayer_REPDEF_NULL_AND_EMPTY_LIST:
		null, empty = done+1, done+2
	}
	own := max(null, empty, done) // above: a parent struct is null, and so is the list
	top := n.top(i+1, own)        // above: an outer list is null or empty, and this one is not there at all
	a := &Array{Offsets: []int{}}
	items, k := 0, 0
	var valid []bool
	for j, r := range rep {
		d := def[j]
		if r == 0 {
			items++
			continue
		}
		rep[k], def[k] = r-1, d
		k++
		if d > top {
			continue
		}
		a.Offsets = append(a.Offsets, items)
		valid = append(valid, d <= own && (null == 0 || d != null))
		if d <= done {
			items++
		}
	}
	a.Len = len(a.Offsets)
	a.Offsets = append(a.Offsets, items)
	for j, v := range valid {
		if !v {
			if a.Validity == nil {
				a.Validity = setBits(nil, 0, uint64(a.Len))
			}
			a.Validity[j>>6] &^= 1 << (j & 63)
		}
	}
	return rep[:k], def[:k], a
}
