package dataset

import (
	"encoding/binary"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/store/storetest"
)

// contains reports whether err's text has the part.
func contains(err error, part string) bool { return err != nil && strings.Contains(err.Error(), part) }

// manifestParts are the sections of a manifest file that build lays out like a writer does.
type manifestParts struct {
	front       []byte           // before the sections, as dictionary pages are
	indices     *pb.IndexSection // nil: none
	transaction *pb.Transaction  // nil: none
	oldOffset   bool             // the transaction's offset goes into field 21, not 23
	manifest    *pb.Manifest     // nil: version 1
	edit        func(*pb.Manifest)
}

func section(file []byte, m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err) // a test's own message
	}
	file = binary.LittleEndian.AppendUint32(file, uint32(len(b)))
	return append(file, b...)
}

// build returns a manifest file.
func build(p manifestParts) []byte {
	file := append([]byte{}, p.front...)
	m := p.manifest
	if m == nil {
		m = &pb.Manifest{Version: proto.Uint64(1)}
	}
	if p.indices != nil {
		m.IndexSection = proto.Uint64(uint64(len(file)))
		file = section(file, p.indices)
	}
	if p.transaction != nil {
		at := proto.Uint64(uint64(len(file)))
		if p.oldOffset {
			m.TransactionSectionDeprecated = at
		} else {
			m.TransactionSection = at
		}
		file = section(file, p.transaction)
	}
	if p.edit != nil {
		p.edit(m)
	}
	pos := len(file)
	return trailer(section(file, m), uint64(pos))
}

func trailer(file []byte, pos uint64) []byte {
	file = binary.LittleEndian.AppendUint64(file, pos)
	return append(file, 0, 0, 2, 0, 'L', 'A', 'N', 'C')
}

// memDataset opens a dataset whose only version is 1 with this manifest file, beside other objects.
func memDataset(tb testing.TB, manifest []byte, opt Options, others map[string][]byte) (*Dataset, *storetest.Counting, VersionRef) {
	tb.Helper()
	mem := storetest.NewMem(others)
	mem.Put("_versions/1.manifest", manifest)
	c := storetest.New(mem, 0)
	d, err := Open(tb.Context(), c, opt)
	if err != nil {
		tb.Fatal(err)
	}
	l, err := d.Versions(tb.Context())
	if err != nil || len(l.Versions) != 1 {
		tb.Fatalf("versions %v, %v", l, err)
	}
	c.Reset()
	return d, c, l.Versions[0]
}

// readBytes decodes one manifest file.
func readBytes(tb testing.TB, file []byte) (*Manifest, error) {
	tb.Helper()
	d, _, ref := memDataset(tb, file, Options{}, nil)
	return d.Manifest(tb.Context(), ref)
}

var testUUID = []byte{0x5a, 0x20, 0x97, 0xce, 0x35, 0x86, 0x4e, 0x75, 0x8a, 0x10, 0x76, 0x0a, 0x30, 0x0f, 0x4d, 0xe7}

const testUUIDText = "5a2097ce-3586-4e75-8a10-760a300f4de7"

func entry(name, typeURL string, edit func(*pb.IndexMetadata)) *pb.IndexMetadata {
	x := &pb.IndexMetadata{Uuid: &pb.UUID{Uuid: testUUID}, Name: proto.String(name), Fields: []int32{0}}
	if typeURL != "" {
		x.IndexDetails = &pb.Any{TypeUrl: proto.String(typeURL)}
	}
	if edit != nil {
		edit(x)
	}
	return x
}

func sectionOf(entries ...*pb.IndexMetadata) *pb.IndexSection {
	return &pb.IndexSection{Indices: entries}
}

var _ store.Store = (*storetest.Mem)(nil)
