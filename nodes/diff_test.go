package nodes

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
)

func TestDiffNames(t *testing.T) {
	tr := refTable(t).tree(nil)
	for name, want := range map[string]string{
		"2..3": "versions/2 versions/3", "3..2": "versions/3 versions/2", "2..latest": "versions/2 versions/3", "now..100%25": "versions/3 versions/2",
		"now..on-branch": "versions/3 branches/a%2Fb/versions/4", "a%2Fb:3..a%2Fb:latest": "branches/a%2Fb/versions/3 branches/a%2Fb/versions/4",
		"main:2..a/b:4": "versions/2 branches/a%2Fb/versions/4", "3..3": "versions/3 versions/3",
	} {
		d := decode[struct {
			From, To struct{ Path string }
			Branch   bool `json:"same_branch"`
			Reversed *bool
		}](t, tr, "diff/"+strings.ReplaceAll(name, "/", "%2F")+"/changes.json")
		if got := d.From.Path + " " + d.To.Path; got != want {
			t.Errorf("%s compares %s, want %s", name, got, want)
		}
		if same := strings.Count(want, "branches/")%2 == 0; d.Branch != same || (d.Reversed != nil) != same {
			t.Errorf("%s: same branch %v, reversed %v", name, d.Branch, d.Reversed)
		}
	}
	for name, says := range map[string]string{
		"2..9": "version 9 is not retained; there are 2, from 2 to 3", "03..2": "neither the number", "2": "two dots", "..2": "two dots", "2..": "two dots",
		"nope..2": `"now"`, "cleaned..2": "version 1 is not retained", "of-gone..2": "", "gone:1..2": "", "zzz:1..2": `no branch "zzz"`,
		"a%2Fb:x..2": "neither the number", "a%2Fb:9..2": "version 9 is not retained",
	} {
		_, err := Resolve(t.Context(), tr.Root(), "diff/"+name+"/changes.json")
		if !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
	mustFail(t, tr, "diff/bad..2/changes.json", "corrupt")
	mustFail(t, tr, "diff/escape..2/changes.json", "corrupt")
	if es, err := mustDir(t, tr, "diff").Entries(t.Context()); err != nil || len(es) != 0 || slices.Contains(names(t, tr, ""), "diff") {
		t.Errorf("it lists %v, %v, or is listed", es, err)
	}
	// What is pinned shows nothing else.
	pin := uint64(3)
	pinned := refTable(t).tree(func(c *Config) { c.Version = &pin })
	if _, err := Resolve(t.Context(), pinned.Root(), "diff/2..3"); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "another version is selected") {
		t.Errorf("pinned: %v", err)
	}
}

func TestDiffIsOfItsVersions(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0, 1))
	m.version(2, fragments(0, 2))
	tr := m.tree(nil)
	ino := func(path string) uint64 {
		n, err := Resolve(t.Context(), tr.Root(), path)
		if err != nil {
			t.Fatal(err)
		}
		return n.Ino()
	}
	before := ino("diff/1..latest/changes.json")
	if again := ino("diff/1..latest/changes.json"); again != before || ino("diff/2..1/changes.json") == before {
		t.Errorf("inodes %d, again %d", before, again)
	}
	m.version(3, fragments(3))
	if err := tr.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ino("diff/1..latest/changes.json") == before {
		t.Error("the name means another comparison now, and has the inode of the one before")
	}
	m.write(3, []byte("no manifest"))
	m.version(4, nil)
	tr = m.tree(nil)
	mustFail(t, tr, "diff/1..3/changes.json", "corrupt")
	mustFail(t, tr, "diff/3..1/changes.json", "corrupt")
	if got := names(t, tr, "diff/1..3"); !slices.Equal(got, []string{"ERROR.json"}) {
		t.Errorf("a damaged version: %q", got)
	}
	decode[struct{}](t, tr, "diff/1..4/changes.json")
}

func TestDiffContent(t *testing.T) {
	m := makeTable(t)
	m.version(1, func(man *pb.Manifest) {
		fragments(0, 1, 2)(man)
		man.Config = map[string]string{"same": "x", "gone": "1", "other": "1"}
		man.TableMetadata = map[string]string{"t": "1"}
		man.SchemaMetadata = map[string][]byte{"k": {0xff}}
		man.Fields = append(man.Fields, &pb.Field{Id: proto.Int32(1), Name: proto.String("old"), ParentId: proto.Int32(-1), LogicalType: proto.String("string")},
			&pb.Field{Id: proto.Int32(2), Name: proto.String("dropped"), ParentId: proto.Int32(-1)})
		man.BasePaths = []*pb.BasePath{{Id: proto.Uint32(1), Path: proto.String("s3://key:secret@b/x?token=1")}}
	}, entry("a", btreeType, 1, 0, 1), entry("b", btreeType, 2, 0), entry("gone", btreeType, 3))
	m.version(2, fragments(0, 1, 2))
	m.version(3, func(man *pb.Manifest) {
		fragments(0, 1, 5)(man)
		man.Fragments[1].DeletionFile = &pb.DeletionFile{Id: proto.Uint64(7), NumDeletedRows: proto.Uint64(4)}
		man.Config = map[string]string{"same": "x", "other": "2", "new": ""}
		man.Fields = append(man.Fields, &pb.Field{Id: proto.Int32(1), Name: proto.String("renamed"), ParentId: proto.Int32(-1), LogicalType: proto.String("string")},
			&pb.Field{Id: proto.Int32(3), Name: proto.String("added"), ParentId: proto.Int32(1)})
		man.ReaderFeatureFlags, man.WriterFeatureFlags = proto.Uint64(1), proto.Uint64(1)
	}, entry("a", btreeType, 1, 1, 5), entry("b", btreeType, 2, 0), entry("fresh", btreeType, 4, 0, 1, 5))
	tr := m.tree(nil)
	d := decode[map[string]any](t, tr, "diff/1..3/changes.json")
	at := func(path string) any {
		var v any = d
		for _, k := range strings.Split(path, ".") {
			switch x := v.(type) {
			case map[string]any:
				v = x[k]
			case []any:
				i, err := strconv.Atoi(k)
				if err != nil || i >= len(x) {
					t.Fatalf("%s: %v", path, x)
				}
				v = x[i]
			}
		}
		return v
	}
	for path, want := range map[string]string{
		"fragments.added":   `[{"deleted_rows":0,"fragment":5,"live_rows":10,"physical_rows":10}]`,
		"fragments.removed": `[{"deleted_rows":0,"fragment":2,"live_rows":10,"physical_rows":10}]`,
		"fragments.changed": `[{"data_files_changed":false,"deleted_rows":4,"deleted_rows_before":0,"deletion_file_changed":true,"fragment":1,"live_rows":6,"physical_rows":10}]`,
		"indices.changed": `[{"bitmap":"present","bitmap_before":"present","dataset_version":1,"dataset_version_before":1,"fragments_gained":[5],"fragments_lost":[0],` +
			`"name":"a","type":"BTREE","uuid":"00000000-0000-0000-0000-000000000001"}]`,
		"indices.added.0.name": `"fresh"`, "indices.added.0.fragment_bitmap.ranges": `[[0,1],[5,5]]`,
		"indices.removed.0.name": `"gone"`, "indices.removed.0.fragment_bitmap.ranges": `null`,
		"indices.names_added": `["fresh"]`, "indices.names_removed": `["gone"]`,
		"config":                   `[{"after":null,"before":"1","key":"gone"},{"after":"","before":null,"key":"new"},{"after":"2","before":"1","key":"other"}]`,
		"table_metadata":           `[{"after":null,"before":"1","key":"t"}]`,
		"schema.metadata":          `[{"after":null,"before":"hex:ff","key":"k"}]`,
		"schema.added.0.path":      `"renamed.added"`,
		"schema.removed.0.path":    `"dropped"`,
		"schema.changed.0.path":    `"renamed"`,
		"schema.reordered":         `false`,
		"bases":                    `[{"after":null,"before":{"is_dataset_root":false,"name":null,"path":"s3://b/x"},"id":1}]`,
		"flags.reader_set.0.name":  `"deletion_files"`,
		"flags.writer_cleared":     `[]`,
		"from.rows":                `30`,
		"to.rows":                  `26`,
		"reversed":                 `false`,
		"schema.changed.0.before":  "",
		"schema.changed.0.after":   "",
		"fri.records_in":           `[]`,
		"fri.comparable":           `true`,
		"indices.added.0.fields.0": `"id"`,
	} {
		b, err := json.Marshal(at(path))
		if err != nil || want != "" && string(b) != want {
			t.Errorf("%s: %s, want %s", path, b, want)
		}
	}
	back := decode[map[string]any](t, tr, "diff/3..1/changes.json")
	for _, sides := range [][2]string{{"added", "removed"}, {"removed", "added"}} {
		if got, want := back["fragments"].(map[string]any)[sides[0]], d["fragments"].(map[string]any)[sides[1]]; !reflect.DeepEqual(got, want) {
			t.Errorf("the other way: %s %v, want %v", sides[0], got, want)
		}
	}
	if back["reversed"] != true {
		t.Errorf("reversed is %v", back["reversed"])
	}
	same := cat(t, tr, "diff/2..2/changes.json")
	if strings.Contains(string(same), `"before"`) || !strings.Contains(string(same), `"added": [],`) {
		t.Errorf("a version differs from itself: %s", same)
	}
}

// Between neighbours it is what changes.json of the newer one says, on every recorded table; over a longer way it is the
// sum of the steps.
func TestDiffAgreesWithTheSteps(t *testing.T) {
	type step struct {
		Fragments struct {
			Added, Removed []struct{ Fragment uint64 }
			Changed        json.RawMessage
		}
		Indices struct {
			Added, Removed []struct{ Name, UUID string }
			Merged         json.RawMessage
		}
		FRI json.RawMessage `json:"fri"`
	}
	for _, name := range []string{"tagged/chain", "tagged/drained", "legacy/chain", "legacy/eager_mix", "legacy/restored", "legacy/segments"} {
		t.Run(name, func(t *testing.T) {
			tr := openTree(t, name, nil)
			v, err := tr.view(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			live, indices := map[uint64]bool{}, map[string]bool{}
			first, newest := v.refs[0].Version, v.refs[len(v.refs)-1].Version
			for i := 1; i < len(v.refs); i++ {
				a, b := v.refs[i-1].Version, v.refs[i].Version
				one := decode[step](t, tr, fmt.Sprintf("versions/%d/changes.json", b))
				two := decode[step](t, tr, fmt.Sprintf("diff/%d..%d/changes.json", a, b))
				if !reflect.DeepEqual(one, two) {
					t.Errorf("%d to %d:\n%+v\n%+v", a, b, one, two)
				}
				for _, f := range one.Fragments.Removed {
					live[f.Fragment] = false
				}
				for _, f := range one.Fragments.Added {
					live[f.Fragment] = true
				}
				for _, x := range one.Indices.Removed {
					indices[x.UUID] = false
				}
				for _, x := range one.Indices.Added {
					indices[x.UUID] = true
				}
			}
			whole := decode[step](t, tr, fmt.Sprintf("diff/%d..%d/changes.json", first, newest))
			for _, f := range whole.Fragments.Added {
				if !live[f.Fragment] {
					t.Errorf("fragment %d came over the whole way, and in no step to stay", f.Fragment)
				}
			}
			for _, x := range whole.Indices.Added {
				if !indices[x.UUID] {
					t.Errorf("index %s (%s) came over the whole way, and in no step to stay", x.UUID, x.Name)
				}
				delete(indices, x.UUID)
			}
			for uuid, there := range indices {
				if there {
					t.Errorf("index %s came in a step to stay, and not over the whole way", uuid)
				}
			}
		})
	}
}
