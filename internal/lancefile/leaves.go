package lancefile

import (
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
)

// Leaf is a field of the schema that holds values.
type Leaf struct {
	Path     string // names from the top, joined by dots
	Type     string // logical type as the file states it: "uint64", "large_binary", "fixed_size_list:float:32"
	Column   int
	Nullable bool
}

// field is a field of the schema in its place.
type field struct {
	pb       *pb.FileField
	path     string
	column   int // own column, or -1: parents have none from 2.1 on
	parent   *field
	children []*field
}

// fieldTree arranges the schema, which lists fields depth first with the parent's id, and numbers the columns: in 2.0
// each field has one, parents too; from 2.1 on each leaf has (docs/FORMAT.md, "Lance file"). A struct that is packed
// into one column counts as a leaf. A field whose parent is not among the fields before it stands at the top.
func (f *File) fieldTree() []*field {
	f.treeOnce.Do(func() {
		byID := map[int32]*field{}
		var all []*field
		for _, m := range f.Fields() {
			n := &field{pb: m, path: m.GetName(), column: -1}
			if parent := byID[m.GetParentId()]; parent != nil && m.GetParentId() != m.GetId() && len(parent.path) < maxPath {
				n.path = parent.path + "." + m.GetName()
				n.parent = parent
				parent.children = append(parent.children, n)
			} else {
				f.tree = append(f.tree, n)
			}
			if _, taken := byID[m.GetId()]; !taken {
				byID[m.GetId()] = n
			}
			all = append(all, n)
		}
		next := 0
		var number func(n *field)
		number = func(n *field) {
			if n.leaf() || f.foot.version == V20 {
				n.column = next
				next++
			}
			if !n.packed() {
				for _, c := range n.children {
					number(c)
				}
			}
		}
		for _, n := range f.tree {
			number(n)
		}
		f.names, f.items = make([]string, next), make([]bool, next)
		for _, n := range all { // parents first
			if n.column >= 0 {
				f.names[n.column] = n.path
				f.items[n.column] = n.parent != nil && (n.parent.list() || n.parent.column >= 0 && f.items[n.parent.column])
			}
		}
	})
	return f.tree
}

// maxPath bounds the length of a path, and with it the depth of a schema that nests without end.
const maxPath = 1 << 12

// packed reports whether the fields of a struct stand side by side in one column.
func (n *field) packed() bool {
	m := n.pb.GetMetadata()
	return len(n.children) > 0 && (string(m["packed"]) == "true" || string(m["lance-encoding:packed"]) == "true")
}

func (n *field) leaf() bool { return len(n.children) == 0 || n.packed() }

// columnName is the path of the field whose column is i, or "".
func (f *File) columnName(i int) string {
	f.fieldTree()
	if i < len(f.names) {
		return f.names[i]
	}
	return ""
}

// countsItems reports whether the pages of a column count the items of lists: in a file of version 2.0 those of a field
// within a list do, all others count rows of the file.
func (f *File) countsItems(column int) bool {
	if f.foot.version != V20 {
		return false
	}
	f.fieldTree()
	return column < len(f.items) && f.items[column]
}

// Leaves returns the fields that hold values, in schema order. Every list item and every struct member is one; a
// fixed-size list of numbers is one itself.
func (f *File) Leaves() []Leaf {
	var out []Leaf
	var add func(n *field, nullable bool)
	add = func(n *field, nullable bool) {
		nullable = nullable || n.pb.GetNullable()
		if n.leaf() {
			out = append(out, Leaf{n.path, n.pb.GetLogicalType(), n.column, nullable})
			return
		}
		for _, c := range n.children {
			add(c, nullable)
		}
	}
	for _, n := range f.fieldTree() {
		add(n, false)
	}
	return out
}

// find returns the field with a path.
func (f *File) find(path string) (*field, error) {
	level := f.fieldTree()
	for {
		var next []*field
		for _, n := range level {
			if n.path == path {
				return n, nil
			}
			if strings.HasPrefix(path, n.path+".") {
				next = append(next, n.children...)
			}
		}
		if len(next) == 0 {
			return nil, fault.New("lancefile.Column", "", fault.NotFound, "no field %q among the %d fields of the file", path, len(f.Fields()))
		}
		level = next
	}
}

// Column returns the column of a field and the field itself. path is the field's name, or the names from the top
// joined by dots. A path that is not in the schema is fault.NotFound; a parent field of a file of 2.1 or later has no
// column: fault.Invalid; a schema with more columns than the file has is fault.Corrupt.
func (f *File) Column(path string) (int, *pb.FileField, error) {
	n, err := f.find(path)
	if err != nil {
		return 0, nil, err
	}
	if n.column < 0 {
		return 0, nil, fault.New("lancefile.Column", "", fault.Invalid, "field %q has no column of its own in a file of version %s", path, f.Version())
	}
	if n.column >= len(f.columns) {
		return 0, nil, corrupt(f.foot.cmo, "field %q is column %d, the file has %d", path, n.column, len(f.columns))
	}
	return n.column, n.pb, nil
}
