package addrset

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func addrs(pairs ...uint32) (all []fri.RowAddr) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, fri.Addr(fri.FragID(pairs[i]), pairs[i+1]))
	}
	return all
}

func members(s *Set, rows RowCount) (all []fri.RowAddr) {
	m := s.Members(rows)
	for buf := make([]fri.RowAddr, 7); ; {
		n := m.Next(buf)
		if n == 0 {
			return all
		}
		all = append(all, buf[:n]...)
	}
}

// vectors are real and computed bytes of the format pages; what Encode makes of them where that is shorter.
var vectors = []struct {
	name   string
	format Format
	hex    string
	want   []fri.RowAddr
	again  string // "" = the same bytes
}{
	{"a bitmap cell of one row, by Lance 14.0.2", Tree, "01000000 00000000 12000000 3a300000 01000000 0000 0000 10000000 0000", addrs(0, 0), ""},
	{"the same with the run cookie", Tree, "01000000 00000000 0f000000 3b300000 01 0000 0000 0100 0000 0000",
		addrs(0, 0), "01000000 00000000 12000000 3a300000 01000000 0000 0000 10000000 0000"},
	{"no row", Tree, "00000000", nil, ""},
	{"a fragment without rows", Tree, "01000000 07000000 08000000 3a300000 00000000", nil, "00000000"},
	{"a whole fragment", Tree, "01000000 03000000 00000000", addrs(3, 0, 3, 1, 3, 2), ""},
	{"bytes behind the set", Tree, "00000000 ff", nil, "00000000"},
	{"V1: two fragments", Treemap64, "0200000000000000 01000000 3a30000001000000 0000 0200 10000000 0000 0200 0300 02000000 3a30000001000000 0000 0000 10000000 0000",
		addrs(1, 0, 1, 2, 1, 3, 2, 0), ""},
	{"V2: a run", Treemap64, "0100000000000000 03000000 3b300000 01 0000 0900 0100 0000 0900",
		addrs(3, 0, 3, 1, 3, 2, 3, 3, 3, 4, 3, 5, 3, 6, 3, 7, 3, 8, 3, 9), ""},
	{"V6: arrays", Treemap64, "02000000000000000a0000003a3000000100000000000500100000000000010003000400060007000b0000003a3000000100000000000300100000000000010002000300",
		addrs(10, 0, 10, 1, 10, 3, 10, 4, 10, 6, 10, 7, 11, 0, 11, 1, 11, 2, 11, 3),
		"02000000000000000a0000003a3000000100000000000500100000000000010003000400060007000b0000003b300000010000 0300 0100 0000 0300"},
	{"no row in a treemap", Treemap64, "0000000000000000", nil, ""},
}

func threeRows(fri.FragID) (uint64, bool) { return 3, true }

func TestVectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			s, err := Decode(unhex(t, v.hex), v.format)
			if err != nil {
				t.Fatal(err)
			}
			if got := members(s, threeRows); !slices.Equal(got, v.want) {
				t.Errorf("members: got %v, want %v", got, v.want)
			}
			if n, unknown := s.Len(threeRows); n != uint64(len(v.want)) || unknown != 0 {
				t.Errorf("length: got %d and %d unknown, want %d", n, unknown, len(v.want))
			}
			want := v.again
			if want == "" {
				want = v.hex
			}
			got, err := Encode(s, v.format)
			if err != nil || !bytes.Equal(got, unhex(t, want)) {
				t.Errorf("encoded: got %x, %v, want %x", got, err, unhex(t, want))
			}
		})
	}
}

// hostile are sets that must be refused, with a part of the message.
var hostile = []struct {
	name   string
	format Format
	hex    string
	want   string
}{
	{"nothing", Tree, "", "needs 4 bytes, there are 0"},
	{"half a count", Treemap64, "00000000", "needs 8 bytes, there are 4"},
	{"a count of 2^32-1", Tree, "ffffffff 00000000 00000000", "claims 4294967295 fragments"},
	{"a count of 2^63", Treemap64, "0000000000000080 00000000 3a30000000000000", "claims 9223372036854775808 fragments"},
	{"fragments that descend", Tree, "02000000 02000000 00000000 01000000 00000000", "byte 12 of the set: corrupt: fragment 1 after fragment 2"},
	{"a fragment twice", Tree, "02000000 02000000 00000000 02000000 00000000", "fragment 2 after fragment 2"},
	{"a bitmap longer than the set", Tree, "01000000 02000000 ffffffff 3a300000 00000000", "said to have 4294967295 bytes, 8 are left"},
	{"a bitmap of four bytes", Tree, "01000000 02000000 04000000 3a300000", "needs 8 bytes or more, 4 are left"},
	{"2^31 containers", Tree, "01000000 02000000 08000000 3a300000 00000080", "a bitmap of 2147483648 containers; the limit is 65536"},
	{"65,536 containers in eight bytes", Tree, "01000000 02000000 08000000 3a300000 00000100", "need 524288 bytes"},
	{"65,536 containers with runs", Tree, "01000000 02000000 08000000 3b30ffff 00000100", "need 8192 bytes"},
	{"another cookie", Tree, "01000000 02000000 08000000 39300000 00000000", "cookie 0x3039"},
	{"containers that descend", Tree, "01000000 00000000 1c000000 3a300000 02000000 0100 0000 0000 0000 18000000 1a000000 0000 0000", "container 0 after container 1"},
	{"a container twice", Tree, "01000000 00000000 1c000000 3a300000 02000000 0100 0000 0100 0000 18000000 1a000000 0000 0000", "container 1 after container 1"},
	{"array values that repeat", Tree, "01000000 00000000 14000000 3a300000 01000000 0000 0100 10000000 0500 0500", "value 5 after 5"},
	{"an array cut short", Tree, "01000000 00000000 12000000 3a300000 01000000 0000 0100 10000000 0500", "needs 4 bytes, 2 are left"},
	{"bits cut short", Tree, "01000000 00000000 12000000 3a300000 01000000 0000 ffff 10000000 0500", "needs 8192 bytes, 2 are left"},
	{"no runs", Tree, "01000000 00000000 0b000000 3b300000 01 0000 0000 0000", "has no runs"},
	{"runs that touch", Tree, "01000000 00000000 13000000 3b300000 01 0000 0300 0200 0000 0100 0200 0100", "runs must ascend and not touch"},
	{"runs that overlap", Tree, "01000000 00000000 13000000 3b300000 01 0000 0300 0200 0000 0100 0100 0100", "runs must ascend and not touch"},
	{"a run past the end", Tree, "01000000 00000000 0f000000 3b300000 01 0000 0100 0100 ffff 0100", "past 65535"},
	{"a run container with another cardinality", Tree, "01000000 00000000 0f000000 3b300000 01 0000 0500 0100 0000 0100", "hold 2 values, the header says 6"},
	{"runs cut short", Tree, "01000000 00000000 0f000000 3b300000 01 0000 0500 ffff 0000 0100", "needs 262142 bytes"},
}

func TestHostile(t *testing.T) {
	for _, h := range hostile {
		t.Run(h.name, func(t *testing.T) {
			_, err := Decode(unhex(t, h.hex), h.format)
			if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), h.want) {
				t.Errorf("got %v, want corrupt: %q", err, h.want)
			}
		})
	}
	b := make([]byte, 4+8+16+bitsLen)
	copy(b, unhex(t, "01000000 00000000 10200000 3a300000 01000000 0000 ffff 10000000"))
	if _, err := Decode(b, Tree); err == nil || !strings.Contains(err.Error(), "0 bits are set, the header says 65536") {
		t.Errorf("bits without a bit: %v", err)
	}
	if _, err := Decode(b, FormatUnknown); fault.KindOf(err) != fault.Invalid {
		t.Errorf("no format: %v", err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	one := roaring.BitmapOf(1)
	for _, c := range []struct {
		name   string
		set    Set
		format Format
	}{
		{"fragments out of order", Set{[]Entry{{Frag: 2, Bitmap: one}, {Frag: 1, Bitmap: one}}}, Tree},
		{"a whole fragment in a treemap", Set{[]Entry{{Frag: 2, Whole: true}}}, Treemap64},
		{"no format", Set{}, FormatUnknown},
	} {
		if _, err := Encode(&c.set, c.format); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: got %v, want invalid", c.name, err)
		}
	}
}

func TestWholeFragments(t *testing.T) {
	s := &Set{[]Entry{{Frag: 1, Whole: true}, {Frag: 2, Whole: true}, {Frag: 3, Bitmap: roaring.BitmapOf(9)}}}
	rows := func(f fri.FragID) (uint64, bool) { return 2, f == 2 }
	m := s.Members(rows)
	buf := make([]fri.RowAddr, 8)
	if n := m.Next(buf); !slices.Equal(buf[:n], addrs(2, 0, 2, 1, 3, 9)) {
		t.Errorf("members: %v", buf[:n])
	}
	if got := m.Unknown(); !slices.Equal(got, []fri.FragID{1}) {
		t.Errorf("unknown: %v", got)
	}
	if n, unknown := s.Len(nil); n != 1 || unknown != 2 {
		t.Errorf("length without row counts: %d, %d unknown", n, unknown)
	}
	m = s.Members(rows)
	m.Skip(1)
	if n := m.Next(buf); !slices.Equal(buf[:n], addrs(2, 1, 3, 9)) || len(m.Unknown()) != 1 {
		t.Errorf("after skipping one: %v, unknown %v", buf[:n], m.Unknown())
	}
}

// drawSet draws addresses in few fragments: single ones, and runs that make every kind of container.
func drawSet(t *rapid.T) []fri.RowAddr {
	var all []fri.RowAddr
	frags := rapid.SliceOfNDistinct(rapid.Uint32(), 1, 4, rapid.ID).Draw(t, "fragments")
	for range rapid.IntRange(0, 6).Draw(t, "pieces") {
		f := fri.FragID(rapid.SampledFrom(frags).Draw(t, "fragment"))
		from := rapid.Uint32Range(0, 1<<18).Draw(t, "from")
		n := rapid.SampledFrom([]uint32{1, 3, 100, 5000, 70000}).Draw(t, "rows")
		step := rapid.SampledFrom([]uint32{1, 2, 17}).Draw(t, "step")
		for i := uint32(0); i < n; i += step {
			all = append(all, fri.Addr(f, from+i))
		}
	}
	return all
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawSet(t)
		format := rapid.SampledFrom([]Format{Tree, Treemap64}).Draw(t, "format")
		var forward, backward Builder
		forward.Add(in...)
		for i := len(in) - 1; i >= 0; i-- {
			backward.Add(in[i])
		}
		b, err := Encode(forward.Set(), format)
		if err != nil {
			t.Fatal(err)
		}
		if b2, err := Encode(backward.Set(), format); err != nil || !bytes.Equal(b, b2) {
			t.Fatalf("another order gives other bytes (%d and %d), %v", len(b), len(b2), err)
		}
		s, err := Decode(b, format)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(in)
		slices.Sort(want)
		want = slices.Compact(want)
		if got := members(s, nil); !slices.Equal(got, want) {
			t.Fatalf("got %d members, want %d", len(got), len(want))
		}
		skip := rapid.IntRange(0, len(want)+2).Draw(t, "skip")
		m := s.Members(nil)
		m.Skip(uint64(skip))
		rest := make([]fri.RowAddr, len(want)+1)
		if n := m.Next(rest); !slices.Equal(rest[:n], want[min(skip, len(want)):]) {
			t.Fatalf("%d members after skipping %d of %d", n, skip, len(want))
		}
		if b2, err := Encode(s, format); err != nil || !bytes.Equal(b, b2) {
			t.Fatalf("the decoded set encodes to %d bytes, not the same %d, %v", len(b2), len(b), err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, v := range vectors {
		f.Add(unhex(f, v.hex), uint8(v.format))
	}
	for _, h := range hostile {
		f.Add(unhex(f, h.hex), uint8(h.format))
	}
	f.Fuzz(func(t *testing.T, b []byte, format uint8) {
		s, err := Decode(b, Format(format))
		if err != nil {
			if k := fault.KindOf(err); k != fault.Corrupt && k != fault.Invalid {
				t.Fatalf("kind of %v", err)
			}
			return
		}
		got := members(s, threeRows)
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Fatalf("members do not ascend")
		}
		again, err := Encode(s, Format(format))
		if err != nil {
			t.Fatal(err)
		}
		s2, err := Decode(again, Format(format))
		if err != nil {
			t.Fatalf("own bytes are refused: %v", err)
		}
		if !slices.Equal(members(s2, threeRows), got) {
			t.Fatalf("encoding changes the set")
		}
	})
}
