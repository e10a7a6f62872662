package addrset

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// drawAddrs draws ascending addresses, some of them close together.
func drawAddrs(r *rapid.T, most int) []fri.RowAddr {
	var out []fri.RowAddr
	at := fri.Addr(fri.FragID(rapid.Uint32Range(0, 3).Draw(r, "fragment")), 0)
	for range rapid.IntRange(0, 12).Draw(r, "groups") {
		at += fri.RowAddr(rapid.SampledFrom([]uint64{1, 2, 50, 65_530, 1 << 16, 1<<32 - 3, 1 << 32}).Draw(r, "gap"))
		for range rapid.SampledFrom([]int{1, 2, 3, 4, 9, most}).Draw(r, "run") {
			out = append(out, at)
			at++
		}
	}
	return out
}

// Small sets go the same way as others, to the byte.
func TestSmallSetsAreLikeOthers(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		want := drawAddrs(r, rapid.SampledFrom([]int{1, 300}).Draw(r, "longest"))
		f := rapid.SampledFrom([]Format{Tree, Treemap64}).Draw(r, "format")
		var x Builder
		x.Add(want...)
		cell, err := Encode(x.Set(), f)
		if err != nil {
			r.Fatal(err)
		}
		if got := AppendEncoded([]byte("ab"), want, f); !bytes.Equal(got[2:], cell) {
			r.Fatalf("encoded %v:\n got %x\nwant %x", want, got[2:], cell)
		}
		before := []fri.RowAddr{7}
		got, fits, err := AppendMembers(before, cell, f, len(want))
		if err != nil || !fits || !slices.Equal(got[1:], want) {
			r.Fatalf("members: got %v, %v, %v, want %v", got, fits, err, want)
		}
		if len(want) > 0 {
			if got, fits, err := AppendMembers(before, cell, f, len(want)-1); err != nil || fits || len(got) != 1 {
				r.Fatalf("one more than fit: %d, %v, %v", len(got), fits, err)
			}
		}
	})
}

func TestSmallVectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			got, fits, err := AppendMembers(nil, unhex(t, v.hex), v.format, 100)
			if whole := v.name == "a whole fragment"; err != nil || fits == whole || fits && !slices.Equal(got, v.want) {
				t.Errorf("got %v, %v, %v, want %v", got, fits, err, v.want)
			}
		})
	}
	for _, v := range hostile {
		t.Run(v.name, func(t *testing.T) {
			_, want := Decode(unhex(t, v.hex), v.format)
			got, fits, err := AppendMembers(nil, unhex(t, v.hex), v.format, 100)
			if err == nil || err.Error() != want.Error() || fits || len(got) > 0 {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
	if _, _, err := AppendMembers(nil, nil, FormatUnknown, 1); !fault.Is(err, fault.Invalid) {
		t.Errorf("no format: %v", err)
	}
}
