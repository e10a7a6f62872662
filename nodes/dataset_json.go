package nodes

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/frifs/frifs/fault"
)

// datasetJSON is dataset.json, a live file: what is to be said of the dataset as a whole, as of its newest version.
func (t *Tree) datasetJSON(ctx context.Context) ([]byte, error) {
	v, err := t.view(ctx)
	if err != nil {
		return nil, err
	}
	var l *loaded
	var lerr error
	var latest *uint64
	if v.hi > v.lo {
		n := version{t: t, v: v, i: v.hi - 1}
		latest = &v.refs[n.i].Version
		if l, lerr = n.load(ctx); lerr != nil && !lasting(lerr) {
			return nil, lerr
		}
	}
	branches, berr := t.refNames(ctx, "_refs/branches")
	tags, terr := t.refNames(ctx, "_refs/tags")
	li := v.listing
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.K("uri").Str(t.cfg.URI)
		e.K("kind").Str("dataset")
		e.K("latest_version").OptUint(latest)
		e.K("versions").Obj(func() {
			e.K("count").Int(int64(len(v.refs)))
			e.K("first")
			if len(v.refs) == 0 {
				e.Null()
			} else {
				e.Uint(v.refs[0].Version)
			}
			e.K("shown").Int(int64(v.hi - v.lo))
			e.K("v1_names").Int(int64(li.V1))
			e.K("v2_names").Int(int64(li.V2))
			e.K("latest_manifest_file").Bool(li.LegacyLatest)
		})
		e.K("ignored_in_versions").Obj(func() {
			for _, k := range slices.Sorted(maps.Keys(li.Ignored)) {
				e.K(k).Int(int64(li.Ignored[k]))
			}
		})
		e.K("detached_versions").Arr(func() {
			for _, d := range li.Detached {
				e.Item().Str(strings.TrimSuffix(strings.TrimPrefix(d, "d"), ".manifest"))
			}
		})
		e.refList("branches", branches, berr)
		e.refList("tags", tags, terr)
		e.datasetFacts(l)
		e.K("error").Err(lerr)
	})
	return jsonBytes(ctx, j.Done())
}

// datasetFacts writes what the newest manifest says about the dataset; null where it cannot be read.
func (e *enc) datasetFacts(l *loaded) {
	if l == nil {
		for _, k := range []string{"branch", "storage_version", "writer", "stable_row_ids", "reader_flags", "writer_flags", "bases"} {
			e.K(k).Null()
		}
		return
	}
	m := l.m
	sv, _ := m.StorageVersion()
	e.K("branch").OptStr(m.Branch())
	e.K("storage_version").OptStr(sv)
	e.K("writer").OptStr(m.WriterVersion())
	e.K("stable_row_ids").Bool(m.StableRowIDs())
	e.K("reader_flags").Flags(m.PB.GetReaderFeatureFlags())
	e.K("writer_flags").Flags(m.PB.GetWriterFeatureFlags())
	e.K("bases").Arr(func() {
		for _, b := range m.PB.GetBasePaths() {
			e.Item().Obj(func() {
				e.K("id").Uint(uint64(b.GetId()))
				e.K("name").OptStr(b.GetName())
				e.K("path").Str(withoutCredentials(b.GetPath()))
				e.K("is_dataset_root").Bool(b.GetIsDatasetRoot())
			})
		}
	})
}

func (e *enc) refList(key string, names []string, err error) {
	e.K(key)
	if err != nil {
		e.Null()
		return
	}
	e.Strs(names)
}

// refNames lists the names of the refs in a directory, without reading them. A directory that is not there holds none;
// one that may not be listed gives an error.
func (t *Tree) refNames(ctx context.Context, dir string) ([]string, error) {
	objects, err := t.ds.Store().List(ctx, dir)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range objects {
		name, ok := strings.CutSuffix(o.Name[strings.LastIndexByte(o.Name, '/')+1:], ".json")
		if !ok || o.Dir {
			continue
		}
		if raw, err := url.PathUnescape(name); err == nil {
			name = raw
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// withoutCredentials removes user information and query from a recorded path that is a URI.
func withoutCredentials(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme == "" || (u.User == nil && u.RawQuery == "") {
		return path
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}
