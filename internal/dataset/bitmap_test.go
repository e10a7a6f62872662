package dataset

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"
)

// drawBitmap makes a bitmap with containers of all kinds.
func drawBitmap(t *rapid.T) *roaring.Bitmap {
	bm := roaring.New()
	for range rapid.IntRange(0, 6).Draw(t, "pieces") {
		base := uint64(rapid.Uint32Range(0, 20).Draw(t, "key")) << 16
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			for _, v := range rapid.SliceOfN(rapid.Uint16(), 0, 50).Draw(t, "array") {
				bm.Add(uint32(base) + uint32(v))
			}
		case 1:
			from := rapid.Uint64Range(0, 65535).Draw(t, "from")
			bm.AddRange(base+from, base+rapid.Uint64Range(from, 65536).Draw(t, "to"))
		default:
			for v := uint32(rapid.IntRange(0, 3).Draw(t, "start")); v < 65536; v += 7 {
				bm.Add(uint32(base) + v)
			}
		}
	}
	if rapid.Bool().Draw(t, "runs") {
		bm.RunOptimize()
	}
	return bm
}

func TestBitmapsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawBitmap(t)
		b, err := want.ToBytes()
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeBitmap(b)
		if err != nil || !got.Equals(want) {
			t.Fatalf("%x: %v", b, err)
		}
		if n := rapid.IntRange(0, len(b)-1).Draw(t, "cut"); n < len(b) {
			if _, err := DecodeBitmap(b[:n]); err == nil {
				t.Fatalf("the first %d of %d bytes decode", n, len(b))
			}
		}
		if _, err := DecodeBitmap(append(bytes.Clone(b), 0)); err == nil {
			t.Fatal("a trailing byte decodes")
		}
	})
}

func TestBitmapsThatAreRefused(t *testing.T) {
	u16 := func(v ...uint16) (b []byte) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint16(b, x)
		}
		return b
	}
	plain := func(n uint32, rest []byte) []byte {
		return append(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, cookieNoRuns), n), rest...)
	}
	run := func(card uint16, pairs ...uint16) []byte {
		b := binary.LittleEndian.AppendUint32(nil, cookieRuns)
		b = append(b, 1)
		b = append(b, u16(0, card-1, uint16(len(pairs)/2))...)
		return append(b, u16(pairs...)...)
	}
	for _, tt := range []struct {
		name  string
		bytes []byte
		says  string // "" = accepted
	}{
		{"one array", plain(1, append(u16(0, 1, 0, 0), u16(4, 9)...)), ""},
		{"runs", run(5, 1, 1, 10, 2), ""},
		{"too short", []byte{0x3A, 0x30}, "2 bytes"},
		{"cookie", []byte{1, 2, 3, 4}, "cookie"},
		{"huge count", plain(1<<31, nil), "at most 65536"},
		{"count without headers", plain(1<<16, nil), "headers"},
		{"keys descend", plain(2, append(u16(1, 0, 0, 0, 0, 0, 0, 0), u16(4, 9)...)), "does not ascend"},
		{"values repeat", plain(1, append(u16(0, 1, 0, 0), u16(4, 4)...)), "does not ascend"},
		{"values descend", plain(1, append(u16(0, 1, 0, 0), u16(9, 4)...)), "does not ascend"},
		{"bitmap of the wrong cardinality", plain(1, append(u16(0, 5000, 0, 0), make([]byte, 8192)...)), "holds 0 values"},
		{"no runs", run(1), "0 runs"},
		{"runs overlap", run(4, 1, 1, 2, 1), "overlaps or touches"},
		{"runs touch", run(4, 1, 1, 3, 1), "overlaps or touches"},
		{"runs descend", run(4, 9, 1, 3, 1), "overlaps or touches"},
		{"run leaves the container", run(3, 65534, 2), "leaves the container"},
		{"runs of the wrong cardinality", run(9, 1, 1), "header says 9"},
		{"run flags cut", binary.LittleEndian.AppendUint32(nil, cookieRuns|0xFFFF<<16), "run flags"},
	} {
		_, err := DecodeBitmap(tt.bytes)
		if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
	}
}
