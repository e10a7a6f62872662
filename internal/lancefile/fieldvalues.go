package lancefile

import (
	"context"
	"fmt"
	"sort"

	"github.com/frifs/frifs/fault"
)

// Values reads any field by row range: a leaf, or a list or struct with all leaves in it. It is safe for concurrent
// use.
type Values struct {
	field *field
	rows  uint64
	parts []*leafReader // leaves, from version 2.1 on
	old   *arrayReader  // version 2.0
}

// leafReader reads one leaf column of version 2.1 or later.
type leafReader struct {
	columnInfo
	path  []*field // the leaf and its parents, up to the top
	shape shape
	pages []valuePage
}

type valuePage struct {
	pageInfo
	nesting
	rows pageReader
}

// OpenValues parses the page descriptions of a top-level field, or of a member of structs, with all leaves in it. A
// field within a list is fault.Invalid: its values do not stand in rows. What is not decoded, a type or an encoding, is
// fault.Unsupported, named with its column.
func OpenValues(ctx context.Context, f *File, path string) (*Values, error) {
	chain, err := f.chain(path)
	if err != nil {
		return nil, err
	}
	n := chain[len(chain)-1]
	for _, p := range chain[:len(chain)-1] {
		if p.pb.GetLogicalType() != "struct" {
			return nil, fault.New("lancefile.OpenValues", "", fault.Invalid, "field %q is an item of %q: open that", path, p.path)
		}
	}
	v := &Values{field: n, rows: f.Rows()}
	if f.foot.version == V20 {
		v.old, err = f.openArray(ctx, n, f.Rows())
		return v, err
	}
	err = f.eachLeaf(n, chain[:len(chain)-1], func(path []*field) error {
		r, err := f.openLeaf(ctx, path)
		if err == nil {
			v.parts = append(v.parts, r)
		}
		return err
	})
	if err == nil && len(v.parts) == 0 {
		err = fault.New("lancefile.OpenValues", "", fault.Unsupported, "unsupported type: field %q without members", path)
	}
	return v, err
}

// chain returns the fields from the top to the one with a path.
func (f *File) chain(path string) ([]*field, error) {
	n, err := f.find(path)
	if err != nil {
		return nil, err
	}
	chain := []*field{n}
	for n.parent != nil {
		n = n.parent
		chain = append([]*field{n}, chain...)
	}
	return chain, nil
}

// eachLeaf calls fn for every leaf below n with the leaf and its parents, innermost first.
func (f *File) eachLeaf(n *field, above []*field, fn func(path []*field) error) error {
	if n.leaf() {
		path := []*field{n}
		for i := len(above) - 1; i >= 0; i-- {
			path = append(path, above[i])
		}
		return fn(path)
	}
	if n.pb.GetLogicalType() != "struct" && !n.list() {
		return fault.New("lancefile.OpenValues", "", fault.Unsupported, "unsupported type: %q of field %q", n.pb.GetLogicalType(), n.path)
	}
	above = append(above[:len(above):len(above)], n)
	for _, c := range n.children {
		if err := f.eachLeaf(c, above, fn); err != nil {
			return err
		}
	}
	return nil
}

// openLeaf parses the pages of a leaf column of version 2.1 or later.
func (f *File) openLeaf(ctx context.Context, path []*field) (*leafReader, error) {
	n := path[0]
	if n.column >= len(f.columns) {
		return nil, corrupt(f.foot.cmo, "field %q is column %d, the file has %d", n.path, n.column, len(f.columns))
	}
	r := &leafReader{path: path}
	r.columnInfo.name, r.columnInfo.index = n.path, n.column
	var err error
	if n.packed() {
		err = &unknownError{what: "type", detail: "packed struct"}
	} else {
		r.shape, err = shapeOf(n.pb.GetLogicalType())
	}
	if err != nil {
		return nil, r.wrap(-1, f.columns[n.column].off, err)
	}
	err = r.load(ctx, f, n.column, func(p *pageInfo, e *encoding) error {
		rows, nest, err := buildValues(f, p, e, path, r.shape)
		if err != nil {
			return err
		}
		r.pages = append(r.pages, valuePage{*p, nest, rows})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if got := r.Rows(); got != f.Rows() {
		return nil, r.wrap(-1, f.columns[n.column].off, fmt.Errorf("its %d pages hold %d rows, the file %d", len(r.pages), got, f.Rows()))
	}
	return r, nil
}

// Rows returns the number of rows.
func (v *Values) Rows() uint64 { return v.rows }

// Read decodes rows [from, from+n) into a new array. A range outside the file is fault.Invalid; values that take more
// than 256 MiB are fault.TooLarge.
func (v *Values) Read(ctx context.Context, from, n uint64) (*Array, error) {
	if from > v.rows || n > v.rows-from {
		return nil, fault.New("lancefile.Read", "", fault.Invalid, "field %q has no %d rows at %d", v.field.path, n, from)
	}
	if n > readLimit/8 {
		return nil, tooLarge(8 * n)
	}
	if v.old != nil {
		return v.old.read(ctx, from, n)
	}
	var out *Array
	for _, r := range v.parts {
		a, err := r.read(ctx, from, n)
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = a
		} else if err := out.merge(a); err != nil {
			return nil, r.wrap(-1, r.file.columns[r.index].off, err)
		}
	}
	for p := v.field; p.parent != nil; p = p.parent {
		out = out.Fields[0].Array // the parents of a member
	}
	return out, nil
}

// eachPage calls fn for each page that holds some of rows [from, from+n) with the rows concerned.
func (c *columnInfo) eachPage(from, n uint64, fn func(k int, row, take uint64) error) error {
	last := len(c.starts) - 1
	k := sort.Search(last, func(k int) bool { return c.starts[k+1] > from })
	for end := from + n; from < end; k++ {
		take := min(end, c.starts[k+1]) - from
		if take > 0 {
			if err := fn(k, from-c.starts[k], take); err != nil {
				return err
			}
		}
		from += take
	}
	return nil
}

// read decodes rows of the leaf, within the arrays of its parents.
func (r *leafReader) read(ctx context.Context, from, n uint64) (*Array, error) {
	out := emptyArray(r.path, r.shape)
	err := r.eachPage(from, n, func(k int, row, take uint64) error {
		p := &r.pages[k]
		a, err := r.array(ctx, p, row, take)
		if err == nil && uint64(a.Len) != take {
			err = fmt.Errorf("%d rows decode to %d", take, a.Len)
		}
		if err == nil {
			err = out.append(a)
		}
		return r.wrap(k, firstOffset(&p.pageInfo), err)
	})
	return out, err
}

// array decodes rows of a page within the arrays of their parents.
func (r *leafReader) array(ctx context.Context, p *valuePage, from, n uint64) (*Array, error) {
	if d, ok := p.rows.(*sparseValues); ok {
		return d.array(ctx, &r.columnInfo, &p.pageInfo, from, n, r.path)
	}
	s, err := p.rows.read(ctx, &r.columnInfo, &p.pageInfo, from, n)
	if err != nil {
		return nil, err
	}
	return p.unravel(s, r.path, r.shape)
}

// emptyArray is an array of no values of the outermost of path.
func emptyArray(path []*field, s shape) *Array {
	a := leafArray(path[0].pb.GetLogicalType(), s, block{})
	for i, n := range path[1:] {
		w := &Array{Type: n.pb.GetLogicalType()}
		if n.list() {
			w.Offsets, w.Child = []int{0}, a
		} else {
			w.Fields = []Member{{path[i].pb.GetName(), a}}
		}
		a = w
	}
	return a
}
