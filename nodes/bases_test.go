package nodes

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/translate"
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

// TestFilesOfAWrongBase: data and deletion files that lie under another base than recorded are read from there, and
// scan/files.json says from where.
func TestFilesOfAWrongBase(t *testing.T) {
	m := makeTable(t)
	data := &pb.DataFile{Path: proto.String("x.lance"), FileSizeBytes: proto.Uint64(5), BaseId: proto.Uint32(1), Fields: []int32{0},
		FileMajorVersion: proto.Uint32(2), FileMinorVersion: proto.Uint32(1)}
	gone := &pb.DataFile{Path: proto.String("gone.lance"), FileSizeBytes: proto.Uint64(5), Fields: []int32{0},
		FileMajorVersion: proto.Uint32(2), FileMinorVersion: proto.Uint32(1)}
	m.version(1, func(man *pb.Manifest) {
		man.BasePaths = []*pb.BasePath{
			{Id: proto.Uint32(0), IsDatasetRoot: proto.Bool(true), Path: proto.String(m.dir + "/source.lance")},
			{Id: proto.Uint32(1), IsDatasetRoot: proto.Bool(true), Path: proto.String(m.dir + "/middle.lance")},
		}
		man.Fragments = []*pb.DataFragment{{Id: proto.Uint64(3), PhysicalRows: proto.Uint64(10), Files: []*pb.DataFile{data, gone},
			DeletionFile: &pb.DeletionFile{FileType: proto.Int32(1), ReadVersion: proto.Uint64(1), Id: proto.Uint64(9), NumDeletedRows: proto.Uint64(2), BaseId: proto.Uint32(1)}}}
	})
	m.file("source.lance/data/x.lance", "bytes")
	deleted, err := roaring.BitmapOf(4, 5).ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	m.file("source.lance/_deletions/3-1-9.bin", string(deleted))
	tr := m.tree(nil)
	type file struct {
		Kind, Path, URI string
		Present         *bool
		Found           *string `json:"found_uri"`
		Base            *int    `json:"found_base_id"`
		Error           *struct{ Message string }
	}
	doc := decode[struct {
		Missing int
		Files   []file
	}](t, tr, "latest/scan/files.json")
	if doc.Missing != 1 {
		t.Errorf("%d files are missing, want 1", doc.Missing)
	}
	for _, f := range doc.Files {
		switch f.Kind {
		case "data", "deletion":
			if filepath.Base(f.Path) == "gone.lance" {
				if *f.Present || f.Error == nil || !strings.Contains(f.Error.Message, m.dir+"/source.lance") {
					t.Errorf("%+v, want it missing, and what was tried", f)
				}
			} else if !*f.Present || text(f.Found) != m.dir+"/source.lance/"+f.Path || f.Base == nil || *f.Base != 0 {
				t.Errorf("%+v, found %q", f, text(f.Found))
			}
		}
	}
	if got := string(cat(t, tr, "latest/remapped.lance/data/x.lance")); got != "bytes" {
		t.Errorf("data/x.lance holds %q", got)
	}
	if _, err := fs.ReadFile(FS(tr.Root()), "latest/remapped.lance/data/gone.lance"); !fault.Is(err, fault.NotFound) {
		t.Errorf("data/gone.lance: %v", err)
	}
	translator, _, err := tr.Translator(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, o, _, err := translator.Trace(t.Context(), fri.Addr(3, 5)); err != nil || o != translate.DeletedNow {
		t.Errorf("a row of the deletion file under another base: %v, %v", o, err)
	}
}
