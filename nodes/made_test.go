package nodes

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
)

// made is a table that a test makes up: manifests and nothing else.
type made struct {
	t   testing.TB
	dir string
}

func makeTable(t testing.TB) *made {
	t.Helper()
	m := &made{t, t.TempDir()}
	if err := os.Mkdir(filepath.Join(m.dir, "_versions"), 0o755); err != nil {
		t.Fatal(err)
	}
	return m
}

// version writes a manifest with an index section.
func (m *made) version(v uint64, change func(*pb.Manifest), indices ...*pb.IndexMetadata) {
	m.t.Helper()
	man := &pb.Manifest{
		Version:   proto.Uint64(v),
		Timestamp: &pb.Timestamp{Seconds: proto.Int64(1_700_000_000 + int64(v)*60)},
		Fields:    []*pb.Field{{Id: proto.Int32(0), Name: proto.String("id"), ParentId: proto.Int32(-1), LogicalType: proto.String("int64")}},
	}
	if change != nil {
		change(man)
	}
	var out []byte
	if len(indices) > 0 {
		man.IndexSection = proto.Uint64(0)
		out = lengthPrefixed(m.t, out, &pb.IndexSection{Indices: indices})
	}
	pos := len(out)
	out = lengthPrefixed(m.t, out, man)
	out = binary.LittleEndian.AppendUint64(out, uint64(pos))
	out = append(out, 0, 0, 2, 0, 'L', 'A', 'N', 'C')
	m.write(v, out)
}

func lengthPrefixed(t testing.TB, out []byte, msg proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(msg)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(b))), b...)
}

func (m *made) write(v uint64, b []byte) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, "_versions", strconv.FormatUint(v, 10)+".manifest"), b, 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// tree opens the table.
func (m *made) tree(change func(*Config)) *Tree {
	m.t.Helper()
	st, err := store.OpenURI(m.t.Context(), m.dir, store.Options{})
	if err != nil {
		m.t.Fatal(err)
	}
	return openStore(m.t, st, "", change)
}

// fragments gives a manifest fragments of ten rows with these ids.
func fragments(ids ...uint64) func(*pb.Manifest) {
	return func(m *pb.Manifest) {
		for _, id := range ids {
			m.Fragments = append(m.Fragments, &pb.DataFragment{Id: proto.Uint64(id), PhysicalRows: proto.Uint64(10)})
		}
	}
}

// entry makes an index entry; details "" leaves them out, bitmap nil too.
func entry(name, details string, uuid byte, bitmap ...uint32) *pb.IndexMetadata {
	ix := &pb.IndexMetadata{Name: proto.String(name), Uuid: &pb.UUID{Uuid: make([]byte, 16)}, Fields: []int32{0}, DatasetVersion: proto.Uint64(1)}
	ix.Uuid.Uuid[15] = uuid
	if details != "" {
		ix.IndexDetails = &pb.Any{TypeUrl: proto.String(details)}
	}
	if bitmap != nil {
		ix.FragmentBitmap, _ = roaring.BitmapOf(bitmap...).ToBytes()
	}
	return ix
}

// reuse makes an FRI entry from the bytes of its details' value.
func reuse(indexVersion int32, value []byte) *pb.IndexMetadata {
	ix := entry(fri.EntryName, "/"+fri.DetailsType, 0xF1)
	ix.Fields, ix.IndexVersion, ix.IndexDetails.Value = nil, proto.Int32(indexVersion), value
	return ix
}

const btreeType = "/lance.table.BTreeIndexDetails"
