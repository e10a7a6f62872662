package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
)

// bigManifest is the file of a manifest with many fragments, each with one data file of so many columns, made without
// holding the messages.
func bigManifest(frags, columns int) []byte {
	ids := make([]int32, columns)
	for i := range ids {
		ids[i] = int32(i)
	}
	body := protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 1)
	var one []byte
	for i := range uint64(frags) {
		f := &pb.DataFragment{Id: proto.Uint64(i), PhysicalRows: proto.Uint64(1 << 20), Files: []*pb.DataFile{{
			Path: proto.String(fmt.Sprintf("%024b%026x.lance", i, i*i)), Fields: ids, ColumnIndices: ids,
			FileMajorVersion: proto.Uint32(2), FileMinorVersion: proto.Uint32(1), FileSizeBytes: proto.Uint64(1e9 + i)}}}
		one, _ = proto.MarshalOptions{}.MarshalAppend(one[:0], f)
		body = protowire.AppendBytes(protowire.AppendTag(body, fragmentsField, protowire.BytesType), one)
	}
	section := []byte("\x00\x00\x00\x00")
	file := binary.LittleEndian.AppendUint32(section, uint32(len(body)))
	file = append(file, body...)
	return trailer(file, uint64(len(section)))
}

// A manifest of very many fragments takes at most three times its size: all that is allocated while it is read, whether
// it is kept or not, and so what is there at any moment.
func TestBigManifestMemory(t *testing.T) {
	for _, tt := range []struct{ frags, columns int }{{200_000, 20}, {50_000, 2}, {2000, 2000}} {
		file := bigManifest(tt.frags, tt.columns)
		d, c, ref := memDataset(t, file, Options{}, nil)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		m, err := d.Manifest(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		limit := 3 * uint64(len(file))
		if n := after.TotalAlloc - before.TotalAlloc; n > limit {
			t.Errorf("%v: reading %d bytes allocated %d, want at most %d", tt, len(file), n, limit)
		}
		// What walks over all fragments decodes none for good.
		rows, ok := m.Rows()
		version, _ := m.StorageVersion()
		if len(m.Fragments()) != tt.frags || len(m.Live()) != tt.frags || !ok || rows != uint64(tt.frags)<<20 || version != "2.1" {
			t.Fatalf("%v: %d fragments, %d rows, version %q", tt, len(m.Fragments()), rows, version)
		}
		last := m.Fragments()[tt.frags-1]
		if b := last.Bytes(); b == nil || *b != 1e9+uint64(tt.frags-1) || last.NumFiles() != 1 || len(last.Message().GetFiles()[0].GetFields()) != tt.columns {
			t.Errorf("%v: last fragment %v", tt, last.Message())
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if n := int64(after.HeapAlloc) - int64(before.HeapAlloc); n > int64(limit)/3*5/2 || n > m.Memory()+m.Memory()/4 {
			t.Errorf("%v: the manifest of %d bytes holds %d, and says %d", tt, len(file), n, m.Memory())
		}
		if n := c.Total("ReadRange"); n != 2 {
			t.Errorf("%v: %d reads, want 2", tt, n)
		}
		runtime.KeepAlive(m)
	}
}

// Sections that are not needed are not read: behind a large transaction, only index section and manifest are.
func TestBigTransactionIsNotRead(t *testing.T) {
	tx := &pb.Transaction{Uuid: proto.String("u"), Tag: proto.String(string(make([]byte, 10<<20)))}
	file := build(manifestParts{indices: sectionOf(entry("a", "", nil)), transaction: tx, manifest: &pb.Manifest{Version: proto.Uint64(1), Fragments: fragments(3000)}})
	d, c, ref := memDataset(t, file, Options{}, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := d.Manifest(t.Context(), ref)
	if err != nil || len(m.Indices) != 1 || len(m.Fragments()) != 3000 {
		t.Fatalf("%v, %v", m, err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("%d bytes were allocated for a manifest of %d behind a transaction of 10 MiB", n, m.Memory())
	}
	if n := c.Total("ReadRange"); n != 3 {
		t.Errorf("%d reads, want 3", n)
	}
	if got, err := d.Transaction(t.Context(), m); err != nil || got.UUID != "u" {
		t.Errorf("the transaction: %v, %v", got, err)
	}
}

func TestManyWarningsAreCounted(t *testing.T) {
	list := fragments(1000)
	for _, f := range list {
		f.PhysicalRows = proto.Uint64(1 << 40)
	}
	m, err := readBytes(t, build(manifestParts{manifest: &pb.Manifest{Version: proto.Uint64(1), Fragments: list}}))
	if err != nil || len(m.Warnings) != maxFragmentWarnings+1 || m.Warnings[maxFragmentWarnings] != "900 more warnings about fragments are not listed" {
		t.Errorf("%d warnings, %v", len(m.Warnings), err)
	}
}

// FuzzSplitManifest compares the manifest taken apart with one that protobuf decodes as a whole.
func FuzzSplitManifest(f *testing.F) {
	add := func(m *pb.Manifest, more ...byte) {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(b, more...))
	}
	frag := &pb.DataFragment{Id: proto.Uint64(7), PhysicalRows: proto.Uint64(9), Files: []*pb.DataFile{{Path: proto.String("a"), Fields: []int32{1, -2}, FileSizeBytes: proto.Uint64(5)}, {}},
		DeletionFile: &pb.DeletionFile{NumDeletedRows: proto.Uint64(3), Id: proto.Uint64(1 << 63)}, Metadata: map[string]string{"k": "v"},
		Overlays: []*pb.DataOverlayFile{{DataFile: &pb.DataFile{Path: proto.String("o")}}}}
	add(&pb.Manifest{Version: proto.Uint64(3), Fragments: []*pb.DataFragment{frag, {}, {Id: proto.Uint64(1 << 40)}}, Config: map[string]string{"a": "b"}})
	add(&pb.Manifest{Fragments: []*pb.DataFragment{frag}}, 0x12, 2, 0x1A, 0, 0x12, 4, 0x1A, 2, 0x20, 1, 0x12, 3, 0x12, 1, 0xFF, 0x10, 1)
	add(&pb.Manifest{}, 0x12, 2, 8, 0xFF)
	add(&pb.Manifest{}, 0x12, 4, 0x12, 2, 0x12, 9)
	add(&pb.Manifest{}, 0x12, 4, 0x0B, 0x10, 1, 0x0C, 0x1A, 1, 8)
	f.Fuzz(func(t *testing.T, body []byte) {
		whole := &pb.Manifest{}
		werr := proto.Unmarshal(body, whole)
		p, list, _, err := splitManifest(body, "fuzz", 0)
		if fault.Is(err, fault.TooLarge) {
			return
		}
		if (err == nil) != (werr == nil) {
			t.Fatalf("%x: %v, protobuf says %v", body, err, werr)
		}
		if err != nil {
			return
		}
		all, _, _ := makeFragments(list)
		if len(all) != len(whole.GetFragments()) {
			t.Fatalf("%d fragments, want %d", len(all), len(whole.GetFragments()))
		}
		for i, want := range whole.GetFragments() {
			got := all[i]
			if !proto.Equal(got.Message(), want) || !bytes.Equal(got.Encoded(), list[i]) {
				t.Fatalf("fragment %v, want %v", got.Message(), want)
			}
			if got.RecordedID() != want.GetId() || got.NumOverlays() != len(want.GetOverlays()) || got.NumFiles() != len(want.GetFiles()) ||
				got.HasDeletionFile() != (want.DeletionFile != nil) || want.DeletionFile != nil && !proto.Equal(got.DeletionFile(), want.DeletionFile) {
				t.Fatalf("fragment %v reads as id %d, %d files, %d overlays, deletions %v", want, got.RecordedID(), got.NumFiles(), got.NumOverlays(), got.DeletionFile())
			}
			sum, known := uint64(0), true
			for k, d := range got.Files() {
				if !proto.Equal(d, want.GetFiles()[k]) {
					t.Fatalf("file %v, want %v", d, want.GetFiles()[k])
				}
				known = known && d.GetFileSizeBytes() > 0 && sum+d.GetFileSizeBytes() >= sum
				sum += d.GetFileSizeBytes()
			}
			if b := got.Bytes(); (b != nil) != known || known && *b != sum {
				t.Fatalf("fragment %v: sizes are %v", want, b)
			}
			if rows := want.GetPhysicalRows(); got.Invalid == "" && (got.PhysicalRows == nil) != (rows == 0 || rows > maxRows) {
				t.Fatalf("fragment %v: rows %v", want, got.PhysicalRows)
			}
		}
		whole.Fragments = nil
		if !proto.Equal(p, whole) {
			t.Fatalf("the rest is %v, want %v", p, whole)
		}
	})
}
