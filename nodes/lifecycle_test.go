package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/store/storetest"
	"github.com/frifs/frifs/internal/testdata"
)

// withoutLive hides the live files, whose content may change between two looks.
type withoutLive struct{ Dir }

func (d withoutLive) Entries(ctx context.Context) ([]Entry, error) {
	es, err := d.Dir.Entries(ctx)
	return slices.DeleteFunc(es, func(e Entry) bool { return e.Name == ".frifs" || e.Name == "dataset.json" }), err
}

func (d withoutLive) Lookup(ctx context.Context, name string) (Node, error) {
	if name == ".frifs" || name == "dataset.json" {
		return nil, notFound("", name)
	}
	return d.Dir.Lookup(ctx, name)
}

func TestTreeIsAFileSystem(t *testing.T) {
	for name, files := range map[string][]string{
		"legacy/basic": {"README.txt", "latest", "versions/5/version.json", "versions/5/fri/transitions/0001/mapping.csv",
			"versions/5/fri/transitions/0001/mapping.arrow", "versions/5/fri/scan/composed.csv", "versions/5/scan/files.json"},
		"tagged/stable2": {"versions/11/fri/transitions/0001/counts.csv", "versions/11/fri/transitions/0001/scan/inverse.csv",
			"versions/11/fri/lineage.dot", "versions/11/fri/details.binpb", "versions/11/fri/status.json", "versions/11/fri/scan/composed.json"},
		"spliced/s_empty": {"versions/6/fri/transitions/0001/ERROR.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := map[string]uint64{"legacy/basic": 5, "tagged/stable2": 11, "spliced/s_empty": 6}[name] // one is enough
			tr := openTree(t, name, func(c *Config) { c.Now, c.Version = fixedNow, &v })
			if err := fstest.TestFS(FS(withoutLive{tr.Root()}), files...); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestDamagedManifest(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	m.write(2, []byte("this is no manifest"))
	m.version(3, fragments(0))
	tr := m.tree(nil)
	if got := names(t, tr, "versions/2"); !slices.Equal(got, []string{"ERROR.json"}) {
		t.Fatalf("a damaged version lists %v", got)
	}
	d := decode[struct {
		Errors []struct{ File, Kind, Message, Path, Detail string }
	}](t, tr, "versions/2/ERROR.json")
	if len(d.Errors) != len(versionFiles()) || d.Errors[0].Kind != "corrupt" || d.Errors[0].Message == "" || !strings.Contains(d.Errors[0].Path, "2.manifest") {
		t.Errorf("ERROR.json: %+v", d.Errors)
	}
	for _, f := range versionFiles() {
		mustFail(t, tr, "versions/2/"+f, "corrupt")
	}
	mustFail(t, tr, "versions/2/other", "not_found")
	// The others work, and compare with what can be read.
	if c := catJSON(t, tr, "versions/3/changes.json"); c["error"] == nil || c["previous"] != 2.0 {
		t.Errorf("changes after a damaged version: %v", c)
	}
	cat(t, tr, "versions/1/manifest.json")
	// A damaged newest version is the latest one all the same.
	m.write(4, nil)
	tr = m.tree(nil)
	if got := names(t, tr, "latest"); !slices.Equal(got, []string{"ERROR.json"}) {
		t.Errorf("latest lists %v", got)
	}
	if d := catJSON(t, tr, "dataset.json"); d["latest_version"] != 4.0 || d["error"] == nil {
		t.Errorf("dataset.json: %v", d)
	}
}

// TestStoreFailuresPass checks that what may pass is an error of that moment, and not taken for damage.
func TestStoreFailuresPass(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	st, err := store.OpenURI(t.Context(), m.dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := storetest.New(st, 0)
	c.HideLocal = true
	var clk clock
	var told []ErrorRecord
	tr := openStore(t, c, "", func(cfg *Config) {
		cfg.Now = clk.now
		cfg.OnError = func(r ErrorRecord) { told = append(told, r) }
	})
	down := fault.New("test", "", fault.Unavailable, "down")
	c.Fail("ReadRange", "_versions/1.manifest", down)
	if _, err := mustDir(t, tr, "latest").Entries(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("listing while the store is down: %v", err)
	}
	c.Fail("ReadRange", "_versions/1.manifest", nil)
	clk.advance(3 * time.Second)
	if got := names(t, tr, "latest"); !slices.Contains(got, "version.json") {
		t.Errorf("after that: %v", got)
	}
	if len(told) != 0 {
		t.Errorf("failures of a directory were noted as failures of files: %v", told)
	}
}

func TestPinnedVersions(t *testing.T) {
	v := uint64(3)
	tr := openTree(t, "legacy/basic", func(c *Config) { c.Version = &v })
	if got := names(t, tr, "versions"); !slices.Equal(got, []string{"3"}) || newestOf(t, tr) != "3" {
		t.Errorf("versions %v, latest %s", got, newestOf(t, tr))
	}
	mustFail(t, tr, "versions/2", "not_found")
	if c := catJSON(t, tr, "latest/changes.json"); c["previous"] != 2.0 {
		t.Errorf("previous %v, want 2: a pin hides versions, it does not forget them", c["previous"])
	}
	m := makeTable(t)
	for _, n := range []uint64{1, 2, 4, 5} {
		m.version(n, fragments(0))
	}
	at := func(s int64) func(*Config) {
		return func(c *Config) { c.AsOf = time.Unix(1_700_000_000+s, 0) }
	}
	for s, want := range map[int64]string{60: "1", 150: "2", 239: "2", 240: "4", 9999: "5"} {
		if got := newestOf(t, m.tree(at(s))); got != want {
			t.Errorf("as of %d s: version %s, want %s", s, got, want)
		}
	}
	ds := m.tree(nil).Dataset()
	if _, err := New(t.Context(), Config{Dataset: ds, AsOf: time.Unix(5, 0)}); !fault.Is(err, fault.NotFound) {
		t.Errorf("before the first version: %v", err)
	}
	bad := uint64(3)
	if _, err := New(t.Context(), Config{Dataset: ds, Version: &bad}); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "from 1 to 5") {
		t.Errorf("a version in the gap: %v", err)
	}
}

func TestNewVersionsAppear(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	var clk clock
	clk.advance(time.Hour)
	tr := m.tree(func(c *Config) { c.Now = clk.now })
	root := tr.Root()
	before, err := root.Lookup(t.Context(), "latest")
	if err != nil {
		t.Fatal(err)
	}
	old := catJSON(t, tr, "latest/version.json")
	m.version(2, fragments(0, 1))
	clk.advance(defaultPollInterval)
	after, err := root.Lookup(t.Context(), "latest")
	if err != nil || after.Ino() == before.Ino() {
		t.Errorf("latest keeps its inode %d (%v)", before.Ino(), err)
	}
	if got := catJSON(t, tr, "latest/version.json"); got["dataset_version"] != 2.0 || old["dataset_version"] != 1.0 {
		t.Errorf("latest is %v, was %v", got["dataset_version"], old["dataset_version"])
	}
	if !root.Volatile() || !mustDir(t, tr, "versions").Volatile() || mustDir(t, tr, "versions/1").Volatile() {
		t.Error("volatile: the root and versions/, nothing else")
	}
}

func TestLiveFilesAreFrozen(t *testing.T) {
	var clk clock
	clk.advance(time.Hour)
	tr := openTree(t, "legacy/basic", func(c *Config) {
		c.Now = clk.now
		c.Gauges = func() []Gauge { return []Gauge{{Name: "frifs_reads_total", Help: "Reads.", Value: 12}} }
	})
	look := func() *bytesFile {
		n, err := Resolve(t.Context(), tr.Root(), ".frifs/status.json")
		if err != nil {
			t.Fatal(err)
		}
		return n.(*bytesFile)
	}
	a := look()
	clk.advance(300 * time.Millisecond)
	if b := look(); b.Ino() != a.Ino() || !bytes.Equal(a.data, b.data) {
		t.Error("the file changed within a second")
	}
	clk.advance(2 * time.Second)
	if b := look(); b.Ino() == a.Ino() || bytes.Equal(a.data, b.data) {
		t.Error("the uptime stands still")
	}
	cat(t, tr, "latest/fri/scan/composed.csv")
	clk.advance(2 * time.Second)
	s := catJSON(t, tr, ".frifs/status.json")
	if s["jobs_done"].(float64) < 1 || s["uri"] == "" || len(s["counters"].([]any)) < 5 {
		t.Errorf("status: %v", s)
	}
	if m := string(cat(t, tr, ".frifs/metrics")); !strings.Contains(m, "frifs_reads_total 12\n") || !strings.Contains(m, `frifs_cache_bytes{cache="manifests"}`) {
		t.Errorf("metrics:\n%s", m)
	}
}

// TestR52StoredFiles: a file that vanished or was replaced is never served as what it was.
func TestR52StoredFiles(t *testing.T) {
	dir := testdata.Copy(t, "legacy/basic")
	st, err := store.OpenURI(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr := openStore(t, st, "", nil)
	d := indexOfType(t, tr, "BTREE")
	path := "latest/indices/" + d.Name + "/" + d.Segments[0].UUID + "/stored/page_lookup.lance"
	file := filepath.Join(dir, "_indices", d.Segments[0].UUID, "page_lookup.lance")
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := cat(t, tr, path); !bytes.Equal(got, want) {
		t.Fatal("stored/ differs from the file")
	}
	first, err := Resolve(t.Context(), tr.Root(), path)
	if err != nil {
		t.Fatal(err)
	}
	longer := append(slices.Clone(want), "more"...)
	if err := os.WriteFile(file, longer, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := first.(File).Open(t.Context()); !fault.Is(err, fault.Stale) {
		t.Errorf("opening the node of a replaced file: %v", err)
	}
	if got := cat(t, tr, path); !bytes.Equal(got, longer) {
		t.Error("a new look does not give the new bytes")
	}
	again, err := Resolve(t.Context(), tr.Root(), path)
	if err != nil || again.Ino() == first.Ino() {
		t.Errorf("the new file has the old inode (%v)", err)
	}
	if _, err := first.(File).Open(t.Context()); !fault.Is(err, fault.Stale) {
		t.Errorf("opening the old node again: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.ReadFile(FS(tr.Root()), path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is gone: %v", err)
	}
	if !slices.Contains(names(t, tr, path[:strings.LastIndexByte(path, '/')]), "page_lookup.lance") {
		t.Error("what fails later stays listed")
	}
	var rec struct{ Path, Kind string }
	lines := bytes.Split(bytes.TrimSpace(errorLines(t, tr)), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &rec); err != nil || rec.Kind != "not_found" || !strings.HasSuffix(rec.Path, "page_lookup.lance") {
		t.Errorf("errors.jsonl ends with %s (%v)", lines[len(lines)-1], err)
	}
}

// errorLines renders .frifs/errors.jsonl as it is now.
func errorLines(t testing.TB, tr *Tree) []byte {
	t.Helper()
	b, err := tr.errorsJSONL(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestWrongRecordedSize: the size in the manifest is what stat says, and what the file must have.
func TestWrongRecordedSize(t *testing.T) {
	dir := testdata.Copy(t, "legacy/basic")
	st, err := store.OpenURI(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr := openStore(t, st, "", nil)
	d := indexOfType(t, tr, "BTREE")
	if err := os.WriteFile(filepath.Join(dir, "_indices", d.Segments[0].UUID, "page_data.lance"), []byte("short"), 0o644); err != nil {
		t.Fatal(err)
	}
	n, err := Resolve(t.Context(), tr.Root(), "latest/indices/"+d.Name+"/"+d.Segments[0].UUID+"/stored/page_data.lance")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.(File).Open(t.Context()); !fault.Is(err, fault.Stale) {
		t.Errorf("open: %v", err)
	}
}

func TestEmptyTable(t *testing.T) {
	tr := makeTable(t).tree(nil)
	if got := names(t, tr, ""); !slices.Equal(got, []string{".frifs", "README.txt", "branches", "dataset.json", "tags", "versions"}) {
		t.Errorf("root: %v", got)
	}
	mustFail(t, tr, "latest", "not_found")
	if got := names(t, tr, "versions"); len(got) != 0 {
		t.Errorf("versions: %v", got)
	}
}

func TestResolve(t *testing.T) {
	tr := openTree(t, "legacy/basic", nil)
	for _, p := range []string{"", "/", "latest/../../README.txt", "./latest/./fri//history.json", "../..", "latest/"} {
		if _, err := Resolve(t.Context(), tr.Root(), p); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
	if n, err := ResolveNoFollow(t.Context(), tr.Root(), "latest"); err != nil || n.Type() != TypeLink {
		t.Errorf("latest: %v", err)
	}
	for _, p := range []string{"README.txt/x", "versions/05", "versions/x", "latest/fri/transitions/1", "latest/fri/transitions/0099", "nope"} {
		mustFail(t, tr, p, "not_found")
	}
}
