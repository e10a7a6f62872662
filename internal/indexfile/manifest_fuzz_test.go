package indexfile

import (
	"bytes"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/pb"
)

// FuzzBuildManifest takes any manifest file through the remapped dataset: what opens gives a manifest that opens again,
// with the same fragments, no base ids, and files with names that can be.
func FuzzBuildManifest(f *testing.F) {
	seed := func(front int, change func(*pb.Manifest), entries ...*pb.IndexMetadata) {
		m := &pb.Manifest{Version: proto.Uint64(7)}
		change(m)
		file := make([]byte, front)
		var err error
		if len(entries) > 0 {
			m.IndexSection = proto.Uint64(uint64(front))
			if file, err = appendSection(file, &pb.IndexSection{Indices: entries}); err != nil {
				f.Fatal(err)
			}
		}
		pos := byte(len(file))
		if file, err = appendSection(file, m); err != nil {
			f.Fatal(err)
		}
		f.Add(append(file, pos, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 'L', 'A', 'N', 'C'))
	}
	two := func(p *pb.Manifest) {
		p.BasePaths = []*pb.BasePath{{Id: proto.Uint32(1), Path: proto.String("/a")}}
		p.ReaderFeatureFlags = proto.Uint64(16 | 1024)
		p.Fragments = []*pb.DataFragment{
			{Id: proto.Uint64(1), Files: []*pb.DataFile{{Path: proto.String("x.lance"), BaseId: proto.Uint32(1), Fields: []int32{0}}, {Path: proto.String("../y")}}},
			{Id: proto.Uint64(2), Files: []*pb.DataFile{{Path: proto.String("x.lance"), Fields: []int32{0}}}, DeletionFile: &pb.DeletionFile{BaseId: proto.Uint32(1)}},
		}
	}
	seed(0, two)
	seed(0, two, storedIndex("i", roaring.BitmapOf(1, 2)).PB)
	seed(9, func(p *pb.Manifest) {
		two(p)
		p.Fields = []*pb.Field{{Id: proto.Int32(0), ParentId: proto.Int32(-1), Name: proto.String("b"), Metadata: map[string][]byte{"ARROW:extension:name": []byte("lance.blob.v2")}}}
		p.Fragments = append(p.Fragments, &pb.DataFragment{ExternalRowIds: &pb.ExternalFile{Path: proto.String("rows/1")}, Overlays: []*pb.DataOverlayFile{{}, {DataFile: &pb.DataFile{Path: proto.String("")}}}})
	})
	f.Fuzz(func(t *testing.T, file []byte) {
		m, err := openManifest(7, file)
		if err != nil {
			return
		}
		names := NameData(m)
		var entries []Entry
		for i, ix := range m.Indices {
			e := Entry{Index: ix, UUID: Seed{Fragments: FragmentsDigest(m)}.NewUUID(m, ix, roaring.New(), i), Placeholders: i%2 == 0}
			if ix.Bitmap != nil {
				e.Covered = ix.Bitmap
			}
			entries = append(entries, e)
		}
		out, err := BuildManifest(m, entries, names, nil)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if len(out) > 2*len(file)+512*(len(m.Fragments())+len(entries)+1)+len(m.PB.GetBranch()) {
			t.Fatalf("%d bytes became %d", len(file), len(out))
		}
		again, err := openManifest(m.Version(), out)
		if err != nil {
			t.Fatalf("what was made does not open: %v\n%x", err, out)
		}
		if len(again.Fragments()) != len(m.Fragments()) || again.IndexErr != nil || len(again.Indices) != len(entries) || !bytes.Equal(FragmentsDigest(again), FragmentsDigest(m)) {
			t.Fatalf("%d fragments and %d indices (%v), want %d and %d", len(again.Fragments()), len(again.Indices), again.IndexErr, len(m.Fragments()), len(entries))
		}
		for _, fr := range again.Fragments() {
			for d := range dataFiles(fr) {
				if d.BaseId != nil || !plainPath(d.GetPath()) {
					t.Fatalf("file %v", d)
				}
			}
			if d := fr.DeletionFile(); d != nil && d.BaseId != nil {
				t.Fatalf("deletion file %v", d)
			}
		}
		last := ""
		for _, k := range KeptFiles(m, names) {
			if k.Path <= last || !plainPath(k.Path) {
				t.Fatalf("%q behind %q", k.Path, last)
			}
			last = k.Path
			if d := k.Data(); (d != nil) != strings.HasPrefix(k.Path, "data/") && k.Deletion() == nil && k.n != keptExternal {
				t.Fatalf("%q is no data file: %v", k.Path, d)
			}
		}
		_ = dataset.Refusal(again)
	})
}
