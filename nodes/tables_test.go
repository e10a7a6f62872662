package nodes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/store/storetest"
)

// makeDatabase makes a database with tables of each sort.
func makeDatabase(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, versions := range map[string][]uint64{"a.lance": {1}, "b c.lance": {1, 2}, "1ffe2dcb_ns1$tt": {3}, "__manifest": {7}} {
		m := &made{t, filepath.Join(dir, name)}
		if err := os.MkdirAll(filepath.Join(m.dir, "_versions"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, v := range versions {
			m.version(v, fragments(v))
		}
	}
	m := &made{t, dir}
	m.file("a.lance/_mem_wal/0000/1ffe2dcb_gen_1/_versions/1.manifest", "")
	m.file("a.lance/_refs/tags/first.json", `{"version":1}`)
	m.file("half.lance/data/x.lance", "")
	m.file("reserved.lance/.lance-reserved", "reserved")
	if err := os.MkdirAll(filepath.Join(dir, "empty.lance", "_versions"), 0o755); err != nil {
		t.Fatal(err)
	}
	m.file("b c.lance/.lance-deregistered", "")
	m.file("file.lance", "no directory")
	m.file("other/_versions/1.manifest", "")
	m.file("_mem_wal/x", "")
	m.file(".lance/x", "")
	m.file("readme.md", "")
	return dir
}

func openDatabase(t testing.TB, st store.Store) *Tree {
	t.Helper()
	db, err := dataset.OpenDatabase(t.Context(), st, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := New(t.Context(), Config{Database: db})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr
}

func TestDatabase(t *testing.T) {
	dir := makeDatabase(t)
	tr := openDatabase(t, mustStore(t, dir))
	if got, want := names(t, tr, ""), []string{".frifs", "README.txt", "dataset.json", "tables"}; !slices.Equal(got, want) {
		t.Errorf("root %q, want %q", got, want)
	}
	want := []string{"1ffe2dcb_ns1$tt", "__manifest", "a", "b c", "empty", "half", "other", "reserved"}
	listed := []string{"1ffe2dcb_ns1$tt", "__manifest", "a", "empty", "half", "other", "reserved"} // b c is deregistered
	if got := names(t, tr, "tables"); !slices.Equal(got, listed) {
		t.Errorf("tables %q, want %q", got, want)
	}
	doc := decode[struct {
		Kind    string
		Catalog bool
		Others  int `json:"other_names"`
		Tables  []struct {
			Name, Directory, Path string
			Deregistered          *bool
		}
	}](t, tr, "dataset.json")
	if doc.Kind != "database" || !doc.Catalog || doc.Others != 4 || len(doc.Tables) != len(want) || doc.Tables[3].Directory != "b c.lance" || doc.Tables[3].Path != "tables/b c" {
		t.Errorf("dataset.json: %+v", doc)
	}
	for _, x := range doc.Tables {
		if x.Deregistered == nil || *x.Deregistered != (x.Name == "b c") {
			t.Errorf("%s: deregistered %v", x.Name, x.Deregistered)
		}
	}
	for table, latest := range map[string]string{"a": "versions/1", "b c": "versions/2", "1ffe2dcb_ns1$tt": "versions/3", "__manifest": "versions/7"} {
		if target, err := linkTarget(t, tr, "tables/"+table+"/latest"); err != nil || target != latest {
			t.Errorf("%s: latest is %q, %v, want %q", table, target, err, latest)
		}
		cat(t, tr, "tables/"+table+"/latest/version.json")
	}
	if got, want := names(t, tr, "tables/a"), []string{"branches", "dataset.json", "latest", "tags", "versions"}; !slices.Equal(got, want) {
		t.Errorf("tables/a %q, want %q", got, want)
	}
	if n, err := Resolve(t.Context(), tr.Root(), "tables/a/tags/first/manifest.json"); err != nil || n.Type() != TypeFile {
		t.Errorf("a tag of a table: %v", err)
	}
	for table, says := range map[string]string{"half": "half made", "empty": "half made", "reserved": "name is reserved", "b c": "taken out of its catalog"} {
		if got := string(cat(t, tr, "tables/"+table+"/ERROR.json")); !strings.Contains(got, says) {
			t.Errorf("%s: ERROR.json %s, want %q", table, got, says)
		}
		if got := names(t, tr, "tables/"+table); !slices.Contains(got, "ERROR.json") || !slices.Contains(got, "dataset.json") || (len(got) == 2) != (table == "half" || table == "reserved") {
			t.Errorf("%s: %q", table, got)
		}
		if table == "b c" || table == "empty" {
			continue
		}
		var empty map[string]any
		if err := json.Unmarshal(cat(t, tr, "tables/"+table+"/dataset.json"), &empty); err != nil || empty["latest_version"] != nil || empty["error"] == nil {
			t.Errorf("%s: dataset.json %v, %v", table, empty, err)
		}
		for key := range decode[map[string]any](t, tr, "tables/a/dataset.json") {
			if _, ok := empty[key]; !ok {
				t.Errorf("%s: dataset.json has no %q", table, key)
			}
		}
	}
	for _, p := range []string{"tables/readme.md", "tables/a.lance", "tables/nope", "tables/half/versions", "tables/a/ERROR.json", "tables/a/.frifs"} {
		if _, err := Resolve(t.Context(), tr.Root(), p); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want not found", p, err)
		}
	}
	if _, err := Resolve(t.Context(), tr.Root(), "latest/version.json"); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "There are 1ffe2dcb_ns1$tt, __manifest, a, b c") {
		t.Errorf("latest of a database: %v", err)
	}
	if _, _, err := tr.Translator(t.Context(), nil); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), dir+"/1ffe2dcb_ns1$tt") {
		t.Errorf("translate in a database: %v", err)
	}
	cat(t, tr, ".frifs/status.json")
	cat(t, tr, ".frifs/metrics")
	if err := tr.Refresh(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDatabaseTakesNoVersion(t *testing.T) {
	db, err := dataset.OpenDatabase(t.Context(), mustStore(t, makeDatabase(t)), dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []Config{{Version: new(uint64)}, {Tag: "x"}, {Branch: "x"}, {AsOf: time.Unix(1, 0)}} {
		cfg.Database = db
		if _, err := New(t.Context(), cfg); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "There are ") {
			t.Errorf("%v, want invalid, naming the tables", err)
		}
	}
}

// TestManyTablesInOneListing: 2,000 tables are listed with one request, and looking into one opens that one alone.
func TestManyTablesInOneListing(t *testing.T) {
	objects := map[string][]byte{}
	for i := range 2000 {
		objects[fmt.Sprintf("t%04d.lance/_versions/1.manifest", i)] = []byte("no manifest")
	}
	c := storetest.New(storetest.NewMem(objects), 0)
	tr := openDatabase(t, c)
	c.Reset()
	if got := names(t, tr, "tables"); len(got) != 2000 || got[1234] != "t1234" {
		t.Fatalf("%d tables", len(got))
	}
	if n := c.Total("List"); n > 1 || c.Total("Stat")+c.Total("ReadRange")+c.Total("Open") > 0 {
		t.Errorf("%v, want one listing", c.Calls())
	}
	c.Reset()
	names(t, tr, "tables/t1234")
	for call := range c.Calls() {
		if call.Name != "" && !strings.HasPrefix(call.Name, "t1234.lance") && !strings.HasPrefix(call.Name, "_") && !strings.HasPrefix(call.Name, ".lance-") {
			t.Errorf("asked for %v", call)
		}
	}
	for i := range 600 {
		names(t, tr, fmt.Sprintf("tables/t%04d", i))
	}
	if got := tr.trees.stats().Entries; got > maxTrees {
		t.Errorf("%d tables stay open, want at most %d", got, maxTrees)
	}
}

func TestNoDatabase(t *testing.T) {
	empty := t.TempDir()
	if _, err := dataset.OpenDatabase(t.Context(), mustStore(t, empty), dataset.Options{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := dataset.OpenDatabase(t.Context(), mustStore(t, filepath.Join(empty, "nope")), dataset.Options{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("no directory: %v", err)
	}
}
