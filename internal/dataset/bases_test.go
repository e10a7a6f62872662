package dataset

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
)

func basePath(id uint32, root bool, path string) *pb.BasePath {
	return &pb.BasePath{Id: proto.Uint32(id), IsDatasetRoot: proto.Bool(root), Path: proto.String(path)}
}

// localDataset writes a dataset with one manifest below dir and opens it.
func localDataset(tb testing.TB, dir string, m *pb.Manifest, opt Options, indices ...*pb.IndexMetadata) (*Dataset, *Manifest) {
	tb.Helper()
	m.Version = proto.Uint64(1)
	parts := manifestParts{manifest: m}
	if indices != nil {
		parts.indices = sectionOf(indices...)
	}
	write(tb, filepath.Join(dir, "_versions", "1.manifest"), build(parts))
	d := openLocal(tb, dir, opt)
	man, err := d.Manifest(tb.Context(), versions(tb, d)[0])
	if err != nil {
		tb.Fatal(err)
	}
	return d, man
}

func write(tb testing.TB, path string, b []byte) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		tb.Fatal(err)
	}
}

func TestBasesStayInTheAllowedRoots(t *testing.T) {
	top := t.TempDir()
	db := filepath.Join(top, "db")
	root := filepath.Join(db, "t.lance")
	far := filepath.Join(top, "far")
	write(t, filepath.Join(far, "x"), nil)
	if err := os.Symlink(far, filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(db, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(far, filepath.Join(db, "sibling-link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		path string
		opt  Options
		kind fault.Kind // 0: allowed
		uri  string     // "" = path
	}{
		{"itself", root, Options{}, 0, ""},
		{"inside", root + "/tree/b", Options{}, 0, ""},
		{"trailing slash", root + "/tree/b/", Options{}, 0, root + "/tree/b"},
		{"sibling", db + "/s.lance", Options{}, 0, ""},
		{"the parent", db, Options{}, 0, ""},
		{"file URI", "file://" + db + "/s.lance", Options{}, 0, db + "/s.lance"},
		{"file URI with escapes", "file://" + db + "/s%20t.lance", Options{}, 0, db + "/s t.lance"},
		{"elsewhere", far, Options{}, fault.Denied, ""},
		{"dotdot out of the parent", db + "/../far", Options{}, fault.Denied, ""},
		{"dotdot inside", db + "/x/../s.lance", Options{}, 0, db + "/s.lance"},
		{"name with the parent's as prefix", db + "2/s.lance", Options{}, fault.Denied, ""},
		{"system file", "/etc", Options{}, fault.Denied, ""},
		{"link in the parent to elsewhere", db + "/sibling-link", Options{}, fault.Denied, ""},
		{"link, followed", db + "/sibling-link", Options{FollowOutside: true}, 0, ""},
		{"elsewhere, admitted", far, Options{AllowBase: []string{far}}, 0, ""},
		{"elsewhere, parent admitted with a slash", far + "/y", Options{AllowBase: []string{top + "/"}}, 0, ""},
		{"link, target admitted", db + "/sibling-link", Options{AllowBase: []string{far}}, 0, ""},
		{"not quite admitted", far + "2", Options{AllowBase: []string{far}}, fault.Denied, ""},
		{"relative", "s.lance", Options{}, fault.Corrupt, ""},
		{"empty", "", Options{}, fault.Corrupt, ""},
		{"NUL byte", db + "/\x00", Options{}, fault.Corrupt, ""},
		{"bucket", "s3://bucket/key", Options{}, fault.Denied, ""},
		{"other host", "file://host/x", Options{}, fault.Corrupt, ""},
		{"rebased", "/data/old/s.lance", Options{Rebase: []Rebase{{"/data/old", db}}}, 0, db + "/s.lance"},
		{"rebased URI", "file:///data/old/s.lance", Options{Rebase: []Rebase{{"/data/old/", db + "/"}}}, 0, db + "/s.lance"},
		{"rebase of half a name", "/data/older/s.lance", Options{Rebase: []Rebase{{"/data/old", db}}}, fault.Denied, ""},
		{"rebased to elsewhere: the user's word", "/data/old/s.lance", Options{Rebase: []Rebase{{"/data/old", far}}}, 0, far + "/s.lance"},
		{"rebased, and out of there", "/data/old/../far2/s.lance", Options{Rebase: []Rebase{{"/data/old", far}}}, fault.Denied, ""},
		{"rebased, by the name without escapes", "file:///data/o%20d/s.lance", Options{Rebase: []Rebase{{"/data/o d", far}}}, 0, far + "/s.lance"},
		{"rebased by a URI", "/data/old/s.lance", Options{Rebase: []Rebase{{"file:///data/old", "file://" + far}}}, 0, far + "/s.lance"},
		{"first rebase that fits", "/a/b/c", Options{Rebase: []Rebase{{"/x", far}, {"/a", db}, {"/a/b", far}}}, 0, db + "/b/c"},
	} {
		d, m := localDataset(t, root, &pb.Manifest{BasePaths: []*pb.BasePath{basePath(3, true, tt.path)}}, tt.opt)
		b, err := d.Base(t.Context(), m, proto.Uint32(3))
		if fault.KindOf(err) != tt.kind {
			t.Errorf("%s: %v, want kind %v", tt.name, err, tt.kind)
			continue
		}
		if err != nil {
			if !contains(err, "base 3") || tt.kind == fault.Denied && !contains(err, "--allow-base") {
				t.Errorf("%s: %v, want the base's id and what to do", tt.name, err)
			}
			continue
		}
		want := tt.uri
		if want == "" {
			want = tt.path
		}
		if b.URI != want || b.Store.URI() != want || *b.ID != 3 || b.Recorded != tt.path {
			t.Errorf("%s: %q in a store at %q, want %q", tt.name, b.URI, b.Store.URI(), want)
		}
	}
}

func TestBasesOfADatasetThatIsReachedThroughALink(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "real", "t.lance")
	localDataset(t, root, &pb.Manifest{BasePaths: []*pb.BasePath{
		basePath(0, true, top+"/real/s.lance"), basePath(1, true, top+"/alias/s.lance"), basePath(2, true, root+"/tree/b"), basePath(3, true, top+"/x")}}, Options{})
	if err := os.Symlink("real", filepath.Join(top, "alias")); err != nil {
		t.Fatal(err)
	}
	d := openLocal(t, filepath.Join(top, "alias", "t.lance"), Options{})
	m, err := d.Manifest(t.Context(), versions(t, d)[0])
	if err != nil {
		t.Fatal(err)
	}
	for id, kind := range map[uint32]fault.Kind{0: 0, 1: 0, 2: 0, 3: fault.Denied} {
		if _, err := d.Base(t.Context(), m, &id); fault.KindOf(err) != kind {
			t.Errorf("base %d: %v, want kind %v", id, err, kind)
		}
	}
}

func TestBaseIDs(t *testing.T) {
	root := filepath.Join(t.TempDir(), "t.lance")
	d, m := localDataset(t, root, &pb.Manifest{BasePaths: []*pb.BasePath{
		basePath(1, true, root+"/one"), basePath(0, false, root+"/zero"), basePath(1, true, root+"/last"),
	}}, Options{})
	for id, want := range map[uint32]string{0: root + "/zero", 1: root + "/last"} {
		if b, err := d.Base(t.Context(), m, &id); err != nil || b.URI != want {
			t.Errorf("base %d: %q, %v, want %q", id, b.URI, err, want)
		}
	}
	if b, err := d.Base(t.Context(), m, nil); err != nil || b.URI != root || b.ID != nil || !b.DatasetRoot {
		t.Errorf("no base id: %+v, %v", b, err)
	}
	if _, err := d.Base(t.Context(), m, proto.Uint32(7)); !fault.Is(err, fault.Corrupt) || !contains(err, "id 7") {
		t.Errorf("missing id: %v", err)
	}
}

// Where each kind of file is, under both kinds of base.
func TestFilesUnderBases(t *testing.T) {
	root := filepath.Join(t.TempDir(), "t.lance")
	for _, isRoot := range []bool{true, false} {
		d, m := localDataset(t, root, &pb.Manifest{BasePaths: []*pb.BasePath{basePath(0, isRoot, root+"/b")}, Fragments: []*pb.DataFragment{{
			Id: proto.Uint64(4), DeletionFile: &pb.DeletionFile{ReadVersion: proto.Uint64(9), Id: proto.Uint64(15772608446541203920), BaseId: proto.Uint32(0)},
		}}}, Options{}, entry("i", "", func(x *pb.IndexMetadata) { x.BaseId = proto.Uint32(0) }))
		write(t, root+"/b/_indices/"+testUUIDText+"/f", nil)
		write(t, root+"/b/"+testUUIDText+"/f", nil)
		want := map[bool][4]string{
			true:  {"/b/data/x.lance", "/b/_deletions/4-9-15772608446541203920.arrow", "/b/_indices/" + testUUIDText + "/f", "/b/_fri/map/stable_partition.lance"},
			false: {"/b/x.lance", "", "/b/" + testUUIDText + "/f", "/b/_fri/map/stable_partition.lance"},
		}[isRoot]
		got := [4]string{}
		uri := func(i int, l Location, err error) {
			if err == nil {
				got[i] = strings.TrimPrefix(l.URI(), root)
			} else if !fault.Is(err, fault.Corrupt) {
				t.Errorf("file %d: %v", i, err)
			}
		}
		ctx := t.Context()
		l, err := d.DataFile(ctx, m, &pb.DataFile{Path: proto.String("x.lance"), BaseId: proto.Uint32(0)})
		uri(0, l, err)
		l, err = d.DeletionFile(ctx, m, m.Fragments()[0])
		uri(1, l, err)
		l, err = d.IndexFile(ctx, m, m.Indices[0], "f")
		uri(2, l, err)
		l, err = d.RowMap(ctx, m, "map", proto.Uint32(0))
		uri(3, l, err)
		if got != want {
			t.Errorf("dataset root %t: %q, want %q", isRoot, got, want)
		}
	}
}

func TestNamesFromTheManifestStayInside(t *testing.T) {
	root := filepath.Join(t.TempDir(), "t.lance")
	d, m := localDataset(t, root, &pb.Manifest{}, Options{}, entry("i", "", nil))
	for _, bad := range []string{"", "..", "../x", "a/../../x", "/etc/passwd", "a//b", "./a", "a\x00"} {
		ctx := t.Context()
		if _, err := d.DataFile(ctx, m, &pb.DataFile{Path: proto.String(bad)}); !fault.Is(err, fault.Corrupt) {
			t.Errorf("data file %q: %v, want corrupt", bad, err)
		}
		if _, err := d.IndexFile(ctx, m, m.Indices[0], bad); !fault.Is(err, fault.Corrupt) {
			t.Errorf("index file %q: %v, want corrupt", bad, err)
		}
		if _, err := d.RowMap(ctx, m, bad, nil); !fault.Is(err, fault.Corrupt) {
			t.Errorf("map_id %q: %v, want corrupt", bad, err)
		}
	}
	if _, err := d.RowMap(t.Context(), m, "a/b", nil); !fault.Is(err, fault.Corrupt) {
		t.Errorf("map_id with a slash: %v, want corrupt", err)
	}
	if l, err := d.DataFile(t.Context(), m, &pb.DataFile{Path: proto.String("sub/x.lance")}); err != nil || l.Path != "data/sub/x.lance" {
		t.Errorf("data file in a folder: %+v, %v", l, err)
	}
}

// A branch of a branch inherits indices with a wrong base (dataset page, section 6): look elsewhere, and say so.
func TestIndexDirectoryIsLookedForInOtherBases(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "t.lance")
	dir := "_indices/" + testUUIDText + "/page_data.lance"
	for _, tt := range []struct {
		name  string
		files []string
		base  *uint32
		found string // "" = not found
		moved bool
	}{
		{"where it is recorded", []string{"a/" + dir}, proto.Uint32(1), "a", false},
		{"both there and here", []string{"a/" + dir, "t.lance/" + dir}, proto.Uint32(1), "a", false},
		{"in the own root", []string{"t.lance/" + dir, "b/" + dir}, proto.Uint32(1), "t.lance", true},
		{"in another base", []string{"b/" + dir}, proto.Uint32(1), "b", true},
		{"own root recorded, in a base", []string{"b/" + dir}, nil, "b", true},
		{"nowhere", []string{"b/_indices/other/x"}, proto.Uint32(1), "", false},
	} {
		for _, sub := range []string{"a", "b", "t.lance"} {
			if err := os.RemoveAll(filepath.Join(top, sub)); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range tt.files {
			write(t, filepath.Join(top, f), nil)
		}
		d, m := localDataset(t, root, &pb.Manifest{BasePaths: []*pb.BasePath{basePath(1, true, top+"/a"), basePath(2, true, "/far"), basePath(3, true, top+"/b")}},
			Options{}, entry("i", "", func(x *pb.IndexMetadata) { x.BaseId = tt.base }))
		got, err := d.IndexDir(t.Context(), m, m.Indices[0])
		if tt.found == "" {
			if !fault.Is(err, fault.NotFound) || !contains(err, top+"/a") || !contains(err, top+"/b") || !contains(err, "/far") {
				t.Errorf("%s: %v, want not_found naming what was tried", tt.name, err)
			}
			continue
		}
		if err != nil || got.Base.URI != filepath.Join(top, tt.found) || got.Moved != tt.moved {
			t.Errorf("%s: %s, moved %t, %v", tt.name, got.Base.URI, got.Moved, err)
			continue
		}
		if note := got.Note(); (note != "") != tt.moved || tt.moved && !strings.Contains(note, "found under") {
			t.Errorf("%s: note %q", tt.name, note)
		}
		if l, err := d.IndexFile(t.Context(), m, m.Indices[0], "page_data.lance"); err != nil || l.URI() != filepath.Join(top, tt.found, dir) {
			t.Errorf("%s: file %s, %v", tt.name, l.URI(), err)
		}
	}
}

// users.md R33, R34, R35: every file of real clones and branches is found through its base: data, deletions, indices,
// row maps.
func TestR33R34R35FilesOfClonesAndBranches(t *testing.T) {
	ctx := context.Background()
	for name, dir := range map[string]string{
		"legacy/clone":   testdata.Dataset(t, "legacy/clone"),
		"legacy/branchy": filepath.Join(testdata.Dataset(t, "legacy/branchy"), "tree", "exp", "wide"),
		"tagged/clone":   testdata.Dataset(t, "tagged/clone"),
	} {
		d := openLocal(t, dir, rebaseOf(t, name))
		viaBase, files := 0, 0
		check := func(what string, l Location, err error) {
			if err != nil {
				t.Errorf("%s: %s: %v", name, what, err)
				return
			}
			files++
			if l.Base.ID != nil {
				viaBase++
			}
			if _, err := l.Store.Stat(ctx, l.Path); err != nil {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		refs := versions(t, d)
		m, err := d.Manifest(ctx, refs[len(refs)-1])
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range m.Fragments() {
			for _, df := range f.Files() {
				l, err := d.DataFile(ctx, m, df)
				check("data file", l, err)
			}
			if _, err := d.Deletions(ctx, m, f); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, x := range m.Indices {
			for _, f := range x.PB.GetFiles() {
				l, err := d.IndexFile(ctx, m, x, f.GetPath())
				check("index file", l, err)
			}
		}
		if name == "tagged/clone" {
			l, err := d.RowMap(ctx, m, "bf53a481-d108-44d6-9424-ec6ba325d6c6", nil)
			check("own row map", l, err)
		}
		if viaBase == 0 || files == viaBase {
			t.Errorf("%s: %d of %d files through a base", name, viaBase, files)
		}
		// Without --rebase the recorded path leads outside; only a branch is found by its place in the tree.
		plain := openLocal(t, dir, Options{})
		id := m.PB.GetBasePaths()[0].GetId()
		if name == "legacy/branchy" {
			b, err := plain.Base(ctx, m, &id)
			if err != nil || !b.Moved || b.URI != strings.TrimSuffix(dir, "/tree/exp/wide") || !contains(errors.New(b.String()), "another place") {
				t.Errorf("%s without --rebase: %+v, %v, want its main root", name, b, err)
			}
		} else if _, err := plain.Base(ctx, m, &id); !fault.Is(err, fault.Denied) || !contains(err, "--rebase") {
			t.Errorf("%s without --rebase: %v", name, err)
		}
	}
}

func TestBasesOfOtherStores(t *testing.T) {
	var asked []string
	opt := Options{
		AllowBase: []string{"s3://bucket/tables"},
		OpenStore: func(_ context.Context, uri string) (store.Store, error) {
			asked = append(asked, uri)
			return store.NewLocal(t.TempDir(), store.Options{})
		},
	}
	d, m := localDataset(t, filepath.Join(t.TempDir(), "t.lance"), &pb.Manifest{BasePaths: []*pb.BasePath{
		basePath(0, true, "s3://user:secret@bucket/tables/a?x=y"), basePath(1, true, "s3://bucket/tables2/a"), basePath(2, true, "s3://bucket/tables/../secret"),
	}}, opt)
	if _, err := d.Base(t.Context(), m, proto.Uint32(1)); !fault.Is(err, fault.Denied) {
		t.Errorf("another prefix: %v", err)
	}
	if _, err := d.Base(t.Context(), m, proto.Uint32(2)); !fault.Is(err, fault.Corrupt) {
		t.Errorf("dotdot in a URI: %v", err)
	}
	b, err := d.Base(t.Context(), m, proto.Uint32(0))
	if err != nil || b.URI != "s3://bucket/tables/a" || len(asked) != 1 || asked[0] != b.URI {
		t.Errorf("base %q, %v, asked for %q, want it without the credentials", b.URI, err, asked)
	}
}
