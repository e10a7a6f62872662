package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/pb"
)

func fragments(n int) []*pb.DataFragment {
	out := make([]*pb.DataFragment, n)
	for i := range out {
		out[i] = &pb.DataFragment{Id: proto.Uint64(uint64(i)), PhysicalRows: proto.Uint64(10),
			Files: []*pb.DataFile{{Path: proto.String("0123456789012345678901234567890123456789.lance"), FileMajorVersion: proto.Uint32(2), FileMinorVersion: proto.Uint32(1)}}}
	}
	return out
}

// How many requests a manifest takes, by where its sections lie in the file.
func TestManifestTakesAtMostTwoReads(t *testing.T) {
	pad := func(n int) *pb.Transaction { return &pb.Transaction{Tag: proto.String(string(make([]byte, n)))} }
	for _, tt := range []struct {
		name  string
		parts manifestParts
		reads int
	}{
		{"small", manifestParts{indices: sectionOf(entry("a", "", nil)), transaction: pad(10)}, 1},
		{"no sections", manifestParts{}, 1},
		{"index section before the tail", manifestParts{indices: sectionOf(entry("a", "", nil)), transaction: pad(100_000)}, 2},
		{"manifest before the tail", manifestParts{indices: sectionOf(entry("a", "", nil)), manifest: &pb.Manifest{Version: proto.Uint64(1), Fragments: fragments(2000)}}, 2},
		{"everything before the tail", manifestParts{indices: sectionOf(entry("a", "", nil)), transaction: pad(300_000),
			manifest: &pb.Manifest{Version: proto.Uint64(1), Fragments: fragments(2000)}}, 2},
	} {
		d, c, ref := memDataset(t, build(tt.parts), Options{}, nil)
		m, err := d.Manifest(t.Context(), ref)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if c.Total("") != tt.reads || c.Total("ReadRange") != tt.reads {
			t.Errorf("%s: calls %v, want %d reads", tt.name, c.Calls(), tt.reads)
		}
		if len(m.Indices) != len(tt.parts.indices.GetIndices()) || m.IndexErr != nil || len(m.Warnings) > 0 {
			t.Errorf("%s: %d indices, %v, warnings %q", tt.name, len(m.Indices), m.IndexErr, m.Warnings)
		}
		tx, err := d.Transaction(t.Context(), m)
		if err != nil || (tx.Source == TransactionInline) != (tt.parts.transaction != nil) || tx.PB.GetTag() != tt.parts.transaction.GetTag() {
			t.Errorf("%s: transaction from %q, %v", tt.name, tx.Source, err)
		}
		c.Reset()
		if again, err := d.Manifest(t.Context(), ref); again != m || err != nil || c.Total("") != 0 {
			t.Errorf("%s: the second time: %v, calls %v", tt.name, err, c.Calls())
		}
	}
}

func TestDamagedManifests(t *testing.T) {
	good := build(manifestParts{indices: sectionOf(entry("a", "", nil)), manifest: &pb.Manifest{Version: proto.Uint64(1), Fragments: fragments(3)}})
	edit := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(good)) }
	pos := binary.LittleEndian.Uint64(good[len(good)-16:])
	for _, tt := range []struct {
		name string
		file []byte
		kind fault.Kind
		says string
	}{
		{"empty", nil, fault.Corrupt, "@0: corrupt: a file of 0 bytes"},
		{"19 bytes", good[len(good)-19:], fault.Corrupt, "19 bytes"},
		{"no magic", edit(func(b []byte) []byte { b[len(b)-1] = 'X'; return b }), fault.Corrupt, fmt.Sprintf("@%d: corrupt: the file ends with \"LANX\"", len(good)-4)},
		{"cut at the end", good[:len(good)-7], fault.Corrupt, "ends with"},
		{"cut at the start", good[9:], fault.Corrupt, "the manifest"},
		{"position behind the end", edit(func(b []byte) []byte { binary.LittleEndian.PutUint64(b[len(b)-16:], uint64(len(b))); return b }), fault.Corrupt, "the trailer puts the manifest at"},
		{"negative position", edit(func(b []byte) []byte { binary.LittleEndian.PutUint64(b[len(b)-16:], ^uint64(0)); return b }), fault.Corrupt, "the trailer puts the manifest at"},
		{"position inside the manifest", edit(func(b []byte) []byte { binary.LittleEndian.PutUint64(b[len(b)-16:], pos+1); return b }), fault.Corrupt, "length"},
		{"length too big", edit(func(b []byte) []byte { binary.LittleEndian.PutUint32(b[pos:], 1<<31); return b }), fault.Corrupt, fmt.Sprintf("@%d", pos)},
		{"length too small", edit(func(b []byte) []byte { b[pos]--; return b }), fault.Corrupt, "length"},
		{"broken field", edit(func(b []byte) []byte { b[pos+4+1] = 0xFF; return b }), fault.Corrupt, fmt.Sprintf("@%d", pos+4)},
		{"trailer only", trailer(nil, 0), fault.Corrupt, "16 bytes"},
	} {
		_, err := readBytes(t, tt.file)
		if !fault.Is(err, tt.kind) || !contains(err, tt.says) {
			t.Errorf("%s: %v, want %v with %q", tt.name, err, tt.kind, tt.says)
		}
	}
	if _, err := readBytes(t, good); err != nil {
		t.Errorf("undamaged: %v", err)
	}
}

func TestEveryTruncationIsAnError(t *testing.T) {
	good := build(manifestParts{indices: sectionOf(entry("a", "", nil)), transaction: &pb.Transaction{Uuid: proto.String("u")}})
	for n := range good {
		if _, err := readBytes(t, good[:n]); !fault.Is(err, fault.Corrupt) {
			t.Errorf("the first %d of %d bytes: %v, want corrupt", n, len(good), err)
		}
	}
}

func TestListedSizeMayBeStale(t *testing.T) {
	file := build(manifestParts{})
	for _, size := range []int64{int64(len(file)) - 5, int64(len(file)) + 5, 3} {
		d, c, ref := memDataset(t, file, Options{}, nil)
		ref.Object.Size = size
		m, err := d.Manifest(t.Context(), ref)
		if err != nil || m.Bytes != int64(len(file)) || c.Total("Stat") != 1 {
			t.Errorf("listed with %d of %d bytes: %v, calls %v", size, len(file), err, c.Calls())
		}
	}
}

func TestManifestOverTheLimitIsTooLarge(t *testing.T) {
	file := build(manifestParts{manifest: &pb.Manifest{Version: proto.Uint64(1), Fragments: fragments(100)}})
	d, c, ref := memDataset(t, file, Options{MaxManifestBytes: 1000}, nil)
	if _, err := d.Manifest(t.Context(), ref); !fault.Is(err, fault.TooLarge) || !contains(err, "limit is 1000") {
		t.Errorf("%v, want too_large", err)
	}
	if c.Total("ReadRange") != 1 {
		t.Errorf("calls %v: nothing must be read once the size is known", c.Calls())
	}
	big := sectionOf()
	for range 100 {
		big.Indices = append(big.Indices, entry("a", "/lance.table.BTreeIndexDetails", nil))
	}
	d, _, ref = memDataset(t, build(manifestParts{indices: big}), Options{MaxManifestBytes: 1000}, nil)
	m, err := d.Manifest(t.Context(), ref)
	if err != nil || !fault.Is(m.IndexErr, fault.TooLarge) {
		t.Errorf("big index section: %v, index error %v, want too_large for the indices alone", err, m.IndexErr)
	}
}

// A message of two-byte entries would take two hundred times its size in memory.
func TestMessagesThatExplodeAreRefused(t *testing.T) {
	body := bytes.Repeat([]byte{0x12, 0x00}, 1<<18) // empty fragments
	file := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	file = trailer(append(file, body...), 0)
	if _, err := readBytes(t, file); !fault.Is(err, fault.TooLarge) {
		t.Errorf("%v, want too_large", err)
	}
	if _, err := readBytes(t, build(manifestParts{manifest: &pb.Manifest{Version: proto.Uint64(1), Fragments: fragments(20000)}})); err != nil {
		t.Errorf("a real big manifest: %v", err)
	}
}

func TestVersionInsideTheFileIsOnlyAWarning(t *testing.T) {
	m, err := readBytes(t, build(manifestParts{manifest: &pb.Manifest{Version: proto.Uint64(77)}}))
	if err != nil || m.Version() != 1 || len(m.Warnings) != 1 {
		t.Fatalf("version %d, warnings %q, %v", m.Version(), m.Warnings, err)
	}
}

// Offsets are optional fields: 0 is an offset, absent is none.
func TestOffsetZeroIsAnOffset(t *testing.T) {
	with, err := readBytes(t, build(manifestParts{indices: sectionOf(entry("a", "", nil))}))
	if err != nil || with.PB.GetIndexSection() != 0 || with.PB.IndexSection == nil || len(with.Indices) != 1 {
		t.Errorf("index section at 0: %v, %v", with, err)
	}
	without, err := readBytes(t, build(manifestParts{transaction: &pb.Transaction{}}))
	if err != nil || without.Indices != nil || without.IndexErr != nil {
		t.Errorf("no index section: %v, %v", without, err)
	}
}

func TestStaleOffsets(t *testing.T) {
	at := func(n uint64) *uint64 { return &n }
	one := sectionOf(entry("a", "/lance.table.BTreeIndexDetails", nil))
	tx := &pb.Transaction{Uuid: proto.String("u"), Operation: &pb.Transaction_Append_{Append: &pb.Transaction_Append{}}}
	for _, tt := range []struct {
		name      string
		parts     manifestParts
		indices   int
		corrupt   bool // the index section cannot be read
		warnings  int
		operation string
	}{
		{"nothing stale", manifestParts{indices: one, transaction: tx}, 1, false, 0, "Append"},
		{"index section behind the file, none in it", manifestParts{edit: func(m *pb.Manifest) { m.IndexSection = at(1 << 40) }}, 0, false, 1, ""},
		{"index section negative, none in it", manifestParts{edit: func(m *pb.Manifest) { m.IndexSection = at(1 << 63) }}, 0, false, 1, ""},
		{"index section at the manifest, none in it", manifestParts{edit: func(m *pb.Manifest) { m.IndexSection = at(0) }}, 0, false, 1, ""},
		{"index section inside the transaction, none in it", manifestParts{transaction: tx, edit: func(m *pb.Manifest) { m.IndexSection = at(2) }}, 0, false, 1, "Append"},
		// There are bytes that nothing accounts for: they may be the indices, so they must not be taken as absent.
		{"index section moved, one in the file", manifestParts{indices: one, transaction: tx, edit: func(m *pb.Manifest) { m.IndexSection = at(1 << 40) }}, 0, true, 0, "Append"},
		{"index section moved by one", manifestParts{indices: one, transaction: tx, edit: func(m *pb.Manifest) { m.IndexSection = at(1) }}, 0, true, 0, "Append"},
		{"dictionary pages before it", manifestParts{front: make([]byte, 50), indices: one, transaction: tx}, 1, false, 0, "Append"},
		{"transaction behind the file", manifestParts{indices: one, edit: func(m *pb.Manifest) { m.TransactionSection = at(1 << 40) }}, 1, false, 1, ""},
		{"23 stale, 21 good", manifestParts{transaction: tx, oldOffset: true, edit: func(m *pb.Manifest) { m.TransactionSection = at(1 << 40) }}, 0, false, 1, "Append"},
		{"21 alone", manifestParts{transaction: tx, oldOffset: true}, 0, false, 0, "Append"},
		{"21 stale beside 23", manifestParts{transaction: tx, edit: func(m *pb.Manifest) { m.TransactionSectionDeprecated = at(1 << 40) }}, 0, false, 0, "Append"},
		{"transaction inside the index section", manifestParts{indices: one, edit: func(m *pb.Manifest) { m.TransactionSection = at(9) }}, 1, false, 1, ""},
	} {
		parts := tt.parts
		parts.manifest = &pb.Manifest{Version: proto.Uint64(1)}
		d, _, ref := memDataset(t, build(parts), Options{}, nil)
		m, err := d.Manifest(t.Context(), ref)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if len(m.Indices) != tt.indices || fault.Is(m.IndexErr, fault.Corrupt) != tt.corrupt || len(m.Warnings) != tt.warnings {
			t.Errorf("%s: %d indices, index error %v, warnings %q", tt.name, len(m.Indices), m.IndexErr, m.Warnings)
		}
		if tx, err := d.Transaction(t.Context(), m); err != nil || tx.Operation != tt.operation {
			t.Errorf("%s: operation %q, %v, want %q", tt.name, tx.Operation, err, tt.operation)
		}
	}
}

func TestUnknownFieldsAreKept(t *testing.T) {
	extra := protowire.AppendTag(nil, 900, protowire.VarintType)
	extra = protowire.AppendVarint(extra, 7)
	frag := &pb.DataFragment{Id: proto.Uint64(3)}
	frag.ProtoReflect().SetUnknown(extra)
	m := &pb.Manifest{Version: proto.Uint64(1), Fragments: []*pb.DataFragment{frag}}
	m.ProtoReflect().SetUnknown(extra)
	x := entry("a", "", nil)
	x.ProtoReflect().SetUnknown(extra)
	got, err := readBytes(t, build(manifestParts{manifest: m, indices: sectionOf(x)}))
	if err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{
		"manifest": got.PB.ProtoReflect().GetUnknown(),
		"fragment": got.Fragments()[0].Message().ProtoReflect().GetUnknown(),
		"index":    got.Indices[0].PB.ProtoReflect().GetUnknown(),
	} {
		if !bytes.Equal(b, extra) {
			t.Errorf("%s: unknown fields %x, want %x", what, b, extra)
		}
	}
}

func TestUndecodableIndexSectionSpoilsIndicesOnly(t *testing.T) {
	file := build(manifestParts{indices: sectionOf(entry("a", "", nil)), transaction: &pb.Transaction{}, manifest: &pb.Manifest{Version: proto.Uint64(1), Fragments: fragments(2)}})
	file[4+1] = 0xFF // length of the entry
	m, err := readBytes(t, file)
	if err != nil || !fault.Is(m.IndexErr, fault.Corrupt) || !contains(m.IndexErr, "1.manifest @4") {
		t.Fatalf("%v, index error %v", err, m.IndexErr)
	}
	if m.Indices != nil || len(m.Fragments()) != 2 {
		t.Errorf("%d indices, %d fragments", len(m.Indices), len(m.Fragments()))
	}
}

func TestFailuresAreNotRemembered(t *testing.T) {
	d, c, ref := memDataset(t, build(manifestParts{}), Options{}, nil)
	c.Fail("ReadRange", ref.Path(), fault.New("test", "", fault.Unavailable, "down"))
	if _, err := d.Manifest(t.Context(), ref); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v, want unavailable", err)
	}
	c.Fail("ReadRange", ref.Path(), nil)
	if _, err := d.Manifest(t.Context(), ref); err != nil {
		t.Errorf("after the failure: %v", err)
	}
}
