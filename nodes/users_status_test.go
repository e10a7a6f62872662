package nodes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// statusDoc is what the tests read of fri/status.json.
type statusDoc struct {
	Pending, Trimmable int
	DueByCount         bool    `json:"due_by_count"`
	DueAt              *string `json:"due_at"`
	Transitions        []struct {
		Needed   *bool
		NeededBy []struct{ Index, UUID, Why string } `json:"needed_by"`
		NoIndex  bool                                `json:"covers_no_index"`
		Between  bool                                `json:"intermediate"`
		Since    *struct {
			Version uint64
			Time    string
			Age     string
		}
	}
	Rules []struct{ Rule, Refuses, Why string } `json:"writer_rules"`
}

func TestR16R17R22NeededBy(t *testing.T) {
	s := decode[statusDoc](t, openTree(t, "legacy/chain", nil), "latest/fri/status.json")
	if s.Pending+s.Trimmable == 0 || len(s.Transitions) == 0 {
		t.Fatalf("%+v", s)
	}
	between := 0
	for i, r := range s.Transitions {
		if r.Since == nil || r.Since.Age != "exact" {
			t.Errorf("transition %d: since %+v", i+1, r.Since)
		}
		if r.Needed != nil && *r.Needed && len(r.NeededBy) == 0 && r.NoIndex {
			t.Errorf("transition %d is needed by nobody", i+1)
		}
		if r.Between {
			between++
		}
	}
	if between == 0 || s.DueAt == nil {
		t.Errorf("%d intermediate records, due at %v", between, s.DueAt)
	}
	// One index lies beside everything that was rewritten: it needs no record, whatever its version.
	s = decode[statusDoc](t, openTree(t, "legacy/multi", nil), "latest/fri/status.json")
	if len(s.Transitions) == 0 || s.Pending == 0 {
		t.Errorf("multi: %+v", s)
	}
}

func TestSinceOfACleanedTable(t *testing.T) {
	tr := openTree(t, "legacy/cleanup", nil)
	s := decode[statusDoc](t, tr, "latest/fri/status.json")
	ages := map[string]int{}
	for _, r := range s.Transitions {
		if r.Since != nil {
			ages[r.Since.Age]++
		}
	}
	if ages["exact"]+ages["lower_bound"] != len(s.Transitions) || len(s.Transitions) == 0 {
		t.Errorf("ages %v of %d records", ages, len(s.Transitions))
	}
	for _, r := range s.Transitions {
		h := decode[historyDoc](t, tr, fmt.Sprintf("versions/%d/fri/history.json", r.Since.Version))
		if len(h.Transitions) == 0 {
			t.Errorf("version %d has no record", r.Since.Version)
		}
	}
}

func TestR33R34R35Clones(t *testing.T) {
	tr := openTree(t, "tagged/clone", nil)
	h := decode[historyDoc](t, tr, "latest/fri/history.json")
	if m := h.Transitions[0].RowMap; m == nil || m.Base == nil || *m.Base != 0 || !strings.Contains(m.Path, "clone_source.lance/_fri/") {
		t.Errorf("row map of the source: %+v", m)
	}
	type file struct {
		Kind, Path, URI string
		Present         *bool
		Recorded        *uint64 `json:"recorded_bytes"`
		Bytes           *uint64
	}
	type files struct {
		Missing int
		Files   []file
	}
	for _, name := range []string{"tagged/clone", "legacy/clone", "legacy/external", "tagged/external", "legacy/old_0_39"} {
		f := decode[files](t, openTree(t, name, nil), "latest/scan/files.json")
		kinds := map[string]int{}
		for _, x := range f.Files {
			kinds[x.Kind]++
			if x.Present == nil || !*x.Present || (x.Recorded != nil && *x.Recorded != *x.Bytes) {
				t.Errorf("%s: %+v", name, x)
			}
		}
		if f.Missing != 0 || kinds["manifest"] != 1 || kinds["data"] == 0 || kinds["index"]+kinds["index_directory"] == 0 {
			t.Errorf("%s: %d missing, %v", name, f.Missing, kinds)
		}
	}
	f := decode[files](t, openTree(t, "tagged/clone", nil), "latest/files.json")
	if n := len(slices.DeleteFunc(f.Files, func(x file) bool { return x.Kind != "row_map" })); n != 2 {
		t.Errorf("%d row maps, want 2", n)
	}
}

func TestR41R43IndicesPerVersion(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0), entry("a", btreeType, 1, 0))
	m.version(2, fragments(0))
	m.version(5, fragments(0, 1), entry("a", btreeType, 2, 0))
	tr := m.tree(nil)
	type changes struct {
		Previous *uint64
		Between  *uint64 `json:"versions_between"`
		Indices  struct {
			Added, Removed []struct{ Name string }
			Back           []struct {
				Name string
				Last uint64 `json:"last_seen_version"`
			} `json:"came_back"`
		}
		Fragments struct{ Added []any }
	}
	c := decode[changes](t, tr, "versions/5/changes.json")
	if *c.Previous != 2 || *c.Between != 2 || len(c.Indices.Added) != 1 || len(c.Fragments.Added) != 1 || len(c.Indices.Back) != 1 || c.Indices.Back[0].Last != 1 {
		t.Errorf("version 5: %+v", c)
	}
	if c := decode[changes](t, tr, "versions/2/changes.json"); len(c.Indices.Removed) != 1 {
		t.Errorf("version 2: %+v", c)
	}
	if c := decode[changes](t, tr, "versions/1/changes.json"); c.Previous != nil {
		t.Errorf("version 1: %+v", c)
	}
}

func TestR45BrokenPartsStayApart(t *testing.T) {
	m := makeTable(t)
	bad := entry("bad", btreeType, 1)
	bad.FragmentBitmap = []byte("no bitmap")
	nameless := entry("nameless", btreeType, 2, 0)
	nameless.Uuid.Uuid = []byte{1, 2, 3}
	m.version(1, fragments(0), bad, nameless, entry("good", btreeType, 3, 0))
	tr := m.tree(nil)
	if d := decode[indexDoc](t, tr, "latest/indices/good/index.json"); !slices.Equal(d.Segments[0].Covered, []uint64{0}) {
		t.Errorf("good: %+v", d)
	}
	if d := decode[indexDoc](t, tr, "latest/indices/bad/index.json"); len(d.Warnings) == 0 || d.Segments[0].Covered != nil {
		t.Errorf("bad: %+v", d)
	}
	if got := names(t, tr, "latest/indices/nameless/010203"); !slices.Equal(got, []string{"ERROR.json", "segment.json"}) {
		t.Errorf("an entry without a uuid lists %v", got)
	}
	mustFail(t, tr, "latest/indices/nameless/010203/stored", "corrupt")
}

func TestR46R47R48IgnoredNames(t *testing.T) {
	m := makeTable(t)
	m.version(7, fragments(0))
	for _, n := range []string{"latest_version_hint.json", "d9223372036854775809.manifest", ".tmpAbC", "8.manifest#1", "8.manifest-0f2a3f66", "junk"} {
		if err := os.WriteFile(filepath.Join(m.dir, "_versions", n), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tr := m.tree(nil)
	if got := names(t, tr, "versions"); !slices.Equal(got, []string{"7"}) {
		t.Errorf("versions: %v", got)
	}
	d := decode[struct {
		Ignored  map[string]int `json:"ignored_in_versions"`
		Detached []string       `json:"detached_versions"`
	}](t, tr, "dataset.json")
	if d.Ignored["hint"] != 1 || d.Ignored["detached"] != 1 || d.Ignored["temp"] != 2 || d.Ignored["staging"] != 1 || d.Ignored["other"] != 1 ||
		!slices.Equal(d.Detached, []string{"9223372036854775809"}) {
		t.Errorf("dataset.json: %+v", d)
	}
}
