package nodes

import (
	"context"
	"crypto/sha256"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/frifs/frifs/internal/dataset"
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
	refs, err := t.refsFacts(ctx)
	if err != nil {
		return nil, err
	}
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.datasetHead(t.cfg.URI, t.kind(), latest, v, refs)
		e.datasetFacts(l)
		e.K("error").Err(lerr)
		refs.members(e, t)
		refs.branchOf(e, t)
	})
	return jsonBytes(ctx, j.Done())
}

// datasetHead writes the members of dataset.json that need no manifest.
func (e *enc) datasetHead(uri, kind string, latest *uint64, v *view, refs *refsFacts) {
	li := v.listing
	e.K("uri").Str(uri)
	e.K("kind").Str(kind)
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
	e.refNames("branches", refs.branches, refs.berr)
	e.refNames("tags", refs.tags, refs.terr)
}

// incompleteTable is dataset.json of a directory that a database takes for a table, and that holds no version: it is half
// made, or was dropped. error says which.
func (t *Tree) incompleteTable(ctx context.Context, name, uri string, failure error) (*bytesFile, error) {
	refs := &refsFacts{}
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.datasetHead(uri, "dataset", nil, &view{listing: &dataset.Listing{}}, refs)
		e.datasetFacts(nil)
		e.K("error").Err(failure)
		refs.members(e, t)
		e.K("branch_of").Null()
	})
	data, err := jsonBytes(ctx, j.Done())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	p := "tables/" + name + "/dataset.json"
	return &bytesFile{base: base{ino: inode(uri, "dataset.json", string(sum[:])), path: p, mtime: t.start}, data: data}, nil
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

// kind says what the root of the tree is.
func (t *Tree) kind() string {
	if main, _ := t.ds.Main(); main != nil {
		return "branch"
	}
	return "dataset"
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
