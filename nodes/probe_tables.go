package nodes

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/frifs/frifs/internal/dataset"
)

// watchTables makes the tables of the tree's database known.
func (t *Tree) watchTables() *watched[*tableNames] {
	return &watched[*tableNames]{
		t: t, name: "tables",
		find: func(ctx context.Context, old *tableNames, full bool) (*tableNames, error) {
			l, err := t.db.Tables(ctx)
			if err != nil {
				return nil, err
			}
			var known *dataset.TableList
			if old != nil && !full {
				known = old.TableList
			}
			t.db.States(ctx, l, known)
			now := newTableNames(l)
			if old != nil && old.Others == now.Others && old.Catalog == now.Catalog && maps.Equal(old.byName, now.byName) {
				return old, nil
			}
			return now, nil
		},
		change: func(old, now *tableNames) Change {
			var c Change
			for name := range now.byName {
				if was, ok := old.byName[name]; !ok || was != now.byName[name] {
					c.Refs = append(c.Refs, Name{"tables", name})
				}
			}
			for name := range old.byName {
				if _, ok := now.byName[name]; !ok {
					c.Refs = append(c.Refs, Name{"tables", name})
				}
			}
			slices.SortFunc(c.Refs, func(a, b Name) int { return strings.Compare(a.Name, b.Name) })
			return c
		},
	}
}

// looks is how the looks at what the tree's root shows are going.
func (t *Tree) looks() ages {
	if t.db != nil {
		return t.tables.ages()
	}
	return t.versions.ages()
}
