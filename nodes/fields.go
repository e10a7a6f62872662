package nodes

import (
	"strings"

	"github.com/frifs/frifs/internal/pb"
)

// maxFieldDepth bounds how deep a column may be nested for its path to be shown.
const maxFieldDepth = 64

// fieldPaths finds the dotted path of a column by field id, in the schema of one manifest.
type fieldPaths struct {
	fields []*pb.Field
	byID   map[int32]int
}

func newFieldPaths(fields []*pb.Field) *fieldPaths {
	p := &fieldPaths{fields: fields, byID: make(map[int32]int, len(fields))}
	for i, f := range fields {
		p.byID[f.GetId()] = i
	}
	return p
}

// path returns the names of the field and its parents with dots between, "" for an id that the schema does not have.
func (p *fieldPaths) path(id int32) string {
	var names []string
	for range maxFieldDepth {
		i, ok := p.byID[id]
		if !ok {
			break
		}
		f := p.fields[i]
		names = append(names, f.GetName())
		if f.ParentId == nil || f.GetParentId() < 0 || f.GetParentId() == id {
			break
		}
		id = f.GetParentId()
	}
	for i, j := 0, len(names)-1; i < j; i, j = i+1, j-1 {
		names[i], names[j] = names[j], names[i]
	}
	return strings.Join(names, ".")
}
