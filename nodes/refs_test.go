package nodes

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/store/storetest"
	"github.com/frifs/frifs/internal/testdata"
)

// file writes a file of a made table.
func (m *made) file(name, text string) {
	m.t.Helper()
	p := filepath.Join(m.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// branch makes the directory of a branch, with these versions.
func (m *made) branch(name string, versions ...uint64) {
	m.t.Helper()
	b := &made{m.t, filepath.Join(m.dir, "tree", name)}
	if err := os.MkdirAll(filepath.Join(b.dir, "_versions"), 0o755); err != nil {
		m.t.Fatal(err)
	}
	for _, v := range versions {
		b.version(v, func(man *pb.Manifest) { man.Branch = proto.String(name); fragments(v)(man) })
	}
}

// refTable has versions 2 and 3, and refs of every sort, good and bad.
func refTable(t testing.TB) *made {
	m := makeTable(t)
	m.version(2, nil)
	m.version(3, fragments(0))
	m.file("_refs/tags/now.json", `{"version":3,"createdAt":"2026-01-02T03:04:05.000000006Z"}`)
	m.file("_refs/tags/cleaned.json", `{"version":1}`)
	m.file("_refs/tags/on-branch.json", `{"version":4,"branch":"a/b"}`)
	m.file("_refs/tags/same-number.json", `{"version":3,"branch":"a/b"}`)
	m.file("_refs/tags/of-gone.json", `{"version":1,"branch":"gone"}`)
	m.file("_refs/tags/bad.json", `{"version":`)
	m.file("_refs/tags/escape.json", `{"version":3,"branch":"../../../../etc"}`)
	m.file("_refs/tags/100%25.json", `{"version":2}`)
	m.branch("a/b", 3, 4)
	m.file("_refs/branches/a%2Fb.json", `{"parentVersion":3,"createAt":1700000000}`)
	m.branch("a", 3)
	m.file("_refs/branches/a.json", `{"parentVersion":3}`)
	m.branch("a/b/c", 4, 5)
	m.file("_refs/branches/a/b/c.json", `{"parentBranch":"a/b","parentVersion":4}`) // as some stores decode it
	m.file("_refs/branches/gone.json", `{"parentVersion":3}`)
	m.file("_refs/branches/broken.json", `[]`)
	m.branch("broken", 3)
	m.branch("orphan", 3)
	m.file("_refs/branches/..%2F..%2Fup.json", `{"parentVersion":3}`)
	return m
}

func linkTarget(t testing.TB, tr *Tree, path string) (string, error) {
	t.Helper()
	n, err := ResolveNoFollow(t.Context(), tr.Root(), path)
	if err != nil {
		t.Fatal(err)
	}
	return n.(Link).Target(t.Context())
}

func TestTags(t *testing.T) {
	tr := refTable(t).tree(nil)
	if got, want := names(t, tr, "tags"), []string{"100%25", "bad", "cleaned", "escape", "now", "of-gone", "on-branch", "same-number"}; !slices.Equal(got, want) {
		t.Errorf("tags %q, want %q", got, want)
	}
	for _, tt := range []struct {
		tag, target string
		there       bool
		branch      string
	}{
		{"now", "../versions/3", true, ""},
		{"100%25", "../versions/2", true, ""},
		{"cleaned", "../versions/1", false, ""},
		{"on-branch", "../branches/a%2Fb/versions/4", true, "a/b"},
		{"same-number", "../branches/a%2Fb/versions/3", true, "a/b"},
		{"of-gone", "../branches/gone/versions/1", false, ""},
		{"escape", "../branches/..%2F..%2F..%2F..%2Fetc/versions/3", false, ""},
	} {
		target, err := linkTarget(t, tr, "tags/"+tt.tag)
		if err != nil || target != tt.target {
			t.Errorf("%s: %q, %v, want %q", tt.tag, target, err, tt.target)
		}
		n, err := ResolveNoFollow(t.Context(), tr.Root(), "tags/"+tt.tag)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := n.Attr(t.Context()); err != nil || a.Size != int64(len(tt.target)) || a.Type != TypeLink || a.Ino == 0 {
			t.Errorf("%s: %+v, %v", tt.tag, a, err)
		}
		_, err = Resolve(t.Context(), tr.Root(), "tags/"+tt.tag)
		if there := err == nil; there != tt.there || err != nil && !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: there %v, %v, want %v", tt.tag, there, err, tt.there)
		}
		if tt.there {
			doc := decode[struct{ Branch *string }](t, tr, "tags/"+tt.tag+"/version.json")
			if got := text(doc.Branch); got != tt.branch {
				t.Errorf("%s: of branch %q, want %q", tt.tag, got, tt.branch)
			}
		}
	}
	if _, err := Resolve(t.Context(), tr.Root(), "tags/cleaned"); !strings.Contains(err.Error(), "version 1 is not retained; there are 2, from 2 to 3") {
		t.Errorf("cleaned: %v", err)
	}
	if _, err := linkTarget(t, tr, "tags/bad"); !fault.Is(err, fault.Corrupt) {
		t.Errorf("bad: %v, want corrupt", err)
	}
	if recs, _ := tr.ring.all(); len(recs) == 0 || recs[0].Path != "tags/bad" {
		t.Errorf("noted %+v, want tags/bad", recs)
	}
	if _, err := Resolve(t.Context(), tr.Root(), "tags/nope"); !fault.Is(err, fault.NotFound) {
		t.Errorf("nope: %v", err)
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestBranches(t *testing.T) {
	tr := refTable(t).tree(nil)
	want := []string{"..%2F..%2Fup", "a", "a%2Fb", "a%2Fb%2Fc", "broken", "gone", "orphan"}
	if got := names(t, tr, "branches"); !slices.Equal(got, want) {
		t.Errorf("branches %q, want %q", got, want)
	}
	whole := []string{"dataset.json", "latest", "versions"}
	for _, tt := range []struct {
		branch   string
		names    []string
		versions []string
		errors   []string // kind of each
	}{
		{"a", whole, []string{"3"}, nil},
		{"a%2Fb", whole, []string{"3", "4"}, nil},
		{"a%2Fb%2Fc", whole, []string{"4", "5"}, nil},
		{"broken", append([]string{"ERROR.json"}, whole...), []string{"3"}, []string{"branch: corrupt"}},
		{"orphan", append([]string{"ERROR.json"}, whole...), []string{"3"}, []string{"branch: not_found"}},
		{"gone", []string{"ERROR.json"}, nil, []string{"dataset.json: not_found", "latest: not_found", "versions: not_found"}},
		{"..%2F..%2Fup", []string{"ERROR.json"}, nil, []string{"dataset.json: corrupt", "latest: corrupt", "versions: corrupt"}},
	} {
		dir := "branches/" + tt.branch
		if got := names(t, tr, dir); !slices.Equal(got, tt.names) {
			t.Errorf("%s: %q, want %q", tt.branch, got, tt.names)
		}
		if tt.versions != nil {
			if got := names(t, tr, dir+"/versions"); !slices.Equal(got, tt.versions) {
				t.Errorf("%s: versions %q, want %q", tt.branch, got, tt.versions)
			}
			doc := decode[struct {
				Branch  *string
				Version uint64 `json:"dataset_version"`
			}](t, tr, dir+"/latest/version.json")
			if last := tt.versions[len(tt.versions)-1]; fmt.Sprint(doc.Version) != last || EncodeName(text(doc.Branch)) != tt.branch {
				t.Errorf("%s: latest is %+v, want version %s", tt.branch, doc, last)
			}
		} else if _, err := Resolve(t.Context(), tr.Root(), dir+"/versions"); err == nil {
			t.Errorf("%s: has versions", tt.branch)
		}
		if tt.errors == nil {
			if _, err := Resolve(t.Context(), tr.Root(), dir+"/ERROR.json"); !fault.Is(err, fault.NotFound) {
				t.Errorf("%s: ERROR.json: %v", tt.branch, err)
			}
			continue
		}
		doc := decode[struct {
			Errors []struct{ File, Kind, Message string }
		}](t, tr, dir+"/ERROR.json")
		var got []string
		for _, e := range doc.Errors {
			got = append(got, e.File+": "+e.Kind)
		}
		if !slices.Equal(got, tt.errors) {
			t.Errorf("%s: errors %q, want %q", tt.branch, got, tt.errors)
		}
	}
	for _, p := range []string{"branches/nope", "branches/a/b", "branches/a%2fb", "branches/a/tags", "branches/a/branches", "branches/a/.frifs", "branches/a/README.txt"} {
		if _, err := Resolve(t.Context(), tr.Root(), p); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want not found", p, err)
		}
	}
}

// TestSameNumberOnTwoBranches: version numbers are per branch, and so is everything that is kept by version.
func TestSameNumberOnTwoBranches(t *testing.T) {
	tr := refTable(t).tree(nil)
	seen := map[uint64]string{}
	texts := map[string]string{}
	for _, dir := range []string{"versions/3", "branches/a/versions/3", "branches/a%2Fb/versions/3", "branches/orphan/versions/3"} {
		for _, name := range []string{"", "/manifest.json", "/files.json", "/fri", "/fri/history.json", "/remapped.lance", "/changes.json"} {
			n, err := Resolve(t.Context(), tr.Root(), dir+name)
			if err != nil {
				t.Fatal(err)
			}
			if other, ok := seen[n.Ino()]; ok {
				t.Errorf("%s has the inode of %s", dir+name, other)
			}
			seen[n.Ino()] = dir + name
		}
		body := string(cat(t, tr, dir+"/files.json"))
		if other, ok := texts[body]; ok {
			t.Errorf("%s/files.json is that of %s", dir, other)
		}
		texts[body] = dir
	}
}

// TestDatasetsWithEqualManifestsStayApart: two branches whose manifests have one e-tag, as those of a copied table have.
func TestDatasetsWithEqualManifestsStayApart(t *testing.T) {
	m := makeTable(t)
	m.version(1, nil)
	m.branch("x", 1)
	m.branch("y", 1)
	at := time.Unix(1_700_000_000, 0)
	for _, p := range []string{"", "tree/x", "tree/y"} {
		if err := os.Chtimes(filepath.Join(m.dir, p, "_versions/1.manifest"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	tr := m.tree(nil)
	for _, b := range []string{"x", "y", "x"} {
		doc := decode[struct{ Branch *string }](t, tr, "branches/"+b+"/versions/1/version.json")
		if text(doc.Branch) != b {
			t.Errorf("branches/%s shows branch %q", b, text(doc.Branch))
		}
	}
}

// TestBranchAnswersAsExpected reads the history and the coverage of a real branch through the tree, as they are written
// down beside the table.
func TestBranchAnswersAsExpected(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(testdata.Dir(t, "legacy"), "branchy.branch-exp_wide.expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e expected
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	tr := openTree(t, "legacy/branchy", nil)
	for _, v := range e.Versions {
		dir := fmt.Sprintf("branches/exp%%2Fwide/versions/%d/", v.Version)
		got := decode[versionDoc](t, tr, dir+"version.json")
		if got.Operation != v.Operation || v.Rows == nil || got.Rows == nil || *got.Rows != *v.Rows {
			t.Errorf("version %d: %+v, want %s, %v rows", v.Version, got, v.Operation, v.Rows)
		}
		if h := decode[historyDoc](t, tr, dir+"fri/history.json"); h.records() != v.FRIRecords {
			t.Errorf("version %d: %d records, want %d", v.Version, h.records(), v.FRIRecords)
		}
	}
	var docs []indexDoc
	for _, name := range names(t, tr, "branches/exp%2Fwide/latest/indices") {
		docs = append(docs, decode[indexDoc](t, tr, "branches/exp%2Fwide/latest/indices/"+name+"/index.json"))
	}
	checked := 0
	for _, ix := range e.Indices {
		for _, s := range ix.Segments {
			for _, d := range docs {
				for _, seg := range d.Segments {
					if seg.UUID == s.UUID && !d.System {
						checked++
						if !slices.Equal(seg.Covered, s.FragmentIDs) {
							t.Errorf("%s of %s covers %v, want %v", s.UUID, ix.Name, seg.Covered, s.FragmentIDs)
						}
						cat(t, tr, "branches/exp%2Fwide/latest/indices/"+EncodeName(d.Name)+"/"+seg.Directory+"/scan/addresses.csv")
					}
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no segment compared")
	}
	composed := string(cat(t, tr, "branches/exp%2Fwide/latest/fri/scan/composed.csv"))
	direct := openStore(t, mustStore(t, testdata.Dataset(t, "legacy/branchy")+"/tree/exp/wide"), "legacy/branchy", nil)
	if mounted := string(cat(t, direct, "latest/fri/scan/composed.csv")); mounted != composed || strings.Count(composed, "\n") < 2 {
		t.Errorf("the branch mounted by itself composes\n%s, in branches/\n%s", mounted, composed)
	}
}

func mustStore(t testing.TB, uri string) store.Store {
	t.Helper()
	st, err := store.OpenURI(t.Context(), uri, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestSelectors(t *testing.T) {
	m := refTable(t)
	v := func(n uint64) *uint64 { return &n }
	for _, tt := range []struct {
		name     string
		cfg      Config
		latest   string // "" = an error
		branch   string
		kind     fault.Kind
		says     string
		tags     []string
		versions int
	}{
		{name: "tag", cfg: Config{Tag: "now"}, latest: "versions/3", tags: []string{"now"}},
		{name: "tag as the tree writes it", cfg: Config{Tag: "100%25"}, latest: "versions/2", tags: []string{"100%25"}},
		{name: "tag as it is", cfg: Config{Tag: "100%"}, latest: "versions/2", tags: []string{"100%25"}},
		{name: "tag on a branch", cfg: Config{Tag: "on-branch"}, latest: "versions/4", branch: "a/b", tags: []string{"on-branch"}},
		{name: "tag and its branch", cfg: Config{Tag: "on-branch", Branch: "a%2Fb"}, latest: "versions/4", branch: "a/b", tags: []string{"on-branch"}},
		{name: "tag and main", cfg: Config{Tag: "now", Branch: "main"}, latest: "versions/3", tags: []string{"now"}},
		{name: "branch", cfg: Config{Branch: "a/b"}, latest: "versions/4", branch: "a/b", tags: []string{"on-branch"}},
		{name: "branch as the tree writes it", cfg: Config{Branch: "a%2Fb"}, latest: "versions/4", branch: "a/b", tags: []string{"on-branch"}},
		{name: "main", cfg: Config{Branch: "main"}, latest: "versions/3", tags: []string{"now"}},
		{name: "branch and version", cfg: Config{Branch: "a/b", Version: v(3)}, latest: "versions/3", branch: "a/b", tags: []string{"same-number"}},
		{name: "branch and time", cfg: Config{Branch: "a/b", AsOf: time.Unix(1_700_000_200, 0)}, latest: "versions/3", branch: "a/b", tags: []string{"same-number"}},
		{name: "version", cfg: Config{Version: v(3)}, latest: "versions/3", tags: []string{"now"}},
		{name: "orphan", cfg: Config{Branch: "orphan"}, latest: "versions/3", branch: "orphan"},
		{name: "no tag", cfg: Config{Tag: "nope"}, kind: fault.NotFound, says: `there is no tag "nope"; there are tags "100%"`},
		{name: "no branch", cfg: Config{Branch: "nope"}, kind: fault.NotFound, says: `there is no branch "nope"; there are branches `},
		{name: "branch without data", cfg: Config{Branch: "gone"}, kind: fault.NotFound, says: `"gone" has no directory`},
		{name: "branch that leads elsewhere", cfg: Config{Branch: "../../up"}, kind: fault.Corrupt, says: "inside tree/"},
		{name: "cleaned tag", cfg: Config{Tag: "cleaned"}, kind: fault.NotFound, says: `version 1, which the tag "cleaned" names, is not retained`},
		{name: "broken tag", cfg: Config{Tag: "bad"}, kind: fault.Corrupt},
		{name: "tag and version", cfg: Config{Tag: "now", Version: v(3)}, kind: fault.Invalid},
		{name: "tag and time", cfg: Config{Tag: "now", AsOf: time.Unix(1_800_000_000, 0)}, kind: fault.Invalid},
		{name: "tag of another branch", cfg: Config{Tag: "now", Branch: "a"}, kind: fault.Invalid, says: `of branch "main", not of "a"`},
		{name: "version of another branch", cfg: Config{Branch: "a", Version: v(2)}, kind: fault.NotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ds, err := dataset.Open(t.Context(), mustStore(t, m.dir), dataset.Options{})
			if err != nil {
				t.Fatal(err)
			}
			tt.cfg.Dataset = ds
			tr, err := New(t.Context(), tt.cfg)
			if fault.KindOf(err) != tt.kind || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("%v, want kind %v and %q", err, tt.kind, tt.says)
			}
			if err != nil {
				return
			}
			defer tr.Close()
			if target, err := linkTarget(t, tr, "latest"); err != nil || target != tt.latest {
				t.Errorf("latest is %q, %v, want %q", target, err, tt.latest)
			}
			if got := names(t, tr, "versions"); len(got) != 1 {
				t.Errorf("versions %q", got)
			}
			if got := names(t, tr, "tags"); !slices.Equal(got, tt.tags) {
				t.Errorf("tags %q, want %q", got, tt.tags)
			}
			for _, tag := range tt.tags {
				if n, err := Resolve(t.Context(), tr.Root(), "tags/"+tag); err != nil || n.Type() != TypeDir {
					t.Errorf("tags/%s: %v", tag, err)
				}
			}
			doc := decode[struct{ Branch *string }](t, tr, "latest/version.json")
			if text(doc.Branch) != tt.branch {
				t.Errorf("of branch %q, want %q", text(doc.Branch), tt.branch)
			}
			if _, err := Resolve(t.Context(), tr.Root(), "branches"); !fault.Is(err, fault.NotFound) {
				t.Errorf("branches: %v", err)
			}
			if _, err := Resolve(t.Context(), tr.Root(), "README.txt"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDeniedRefsCostThoseFilesAlone (R50).
func TestR50DeniedRefsCostThoseFilesAlone(t *testing.T) {
	c := storetest.New(mustStore(t, refTable(t).dir), 0)
	c.HideLocal = true
	denied := fault.New("test", "_refs", fault.Denied, "403")
	for _, m := range []string{"List", "Stat", "ReadRange", "Open"} {
		for _, p := range []string{"_refs", "_refs/tags", "_refs/branches", "_refs/tags/now.json"} {
			c.Fail(m, p, denied)
		}
	}
	tr := openStore(t, c, "", nil)
	if got := names(t, tr, ""); !slices.Contains(got, "tags") || !slices.Contains(got, "branches") {
		t.Errorf("root %q", got)
	}
	for _, p := range []string{"tags", "branches"} {
		if _, err := mustDir(t, tr, p).Entries(t.Context()); !fault.Is(err, fault.Denied) {
			t.Errorf("%s: %v, want denied", p, err)
		}
		if _, err := Resolve(t.Context(), tr.Root(), p+"/now"); !fault.Is(err, fault.Denied) {
			t.Errorf("%s/now: %v, want denied", p, err)
		}
	}
	cat(t, tr, "latest/version.json")
	cat(t, tr, "versions/2/manifest.json")
	doc := catJSON(t, tr, "dataset.json")
	for _, k := range []string{"tags", "branches", "tag_refs", "branch_refs"} {
		if v, ok := doc[k]; !ok || v != nil {
			t.Errorf("dataset.json: %s is %v, want null", k, v)
		}
	}
	if doc["latest_version"] != 3.0 {
		t.Errorf("latest_version %v", doc["latest_version"])
	}
}

func TestRefsInDatasetJSON(t *testing.T) {
	tr := refTable(t).tree(nil)
	type ref struct {
		Name, Path    string
		File, Branch  *string
		Version       *uint64
		Retained      *bool
		Created       *string `json:"created_at"`
		Parent        *string `json:"parent_branch"`
		ParentVersion *uint64 `json:"parent_version"`
		Error         *struct{ Kind string }
	}
	type doc struct {
		Kind     string
		Tags     []string
		Branches []string
		TagRefs  []ref `json:"tag_refs"`
		Refs     []ref `json:"branch_refs"`
		Of       *ref  `json:"branch_of"`
	}
	d := decode[doc](t, tr, "dataset.json")
	if d.Kind != "dataset" || d.Of != nil || !slices.Equal(d.Tags, []string{"100%", "bad", "cleaned", "escape", "now", "of-gone", "on-branch", "same-number"}) {
		t.Errorf("%+v", d)
	}
	var got []string
	for _, r := range d.TagRefs {
		s := r.Name + " " + text(r.Branch)
		if r.Version != nil {
			s += fmt.Sprint(" ", *r.Version)
		}
		if r.Retained != nil {
			s += fmt.Sprint(" ", *r.Retained)
		}
		if r.Error != nil {
			s += " " + r.Error.Kind
		}
		got = append(got, s)
	}
	want := []string{"100%  2 true", "bad  corrupt", "cleaned  1 false", "escape ../../../../etc 3 false", "now  3 true", "of-gone gone 1 false", "on-branch a/b 4 true", "same-number a/b 3 true"}
	if !slices.Equal(got, want) {
		t.Errorf("tag_refs\n%q, want\n%q", got, want)
	}
	if at := d.TagRefs[4].Created; text(at) != "2026-01-02T03:04:05.000000006Z" {
		t.Errorf("created_at %v", text(at))
	}
	got = nil
	for _, r := range d.Refs {
		s := r.Name + " " + r.Path + " " + text(r.File)
		if r.ParentVersion != nil {
			s += fmt.Sprint(" ", text(r.Parent), "@", *r.ParentVersion)
		}
		if r.Error != nil {
			s += " " + r.Error.Kind
		}
		got = append(got, s)
	}
	want = []string{
		"../../up branches/..%2F..%2Fup _refs/branches/..%2F..%2Fup.json @3 corrupt",
		"a branches/a _refs/branches/a.json @3",
		"a/b branches/a%2Fb _refs/branches/a%2Fb.json @3",
		"a/b/c branches/a%2Fb%2Fc _refs/branches/a/b/c.json a/b@4",
		"broken branches/broken _refs/branches/broken.json corrupt",
		"gone branches/gone _refs/branches/gone.json @3 not_found",
		"orphan branches/orphan  not_found",
	}
	if !slices.Equal(got, want) {
		t.Errorf("branch_refs\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	b := decode[doc](t, tr, "branches/a%2Fb%2Fc/dataset.json")
	if b.Kind != "branch" || b.Of == nil || b.Of.Name != "a/b/c" || text(b.Of.Parent) != "a/b" || *b.Of.ParentVersion != 4 || len(b.TagRefs)+len(b.Refs) > 0 {
		t.Errorf("of the branch: %+v", b)
	}
}

// TestFailuresInABranchNameIt looks for the path of a failure from the root of the mount.
func TestFailuresInABranchNameIt(t *testing.T) {
	m := refTable(t)
	m.file("tree/a/_transactions/x", "")
	b := &made{t, filepath.Join(m.dir, "tree/a")}
	b.version(4, nil, entry("x_idx", btreeType, 7, 0))
	tr := m.tree(nil)
	uuid := names(t, tr, "branches/a/versions/4/indices/x_idx")
	path := "branches/a/versions/4/indices/x_idx/" + uuid[0] + "/stored"
	if es, err := fs.ReadDir(FS(tr.Root()), path); err == nil {
		t.Fatalf("%v", es)
	}
	recs, _ := tr.ring.all()
	if len(recs) == 0 || !strings.HasPrefix(recs[len(recs)-1].Path, path) {
		t.Errorf("noted %+v, want %s", recs, path)
	}
}

// TestRefsAreListedWithoutReading counts what ls of tags/ and branches/ asks the store for.
func TestRefsAreListedWithoutReading(t *testing.T) {
	c := storetest.New(mustStore(t, refTable(t).dir), 0)
	c.HideLocal = true
	tr := openStore(t, c, "", nil)
	c.Reset()
	names(t, tr, "tags")
	if n := c.Total("List"); n != 1 || c.Total("ReadRange")+c.Total("Open")+c.Total("Stat") > 0 {
		t.Errorf("ls tags: %v", c.Calls())
	}
	names(t, tr, "branches")
	if c.Total("ReadRange")+c.Total("Open")+c.Total("Stat") > 0 {
		t.Errorf("ls branches: %v", c.Calls())
	}
	c.Reset()
	names(t, tr, "")
	if n := len(c.Calls()); n > 0 {
		t.Errorf("ls of the root: %v", c.Calls())
	}
}
