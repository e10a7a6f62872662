package nodes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/testdata"
)

type orphansDoc struct {
	Complete    bool
	Read        int `json:"versions_read"`
	Unnamed     int
	Unread      []struct{ Path string }
	Directories []struct {
		Kind, Path string
		Held       []struct {
			Branch   *string
			Versions [][2]uint64
			Detached []string
		} `json:"held_by"`
		Orphan, Fresh, Staged *bool
		Files, Bytes          *int
		Error                 *struct{ Kind string }
	}
}

// summary renders what is said of each directory.
func (d orphansDoc) summary() []string {
	var out []string
	mark := func(name string, v *bool) string {
		switch {
		case v == nil:
			return ""
		case *v:
			return " " + name
		}
		return " not-" + name
	}
	for _, x := range d.Directories {
		s := x.Path
		for _, h := range x.Held {
			s += fmt.Sprintf(" %s%v%v", text(h.Branch), h.Versions, h.Detached)
		}
		out = append(out, s+mark("orphan", x.Orphan)+mark("fresh", x.Fresh)+mark("staged", x.Staged))
	}
	return out
}

func indexDir(n byte) string {
	return fmt.Sprintf("_indices/00000000-0000-0000-0000-0000000000%02x", n)
}

// orphanTable has directories that versions hold, and some that none does.
func orphanTable(t testing.TB) *made {
	m := makeTable(t)
	m.version(2, fragments(0), entry("a", btreeType, 1, 0))
	m.version(3, fragments(0), entry("a", btreeType, 1, 0))
	m.version(5, fragments(0), entry("a", btreeType, 1, 0), entry("b", btreeType, 2, 0))
	m.version(6, fragments(0), entry("b", btreeType, 2, 0))
	m.version(8, fragments(0), entry("a", btreeType, 1, 0))
	b := &made{t, filepath.Join(m.dir, "tree", "x")}
	if err := os.MkdirAll(filepath.Join(b.dir, "_versions"), 0o755); err != nil {
		t.Fatal(err)
	}
	inherited := entry("b", btreeType, 3, 0)
	inherited.BaseId = proto.Uint32(0)
	b.version(3, func(man *pb.Manifest) {
		man.Branch = proto.String("x")
		man.BasePaths = []*pb.BasePath{{Id: proto.Uint32(0), IsDatasetRoot: proto.Bool(true), Path: proto.String(m.dir)}}
	}, inherited, entry("c", btreeType, 4, 0))
	for _, n := range []byte{1, 2, 3, 5} {
		m.file(indexDir(n)+"/page_data.lance", "data")
	}
	m.file(indexDir(6)+"/part_0_page_data.lance", "da")
	m.file("_fri/11111111-2222-3333-4444-555555555555/stable_partition.lance", "map")
	m.file("tree/x/"+indexDir(4)+"/page_data.lance", "data")
	m.file("tree/x/"+indexDir(1)+"/page_data.lance", "data")
	old := time.Now().Add(-8 * 24 * time.Hour)
	for _, p := range []string{indexDir(5), "tree/x/" + indexDir(1)} {
		if err := os.Chtimes(filepath.Join(m.dir, p, "page_data.lance"), old, old); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// TestR49Orphans: directories that no retained version of any branch names are told from those that are held.
func TestR49Orphans(t *testing.T) {
	m := orphanTable(t)
	tr := m.tree(nil)
	doc := decode[orphansDoc](t, tr, ".frifs/orphans.json")
	want := []string{
		"_fri/11111111-2222-3333-4444-555555555555 orphan fresh not-staged",
		indexDir(1) + " [[2 5] [8 8]][] not-orphan",
		indexDir(2) + " [[5 6]][] not-orphan",
		indexDir(3) + " x[[3 3]][] not-orphan",
		indexDir(5) + " orphan not-fresh not-staged",
		indexDir(6) + " orphan fresh staged",
		"tree/x/" + indexDir(1) + " orphan not-fresh not-staged",
		"tree/x/" + indexDir(4) + " x[[3 3]][] not-orphan",
	}
	if got := doc.summary(); !slices.Equal(got, want) || !doc.Complete || doc.Read != 6 || doc.Unnamed != 4 {
		t.Errorf("complete %v, %d read, %d unnamed\n%s\nwant\n%s", doc.Complete, doc.Read, doc.Unnamed, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if x := doc.Directories[5]; *x.Files != 1 || *x.Bytes != 2 {
		t.Errorf("%+v: %d files, %d bytes", x, *x.Files, *x.Bytes)
	}
	f, err := Resolve(t.Context(), tr.Root(), ".frifs/orphans.json")
	if err != nil || f.(File).Class() != C2 {
		t.Errorf("%v, %v, want a C2 file", f, err)
	}
	// A version that cannot be read may name what nothing else does.
	m.write(7, []byte("no manifest"))
	doc = decode[orphansDoc](t, m.tree(nil), ".frifs/orphans.json")
	if doc.Complete || len(doc.Unread) != 1 || doc.Unread[0].Path != "versions/7" {
		t.Errorf("unread %+v", doc.Unread)
	}
	for _, d := range doc.Directories {
		if len(d.Held) == 0 && d.Orphan != nil {
			t.Errorf("%s: orphan %v, want unknown", d.Path, *d.Orphan)
		}
	}
}

// TestOrphansOfRealTables compares with what every version's own files say.
func TestOrphansOfRealTables(t *testing.T) {
	for _, name := range []string{"legacy/branchy", "legacy/cleanup", "legacy/chain", "tagged/chain", "tagged/clone"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := openTree(t, name, nil)
			root := testdata.Dataset(t, name)
			doc := decode[orphansDoc](t, tr, ".frifs/orphans.json")
			held := map[string]bool{}
			trees := []string{""}
			for _, b := range names(t, tr, "branches") {
				trees = append(trees, "branches/"+b+"/")
			}
			for _, at := range trees {
				for _, v := range names(t, tr, at+"versions") {
					files := decode[struct{ Files []struct{ Kind, URI string } }](t, tr, at+"versions/"+v+"/files.json")
					for _, f := range files.Files {
						if rel, ok := strings.CutPrefix(f.URI, root+"/"); ok && (strings.Contains(rel, "_indices/") || strings.Contains(rel, "_fri/")) {
							held[filepath.Dir(rel)] = true
						}
					}
					m := decode[struct {
						Indices []struct {
							UUID string
							Base *int `json:"base_id"`
						}
					}](t, tr, at+"versions/"+v+"/manifest.json")
					for _, ix := range m.Indices {
						if ix.Base == nil && at == "" {
							held["_indices/"+ix.UUID] = true
						}
					}
				}
			}
			for _, d := range doc.Directories {
				if d.Orphan == nil || *d.Orphan == held[d.Path] {
					t.Errorf("%s: %+v, held by files.json: %v", d.Path, d, held[d.Path])
				}
			}
			if len(doc.Directories) == 0 || !doc.Complete {
				t.Errorf("%d directories, complete %v", len(doc.Directories), doc.Complete)
			}
		})
	}
}

func TestDetachedVersions(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	m.version(1<<63+10, fragments(0, 1), entry("a", btreeType, 1, 0))
	from, to := filepath.Join(m.dir, "_versions", "9223372036854775818.manifest"), filepath.Join(m.dir, "_versions", "d9223372036854775818.manifest")
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	m.file("_versions/1.manifest-5a2097ce-3586-4e75-8a10-760a300f4de7", "")
	m.file(indexDir(1)+"/page_data.lance", "data")
	tr := m.tree(nil)
	if got := names(t, tr, "detached"); !slices.Equal(got, []string{"9223372036854775818"}) {
		t.Errorf("detached %q", got)
	}
	if got := names(t, tr, "versions"); !slices.Equal(got, []string{"1"}) {
		t.Errorf("versions %q", got)
	}
	if got, want := names(t, tr, "detached/9223372036854775818"), names(t, tr, "versions/1"); !slices.Contains(got, "fri") || len(got) < len(want) {
		t.Errorf("%q, want the layout of a version, as %q", got, want)
	}
	if got := string(cat(t, tr, "detached/9223372036854775818/fragments.csv")); strings.Count(got, "\n") != 3 {
		t.Errorf("fragments.csv: %q", got)
	}
	if got := string(cat(t, tr, "detached/9223372036854775818/files.json")); !strings.Contains(got, "_versions/d9223372036854775818.manifest") {
		t.Errorf("files.json: %s", got)
	}
	cat(t, tr, "detached/9223372036854775818/changes.json")
	dir, err := mustDir(t, tr, "detached").Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := Resolve(t.Context(), tr.Root(), "detached/9223372036854775818"); err != nil || n.Ino() != dir[0].Ino {
		t.Errorf("listed with inode %d, looked up as %v, %v", dir[0].Ino, n, err)
	}
	if target, err := linkTarget(t, tr, "latest"); err != nil || target != "versions/1" {
		t.Errorf("latest is %q, %v", target, err)
	}
	doc := catJSON(t, tr, "dataset.json")
	if got := fmt.Sprint(doc["ignored_in_versions"], doc["detached_versions"]); got != "map[detached:1 staging:1] [9223372036854775818]" {
		t.Errorf("dataset.json: %s", got)
	}
	if got := decode[orphansDoc](t, tr, ".frifs/orphans.json").summary(); len(got) != 1 || !strings.Contains(got[0], "[9223372036854775818] not-orphan") {
		t.Errorf("orphans.json: %q", got)
	}
	for _, p := range []string{"detached/1", "detached/x"} {
		if _, err := Resolve(t.Context(), tr.Root(), p); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", p, err)
		}
	}
	plain := openTree(t, "legacy/basic", nil)
	if _, err := Resolve(t.Context(), plain.Root(), "detached"); !fault.Is(err, fault.NotFound) {
		t.Errorf("detached of a table that has none: %v", err)
	}
}
