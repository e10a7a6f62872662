package dataset

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/store/storetest"
	"github.com/frifs/frifs/internal/testdata"
)

// refStore is a dataset with one version and these files beside it.
func refStore(tb testing.TB, files map[string]string) (*Dataset, *storetest.Counting) {
	tb.Helper()
	others := map[string][]byte{}
	for name, text := range files {
		others[name] = []byte(text)
	}
	d, st, _ := memDataset(tb, build(manifestParts{manifest: &pb.Manifest{}}), Options{}, others)
	return d, st
}

func refNames(refs []Ref) []string {
	names := []string{}
	for _, r := range refs {
		n := r.Name
		if r.File == "" {
			n += " (directory only)"
		}
		names = append(names, n)
	}
	return names
}

func TestParseTag(t *testing.T) {
	size := uint64(893)
	at := time.Date(2026, 11, 30, 4, 43, 43, 371506649, time.UTC)
	for _, tt := range []struct {
		name, json string
		want       *Tag
		err        string
	}{
		{"lance 12", `{"branch": null, "version": 3, "createdAt": "2026-11-30T04:43:43.371506649Z", "updatedAt": "2026-11-30T04:43:43.371506649Z", "manifestSize": 893, "metadata": {}}`,
			&Tag{Version: 3, Created: &at, Updated: &at, ManifestSize: &size}, ""},
		{"lance 1.0", `{"branch":null,"version":3,"manifestSize":893}`, &Tag{Version: 3, ManifestSize: &size}, ""},
		{"before branches", `{"version":3,"manifestSize":893}`, &Tag{Version: 3, ManifestSize: &size}, ""},
		{"snake case", `{"version":3,"manifest_size":893,"created_at":"2026-11-30T04:43:43.371506649Z"}`, &Tag{Version: 3, Created: &at, ManifestSize: &size}, ""},
		{"camel case before snake case", `{"version":3,"manifest_size":1,"manifestSize":893}`, &Tag{Version: 3, ManifestSize: &size}, ""},
		{"on a branch", `{"version":7,"branch":"a/b"}`, &Tag{Version: 7, Branch: "a/b"}, ""},
		{"on main by name", `{"version":7,"branch":"main"}`, &Tag{Version: 7}, ""},
		{"largest version", `{"version":18446744073709551615}`, &Tag{Version: 1<<64 - 1}, ""},
		{"a time that is none", `{"version":7,"createdAt":"yesterday","updatedAt":-5}`, &Tag{Version: 7}, ""},
		{"unknown members", `{"version":7,"x":{"y":[1,2]}}`, &Tag{Version: 7}, ""},
		{"no version", `{"branch":"a"}`, nil, `"version" is missing`},
		{"negative version", `{"version":-1}`, nil, `no version number: -1`},
		{"version past u64", `{"version":18446744073709551616}`, nil, `no version number`},
		{"fraction", `{"version":1.5}`, nil, `no version number: 1.5`},
		{"text", `{"version":"3"}`, nil, `no version number: "3"`},
		{"branch that is a number", `{"version":3,"branch":4}`, nil, `no branch name: 4`},
		{"an array", `[1]`, nil, "no JSON object"},
		{"null", `null`, nil, "null"},
		{"empty", ``, nil, "empty"},
		{"cut", `{"version":`, nil, "no JSON object"},
		{"syntax", `{"version" 3}`, nil, "byte 12"},
		{"two objects", `{"version":3}{"version":4}`, nil, "ends at byte 13"},
		{"deep", strings.Repeat("[", 100_000), nil, "no JSON object"},
		{"deep inside", `{"version":3,"metadata":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, nil, "no JSON object"},
	} {
		got, err := parseTag([]byte(tt.json))
		if tt.err != "" {
			if !contains(err, tt.err) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
}

func TestParseBranch(t *testing.T) {
	at := time.Unix(1796013815, 0).UTC()
	size := uint64(1208)
	for _, tt := range []struct {
		name, json string
		want       *Branch
		err        string
	}{
		{"lance 12", `{"parentBranch": null, "identifier": {"version_mapping": [[5, "f402f946f9144c42a38e7ef870ef2a36"]]}, "parentVersion": 5, "createAt": 1796013815, "manifestSize": 1208, "metadata": {}}`,
			&Branch{ParentVersion: 5, Created: &at, ManifestSize: &size, Forks: []Fork{{5, "f402f946f9144c42a38e7ef870ef2a36"}}}, ""},
		{"no identifier", `{"parentBranch":"a","parentVersion":5,"createAt":1796013815}`, &Branch{Parent: "a", ParentVersion: 5, Created: &at}, ""},
		{"of a branch", `{"parentBranch":"a/b","parentVersion":6,"identifier":{"version_mapping":[[5,"x"],[6,"y"]]}}`,
			&Branch{Parent: "a/b", ParentVersion: 6, Forks: []Fork{{5, "x"}, {6, "y"}}}, ""},
		{"snake case", `{"parent_branch":"a","parent_version":5,"create_at":1796013815}`, &Branch{Parent: "a", ParentVersion: 5, Created: &at}, ""},
		{"no parent version", `{"parentBranch":"a"}`, nil, `"parentVersion" is missing`},
		{"identifier that is a text", `{"parentVersion":5,"identifier":"x"}`, nil, `"identifier"`},
		{"step of three", `{"parentVersion":5,"identifier":{"version_mapping":[[5,"x",7]]}}`, nil, "no pair"},
		{"step of one", `{"parentVersion":5,"identifier":{"version_mapping":[[5]]}}`, nil, "no pair"},
		{"step the wrong way", `{"parentVersion":5,"identifier":{"version_mapping":[["x",5]]}}`, nil, "no pair"},
	} {
		got, err := parseBranch([]byte(tt.json))
		if tt.err != "" {
			if !contains(err, tt.err) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
}

func TestRefNames(t *testing.T) {
	d, st := refStore(t, map[string]string{
		"_refs/tags/v1.json":                                        "",
		"_refs/tags/sp%20ace.json":                                  "",
		"_refs/tags/100%.json":                                      "",
		"_refs/tags/x.json.tmp.00112233445566778899aabbccddeeff":    "",
		"_refs/tags/y.json#1":                                       "",
		"_refs/tags/below/nested.json":                              "",
		"_refs/branches/a%2Fb.json":                                 "",
		"_refs/branches/a/b.json":                                   "", // the same branch
		"_refs/branches/a/nested.json":                              "",
		"_refs/branches/größe.json":                                 "",
		"_refs/branches/..%2F..%2Fup.json":                          "",
		"_refs/branches/x.json.tmp.00112233445566778899aabbccddeef": "",
		"tree/a/_versions/1.manifest":                               "",
		"tree/a/_indices/_versions/1.manifest":                      "",
		"tree/a/data/_versions/1.manifest":                          "",
		"tree/a/b/_versions/1.manifest":                             "",
		"tree/a/deep/down/_versions/1.manifest":                     "",
		"tree/no-dataset/x/y":                                       "",
	})
	tags, err := d.Tags(t.Context())
	if want := []string{"100%", "below/nested", "sp ace", "v1"}; err != nil || !reflect.DeepEqual(refNames(tags), want) {
		t.Errorf("tags %q, %v, want %q", refNames(tags), err, want)
	}
	branches, err := d.Branches(t.Context())
	want := []string{"../../up", "a (directory only)", "a/b", "a/deep/down (directory only)", "a/nested", "größe"}
	if err != nil || !reflect.DeepEqual(refNames(branches), want) {
		t.Errorf("branches %q, %v, want %q", refNames(branches), err, want)
	}
	for _, b := range branches {
		if b.Name == "a/b" && b.File != "_refs/branches/a%2Fb.json" {
			t.Errorf("of two files for one branch %q counts, want the one that Lance writes", b.File)
		}
	}
	if st.Total("ReadRange")+st.Total("Open") > 0 {
		t.Errorf("listing reads: %v", st.Calls())
	}
}

func TestRefsThatAreNotThereOrDenied(t *testing.T) {
	d, st := refStore(t, nil)
	tags, terr := d.Tags(t.Context())
	branches, berr := d.Branches(t.Context())
	if len(tags)+len(branches) > 0 || terr != nil || berr != nil {
		t.Errorf("%v, %v, %v, %v, want none", tags, terr, branches, berr)
	}
	denied := fault.New("test", "_refs", fault.Denied, "no")
	st.Fail("List", "_refs/tags", denied)
	st.Fail("List", "_refs/branches", denied)
	if _, err := d.Tags(t.Context()); !fault.Is(err, fault.Denied) {
		t.Errorf("tags: %v, want denied", err)
	}
	if _, err := d.Branches(t.Context()); !fault.Is(err, fault.Denied) {
		t.Errorf("branches: %v, want denied", err)
	}
	if _, err := d.Versions(t.Context()); err != nil {
		t.Errorf("versions: %v", err)
	}
}

func TestRefFilesAreBounded(t *testing.T) {
	d, _ := refStore(t, map[string]string{"_refs/tags/big.json": `{"version":1,"x":"` + strings.Repeat("x", maxRefBytes) + `"}`, "_refs/tags/ok.json": `{"version":1}`})
	tags, err := d.Tags(t.Context())
	if err != nil || len(tags) != 2 {
		t.Fatal(tags, err)
	}
	if _, err := d.Tag(t.Context(), tags[0]); !fault.Is(err, fault.TooLarge) {
		t.Errorf("%v, want too large", err)
	}
	tags[0].Object.Size = 10 // the listing is stale
	if _, err := d.Tag(t.Context(), tags[0]); !fault.Is(err, fault.TooLarge) {
		t.Errorf("%v, want too large", err)
	}
	if tag, err := d.Tag(t.Context(), tags[1]); err != nil || tag.Version != 1 {
		t.Errorf("%+v, %v", tag, err)
	}
}

func TestTagIsReadOnceForEachContent(t *testing.T) {
	d, st := refStore(t, map[string]string{"_refs/tags/a.json": `{"version":1}`})
	for range 3 {
		tags, err := d.Tags(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Tag(t.Context(), tags[0]); err != nil {
			t.Fatal(err)
		}
	}
	if n := st.Total("ReadRange"); n != 1 {
		t.Errorf("%d reads, want 1", n)
	}
}

func TestOpenBranch(t *testing.T) {
	d, st := refStore(t, map[string]string{
		"tree/a/b/_versions/1.manifest": string(build(manifestParts{manifest: &pb.Manifest{}})),
		"_refs/branches/gone.json":      `{"parentVersion":1}`,
	})
	for _, tt := range []struct {
		name string
		kind fault.Kind
		uri  string
	}{
		{"", 0, ""},
		{"main", 0, ""},
		{"a/b", 0, "tree/a/b"},
		{"a", fault.NotFound, ""},
		{"gone", fault.NotFound, ""},
		{"../up", fault.Corrupt, ""},
		{"a/../b", fault.Corrupt, ""},
		{"/a", fault.Corrupt, ""},
		{"a//b", fault.Corrupt, ""},
		{".", fault.Corrupt, ""},
		{"a\x00", fault.Corrupt, ""},
	} {
		b, err := d.OpenBranch(t.Context(), tt.name)
		if fault.KindOf(err) != tt.kind {
			t.Errorf("%q: %v, want kind %v", tt.name, err, tt.kind)
			continue
		}
		if err != nil {
			continue
		}
		if want := store.Join(d.URI(), tt.uri); b.URI() != want {
			t.Errorf("%q: %q, want %q", tt.name, b.URI(), want)
		}
	}
	for _, name := range st.Names("Stat") {
		if strings.Contains(name, "..") {
			t.Errorf("asked the store for %q", name)
		}
	}
}

func TestBranchFileMissing(t *testing.T) {
	d, _ := refStore(t, map[string]string{"tree/a%b/c/_versions/1.manifest": ""})
	branches, err := d.Branches(t.Context())
	if err != nil || len(branches) != 1 {
		t.Fatal(branches, err)
	}
	if _, err := d.Branch(t.Context(), branches[0]); !fault.Is(err, fault.NotFound) || !contains(err, "_refs/branches/a%25b%2Fc.json") {
		t.Errorf("%v, want not found, naming the file", err)
	}
}

func TestRefsOfRealTables(t *testing.T) {
	d := openLocal(t, testdata.Dataset(t, "legacy/branchy"), Options{})
	tags, err := d.Tags(t.Context())
	if err != nil || !reflect.DeepEqual(refNames(tags), []string{"after-1", "before"}) {
		t.Fatalf("%v, %v", refNames(tags), err)
	}
	for i, want := range []uint64{5, 3} {
		tag, err := d.Tag(t.Context(), tags[i])
		if err != nil || tag.Version != want || tag.Branch != "" || tag.Created == nil {
			t.Errorf("%s: %+v, %v, want version %d", tags[i].Name, tag, err, want)
		}
	}
	branches, err := d.Branches(t.Context())
	if err != nil || !reflect.DeepEqual(refNames(branches), []string{"exp/wide"}) {
		t.Fatalf("%v, %v", refNames(branches), err)
	}
	info, err := d.Branch(t.Context(), branches[0])
	if err != nil || info.Parent != "" || info.ParentVersion != 5 || len(info.Forks) != 1 || info.Created.Year() != 2026 {
		t.Errorf("%+v, %v", info, err)
	}
	b, err := d.OpenBranch(t.Context(), branches[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	refs := versions(t, b)
	if refs[0].Version != info.ParentVersion {
		t.Errorf("the first version of the branch is %d, want %d", refs[0].Version, info.ParentVersion)
	}
	m, err := b.Manifest(t.Context(), refs[0])
	if err != nil || m.Branch() != "exp/wide" {
		t.Fatalf("%v, %v", m, err)
	}
	// The same number on the main line is another manifest, though both share a cache.
	main, err := d.Manifest(t.Context(), versions(t, d)[4])
	if err != nil || main.Version() != 5 || main.Branch() != "" {
		t.Errorf("%v, %v", main, err)
	}
	if of, name := b.Main(); of != d || name != "exp/wide" {
		t.Errorf("branch %q of %v", name, of)
	}
}

// TestDatasetsOfOneCacheStayApart opens a branch that holds a file of the same name, size and time as the main line.
func TestDatasetsOfOneCacheStayApart(t *testing.T) {
	dir := t.TempDir()
	at := time.Unix(1_700_000_000, 0)
	for path, branch := range map[string]string{"_versions/1.manifest": "x", "tree/b/_versions/1.manifest": "b"} {
		p := filepath.Join(dir, path)
		v := uint64(1)
		write(t, p, build(manifestParts{manifest: &pb.Manifest{Version: &v, Branch: &branch}}))
		if err := os.Chtimes(p, at, at); err != nil {
			t.Fatal(err)
		}
	}
	d := openLocal(t, dir, Options{})
	b, err := d.OpenBranch(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		d    *Dataset
		want string
	}{{d, "x"}, {b, "b"}} {
		m, err := tt.d.Manifest(t.Context(), versions(t, tt.d)[0])
		if err != nil || m.Branch() != tt.want {
			t.Errorf("%s: branch %v, %v, want %q", tt.d.URI(), m, err, tt.want)
		}
	}
}

func TestCancelledListingOfBranches(t *testing.T) {
	d, _ := refStore(t, map[string]string{"tree/a/_versions/1.manifest": ""})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Branches(ctx); !errors.Is(err, context.Canceled) && !fault.Is(err, fault.Cancelled) {
		t.Errorf("%v, want cancelled", err)
	}
}

func FuzzRef(f *testing.F) {
	for _, s := range []string{
		`{"branch": null, "version": 3, "createdAt": "2026-11-30T04:43:43.371506649Z", "manifestSize": 893, "metadata": {}}`,
		`{"parentBranch": null, "identifier": {"version_mapping": [[5, "f402"]]}, "parentVersion": 5, "createAt": 1796013815}`,
		`{"version":1e3}`, `{"version":3,"branch":{}}`, `[[[[`, `null`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if tag, err := parseTag(b); (tag == nil) == (err == nil) {
			t.Errorf("tag %v, error %v", tag, err)
		}
		if br, err := parseBranch(b); (br == nil) == (err == nil) {
			t.Errorf("branch %v, error %v", br, err)
		}
	})
}
