package integration

import (
	"encoding/binary"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/pb"
)

// edit rewrites the newest manifest of a private copy of a table: change gets the decoded manifest and index section,
// and what it leaves there is written back. The inline transaction is dropped.
func edit(t testing.TB, table string, version uint64, change func(m *pb.Manifest, ix *pb.IndexSection)) {
	t.Helper()
	path := manifest(t, table, version)
	b := []byte(read(t, path))
	section := func(at uint64) []byte {
		n := uint64(binary.LittleEndian.Uint32(b[at:]))
		return b[at+4 : at+4+n]
	}
	var m pb.Manifest
	var ix pb.IndexSection
	if err := proto.Unmarshal(section(binary.LittleEndian.Uint64(b[len(b)-16:])), &m); err != nil {
		t.Fatal(err)
	}
	if m.IndexSection != nil {
		if err := proto.Unmarshal(section(m.GetIndexSection()), &ix); err != nil {
			t.Fatal(err)
		}
	}
	m.TransactionSection, m.TransactionSectionDeprecated = nil, nil
	change(&m, &ix)
	var out []byte
	add := func(msg proto.Message) uint64 {
		at := uint64(len(out))
		p, err := proto.Marshal(msg)
		if err != nil {
			t.Fatal(err)
		}
		out = append(binary.LittleEndian.AppendUint32(out, uint32(len(p))), p...)
		return at
	}
	m.IndexSection = nil
	if len(ix.Indices) > 0 {
		m.IndexSection = proto.Uint64(add(&ix))
	}
	pos := add(&m)
	out = binary.LittleEndian.AppendUint64(out, pos)
	out = append(out, b[len(b)-8:]...)
	write(t, path, out)
}

// latestVersion is the highest version of a table on disk.
func latestVersion(t testing.TB, table string) uint64 {
	t.Helper()
	for v := uint64(2000); v > 0; v-- {
		for _, name := range manifestNames(v) {
			if fileExists(filepath.Join(table, "_versions", name)) {
				return v
			}
		}
	}
	t.Fatalf("%s has no versions", table)
	return 0
}
