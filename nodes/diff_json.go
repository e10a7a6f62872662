package nodes

import (
	"context"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/pb"
)

// diffJSON is diff/<A>..<B>/changes.json: what differs between two versions, which need not follow each other, nor be of
// one branch. "before" is A and "after" B, whichever is newer.
func diffJSON(ctx context.Context, a, b version) (*document, error) {
	la, err := a.load(ctx)
	if err != nil {
		return nil, err
	}
	lb, err := b.load(ctx)
	if err != nil {
		return nil, err
	}
	t, err := b.transaction(ctx, lb)
	if err != nil {
		return nil, err
	}
	line := a.t.cfg.URI == b.t.cfg.URI
	next := line && a.i+1 == b.i
	var merges *dataset.Transaction
	if next {
		merges = t.Transaction // of a longer way the last step tells nothing about the others
	}
	c, err := b.diff(ctx, a, merges)
	if err != nil {
		return nil, err
	}
	if !line || a.number() > b.number() {
		c.lost = nil // what an older version had never is no loss
	}
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.K("from").Obj(func() { e.versionInShort(a, la) })
		e.K("to").Obj(func() { e.versionInShort(b, lb) })
		e.K("same_branch").Bool(line)
		e.K("reversed").OptBool(when(line, a.number() > b.number()))
	})
	j.fragmentChanges(c)
	j.indexDifferences(c, la, lb)
	j.recordChanges(c)
	j.schemaDifferences(la.m.PB, lb.m.PB)
	textMap(j, "config", la.m.PB.GetConfig(), lb.m.PB.GetConfig(), (*enc).Str)
	textMap(j, "table_metadata", la.m.PB.GetTableMetadata(), lb.m.PB.GetTableMetadata(), (*enc).Str)
	j.baseDifferences(la.m.PB, lb.m.PB)
	j.flagDifferences(la.m.PB, lb.m.PB)
	return j.Done(), nil
}

// versionInShort writes the members that name one side of a comparison.
func (e *enc) versionInShort(n version, l *loaded) {
	ts, _ := l.m.Timestamp()
	sv, _ := l.m.StorageVersion()
	e.K("dataset_version").Uint(n.number())
	e.K("path").Str(n.t.path + n.path)
	e.K("branch").OptStr(l.m.Branch())
	e.K("timestamp").Time(ts)
	e.K("rows").rowCount(l.m)
	e.K("fragments").Int(int64(len(l.m.Fragments())))
	e.K("data_bytes").sum(l.m.Fragments(), (*dataset.Fragment).Bytes)
	e.K("indices").Int(int64(len(l.logical)))
	e.K("writer").OptStr(l.m.WriterVersion())
	e.K("storage_version").OptStr(sv)
	e.K("stable_row_ids").Bool(l.m.StableRowIDs())
}

// indexDifferences adds what became of the entries of the index section.
func (j *jsonDoc) indexDifferences(c *changes, la, lb *loaded) {
	_, before := indexIDs(la.m)
	ids, now := indexIDs(lb.m)
	ids = slices.DeleteFunc(ids, func(id indexID) bool { return !slices.Contains(c.ixRewritten, now[id]) })
	j.Object("indices")
	j.ArrayOf("added", len(c.ixAdded), func(e *enc, i int) { e.indexAtLength(lb, c.ixAdded[i]) })
	j.ArrayOf("removed", len(c.ixRemoved), func(e *enc, i int) { e.indexAtLength(la, c.ixRemoved[i]) })
	j.ArrayOf("changed", len(ids), func(e *enc, i int) { e.indexDifference(before[ids[i]], now[ids[i]]) })
	j.merged(c)
	j.Members(func(e *enc) {
		e.K("names_added").Strs(c.namesAdded)
		e.K("names_removed").Strs(c.namesRemoved)
	})
	j.End()
}

func (e *enc) indexAtLength(l *loaded, ix *dataset.Index) {
	e.Obj(func() {
		e.K("name").Str(ix.Name)
		e.K("uuid").Str(segmentName(ix))
		e.K("type").OptStr(ix.Type)
		e.K("fields").Arr(func() {
			for _, f := range ix.PB.GetFields() {
				e.Item().OptStr(l.fields.path(f))
			}
		})
		e.K("dataset_version").Uint(ix.PB.GetDatasetVersion())
		e.K("fragment_bitmap").Obj(func() { e.bitmapMembers(ix) })
	})
}

// indexDifference writes an entry of the same name and uuid that has another coverage, or was built from another version.
func (e *enc) indexDifference(x, y *dataset.Index) {
	e.Obj(func() {
		e.K("name").Str(y.Name)
		e.K("uuid").Str(segmentName(y))
		e.K("type").OptStr(y.Type)
		e.K("dataset_version_before").Uint(x.PB.GetDatasetVersion())
		e.K("dataset_version").Uint(y.PB.GetDatasetVersion())
		e.K("bitmap_before").Str(x.BitmapState.String())
		e.K("bitmap").Str(y.BitmapState.String())
		known := x.Bitmap != nil && y.Bitmap != nil
		for _, m := range [...]struct {
			key string
			of  func() *roaring.Bitmap
		}{
			{"fragments_gained", func() *roaring.Bitmap { return roaring.AndNot(y.Bitmap, x.Bitmap) }},
			{"fragments_lost", func() *roaring.Bitmap { return roaring.AndNot(x.Bitmap, y.Bitmap) }},
		} {
			e.K(m.key)
			if !known {
				e.Null()
				continue
			}
			e.Arr(func() {
				for it := m.of().Iterator(); it.HasNext(); {
					e.Item().Uint(uint64(it.Next()))
				}
			})
		}
	})
}

// fieldChange is a field of the schema before and after.
type fieldChange struct{ before, after *pb.Field }

// schemaDifferences adds what became of the columns, by field id, and of the metadata of the schema.
func (j *jsonDoc) schemaDifferences(a, b *pb.Manifest) {
	byID := func(m *pb.Manifest) map[int32]*pb.Field {
		out := make(map[int32]*pb.Field, len(m.GetFields()))
		for _, f := range m.GetFields() {
			if _, twice := out[f.GetId()]; !twice {
				out[f.GetId()] = f
			}
		}
		return out
	}
	before, after := byID(a), byID(b)
	var added, removed []*pb.Field
	var changed []fieldChange
	for _, f := range b.GetFields() {
		switch old, ok := before[f.GetId()]; {
		case !ok:
			added = append(added, f)
		case after[f.GetId()] == f && !proto.Equal(old, f):
			changed = append(changed, fieldChange{old, f})
		}
	}
	for _, f := range a.GetFields() {
		if _, ok := after[f.GetId()]; !ok {
			removed = append(removed, f)
		}
	}
	was, is := newFieldPaths(a.GetFields()), newFieldPaths(b.GetFields())
	field := func(e *enc, p *fieldPaths, f *pb.Field) {
		e.Obj(func() {
			e.K("path").Str(p.path(f.GetId()))
			e.K("field").Proto(f.ProtoReflect())
		})
	}
	j.Object("schema")
	j.ArrayOf("added", len(added), func(e *enc, i int) { field(e, is, added[i]) })
	j.ArrayOf("removed", len(removed), func(e *enc, i int) { field(e, was, removed[i]) })
	j.ArrayOf("changed", len(changed), func(e *enc, i int) {
		c := changed[i]
		e.Obj(func() {
			e.K("path_before").Str(was.path(c.before.GetId()))
			e.K("path").Str(is.path(c.after.GetId()))
			e.K("before").Proto(c.before.ProtoReflect())
			e.K("after").Proto(c.after.ProtoReflect())
		})
	})
	order := func(m *pb.Manifest) (ids []int32) {
		for _, f := range m.GetFields() {
			ids = append(ids, f.GetId())
		}
		return ids
	}
	j.Members(func(e *enc) {
		e.K("reordered").Bool(len(added)+len(removed) == 0 && !slices.Equal(order(a), order(b)))
	})
	textMap(j, "metadata", a.GetSchemaMetadata(), b.GetSchemaMetadata(), (*enc).Text)
	j.End()
}

// textMap adds the keys of a map whose values differ: {key, before, after}, with null where a key is not there.
func textMap[V string | []byte](j *jsonDoc, name string, a, b map[string]V, write func(*enc, V)) {
	keys := slices.Sorted(maps.Keys(a))
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	keys = slices.DeleteFunc(keys, func(k string) bool {
		x, inA := a[k]
		y, inB := b[k]
		return inA && inB && string(x) == string(y)
	})
	j.ArrayOf(name, len(keys), func(e *enc, i int) {
		e.Obj(func() {
			e.K("key").Str(keys[i])
			for _, side := range [...]struct {
				key string
				m   map[string]V
			}{{"before", a}, {"after", b}} {
				e.K(side.key)
				if v, ok := side.m[keys[i]]; ok {
					write(e, v)
				} else {
					e.Null()
				}
			}
		})
	})
}

// baseDifferences adds the base paths that differ, by number: {id, before, after}.
func (j *jsonDoc) baseDifferences(a, b *pb.Manifest) {
	type pair struct{ before, after *pb.BasePath }
	all := map[uint32]pair{}
	for _, p := range slices.Backward(a.GetBasePaths()) { // of two with one number the first counts
		all[p.GetId()] = pair{before: p}
	}
	for _, p := range slices.Backward(b.GetBasePaths()) {
		all[p.GetId()] = pair{all[p.GetId()].before, p}
	}
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(id uint32) bool { return proto.Equal(all[id].before, all[id].after) })
	j.ArrayOf("bases", len(ids), func(e *enc, i int) {
		e.Obj(func() {
			e.K("id").Uint(uint64(ids[i]))
			e.K("before").basePath(all[ids[i]].before)
			e.K("after").basePath(all[ids[i]].after)
		})
	})
}

func (e *enc) basePath(p *pb.BasePath) {
	if p == nil {
		e.Null()
		return
	}
	e.Obj(func() {
		e.K("name").OptStr(p.GetName())
		e.K("path").Str(withoutCredentials(p.GetPath()))
		e.K("is_dataset_root").Bool(p.GetIsDatasetRoot())
	})
}

// flagDifferences adds the feature flags that were set and cleared.
func (j *jsonDoc) flagDifferences(a, b *pb.Manifest) {
	j.Object("flags")
	for _, w := range [...]struct {
		key  string
		a, b uint64
	}{
		{"reader", a.GetReaderFeatureFlags(), b.GetReaderFeatureFlags()},
		{"writer", a.GetWriterFeatureFlags(), b.GetWriterFeatureFlags()},
	} {
		j.Members(func(e *enc) {
			e.K(w.key + "_set").Flags(w.b &^ w.a)
			e.K(w.key + "_cleared").Flags(w.a &^ w.b)
		})
	}
	j.End()
}

// fragmentChanges adds what became of the fragments.
func (j *jsonDoc) fragmentChanges(c *changes) {
	j.Object("fragments")
	j.ArrayOf("added", len(c.added), func(e *enc, i int) { e.fragment(c.added[i]) })
	j.ArrayOf("removed", len(c.removed), func(e *enc, i int) { e.fragment(c.removed[i]) })
	j.ArrayOf("changed", len(c.changed), func(e *enc, i int) { e.fragmentChange(c.changed[i]) })
	j.End()
}

// merged adds which segments became which.
func (j *jsonDoc) merged(c *changes) {
	j.ArrayOf("merged", len(c.merged), func(e *enc, i int) {
		e.Obj(func() {
			e.K("name").Str(c.merged[i].name)
			e.K("into").Str(c.merged[i].into)
			e.K("from").Strs(c.merged[i].from)
		})
	})
}

// recordChanges adds the records of the reuse index that came and went.
func (j *jsonDoc) recordChanges(c *changes) {
	j.Object("fri")
	j.Members(func(e *enc) { e.K("comparable").Bool(c.friOK) })
	j.ArrayOf("records_in", len(c.friIn), func(e *enc, i int) { e.recordName(c.friIn[i]) })
	j.ArrayOf("records_out", len(c.friOut), func(e *enc, i int) { e.recordName(c.friOut[i]) })
	j.ArrayOf("needed_but_gone", len(c.lost), func(e *enc, i int) {
		e.Obj(func() {
			e.recordMembers(c.lost[i].t)
			e.K("needed_by").Arr(func() {
				for _, ix := range c.lost[i].needed {
					e.Item()
					e.indexName(ix)
				}
			})
		})
	})
	j.End()
}
