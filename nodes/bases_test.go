package nodes

import (
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/pb"
)

// TestR49FilesOfASecondLevelClone: Lance up to 12.0.0 records a wrong base for the indices that a clone of a clone
// inherits. scan/files.json says where they are, and where nothing is.
func TestR49FilesOfASecondLevelClone(t *testing.T) {
	m := makeTable(t)
	ix := entry("x_idx", btreeType, 7, 0)
	ix.BaseId = proto.Uint32(1)
	ix.Files = []*pb.IndexFile{{Path: proto.String("page_data.lance"), SizeBytes: proto.Uint64(4)}, {Path: proto.String("gone.lance"), SizeBytes: proto.Uint64(4)}}
	m.version(1, func(man *pb.Manifest) {
		man.BasePaths = []*pb.BasePath{
			{Id: proto.Uint32(0), IsDatasetRoot: proto.Bool(true), Path: proto.String(m.dir + "/source.lance")},
			{Id: proto.Uint32(1), IsDatasetRoot: proto.Bool(true), Path: proto.String(m.dir + "/middle.lance")},
		}
	}, ix)
	m.file("source.lance/_indices/00000000-0000-0000-0000-000000000007/page_data.lance", "data")
	tr := m.tree(nil)
	doc := decode[struct {
		Missing int
		Bases   []struct{ Moved *bool }
		Files   []struct {
			Kind, Path, URI string
			Base            *int `json:"base_id"`
			Present         *bool
			Bytes           *int
			Found           *string `json:"found_uri"`
		}
	}](t, tr, "latest/scan/files.json")
	if doc.Missing != 1 || len(doc.Bases) != 2 || doc.Bases[0].Moved == nil || *doc.Bases[0].Moved {
		t.Errorf("%+v", doc)
	}
	for _, f := range doc.Files {
		if f.Kind != "index" {
			continue
		}
		there := filepath.Base(f.Path) == "page_data.lance"
		want := m.dir + "/source.lance/" + f.Path
		if *f.Base != 1 || f.URI != m.dir+"/middle.lance/"+f.Path || *f.Present != there || there && (text(f.Found) != want || *f.Bytes != 4) || !there && f.Found != nil {
			t.Errorf("%+v, found %q, want %q", f, text(f.Found), want)
		}
	}
	if got := string(cat(t, tr, "latest/indices/x_idx/00000000-0000-0000-0000-000000000007/stored/page_data.lance")); got != "data" {
		t.Errorf("stored/page_data.lance holds %q", got)
	}
}
