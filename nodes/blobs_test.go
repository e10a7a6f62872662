package nodes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/store/storetest"
)

// blobTable has a blob column and three data files: one with blobs beside it, one without, one without the column.
func blobTable(t *testing.T, blobs bool) *made {
	m := makeTable(t)
	m.version(1, func(p *pb.Manifest) {
		f := &pb.Field{Id: proto.Int32(1), Name: proto.String("b"), ParentId: proto.Int32(-1), LogicalType: proto.String("struct")}
		if blobs {
			f.Metadata = map[string][]byte{"ARROW:extension:name": []byte("lance.blob.v2")}
		}
		p.Fields = append(p.Fields, f)
		p.ReaderFeatureFlags = proto.Uint64(1 << 14)
		for i, name := range []string{"beside", "inside", "other"} {
			d := &pb.DataFile{Path: proto.String(name + ".lance"), Fields: []int32{0, 1}, FileSizeBytes: proto.Uint64(4)}
			if name == "other" {
				d.Fields = []int32{0}
			}
			p.Fragments = append(p.Fragments, &pb.DataFragment{Id: proto.Uint64(uint64(i)), PhysicalRows: proto.Uint64(10), Files: []*pb.DataFile{d}})
		}
	})
	for name, text := range map[string]string{
		"data/beside.lance": "file", "data/inside.lance": "file", "data/other.lance": "file", "data/beside/0001.blob": "first", "data/beside/1000.blob": "second",
		"data/beside/notes.txt": "no blob", "data/other/0001.blob": "of nobody", "_blobs/m.blob": "managed",
	} {
		path := filepath.Join(m.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestBlobsOfDataFiles(t *testing.T) {
	st, err := store.OpenURI(t.Context(), blobTable(t, true).dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := storetest.New(st, 0)
	tr := openStore(t, c, "", nil)
	const root = "latest/remapped.lance/"
	names := func(dir string) (out []string) {
		n, err := Resolve(t.Context(), tr.Root(), dir)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := n.(Dir).Entries(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			out = append(out, e.Name)
		}
		return out
	}
	for _, x := range []struct {
		dir  string
		want []string
	}{
		{"data", []string{"beside", "beside.lance", "inside", "inside.lance", "other.lance"}},
		{"data/beside", []string{"0001.blob", "1000.blob"}},
		{"data/inside", nil},
		{"_blobs", []string{"m.blob"}},
	} {
		if got := names(root + x.dir); !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", x.dir, got, x.want)
		}
	}
	if got := names("latest/remapped.lance"); !slices.Equal(got, []string{"_blobs", "_versions", "data"}) {
		t.Errorf("remapped.lance has %q", got)
	}
	for path, want := range map[string]string{"data/beside/1000.blob": "second", "_blobs/m.blob": "managed"} {
		if got := string(cat(t, tr, root+path)); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for _, path := range []string{"data/beside/notes.txt", "data/other", "data/inside/0001.blob"} {
		if _, err := Resolve(t.Context(), tr.Root(), root+path); err == nil {
			t.Errorf("%s is there", path)
		}
	}
	if n := c.Calls()[storetest.Call{Method: "List", Name: "data/beside"}]; n != 1 {
		t.Errorf("%d listings of one directory, want 1", n)
	}
	if n := c.Calls()[storetest.Call{Method: "List", Name: "data"}]; n != 0 {
		t.Errorf("data/ was listed")
	}
	scan := catJSON(t, tr, "latest/scan/files.json")
	var kinds []string
	for _, f := range scan["files"].([]any) {
		f := f.(map[string]any)
		if k := f["kind"].(string); strings.Contains(k, "blob") {
			kinds = append(kinds, k+" "+f["path"].(string))
			if present := f["present"].(bool); present != !strings.HasSuffix(f["path"].(string), "inside") || f["error"] != nil {
				t.Errorf("%v", f)
			}
		}
	}
	if want := []string{"blob_directory data/beside", "blob_directory data/inside", "managed_blob_directory _blobs"}; !slices.Equal(kinds, want) || scan["missing"].(float64) != 0 {
		t.Errorf("files %q, %v missing, want %q", kinds, scan["missing"], want)
	}
}

// Without a blob column no directory is asked for.
func TestNoBlobColumn(t *testing.T) {
	tr := blobTable(t, false).tree(nil)
	if _, err := Resolve(t.Context(), tr.Root(), "latest/remapped.lance/data/beside"); err == nil {
		t.Errorf("a directory of no column is there")
	}
}
