package dataset

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
)

// manifestOf wraps one decoded manifest.
func manifestOf(tb testing.TB, m *pb.Manifest, indices ...*pb.IndexMetadata) *Manifest {
	tb.Helper()
	if m.Version == nil {
		m.Version = proto.Uint64(1)
	}
	parts := manifestParts{manifest: m}
	if indices != nil {
		parts.indices = sectionOf(indices...)
	}
	got, err := readBytes(tb, build(parts))
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// A table of Lance 0.5: no data format, no writer, no timestamp, no counts, v1 data files, indices without details.
func TestOldTablesGiveNullNotZero(t *testing.T) {
	m := manifestOf(t, &pb.Manifest{Fragments: []*pb.DataFragment{
		{Files: []*pb.DataFile{{Path: proto.String("a.lance"), Fields: []int32{0, 1}}}},
		{Id: proto.Uint64(1), DeletionFile: &pb.DeletionFile{ReadVersion: proto.Uint64(1)},
			Files: []*pb.DataFile{{Path: proto.String("b.lance"), FileMinorVersion: proto.Uint32(2)}}},
	}}, &pb.IndexMetadata{Uuid: &pb.UUID{Uuid: testUUID}, Name: proto.String("vec_idx"), Fields: []int32{1}})
	if v, inferred := m.StorageVersion(); v != "0.1" || !inferred {
		t.Errorf("storage version %q, inferred %t", v, inferred)
	}
	if m.WriterVersion() != "" {
		t.Errorf("writer %q", m.WriterVersion())
	}
	if ts, ok := m.Timestamp(); ok {
		t.Errorf("timestamp %v", ts)
	}
	if n, ok := m.Rows(); ok {
		t.Errorf("%d rows, want unknown", n)
	}
	for i, f := range m.Fragments() {
		if f.PhysicalRows != nil || f.LiveRows() != nil || f.Bytes() != nil {
			t.Errorf("fragment %d: physical %v, live %v, bytes %v, want unknown", i, f.PhysicalRows, f.LiveRows(), f.Bytes())
		}
	}
	if f := m.Fragments(); f[0].DeletedRows == nil || *f[0].DeletedRows != 0 || f[1].DeletedRows != nil {
		t.Errorf("deleted rows %v and %v, want 0 without a deletion file, unknown with one", f[0].DeletedRows, f[1].DeletedRows)
	}
	x := m.Indices[0]
	if x.TypeName != "" || x.Type != "" || x.BitmapState != BitmapAbsent || x.UUID != testUUIDText || x.PB.IndexVersion != nil || x.PB.CreatedAt != nil {
		t.Errorf("index %+v", x)
	}
	if len(m.Warnings) > 0 {
		t.Errorf("warnings %q: an old table is nothing to warn about", m.Warnings)
	}
}

func TestFragmentOddities(t *testing.T) {
	file := &pb.DeletionFile{NumDeletedRows: proto.Uint64(11)}
	for _, tt := range []struct {
		name     string
		frags    []*pb.DataFragment
		want     string // physical/deleted of each, ? = unknown, ! = duplicate, X = no id
		warnings int
	}{
		{"plain", []*pb.DataFragment{{Id: proto.Uint64(5), PhysicalRows: proto.Uint64(10)}}, "5:10/0", 0},
		{"zero rows are unknown", []*pb.DataFragment{{PhysicalRows: proto.Uint64(0)}}, "0:?/0", 0},
		{"too many rows", []*pb.DataFragment{{PhysicalRows: proto.Uint64(1<<32 + 1)}}, "0:?/0", 1},
		{"the most rows", []*pb.DataFragment{{PhysicalRows: proto.Uint64(1 << 32)}}, "0:4294967296/0", 0},
		{"more deleted than there are", []*pb.DataFragment{{PhysicalRows: proto.Uint64(10), DeletionFile: file}}, "0:10/?", 1},
		{"deleted of unknown", []*pb.DataFragment{{DeletionFile: file}}, "0:?/11", 0},
		{"duplicate", []*pb.DataFragment{{Id: proto.Uint64(2), PhysicalRows: proto.Uint64(1)}, {Id: proto.Uint64(1), PhysicalRows: proto.Uint64(2)}, {Id: proto.Uint64(2), PhysicalRows: proto.Uint64(3)}},
			"2!:1/0 1:2/0 2!:3/0", 1},
		{"id over 32 bits", []*pb.DataFragment{{Id: proto.Uint64(1 << 32)}, {Id: proto.Uint64(0xFFFFFFFF)}, {Id: proto.Uint64(0xFFFFFFFE)}}, "X X 4294967294:?/0", 2},
	} {
		m := manifestOf(t, &pb.Manifest{Fragments: tt.frags})
		got := ""
		for i, f := range m.Fragments() {
			if i > 0 {
				got += " "
			}
			if f.Invalid != "" {
				got += "X"
				continue
			}
			got += fmt.Sprint(uint32(f.ID))
			if f.Duplicate {
				got += "!"
			}
			got += ":" + orUnknown(f.PhysicalRows) + "/" + orUnknown(f.DeletedRows)
		}
		if got != tt.want || len(m.Warnings) != tt.warnings {
			t.Errorf("%s: %s, warnings %q, want %s", tt.name, got, m.Warnings, tt.want)
		}
	}
	m := manifestOf(t, &pb.Manifest{Fragments: []*pb.DataFragment{{Id: proto.Uint64(2), PhysicalRows: proto.Uint64(1)}, {Id: proto.Uint64(2), PhysicalRows: proto.Uint64(3)}}})
	if live := m.Live(); len(live) != 1 || *live[2].PhysicalRows != 1 {
		t.Errorf("live %v, want the first of the duplicates", live)
	}
}

func orUnknown(n *uint64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

func TestTypeNames(t *testing.T) {
	for url, want := range map[string][2]string{
		"/lance.table.BTreeIndexDetails":            {"BTreeIndexDetails", "BTREE"},
		"/lance.index.pb.BTreeIndexDetails":         {"BTreeIndexDetails", "BTREE"},
		"/lance.index.pb.VectorIndexDetails":        {"VectorIndexDetails", "VECTOR"},
		"/lance.index.VectorIndexDetails":           {"VectorIndexDetails", "VECTOR"},
		"/lance.table.VectorIndexDetails":           {"VectorIndexDetails", "VECTOR"},
		"type.googleapis.com/x.y.NGRAMINDEXDETAILS": {"NGRAMINDEXDETAILS", "NGRAM"},
		"lance.table.FragmentReuseIndexDetails":     {"FragmentReuseIndexDetails", "FRAGMENT_REUSE"},
		"/lance.table.NovelIndexDetails":            {"NovelIndexDetails", ""},
		"Bare":                                      {"Bare", ""},
		"":                                          {"", ""},
		"/":                                         {"", ""},
		"/x.":                                       {"", ""},
	} {
		x := manifestOf(t, &pb.Manifest{}, entry("i", url, nil)).Indices[0]
		if got := [2]string{x.TypeName, x.Type}; got != want || x.TypeURL != url {
			t.Errorf("%q: %q, want %q", url, got, want)
		}
	}
}

func TestBitmapStates(t *testing.T) {
	three, err := roaring.BitmapOf(1, 2, 70000).ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		bytes []byte
		state BitmapState
		want  []uint32
	}{
		{"absent", nil, BitmapAbsent, nil},
		{"no bytes", []byte{}, BitmapAbsent, nil},
		{"withdrawn", []byte{0x3a, 0x30, 0, 0, 0, 0, 0, 0}, BitmapWithdrawn, []uint32{}},
		{"present", three, BitmapPresent, []uint32{1, 2, 70000}},
		{"trailing byte", append(append([]byte{}, three...), 0), BitmapUndecodable, nil},
		{"cut", three[:len(three)-1], BitmapUndecodable, nil},
		{"nonsense", []byte("nonsense"), BitmapUndecodable, nil},
	} {
		x := manifestOf(t, &pb.Manifest{}, entry("i", "", func(x *pb.IndexMetadata) { x.FragmentBitmap = tt.bytes })).Indices[0]
		if x.BitmapState != tt.state || (x.BitmapErr != nil) != (tt.state == BitmapUndecodable) || (x.Bitmap == nil) != (tt.want == nil) {
			t.Errorf("%s: %v, %v, %v", tt.name, x.BitmapState, x.Bitmap, x.BitmapErr)
		}
		if x.Bitmap != nil && !reflect.DeepEqual(x.Bitmap.ToArray(), tt.want) {
			t.Errorf("%s: %d, want %d", tt.name, x.Bitmap.ToArray(), tt.want)
		}
	}
}

// users.md R31, R36: every entry of the section, unknown and double ones too, in order.
func TestR31R36IndexSectionIsRawAndComplete(t *testing.T) {
	entries := []*pb.IndexMetadata{
		entry("same", "/lance.table.BTreeIndexDetails", nil), entry("odd", "/lance.table.NovelIndexDetails", nil),
		entry("same", "/lance.table.BTreeIndexDetails", nil), entry(ReuseIndexName, "/lance.table.FragmentReuseIndexDetails", nil), entry("", "", nil),
	}
	m := manifestOf(t, &pb.Manifest{}, entries...)
	if len(m.Indices) != len(entries) {
		t.Fatalf("%d entries, want %d", len(m.Indices), len(entries))
	}
	for i, x := range m.Indices {
		if x.Ordinal != i || x.Name != entries[i].GetName() || x.Duplicate != (x.Name == "same") || x.System() != (i == 3) {
			t.Errorf("entry %d: %+v", i, x)
		}
	}
	if got := m.IndicesNamed("same"); len(got) != 2 || got[1].Ordinal != 2 {
		t.Errorf("entries of one name: %v", got)
	}
}

// users.md R42: an entry without columns is normal.
func TestR42EntriesWithoutColumns(t *testing.T) {
	m := manifestOf(t, &pb.Manifest{}, entry(ReuseIndexName, "", func(x *pb.IndexMetadata) { x.Fields = nil }), entry(MemWalIndexName, "", func(x *pb.IndexMetadata) { x.Fields = nil }))
	if len(m.Indices) != 2 || !m.Indices[0].System() || !m.Indices[1].System() || len(m.Warnings) > 0 {
		t.Errorf("indices %v, warnings %q", m.Indices, m.Warnings)
	}
}

// users.md R45: one broken entry leaves the others alone.
func TestR45OneBrokenEntryLeavesTheOthersAlone(t *testing.T) {
	m := manifestOf(t, &pb.Manifest{},
		entry("bad bitmap", "", func(x *pb.IndexMetadata) { x.FragmentBitmap = []byte{1} }),
		entry("bad uuid", "", func(x *pb.IndexMetadata) { x.Uuid.Uuid = []byte{1, 2} }),
		entry("no uuid", "", func(x *pb.IndexMetadata) { x.Uuid = nil }),
		entry("bad utf-8 \xff", "", nil),
		entry("good", "", nil))
	if m.IndexErr != nil || len(m.Indices) != 5 {
		t.Fatalf("%d indices, %v", len(m.Indices), m.IndexErr)
	}
	if x := m.Indices[0]; !fault.Is(x.BitmapErr, fault.Corrupt) || x.UUIDErr != nil {
		t.Errorf("%q: %v, %v", x.Name, x.BitmapErr, x.UUIDErr)
	}
	for _, x := range m.Indices[1:3] {
		if !fault.Is(x.UUIDErr, fault.Corrupt) || x.UUID != "" {
			t.Errorf("%q: uuid %q, %v", x.Name, x.UUID, x.UUIDErr)
		}
	}
	for _, x := range m.Indices[3:] {
		if x.UUIDErr != nil || x.BitmapErr != nil {
			t.Errorf("%q: %v, %v", x.Name, x.UUIDErr, x.BitmapErr)
		}
	}
}

func TestTimestamps(t *testing.T) {
	for _, tt := range []struct {
		ts   *pb.Timestamp
		want string // "" = unknown
	}{
		{nil, ""},
		{&pb.Timestamp{}, "1970-01-01T00:00:00Z"},
		{&pb.Timestamp{Seconds: proto.Int64(1767323045), Nanos: proto.Int32(6)}, "2026-01-02T03:04:05.000000006Z"},
		{&pb.Timestamp{Seconds: proto.Int64(1 << 62)}, ""},
		{&pb.Timestamp{Seconds: proto.Int64(-1 << 62)}, ""},
		{&pb.Timestamp{Nanos: proto.Int32(-1)}, ""},
	} {
		m := manifestOf(t, &pb.Manifest{Timestamp: tt.ts})
		got, ok := m.Timestamp()
		if ok != (tt.want != "") || ok && got.Format(time.RFC3339Nano) != tt.want {
			t.Errorf("%v: %v, %t, want %q", tt.ts, got, ok, tt.want)
		}
	}
}

func TestFieldPaths(t *testing.T) {
	m := manifestOf(t, &pb.Manifest{Fields: []*pb.Field{
		{Name: proto.String("a"), ParentId: proto.Int32(-1)},
		{Name: proto.String("b"), Id: proto.Int32(7), ParentId: proto.Int32(0)},
		{Name: proto.String("c"), Id: proto.Int32(8), ParentId: proto.Int32(7)},
		{Name: proto.String("loop"), Id: proto.Int32(9), ParentId: proto.Int32(9)},
		{Name: proto.String("orphan"), Id: proto.Int32(10), ParentId: proto.Int32(99)},
	}})
	for id, want := range map[int32]string{0: "a", 7: "a.b", 8: "a.b.c", 10: "orphan"} {
		if got, ok := m.FieldPath(id); !ok || got != want {
			t.Errorf("field %d: %q, %t, want %q", id, got, ok, want)
		}
	}
	if _, ok := m.FieldPath(9); !ok {
		t.Error("a field that is its own parent must not be lost")
	}
	if _, ok := m.FieldPath(55); ok {
		t.Error("field 55 does not exist")
	}
}

func TestStorageVersions(t *testing.T) {
	for _, tt := range []struct {
		files    [][2]uint32
		recorded string
		want     string
		inferred bool
	}{
		{nil, "2.1", "2.1", false},
		{nil, "", "", true},
		{[][2]uint32{{0, 3}}, "", "2.0", true},
		{[][2]uint32{{2, 0}, {0, 3}}, "", "2.0", true},
		{[][2]uint32{{2, 2}}, "", "2.2", true},
		{[][2]uint32{{2, 1}, {2, 2}}, "", "", true},
		{[][2]uint32{{7, 7}}, "", "", true},
		{[][2]uint32{{2, 1}}, "weird", "weird", false},
	} {
		f := &pb.DataFragment{}
		for _, v := range tt.files {
			f.Files = append(f.Files, &pb.DataFile{FileMajorVersion: proto.Uint32(v[0]), FileMinorVersion: proto.Uint32(v[1])})
		}
		m := &pb.Manifest{Fragments: []*pb.DataFragment{f}}
		if tt.recorded != "" {
			m.DataFormat = &pb.Manifest_DataStorageFormat{Version: proto.String(tt.recorded)}
		}
		if v, inferred := manifestOf(t, m).StorageVersion(); v != tt.want || inferred != tt.inferred {
			t.Errorf("%v %q: %q, %t, want %q, %t", tt.files, tt.recorded, v, inferred, tt.want, tt.inferred)
		}
	}
}
