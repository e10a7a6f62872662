package dataset

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
)

func deletionFragment(kind int32, physical, deleted uint64) *pb.DataFragment {
	return &pb.DataFragment{Id: proto.Uint64(3), PhysicalRows: proto.Uint64(physical),
		DeletionFile: &pb.DeletionFile{FileType: proto.Int32(kind), ReadVersion: proto.Uint64(1), Id: proto.Uint64(1 << 63), NumDeletedRows: proto.Uint64(deleted)}}
}

func bitmapBytes(tb testing.TB, rows ...uint32) []byte {
	tb.Helper()
	b, err := roaring.BitmapOf(rows...).ToBytes()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestDeletionFilesAgainstTheManifest(t *testing.T) {
	for _, tt := range []struct {
		name     string
		kind     int32
		physical uint64 // 0 = unknown
		deleted  uint64 // 0 = unknown
		file     []byte // nil = missing
		want     []uint32
		fails    fault.Kind
	}{
		{"arrow", 0, 10, 2, arrowFileOf([]uint32{9, 0}, arrowSpec{}), []uint32{0, 9}, 0},
		{"bitmap", 1, 10, 2, bitmapBytes(t, 9, 0), []uint32{0, 9}, 0},
		{"counts unknown", 1, 0, 0, bitmapBytes(t, 9, 0), []uint32{0, 9}, 0},
		{"empty, counts unknown", 0, 0, 0, arrowFileOf(nil, arrowSpec{}), []uint32{}, 0},
		{"another count, arrow", 0, 10, 3, arrowFileOf([]uint32{9, 0}, arrowSpec{}), nil, fault.Corrupt},
		{"another count, bitmap", 1, 10, 3, bitmapBytes(t, 9, 0), nil, fault.Corrupt},
		{"row behind the end", 0, 9, 2, arrowFileOf([]uint32{9, 0}, arrowSpec{}), nil, fault.Corrupt},
		{"missing", 1, 10, 2, nil, nil, fault.NotFound},
		{"empty file", 1, 10, 2, []byte{}, nil, fault.Corrupt},
		{"other kind of content", 0, 10, 2, bitmapBytes(t, 9, 0), nil, fault.Corrupt},
		{"unknown kind", 2, 10, 2, bitmapBytes(t, 9, 0), nil, fault.Unsupported},
		{"negative kind", -1, 10, 2, bitmapBytes(t, 9, 0), nil, fault.Unsupported},
	} {
		others := map[string][]byte{}
		if tt.file != nil {
			others["_deletions/3-1-9223372036854775808.arrow"] = tt.file
			others["_deletions/3-1-9223372036854775808.bin"] = tt.file
		}
		m := &pb.Manifest{Version: proto.Uint64(1), Fragments: []*pb.DataFragment{deletionFragment(tt.kind, tt.physical, tt.deleted)}}
		d, c, ref := memDataset(t, build(manifestParts{manifest: m}), Options{}, others)
		man, err := d.Manifest(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		bm, err := d.Deletions(t.Context(), man, man.Fragments()[0])
		if fault.KindOf(err) != tt.fails || (bm == nil) != (tt.want == nil) {
			t.Errorf("%s: %v, %v, want kind %v", tt.name, bm, err, tt.fails)
			continue
		}
		if bm == nil {
			continue
		}
		if !bm.Equals(roaring.BitmapOf(tt.want...)) {
			t.Errorf("%s: %v, want %d", tt.name, bm, tt.want)
		}
		c.Reset()
		if again, err := d.Deletions(t.Context(), man, man.Fragments()[0]); err != nil || again != bm || c.Total("ReadRange") != 0 {
			t.Errorf("%s: the second time %v, calls %v, want the cached one", tt.name, err, c.Calls())
		}
	}
}

// users.md R51: a deletion file that cannot be read is an error each time, never "no deletions", and a file that is
// good again is used.
func TestR51UnreadableDeletionFileIsNeverNoDeletions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t.lance")
	path := filepath.Join(dir, "_deletions", "3-1-9223372036854775808.arrow")
	good := arrowFileOf([]uint32{1, 5}, arrowSpec{codec: "zstd"})
	d, m := localDataset(t, dir, &pb.Manifest{Fragments: []*pb.DataFragment{deletionFragment(0, 10, 2)}}, Options{})
	f := m.Fragments()[0]
	for i, step := range []struct {
		file  []byte
		fails fault.Kind
	}{
		{nil, fault.NotFound}, {good[:len(good)/2], fault.Corrupt}, {good[:len(good)/2], fault.Corrupt}, {good, 0}, {good[:len(good)-1], fault.Corrupt}, {nil, fault.NotFound},
	} {
		if step.file == nil {
			_ = os.Remove(path)
		} else {
			write(t, path, step.file)
			// Two writes within one tick of the clock would look alike.
			at := time.Unix(1_700_000_000+int64(i), 0)
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		bm, err := d.Deletions(t.Context(), m, f)
		if fault.KindOf(err) != step.fails || (bm == nil) != (err != nil) {
			t.Errorf("step %d: %v, %v, want kind %v", i, bm, err, step.fails)
		}
	}
}

// users.md R52: a manifest that is cleaned up while it is listed is not found; one that was read stays.
func TestR52ManifestThatVanishes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t.lance")
	d, m := localDataset(t, dir, &pb.Manifest{}, Options{})
	if err := os.Remove(filepath.Join(dir, "_versions", "1.manifest")); err != nil {
		t.Fatal(err)
	}
	if again, err := d.Manifest(t.Context(), m.Ref); err != nil || again != m {
		t.Errorf("a manifest that was read: %v", err)
	}
	fresh := openLocal(t, dir, Options{})
	if _, err := fresh.Manifest(t.Context(), m.Ref); !fault.Is(err, fault.NotFound) {
		t.Errorf("a manifest that is gone: %v, want not_found", err)
	}
	if refs := versions(t, fresh); len(refs) != 0 {
		t.Errorf("versions %v", refs)
	}
}
