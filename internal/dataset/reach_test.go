package dataset

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/store/storetest"
)

// placed is a store that says that it lies at a URI.
type placed struct {
	*storetest.Mem
	uri string
}

func (p placed) URI() string { return p.uri }
func (p placed) Sub(dir string) store.Store {
	return placed{p.Mem.Sub(dir).(*storetest.Mem), p.uri + "/" + dir}
}

// placedDataset is a dataset at uri with one manifest. asked tells which stores were opened beside its own.
func placedDataset(tb testing.TB, uri string, m *pb.Manifest, opt Options, asked *[]string) (*Dataset, *Manifest) {
	tb.Helper()
	m.Version = proto.Uint64(1)
	mem := storetest.NewMem(map[string][]byte{"_versions/1.manifest": build(manifestParts{manifest: m})})
	opt.OpenStore = func(_ context.Context, uri string) (store.Store, error) {
		*asked = append(*asked, uri)
		return placed{storetest.NewMem(nil), uri}, nil
	}
	d, err := Open(tb.Context(), placed{mem, uri}, opt)
	if err != nil {
		tb.Fatal(err)
	}
	man, err := d.Manifest(tb.Context(), versions(tb, d)[0])
	if err != nil {
		tb.Fatal(err)
	}
	return d, man
}

// TestManifestsReachNothingElse: a manifest is untrusted. What it names is read with the user's rights only where the
// user pointed frifs to, on every kind of store.
func TestManifestsReachNothingElse(t *testing.T) {
	for _, tt := range []struct {
		at, path string
		kind     fault.Kind
		uri      string // where it is then
	}{
		{"s3://b/db/t.lance", "s3://b/db/s.lance", 0, "s3://b/db/s.lance"},
		{"s3://b/db/t.lance", "s3://b/db", 0, "s3://b/db"},
		{"s3://b/db/t.lance", "s3://b/db/t.lance/tree/x", 0, "s3://b/db/t.lance/tree/x"},
		{"s3://b/db/t.lance", "s3a://b/db/s.lance", 0, "s3://b/db/s.lance"},
		{"s3://b/db/t.lance", "s3+ddb://b/db/s.lance?ddbTableName=x", 0, "s3://b/db/s.lance"},
		{"s3://b/db/t.lance", "s3://key:secret@b/db/s.lance", 0, "s3://b/db/s.lance"},
		{"s3://b/db/t.lance", "s3://b/db/s.lance?endpoint=http://evil.example&x=1", 0, "s3://b/db/s.lance"},
		{"s3://b/db/t.lance", "s3://b/other/s.lance", fault.Denied, ""},
		{"s3://b/db/t.lance", "s3://b/db2/s.lance", fault.Denied, ""},
		{"s3://b/db/t.lance", "s3://b", fault.Denied, ""},
		{"s3://b/db/t.lance", "s3://other/db/s.lance", fault.Denied, ""},
		{"s3://b/db/t.lance", "s3://b.evil.example/db/s.lance", fault.Denied, ""},
		{"s3://b/db/t.lance", "s3://b@other/db/s.lance", fault.Denied, ""},
		{"s3://b/db/t.lance", "gs://b/db/s.lance", fault.Denied, ""},
		{"s3://b/db/t.lance", "http://b/db/s.lance", fault.Denied, ""},
		{"s3://b/db/t.lance", "s3://b/db/../secret", fault.Corrupt, ""},
		{"s3://b/db/t.lance", "s3://b/db/%2e%2e/secret", fault.Corrupt, ""},
		{"s3://b/db/t.lance", "s3://b/db/x%2F..%2F..%2Fsecret", fault.Corrupt, ""},
		{"s3://b/db/t.lance", "s3://b/db%2Fs.lance", 0, "s3://b/db/s.lance"},
		{"s3://b/db/t.lance", "s3://b/db/%252e%252e/secret", 0, "s3://b/db/%252e%252e/secret"}, // a name like any other
		{"s3://b/db/t.lance", "/etc", fault.Denied, ""},
		{"s3://b/db/t.lance", "file:///etc", fault.Denied, ""},
		{"s3://b/db/t.lance", "FILE:///etc", fault.Denied, ""},
		{"s3://b/db/t.lance", "file:///%65tc", fault.Denied, ""},
		{"s3://b/db/t.lance", "file+uring:///etc", fault.Denied, ""},
		{"s3://b/db/t.lance", "file-object-store:///etc", fault.Denied, ""},
		{"s3://b/db/t.lance", "memory://b/db/s.lance", fault.Denied, ""},
		{"s3://b/db/t.lance", "s3://", fault.Denied, ""},
		{"s3://b/db/t.lance", "://b/db", fault.Corrupt, ""},
		{"s3://b/t.lance", "s3://b/s.lance", 0, "s3://b/s.lance"},
		{"s3://b/t.lance", "s3://c/s.lance", fault.Denied, ""},
		{"s3://b", "s3://b/x", 0, "s3://b/x"},
		{"s3://b", "s3://c", fault.Denied, ""},
		{"abfss://c@acc.dfs.core.windows.net/db/t.lance", "abfss://c@acc.dfs.core.windows.net/db/s.lance", 0, "abfss://c@acc.dfs.core.windows.net/db/s.lance"},
		{"abfss://c@acc.dfs.core.windows.net/db/t.lance", "abfss://other@acc.dfs.core.windows.net/db/s.lance", fault.Denied, ""},
		{"abfss://c@acc.dfs.core.windows.net/db/t.lance", "abfss://c@evil.dfs.core.windows.net/db/s.lance", fault.Denied, ""},
		{"/data/db/t.lance", "s3://b/db", fault.Denied, ""},
		{"/data/db/t.lance", "/etc/shadow", fault.Denied, ""},
		{"/data/db/t.lance", "file:///data/db/%2e%2e/%2e%2e/etc", fault.Denied, ""},
		{"/t.lance", "/etc", fault.Denied, ""},
	} {
		var asked []string
		d, m := placedDataset(t, tt.at, &pb.Manifest{BasePaths: []*pb.BasePath{basePath(7, true, tt.path)}}, Options{}, &asked)
		b, err := d.Base(t.Context(), m, proto.Uint32(7))
		if fault.KindOf(err) != tt.kind || err == nil && b.URI != tt.uri {
			t.Errorf("%s at %s: %q, %v, want %q, kind %v", tt.path, tt.at, b.URI, err, tt.uri, tt.kind)
		}
		if err != nil && len(asked) > 0 {
			t.Errorf("%s at %s: opened %q all the same", tt.path, tt.at, asked)
		}
		if err != nil && strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s at %s: the message shows the password: %v", tt.path, tt.at, err)
		}
	}
}

// TestAManifestDoesNotChooseItsBranch: saying that it is on a branch does not widen what a manifest may reach.
func TestAManifestDoesNotChooseItsBranch(t *testing.T) {
	home := t.TempDir()
	root := filepath.Join(home, "tree", "x", "y", "t.lance")
	secret := filepath.Join(home, "secret")
	write(t, filepath.Join(secret, "_versions", "1.manifest"), nil)
	d, m := localDataset(t, root, &pb.Manifest{Branch: proto.String("x/y/t.lance"), BasePaths: []*pb.BasePath{basePath(0, true, secret)}}, Options{})
	if _, err := d.Base(t.Context(), m, proto.Uint32(0)); !fault.Is(err, fault.Denied) {
		t.Errorf("%v, want denied", err)
	}
	write(t, filepath.Join(home, "_versions", "1.manifest"), nil) // now it is a dataset with a branch
	if _, err := d.Base(t.Context(), m, proto.Uint32(0)); err != nil {
		t.Errorf("below the main root: %v", err)
	}
}

func TestBasesOfAMovedBranch(t *testing.T) {
	top := t.TempDir()
	main := filepath.Join(top, "now", "t.lance")
	for _, p := range []string{"_versions", "tree/a/_versions"} {
		write(t, filepath.Join(main, p, "1.manifest"), build(manifestParts{manifest: &pb.Manifest{}}))
	}
	far := filepath.Join(top, "now", "clone.lance")
	write(t, filepath.Join(far, "_versions", "1.manifest"), nil)
	bases := []*pb.BasePath{
		basePath(0, true, "/old/t.lance"),
		basePath(1, true, "/old/t.lance/tree/a"),
		basePath(2, true, "/old/t.lance/tree/gone"),
		basePath(3, false, "/old/t.lance"),
		basePath(4, true, far),
		basePath(5, true, main),
		basePath(6, true, filepath.Join(top, "now", "nothing.lance")),
		basePath(7, true, "s3://bucket/t.lance/tree/a"),
	}
	branch := filepath.Join(main, "tree", "b", "c")
	localDataset(t, branch, &pb.Manifest{Branch: proto.String("b/c"), BasePaths: bases}, Options{})
	d := openLocal(t, main, Options{})
	viaMain, err := d.OpenBranch(t.Context(), "b/c")
	if err != nil {
		t.Fatal(err)
	}
	for how, b := range map[string]*Dataset{"by itself": openLocal(t, branch, Options{}), "through main": viaMain} {
		m, err := b.Manifest(t.Context(), versions(t, b)[0])
		if err != nil {
			t.Fatal(err)
		}
		for id, want := range []struct {
			uri   string
			moved bool
		}{{main, true}, {main + "/tree/a", true}, {"", false}, {"", false}, {far, false}, {main, false}, {main, true}, {main + "/tree/a", true}} {
			n := uint32(id)
			got, err := b.Base(t.Context(), m, &n)
			if want.uri == "" {
				if !fault.Is(err, fault.Denied) {
					t.Errorf("%s, base %d: %v, want denied", how, id, err)
				}
				continue
			}
			if err != nil || got.URI != want.uri || got.Moved != want.moved || got.Store.URI() != want.uri {
				t.Errorf("%s, base %d: %q (moved %v), %v, want %+v", how, id, got.URI, got.Moved, err, want)
			}
		}
	}
}

func TestBasesGivenByTheUser(t *testing.T) {
	top := t.TempDir()
	far := filepath.Join(top, "far")
	d, m := localDataset(t, filepath.Join(top, "db", "t.lance"), &pb.Manifest{BasePaths: []*pb.BasePath{
		basePath(0, true, "/old/s.lance"), basePath(1, false, "relative"), basePath(2, true, "/old/s.lance")}},
		Options{Bases: map[uint32]string{0: far, 1: "file://" + far}, Rebase: []Rebase{{"/old", filepath.Join(top, "db")}}})
	for id, want := range map[uint32]string{0: far, 1: far, 2: filepath.Join(top, "db", "s.lance")} {
		b, err := d.Base(t.Context(), m, &id)
		if err != nil || b.URI != want {
			t.Errorf("base %d: %q, %v, want %q", id, b.URI, err, want)
		}
	}
	id := uint32(3)
	d.opt.Bases[3] = far
	if _, err := d.Base(t.Context(), m, &id); !fault.Is(err, fault.Corrupt) {
		t.Errorf("an id that the manifest does not have: %v", err)
	}
}

// TestStoresOfBasesAreOpenedOnce counts how often the store of a base is opened for many files.
func TestStoresOfBasesAreOpenedOnce(t *testing.T) {
	var asked []string
	var bases []*pb.BasePath
	for i := range uint32(maxStores + 10) {
		bases = append(bases, basePath(i, true, "s3://b/db/s"+string(rune('a'+i%26))+"/"+string(rune('a'+i/26))))
	}
	d, m := placedDataset(t, "s3://b/db/t.lance", &pb.Manifest{BasePaths: bases}, Options{}, &asked)
	for range 10 {
		if _, err := d.Base(t.Context(), m, proto.Uint32(0)); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 1 {
		t.Errorf("opened %q, want once", asked)
	}
	for i := range bases {
		n := uint32(i)
		if _, err := d.Base(t.Context(), m, &n); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.stores) > maxStores {
		t.Errorf("%d stores are kept, want at most %d", len(d.stores), maxStores)
	}
}

// TestSecondLevelCloneFindsItsIndex (a known wrong base_id): an index of a clone's clone lies in a base that its entry
// does not name.
func TestSecondLevelCloneFindsItsIndex(t *testing.T) {
	top := t.TempDir()
	first, second := filepath.Join(top, "first.lance"), filepath.Join(top, "second.lance")
	write(t, filepath.Join(first, "_indices", testUUIDText, "index.idx"), []byte("x"))
	if err := os.MkdirAll(second, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]*uint32{"another base": proto.Uint32(1), "the own root": nil} {
		x := entry("i", "", func(x *pb.IndexMetadata) { x.BaseId = id })
		d, m := localDataset(t, filepath.Join(top, "third.lance"), &pb.Manifest{BasePaths: []*pb.BasePath{
			basePath(0, true, first), basePath(1, true, second)}}, Options{}, x)
		dir, err := d.IndexDir(t.Context(), m, m.Indices[0])
		if err != nil || !dir.Moved || dir.Base.URI != first || !strings.Contains(dir.Note(), "found under base 0") {
			t.Errorf("recorded under %s: %+v, %v", name, dir, err)
		}
	}
}

// TestOptionsOfPlacesThatTheUserNames: the query of a URI says how its store is opened. It is the user's, never the
// manifest's.
func TestOptionsOfPlacesThatTheUserNames(t *testing.T) {
	for name, opt := range map[string]Options{
		"--base":   {Bases: map[uint32]string{0: "s3://far/s.lance?endpoint=http://here:9000"}},
		"--rebase": {Rebase: []Rebase{{"s3://old", "s3://far?endpoint=http://here:9000"}}},
	} {
		var asked []string
		m := &pb.Manifest{BasePaths: []*pb.BasePath{basePath(0, true, "s3://old/s.lance?endpoint=http://evil.example")}}
		d, man := placedDataset(t, "/data/db/t.lance", m, opt, &asked)
		b, err := d.Base(t.Context(), man, proto.Uint32(0))
		if err != nil || b.URI != "s3://far/s.lance" || len(asked) != 1 || asked[0] != "s3://far/s.lance?endpoint=http://here:9000" {
			t.Errorf("%s: %q, %v, opened %q", name, b.URI, err, asked)
		}
	}
}
