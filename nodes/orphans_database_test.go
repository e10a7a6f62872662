package nodes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/pb"
)

// TestOrphansOfADatabase: the tables of a database are looked at together, since a clone holds directories of the table
// that it was made of.
func TestOrphansOfADatabase(t *testing.T) {
	db := t.TempDir()
	table := func(name string) *made {
		m := &made{t, filepath.Join(db, name)}
		if err := os.MkdirAll(filepath.Join(m.dir, "_versions"), 0o755); err != nil {
			t.Fatal(err)
		}
		return m
	}
	source, clone := table("s.lance"), table("c.lance")
	source.version(1, nil, entry("a", btreeType, 1, 0))
	for _, n := range []byte{1, 2, 3} {
		source.file(indexDir(n)+"/page_data.lance", "data")
	}
	source.file("_refs/tags/kept.json", `{"version":1}`)
	inherited := entry("b", btreeType, 2, 0)
	inherited.BaseId = proto.Uint32(0)
	clone.version(7, func(man *pb.Manifest) {
		man.BasePaths = []*pb.BasePath{{Id: proto.Uint32(0), IsDatasetRoot: proto.Bool(true), Path: proto.String(source.dir)}}
	}, inherited)
	clone.file(indexDir(2)+"/page_data.lance", "data")
	(&made{t, db}).file("half.lance/data/x", "")
	tr := openDatabase(t, mustStore(t, db))
	if got := names(t, tr, ".frifs"); !slices.Contains(got, "orphans.json") {
		t.Errorf(".frifs holds %q", got)
	}
	doc := decode[struct {
		Complete    bool
		Read        int `json:"versions_read"`
		Unnamed     int
		Directories []struct {
			Path string
			Held []struct {
				Table *string
				Tags  []string
			} `json:"held_by"`
			Orphan *bool
		}
	}](t, tr, ".frifs/orphans.json")
	var got []string
	for _, d := range doc.Directories {
		s := d.Path
		for _, h := range d.Held {
			s += " " + text(h.Table) + " " + strings.Join(h.Tags, ",")
		}
		if d.Orphan != nil && *d.Orphan {
			s += " orphan"
		}
		got = append(got, s)
	}
	want := []string{
		"c.lance/" + indexDir(2) + " orphan",
		"s.lance/" + indexDir(1) + " s kept",
		"s.lance/" + indexDir(2) + " c ",
		"s.lance/" + indexDir(3) + " orphan",
	}
	if !slices.Equal(got, want) || !doc.Complete || doc.Read != 2 || doc.Unnamed != 2 {
		t.Errorf("complete %v, %d read, %d unnamed\n%s\nwant\n%s", doc.Complete, doc.Read, doc.Unnamed, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestOrphansOfABranch: a branch of a branch holds directories of its parent, also where the parent alone is shown.
func TestOrphansOfABranch(t *testing.T) {
	m := makeTable(t)
	m.version(1, nil)
	branch := func(name string, n byte, base *uint32) {
		b := &made{t, filepath.Join(m.dir, "tree", name)}
		if err := os.MkdirAll(filepath.Join(b.dir, "_versions"), 0o755); err != nil {
			t.Fatal(err)
		}
		ix := entry("i", btreeType, n, 0)
		ix.BaseId = base
		b.version(1, func(man *pb.Manifest) {
			man.Branch = proto.String(name)
			man.BasePaths = []*pb.BasePath{{Id: proto.Uint32(0), IsDatasetRoot: proto.Bool(true), Path: proto.String(filepath.Join(m.dir, "tree", "a"))}}
		}, ix)
		m.file("_refs/branches/"+name+".json", `{"parentVersion":1}`)
	}
	branch("a", 1, nil)
	branch("b", 2, proto.Uint32(0))
	for _, n := range []byte{1, 2, 3} {
		m.file("tree/a/"+indexDir(n)+"/page_data.lance", "data")
	}
	want := []string{indexDir(1) + " a[[1 1]][] not-orphan", indexDir(2) + " b[[1 1]][] not-orphan", indexDir(3) + " orphan fresh not-staged"}
	doc := decode[orphansDoc](t, m.tree(func(cfg *Config) { cfg.Branch = "a" }), ".frifs/orphans.json")
	if got := doc.summary(); !slices.Equal(got, want) || !doc.Complete {
		t.Errorf("--branch a: %q, complete %v, want %q", got, doc.Complete, want)
	}
	// By its directory alone the rest of the dataset is not known.
	doc = decode[orphansDoc](t, (&made{t, filepath.Join(m.dir, "tree", "a")}).tree(nil), ".frifs/orphans.json")
	if doc.Complete || len(doc.Unread) != 1 || doc.Directories[2].Orphan != nil {
		t.Errorf("by its directory: %+v", doc)
	}
}
