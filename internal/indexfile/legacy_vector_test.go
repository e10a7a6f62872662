package indexfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/translate"
)

// legacyFile makes an index.idx of the legacy format: the message of an IVF_PQ index over data.
func legacyFile(data []byte, offsets, lengths []uint64, bits, parts uint64, packed bool) []byte {
	var ivf []byte
	for num, list := range map[protowire.Number][]uint64{2: offsets, 3: lengths} {
		var all []byte
		for _, v := range list {
			if !packed {
				ivf = protowire.AppendVarint(protowire.AppendTag(ivf, num, protowire.VarintType), v)
			}
			all = protowire.AppendVarint(all, v)
		}
		if packed {
			ivf = protowire.AppendBytes(protowire.AppendTag(ivf, num, protowire.BytesType), all)
		}
	}
	pq := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), bits)
	pq = protowire.AppendVarint(protowire.AppendTag(pq, 2, protowire.VarintType), parts)
	return legacyMessage(data, message(2, ivf), message(3, pq))
}

func message(num protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
}

// legacyMessage makes a file of data and an Index message of the given stages.
func legacyMessage(data []byte, stages ...[]byte) []byte {
	var vector []byte
	for _, s := range stages {
		vector = append(vector, message(3, s)...)
	}
	msg := append(message(1, []byte("idx")), message(5, vector)...)
	return legacyTrailer(data, msg)
}

func legacyTrailer(data, msg []byte) []byte {
	b := slices.Clone(data)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(msg)))
	b = append(b, msg...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
	return append(b, 0, 0, 1, 0, 'L', 'A', 'N', 'C')
}

// shifted is a Resolver that moves fragment 1 to fragment 7, keeps fragment 2 and knows nothing of the others.
type shifted struct{}

func (shifted) Rows(fri.FragID) (uint64, bool) { return 0, false }

func (shifted) Resolve(_ context.Context, addrs []fri.RowAddr, a *Answers) error {
	for i, x := range addrs {
		a.New[i], a.Outcome[i], a.Covered[i] = x, translate.Same, true
		switch x.Frag() {
		case 1:
			a.New[i], a.Outcome[i] = fri.Addr(7, x.Offset()+1), translate.Moved
		case 2:
		case 3:
			a.Covered[i] = false
		default:
			a.Outcome[i] = translate.Dropped
		}
	}
	return nil
}

// shiftedWant is what shifted makes of the address in a row.
func shiftedWant(row int, x uint64) uint64 {
	switch x >> 32 {
	case 1:
		return 7<<32 | (x+1)&0xFFFFFFFF
	case 2:
		return x
	}
	return 0xFFFFFFFE<<32 | uint64(row)
}

// checkShifted compares a remapped file's addresses, and all bytes that are none, with what they have to be.
func checkShifted(t *testing.T, s *Segment, path string, stored []uint64) {
	t.Helper()
	f, err := s.Open(t.Context(), path)
	noError(t, err)
	_, addrs := storedAddresses(t, f)
	if len(addrs) != len(stored) {
		t.Fatalf("%d addresses, want %d", len(addrs), len(stored))
	}
	c, err := f.Remap(t.Context(), shifted{}, Options{})
	noError(t, err)
	b := wholeOf(t, c)
	randomReads(t, c, b)
	got := addressesOf(t, s, path, c)
	for i, x := range stored {
		if uint64(addrs[i]) != x || got[i] != shiftedWant(i, x) {
			t.Fatalf("row %d: stored %x (want %x), made %x", i, addrs[i], x, got[i])
		}
	}
	noError(t, c.Close())
}

func TestLegacyVectorIndexOfLance(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "legacy_ivf_pq4.idx"))
	noError(t, err)
	s := memSegment("VECTOR", map[string][]byte{"index.idx": b})
	f, err := s.Open(t.Context(), "index.idx")
	noError(t, err)
	if f.How != InPlace || f.Rows != 300 || f.Version != "" {
		t.Errorf("%v, %d rows, version %q", f.How, f.Rows, f.Version)
	}
	// The index was made over three fragments of 100 rows: each address stands in it once.
	_, addrs := storedAddresses(t, f)
	all := slices.Clone(addrs)
	slices.Sort(all)
	for i, a := range all {
		if a != fri.Addr(fri.FragID(i/100), uint32(i%100)) {
			t.Fatalf("address %d in order is %v", i, a)
		}
	}
	stored := make([]uint64, len(addrs))
	for i, a := range addrs {
		stored[i] = uint64(a)
	}
	checkShifted(t, s, "index.idx", stored)
	c, err := f.Remap(t.Context(), shifted{}, Options{})
	noError(t, err)
	made := wholeOf(t, c)
	if len(made) != len(b) {
		t.Fatalf("%d bytes, want %d", len(made), len(b))
	}
	differ := 0
	for i := range b {
		if b[i] != made[i] {
			differ++
		}
	}
	if differ == 0 || differ > 8*300 {
		t.Errorf("%d bytes differ", differ)
	}
}

func TestLegacyVectorPartitions(t *testing.T) {
	// Three partitions with vectors, two without, out of order in the file, of codes of 3 bytes.
	data := bytes.Repeat([]byte{0xC0}, 200)
	put := func(off int, ids ...uint64) {
		for i, v := range ids {
			binary.LittleEndian.PutUint64(data[off+3*len(ids)+8*i:], v)
		}
	}
	put(100, 1<<32|5, 2<<32|6)
	put(3, 3<<32|1, 9<<32, 1<<32)
	put(160, 2<<32|0xFFFFFFFF)
	stored := []uint64{1<<32 | 5, 2<<32 | 6, 3<<32 | 1, 9 << 32, 1 << 32, 2<<32 | 0xFFFFFFFF}
	for _, packed := range []bool{true, false} {
		b := legacyFile(data, []uint64{100, 1 << 60, 3, 0, 160}, []uint64{2, 0, 3, 0, 1}, 8, 3, packed)
		checkShifted(t, memSegment("VECTOR", map[string][]byte{"index.idx": b}), "index.idx", stored)
	}
	none := legacyFile(nil, nil, nil, 8, 3, true)
	checkShifted(t, memSegment("VECTOR", map[string][]byte{"index.idx": none}), "index.idx", nil)
}

func TestLegacyVectorRefuses(t *testing.T) {
	data := make([]byte, 200)
	good := legacyFile(data, []uint64{0, 100}, []uint64{5, 5}, 8, 4, true)
	flip := func(at int, v byte) []byte {
		b := slices.Clone(good)
		b[at] = v
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		kind fault.Kind
		want string
	}{
		{"overlapping partitions", legacyFile(data, []uint64{0, 59}, []uint64{5, 5}, 8, 4, true), fault.Corrupt, "another one ends at 60"},
		{"equal partitions", legacyFile(data, []uint64{7, 7}, []uint64{5, 5}, 8, 4, true), fault.Corrupt, "another one"},
		{"a partition past the message", legacyFile(data, []uint64{190}, []uint64{1}, 8, 4, true), fault.Corrupt, "partition 0"},
		{"an offset of 2^63", legacyFile(data, []uint64{1 << 63}, []uint64{1}, 8, 4, true), fault.Corrupt, "partition 0"},
		{"a length of 2^61", legacyFile(data, []uint64{0}, []uint64{1 << 61}, 8, 4, true), fault.Corrupt, "partition 0"},
		{"fewer lengths than offsets", legacyFile(data, []uint64{0, 100}, []uint64{1}, 8, 4, true), fault.Corrupt, "2 offsets and 1 lengths"},
		{"a PQ of 16 bits", legacyFile(data, nil, nil, 16, 4, true), fault.Unsupported, "16 bits"},
		{"no sub-vectors", legacyFile(data, nil, nil, 8, 0, true), fault.Unsupported, "0 sub-vectors"},
		{"half a byte per code", legacyFile(data, nil, nil, 4, 3, true), fault.Unsupported, "3 sub-vectors"},
		{"no PQ", legacyMessage(data, message(2, nil)), fault.Unsupported, "not IVF_PQ"},
		{"no IVF", legacyMessage(data), fault.Unsupported, "not IVF_PQ"},
		{"a graph", legacyMessage(data, message(5, nil)), fault.Unsupported, "stage 5"},
		{"a message that does not decode", legacyTrailer(data, []byte{0x2a, 9}), fault.Corrupt, "does not decode"},
		{"offsets that do not decode", legacyMessage(data, message(2, message(2, []byte{0x80}))), fault.Corrupt, "does not decode"},
		{"a message longer than the file", flip(203, 0x7f), fault.Corrupt, "does not fit"},
		{"a message behind the end", flip(len(good)-9, 0x7f), fault.Corrupt, "is said to be at"},
		{"only a trailer", good[len(good)-16:], fault.Corrupt, "is said to be at"},
		{"less than a trailer", good[len(good)-15:], fault.Corrupt, "too short"},
		{"version 3", flip(len(good)-6, 3), fault.Corrupt, ""},
		{"no magic", flip(len(good)-1, 'X'), fault.Corrupt, "magic"},
		{"empty", nil, fault.Corrupt, "too short"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := memSegment("VECTOR", map[string][]byte{"index.idx": c.b}).Open(t.Context(), "index.idx")
			if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func FuzzLegacyVector(f *testing.F) {
	b, err := os.ReadFile(filepath.Join("testdata", "legacy_ivf_pq4.idx"))
	noError(f, err)
	f.Add(b)
	f.Add(legacyFile(make([]byte, 200), []uint64{0, 100, 3}, []uint64{5, 5, 0}, 8, 4, true))
	f.Add(legacyFile(make([]byte, 50), []uint64{0}, []uint64{3}, 4, 4, false))
	f.Add(legacyFile(nil, nil, nil, 8, 4, true))
	f.Fuzz(func(t *testing.T, b []byte) {
		openAnything(t, "VECTOR", "index.idx", map[string][]byte{"index.idx": b})
	})
}

// openAnything opens a file of arbitrary content and, where that works, has it scanned and remapped: no panic, an error
// or as many addresses as the made file has.
func openAnything(t *testing.T, typ, path string, files map[string][]byte) {
	s := memSegment(typ, files)
	f, err := s.Open(t.Context(), path)
	if err != nil {
		if fault.KindOf(err) == fault.Unknown {
			t.Fatalf("an error without a kind: %v", err)
		}
		return
	}
	defer f.Close()
	cur, err := f.Scan(t.Context(), Position{})
	if err != nil || cur == nil {
		return
	}
	var addrs []fri.RowAddr
	for len(addrs) < 1<<16 {
		var b Batch
		if err := cur.Next(t.Context(), &b, 5000); err != nil || len(b.Addrs) == 0 {
			break
		}
		addrs = append(addrs, b.Addrs...)
	}
	c, err := f.Remap(t.Context(), shifted{}, Options{})
	if err != nil || c.Size() > 1<<24 {
		return
	}
	defer c.Close()
	made := make([]byte, c.Size())
	n, err := c.ReadAt(t.Context(), made, 0)
	if err != nil || int64(n) != c.Size() {
		return
	}
	if f.How != Flat && f.How != InPlace {
		return
	}
	again := memSegment(typ, map[string][]byte{path: made})
	again.layout = s.layout
	g, err := again.Open(t.Context(), path)
	if err != nil {
		t.Fatalf("the made file does not open: %v", err)
	}
	cur, err = g.Scan(t.Context(), Position{})
	noError(t, err)
	for row := 0; row < len(addrs); {
		var b Batch
		if err := cur.Next(t.Context(), &b, 5000); err != nil {
			t.Fatalf("the made file does not read: %v", err)
		}
		if len(b.Addrs) == 0 {
			t.Fatalf("%d addresses, want %d", row, len(addrs))
		}
		for _, a := range b.Addrs[:min(len(b.Addrs), len(addrs)-row)] {
			if want := shiftedWant(row, uint64(addrs[row])); uint64(a) != want {
				t.Fatalf("row %d: %x, want %x", row, a, want)
			}
			row++
		}
	}
}
