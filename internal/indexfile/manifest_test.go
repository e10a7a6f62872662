package indexfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store/storetest"
)

// storedManifest is the manifest of version 7 of a table.
func storedManifest(tb testing.TB, change func(*pb.Manifest)) *dataset.Manifest {
	tb.Helper()
	m := &pb.Manifest{
		Version:            proto.Uint64(7),
		ReaderFeatureFlags: proto.Uint64(1 | 2 | 16 | 512 | 1024),
		WriterFeatureFlags: proto.Uint64(1 | 2 | 16 | 32 | 512 | 1024),
		TransactionFile:    proto.String("6-x.txn"),
		TransactionSection: proto.Uint64(0),
		IndexSection:       proto.Uint64(0),
		Config:             map[string]string{"b": "2", "a": "1"},
		BasePaths:          []*pb.BasePath{{Id: proto.Uint32(3), Path: proto.String("/elsewhere"), IsDatasetRoot: proto.Bool(true)}},
		Branch:             proto.String("exp"),
		Fragments: []*pb.DataFragment{
			{Id: proto.Uint64(4), PhysicalRows: proto.Uint64(10), Files: []*pb.DataFile{{Path: proto.String("a.lance"), BaseId: proto.Uint32(3)}},
				DeletionFile: &pb.DeletionFile{ReadVersion: proto.Uint64(5), Id: proto.Uint64(9), BaseId: proto.Uint32(3)}},
			{Id: proto.Uint64(6), PhysicalRows: proto.Uint64(10), Files: []*pb.DataFile{{Path: proto.String("a.lance"), FileSizeBytes: proto.Uint64(77)}}},
		},
	}
	if change != nil {
		change(m)
	}
	b, err := proto.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	file := append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
	file = append(append(file, make([]byte, 8)...), "\x00\x00\x02\x00LANC"...) // the manifest is at 0
	stored, err := openManifest(m.GetVersion(), file)
	if err != nil {
		tb.Fatal(err)
	}
	return stored
}

// openManifest reads a manifest file as that of a version of a table.
func openManifest(version uint64, file []byte) (*dataset.Manifest, error) {
	ctx := context.Background()
	ds, err := dataset.Open(ctx, storetest.NewMem(map[string][]byte{fmt.Sprintf("_versions/%d.manifest", version): file}), dataset.Options{CacheBytes: -1})
	if err != nil {
		return nil, err
	}
	l, err := ds.Versions(ctx)
	if err != nil {
		return nil, err
	}
	return ds.Manifest(ctx, l.Versions[0])
}

func storedIndex(name string, bitmap *roaring.Bitmap) *dataset.Index {
	b, err := bitmap.ToBytes()
	if err != nil {
		panic(err) // a bitmap in memory
	}
	p := &pb.IndexMetadata{
		Uuid: &pb.UUID{Uuid: bytes.Repeat([]byte{0xAB}, 16)}, Name: proto.String(name), Fields: []int32{1}, CoveringFields: []int32{1},
		FragmentBitmap: b, BaseId: proto.Uint32(3), IndexVersion: proto.Int32(0), CreatedAt: proto.Uint64(1_700_000_000_000),
		IndexDetails: &pb.Any{TypeUrl: proto.String("/lance.table.BTreeIndexDetails")},
		Files:        []*pb.IndexFile{{Path: proto.String("page_data.lance"), SizeBytes: proto.Uint64(5)}},
	}
	p.ProtoReflect().SetUnknown([]byte{0xF8, 0x01, 0x2A}) // field 31, varint 42
	return &dataset.Index{PB: p, UUID: "abababab-abab-abab-abab-abababababab", Name: name, Bitmap: bitmap, BitmapState: dataset.BitmapPresent}
}

// parts takes a manifest file apart.
func parts(t *testing.T, file []byte) (*pb.Manifest, *pb.IndexSection) {
	t.Helper()
	n := len(file)
	if string(file[n-4:]) != "LANC" || binary.LittleEndian.Uint32(file[n-8:]) != 2<<16 {
		t.Fatalf("trailer %x", file[n-16:])
	}
	pos := binary.LittleEndian.Uint64(file[n-16:])
	size := binary.LittleEndian.Uint32(file[pos:])
	if int(pos)+4+int(size) != n-16 {
		t.Fatalf("manifest at %d of %d bytes in a file of %d", pos, size, n)
	}
	m := &pb.Manifest{}
	if err := proto.Unmarshal(file[pos+4:n-16], m); err != nil {
		t.Fatal(err)
	}
	s := &pb.IndexSection{}
	if m.IndexSection != nil {
		at := m.GetIndexSection()
		if err := proto.Unmarshal(file[at+4:at+4+uint64(binary.LittleEndian.Uint32(file[at:]))], s); err != nil {
			t.Fatal(err)
		}
	}
	return m, s
}

func TestBuildManifest(t *testing.T) {
	stored := storedManifest(t, func(m *pb.Manifest) { m.ProtoReflect().SetUnknown([]byte{0xC2, 0x3E, 0x01, 'x'}) }) // field 1000
	before := proto.Clone(stored.PB)
	ix := storedIndex("id_idx", roaring.BitmapOf(0, 1))
	e := Entry{Index: ix, UUID: [16]byte{1, 2, 3}, Covered: roaring.BitmapOf(6), Placeholders: true, Files: []StoredFile{{"page_data.lance", 123}, {"page_lookup.lance", 4}}}
	front := []byte("dictionary pages")
	file, err := BuildManifest(stored, []Entry{e}, NameData(stored), front)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(file, front) {
		t.Errorf("dictionary pages are not in their place")
	}
	if !proto.Equal(before, stored.PB) {
		t.Errorf("the stored manifest was changed")
	}
	m, s := parts(t, file)
	if r, w := m.GetReaderFeatureFlags(), m.GetWriterFeatureFlags(); r != 3 || w != 3|32 {
		t.Errorf("flags %d, %d", r, w)
	}
	if m.TransactionFile != nil || m.TransactionSection != nil || len(m.BasePaths) > 0 || m.Branch != nil {
		t.Errorf("left: %v %v %v %v", m.TransactionFile, m.TransactionSection, m.BasePaths, m.Branch)
	}
	if m.GetVersion() != 7 || m.GetConfig()["a"] != "1" || hex.EncodeToString(m.ProtoReflect().GetUnknown()) != "c23e0178" {
		t.Errorf("not copied: version %d, config %v, unknown fields %x", m.GetVersion(), m.GetConfig(), m.ProtoReflect().GetUnknown())
	}
	f := m.GetFragments()
	if f[0].GetFiles()[0].BaseId != nil || f[0].GetDeletionFile().BaseId != nil || f[0].GetFiles()[0].GetPath() == f[1].GetFiles()[0].GetPath() {
		t.Errorf("bases are not flattened: %v", f)
	}
	if len(s.GetIndices()) != 1 {
		t.Fatalf("%d index entries", len(s.GetIndices()))
	}
	x := s.GetIndices()[0]
	if got := hex.EncodeToString(x.GetFragmentBitmap()); got != "3a3000000200000000000000ffff0000180000001a0000000600feff" {
		t.Errorf("fragment_bitmap %s", got)
	}
	if x.BaseId != nil || !bytes.Equal(x.GetUuid().GetUuid(), e.UUID[:]) || len(x.GetFiles()) != 2 || x.GetFiles()[0].GetSizeBytes() != 123 {
		t.Errorf("entry %v", x)
	}
	if x.GetName() != "id_idx" || !slices.Equal(x.GetCoveringFields(), []int32{1}) || x.GetCreatedAt() != ix.PB.GetCreatedAt() || hex.EncodeToString(x.ProtoReflect().GetUnknown()) != "f8012a" {
		t.Errorf("not copied: %v", x)
	}
}

// TestBuildManifestGolden fixes the bytes for a small table: they must not change between releases without a new
// remapRevision.
func TestBuildManifestGolden(t *testing.T) {
	stored := storedManifest(t, func(m *pb.Manifest) {
		m.Fragments = m.GetFragments()[1:]
		m.Config = map[string]string{"k": "v"}
	})
	ix := storedIndex("i", roaring.BitmapOf(0))
	cov := roaring.BitmapOf(6)
	seed := Seed{Fragments: FragmentsDigest(stored), History: []byte("history"), Options: ""}
	e := Entry{Index: ix, UUID: seed.NewUUID(stored, ix, cov, 0), Covered: cov, Placeholders: true}
	file, err := BuildManifest(stored, []Entry{e}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "6b0000000a69" + // index section
		"0a120a1008dd3f76e45281ef9c24dd4d8c42bd42" + "1201011a0169" + // uuid, fields, name
		"2a1c3a3000000200000000000000ffff0000180000001a0000000600feff" + // {6, 0xFFFFFFFE}
		"32200a1e2f6c616e63652e7461626c652e4254726565496e64657844657461696c73" + "38004080d095ffbc315a0101f8012a" +
		"24000000" + "12110806120b0a07612e6c616e6365304d200a" + "1807300048035023" + "8201060a016b120176" + // manifest
		"6f00000000000000" + "00000200" + "4c414e43"
	if got := hex.EncodeToString(file); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEntryBitmap(t *testing.T) {
	withRuns := roaring.New()
	withRuns.AddRange(0, 1000)
	for _, c := range []struct {
		name         string
		stored       *roaring.Bitmap
		covered      *roaring.Bitmap
		placeholders bool
		keep         bool // the stored bytes
		want         []uint32
	}{
		{"stored bytes are kept", withRuns, nil, true, true, nil},
		{"the same set keeps its bytes", withRuns, withRuns.Clone(), false, true, nil},
		{"narrowed to nothing", roaring.BitmapOf(1), roaring.New(), true, false, []uint32{0xFFFFFFFE}},
		{"withdrawn row ids", roaring.New(), roaring.New(), false, true, nil},
		{"with placeholders", roaring.BitmapOf(1, 9), roaring.BitmapOf(9), true, false, []uint32{9, 0xFFFFFFFE}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := Entry{Index: storedIndex("i", c.stored), Covered: c.covered, Placeholders: c.placeholders}
			b, err := e.bitmap()
			if err != nil {
				t.Fatal(err)
			}
			if c.keep {
				if !bytes.Equal(b, e.Index.PB.GetFragmentBitmap()) {
					t.Errorf("bytes changed to %x", b)
				}
				return
			}
			got := roaring.New()
			if _, err := got.FromBuffer(b); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.ToArray(), c.want) {
				t.Errorf("got %v, want %v", got.ToArray(), c.want)
			}
		})
	}
}

func TestNameData(t *testing.T) {
	file := func(path string, base int) *pb.DataFile {
		d := &pb.DataFile{Path: proto.String(path)}
		if base >= 0 {
			d.BaseId = proto.Uint32(uint32(base))
		}
		return d
	}
	for _, c := range []struct {
		name  string
		files []*pb.DataFile
		want  []string
	}{
		{"no bases", []*pb.DataFile{file("a", -1), file("a", -1), file("d/b", -1)}, []string{"a", "a", "d/b"}},
		{"one base without a clash", []*pb.DataFile{file("a", -1), file("b", 0)}, []string{"a", "b"}},
		{"clash of two bases", []*pb.DataFile{file("d/a", 1), file("d/a", 2), file("d/a", 1), file("d/a", 2)}, []string{"d/a", "d/base2-a", "d/a", "d/base2-a"}},
		{"an invented name is taken later", []*pb.DataFile{file("a", 1), file("a", 2), file("base2-a", -1)}, []string{"a", "base2-2-a", "base2-a"}},
		{"a path that leads out", []*pb.DataFile{file("../../etc/passwd", -1), file("", 1), file("x//y", -1)}, []string{"base-invalid.lance", "base1-invalid.lance", "base-2-invalid.lance"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := storedManifest(t, func(m *pb.Manifest) {
				m.Fragments = []*pb.DataFragment{{Files: c.files[:1]}, {Files: c.files[1:], Overlays: []*pb.DataOverlayFile{{}}}}
			})
			names := NameData(m)
			var got []string
			for _, f := range c.files {
				n := names.other(f)
				if n == "" {
					n = f.GetPath()
				}
				got = append(got, n)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestNewUUID checks that a uuid depends on each part of what it names, and on nothing else.
func TestNewUUID(t *testing.T) {
	type input struct {
		m      *dataset.Manifest
		ix     *dataset.Index
		cov    *roaring.Bitmap
		nth    int
		seed   Seed
		change string
	}
	mk := func(change string, f func(*input)) input {
		in := input{storedManifest(t, nil), storedIndex("i", roaring.BitmapOf(1)), roaring.BitmapOf(4), 0, Seed{History: []byte{1}, Options: "o"}, change}
		if f != nil {
			f(&in)
		}
		in.seed.Fragments = FragmentsDigest(in.m)
		return in
	}
	seen := map[[16]byte]string{}
	for _, in := range []input{
		mk("nothing", nil),
		mk("version", func(in *input) { in.m = storedManifest(t, func(m *pb.Manifest) { m.Version = proto.Uint64(8) }) }),
		mk("fragment id", func(in *input) {
			in.m = storedManifest(t, func(m *pb.Manifest) { m.Fragments[0].Id = proto.Uint64(5) })
		}),
		mk("rows", func(in *input) {
			in.m = storedManifest(t, func(m *pb.Manifest) { m.Fragments[0].PhysicalRows = proto.Uint64(11) })
		}),
		mk("deletions", func(in *input) {
			in.m = storedManifest(t, func(m *pb.Manifest) { m.Fragments[0].DeletionFile.Id = proto.Uint64(10) })
		}),
		mk("stored uuid", func(in *input) { in.ix.PB.Uuid.Uuid[3]++ }),
		mk("stored bitmap", func(in *input) { in.ix.PB.FragmentBitmap[8]++ }),
		mk("coverage", func(in *input) { in.cov = roaring.BitmapOf(6) }),
		mk("place", func(in *input) { in.nth = 1 }),
		mk("history", func(in *input) { in.seed.History = []byte{2} }),
		mk("options", func(in *input) { in.seed.Options = "p" }),
	} {
		u := in.seed.NewUUID(in.m, in.ix, in.cov, in.nth)
		if other, ok := seen[u]; ok {
			t.Errorf("%s and %s give the same uuid", in.change, other)
		}
		seen[u] = in.change
		if u[6]>>4 != 8 || u[8]>>6 != 2 {
			t.Errorf("%s: %x is no uuid of form 8", in.change, u)
		}
		if again := in.seed.NewUUID(in.m, in.ix, in.cov, in.nth); again != u {
			t.Errorf("%s: not the same again", in.change)
		}
	}
	moved := mk("base", func(in *input) {
		in.m = storedManifest(t, func(m *pb.Manifest) {
			m.Fragments[0].DeletionFile.BaseId, m.BasePaths[0].Path = nil, proto.String("/moved")
		})
		in.ix.PB.BaseId = nil
	})
	if got := moved.seed.NewUUID(moved.m, moved.ix, moved.cov, 0); seen[got] != "nothing" {
		t.Errorf("where files lie changes the uuid")
	}
	if strings.Count(remapRevision, " ") != 3 {
		t.Errorf("revision %q", remapRevision)
	}
}
