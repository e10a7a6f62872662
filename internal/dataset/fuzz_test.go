package dataset

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store/storetest"
	"github.com/frifs/frifs/internal/testdata"
)

// seedFiles adds real files of the test tables, the smallest ones first in each folder.
func seedFiles(f *testing.F, dir string, add func([]byte)) {
	f.Helper()
	for _, name := range []string{"legacy/basic", "legacy/clone", "legacy/old_0_39", "tagged/stable2"} {
		files, err := filepath.Glob(filepath.Join(testdata.Dataset(f, name), dir, "*"))
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files[:min(len(files), 4)] {
			b, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			if len(b) < 1<<12 {
				add(b)
			}
		}
	}
}

func FuzzManifest(f *testing.F) {
	seedFiles(f, versionsDir, func(b []byte) { f.Add(b) })
	f.Add(build(manifestParts{indices: sectionOf(entry("a", "/lance.table.BTreeIndexDetails", nil)), transaction: &pb.Transaction{Uuid: proto.String("u")}}))
	f.Add(build(manifestParts{edit: func(m *pb.Manifest) { m.IndexSection = proto.Uint64(1 << 63) }}))
	f.Fuzz(func(t *testing.T, file []byte) {
		ctx := context.Background()
		d, err := Open(ctx, storetest.NewMem(map[string][]byte{"_versions/1.manifest": file}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		l, err := d.Versions(ctx)
		if err != nil {
			t.Fatal(err)
		}
		m, err := d.Manifest(ctx, l.Versions[0])
		if err != nil {
			if k := fault.KindOf(err); k != fault.Corrupt && k != fault.TooLarge {
				t.Fatalf("kind %v: %v", k, err)
			}
			return
		}
		if m.IndexErr != nil && m.Indices != nil {
			t.Fatal("both indices and a reason why there are none")
		}
		for _, x := range m.Indices {
			if (x.Bitmap != nil) != (x.BitmapState == BitmapPresent || x.BitmapState == BitmapWithdrawn) || (x.UUID == "") != (x.UUIDErr != nil) {
				t.Fatalf("index %+v", x)
			}
			dir, err := d.IndexDir(ctx, m, x)
			if err == nil && dir.Store == nil {
				t.Fatal("an index directory without a store")
			}
		}
		for _, fr := range m.Fragments() {
			if live := fr.LiveRows(); live != nil && *live > maxRows {
				t.Fatalf("fragment %d has %d live rows", fr.ID, *live)
			}
			if bm, err := d.Deletions(ctx, m, fr); bm != nil || err == nil && fr.HasDeletionFile() {
				t.Fatalf("a deletion file that is not there gave %v, %v", bm, err)
			}
			for _, df := range fr.Files() {
				if loc, err := d.DataFile(ctx, m, df); err == nil && loc.Store == nil {
					t.Fatal("a data file without a store")
				}
			}
		}
		if tx, err := d.Transaction(ctx, m); tx == nil || tx.Source == TransactionNone && tx.Reason == "" {
			t.Fatalf("transaction %v, %v", tx, err)
		}
		m.Timestamp()
		m.StorageVersion()
		m.Rows()
		m.FieldPath(0)
		_ = Refusal(m)
	})
}

func FuzzDeletionFile(f *testing.F) {
	seedFiles(f, deletionsDir, func(b []byte) { f.Add(b, false, uint64(0)) })
	for _, spec := range []arrowSpec{{}, {codec: "zstd"}, {codec: "lz4"}, {codec: "lz4", raw: true}} {
		f.Add(arrowFileOf([]uint32{7, 1, 300}, spec), false, uint64(3))
	}
	b, err := roaring.BitmapOf(1, 2, 3, 100_000).ToBytes()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, true, uint64(4))
	f.Fuzz(func(t *testing.T, file []byte, bitmap bool, expect uint64) {
		kind := int32(0)
		if bitmap {
			kind = 1
		}
		bm, err := DecodeDeletions(kind, file, expect)
		if (bm == nil) == (err == nil) || err != nil && !fault.Is(err, fault.Corrupt) {
			t.Fatalf("%v, %v", bm, err)
		}
		if bm != nil && bitmap {
			if err := bm.Validate(); err != nil {
				t.Fatalf("accepted, but not valid: %v", err)
			}
		}
	})
}

func FuzzTransaction(f *testing.F) {
	seedFiles(f, transactionsDir, func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, message []byte) {
		tx := &Transaction{}
		err := tx.decode(message, "fuzz", 0)
		if k := fault.KindOf(err); err != nil && k != fault.Corrupt && k != fault.TooLarge || (tx.PB == nil) == (err == nil) {
			t.Fatalf("%v, %v", tx.PB, err)
		}
		if (tx.Number == 0) != (tx.Operation == "") {
			t.Fatalf("operation %d is %q", tx.Number, tx.Operation)
		}
	})
}
