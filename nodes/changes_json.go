package nodes

import (
	"context"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
)

// maxLookBack is how many retained versions before the previous one are looked at for an index name that came back.
const maxLookBack = 8

// changesWindow is how many retained versions before its own changes.json looks at, at most.
const changesWindow = 1 + maxLookBack

// changesJSON is changes.json: this version against the retained version before it.
func (n version) changesJSON(ctx context.Context) (*document, error) {
	l, err := n.load(ctx)
	if err != nil {
		return nil, err
	}
	t, err := n.transaction(ctx, l)
	if err != nil {
		return nil, err
	}
	j := newJSONDoc()
	prev, ok := n.older()
	var c *changes
	var cerr error
	if ok {
		if c, cerr = n.diff(ctx, prev, t.Transaction); cerr != nil && !lasting(cerr) && !fault.Is(cerr, fault.NotFound) {
			return nil, cerr
		}
	}
	back, err := n.cameBack(ctx, c)
	if err != nil {
		return nil, err
	}
	remap, why := "unknown", "there is no older retained version to compare with"
	if c != nil {
		remap, why = c.remapOf(t.Transaction, l.fri.indexVersion() != 0)
	} else if cerr != nil {
		why = "the older retained version cannot be read"
	}
	j.Members(func(e *enc) {
		e.K("dataset_version").Uint(n.number())
		e.K("previous")
		if ok {
			e.Uint(prev.number())
		} else {
			e.Null()
		}
		e.K("versions_between")
		if ok {
			e.Uint(n.number() - prev.number() - 1)
		} else {
			e.Null()
		}
		e.K("operation").OptStr(t.Operation)
		e.K("remap").Str(remap)
		e.K("remap_reason").Str(why)
		e.K("error").Err(cerr)
	})
	if c == nil {
		j.Members(func(e *enc) {
			e.K("fragments").Null()
			e.K("indices").Null()
			e.K("fri").Null()
		})
		return j.Done(), nil
	}
	j.fragmentChanges(c)
	j.Object("indices")
	j.ArrayOf("added", len(c.ixAdded), func(e *enc, i int) { e.indexName(c.ixAdded[i]) })
	j.ArrayOf("removed", len(c.ixRemoved), func(e *enc, i int) { e.indexName(c.ixRemoved[i]) })
	j.ArrayOf("entry_changed", len(c.ixRewritten), func(e *enc, i int) { e.indexName(c.ixRewritten[i]) })
	j.merged(c)
	j.Members(func(e *enc) {
		e.K("names_added").Strs(c.namesAdded)
		e.K("names_removed").Strs(c.namesRemoved)
		e.K("came_back").Arr(func() {
			for _, b := range back {
				e.Item().Obj(func() {
					e.K("name").Str(b.name)
					e.K("last_seen_version").Uint(b.version)
				})
			}
		})
	})
	j.End()
	j.recordChanges(c)
	return j.Done(), nil
}

func (e *enc) fragment(f *dataset.Fragment) {
	e.Obj(func() {
		e.K("fragment").Uint(f.RecordedID())
		e.K("physical_rows").OptUint(f.PhysicalRows)
		e.K("deleted_rows").OptUint(f.DeletedRows)
		e.K("live_rows").OptUint(f.LiveRows())
	})
}

func (e *enc) fragmentChange(c fragmentChange) {
	from, to := c.from.Message(), c.to.Message()
	e.Obj(func() {
		e.K("fragment").Uint(to.GetId())
		e.K("physical_rows").OptUint(c.to.PhysicalRows)
		e.K("deleted_rows_before").OptUint(c.from.DeletedRows)
		e.K("deleted_rows").OptUint(c.to.DeletedRows)
		e.K("live_rows").OptUint(c.to.LiveRows())
		e.K("deletion_file_changed").Bool(deletionsDiffer(from, to))
		e.K("data_files_changed").Bool(filesDiffer(from, to))
	})
}

func (e *enc) indexName(ix *dataset.Index) {
	e.Obj(func() {
		e.K("name").Str(ix.Name)
		e.K("uuid").Str(segmentName(ix))
		e.K("type").OptStr(ix.Type)
	})
}

func (e *enc) recordName(t *fri.Transition) { e.Obj(func() { e.recordMembers(t) }) }

// recordMembers names a record: where it stood, its id, and its fragments.
func (e *enc) recordMembers(t *fri.Transition) {
	e.K("record").Int(int64(t.Record))
	e.K("id").transitionID(t)
	e.K("form").Str(t.Form.String())
	e.K("kind").Str(t.Kind.String())
	e.K("sources").fragmentIDs(t.Sources)
	e.K("destinations").fragmentIDs(t.Destinations)
}

func (e *enc) fragmentIDs(ds []fri.Digest) {
	e.Arr(func() {
		for _, d := range ds {
			e.Item().Uint(d.ID)
		}
	})
}

// transitionID writes a record's id, 16 hex digits. In sizing mode zeros stand for it: the id is a hash over the record.
func (e *enc) transitionID(t *fri.Transition) {
	if e.sizing {
		e.Str("0000000000000000")
		return
	}
	id, err := t.ID(e.ctx)
	if err != nil {
		e.fail(err)
		return
	}
	e.Str(id)
}

// backIndex is an index name that is here, was not in the version before, and was in an older one.
type backIndex struct {
	name    string
	version uint64
}

// cameBack looks for the names that came with this version in a few older retained versions.
func (n version) cameBack(ctx context.Context, c *changes) ([]backIndex, error) {
	if c == nil || len(c.namesAdded) == 0 {
		return nil, nil
	}
	var out []backIndex
	seen := map[string]bool{}
	for i := n.i - 2; i >= 0 && i >= n.i-1-maxLookBack; i-- {
		l, err := n.sibling(i).load(ctx)
		if err != nil {
			if lasting(err) || fault.Is(err, fault.NotFound) {
				continue
			}
			return nil, err
		}
		for _, name := range c.namesAdded {
			if !seen[name] && len(l.m.IndicesNamed(name)) > 0 {
				seen[name] = true
				out = append(out, backIndex{name, n.sibling(i).number()})
			}
		}
	}
	return out, nil
}
