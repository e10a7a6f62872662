package lancefile

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/internal/lancefile/lancetest"
)

func checkUnits[T Word](t *testing.T) {
	tbits := 8 * width[T]()
	t.Run(fmt.Sprintf("u%d", tbits), func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			w := rapid.IntRange(0, tbits).Draw(t, "w")
			n := rapid.SampledFrom([]int{0, 1, 63, 1023, 1024, 1025, 2048, 2100}).Draw(t, "n")
			raw := rapid.Bool().Draw(t, "raw")
			seed := rapid.Uint64().Draw(t, "seed")
			values := make([]uint64, n)
			want := make([]T, n)
			for i := range values {
				seed = seed*6364136223846793005 + 1442695040888963407
				if w > 0 {
					values[i] = (seed ^ seed>>31) & (^uint64(0) >> (64 - w))
				}
				want[i] = T(values[i])
			}
			got := make([]T, n)
			if err := unpackAll(lancetest.PackAll(values, w, tbits, raw), w, got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("unpackAll differs: %v", got)
			}
			if n > 1024 {
				return
			}
			clear(got)
			if err := unpackInline(lancetest.PackInline(values, tbits), got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("unpackInline differs: %v", got)
			}
		})
	})
}

func TestUnpack(t *testing.T) {
	checkUnits[uint8](t)
	checkUnits[uint16](t)
	checkUnits[uint32](t)
	checkUnits[uint64](t)
}

func BenchmarkUnpack(b *testing.B) {
	for _, w := range []int{24, 36} {
		b.Run(fmt.Sprintf("u64/w=%d", w), func(b *testing.B) {
			packed := make([]byte, unitBytes(w))
			for i := range packed {
				packed[i] = byte(i * 37)
			}
			var out [unitValues]uint64
			b.SetBytes(8 * unitValues)
			for b.Loop() {
				unpackUnit(packed, w, &out)
			}
		})
	}
	for _, w := range []int{1, 6, 10, 16} {
		b.Run(fmt.Sprintf("u16/w=%d", w), func(b *testing.B) {
			packed := make([]byte, unitBytes(w))
			for i := range packed {
				packed[i] = byte(i * 37)
			}
			var out [unitValues]uint16
			b.SetBytes(2 * unitValues)
			for b.Loop() {
				unpackUnit(packed, w, &out)
			}
		})
	}
}

func TestPackedLevels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 63, 64, 65, 1000, 1023, 1024, 1025, 4096}).Draw(t, "n")
		w := rapid.IntRange(0, 1).Draw(t, "w")
		base := rapid.IntRange(0, 130).Draw(t, "base")
		seed := rapid.Uint64().Draw(t, "seed")
		levels := make([]uint64, n)
		want := nulls{words: make([]uint64, (base+n+63)/64), base: base}
		for i := range levels {
			seed = seed*6364136223846793005 + 1442695040888963407
			levels[i] = seed >> 40 & uint64(w)
			if levels[i] == 1 {
				want.set(i)
			}
		}
		got := nulls{words: make([]uint64, (base+n+63)/64), base: base}
		if !got.setPacked(lancetest.OutOfLine(16, w), lancetest.PackAll(levels, w, 16, false), n) {
			t.Fatal("not taken")
		}
		if !slices.Equal(got.words, want.words) || got.seen != want.seen {
			t.Fatalf("null bits %x (%d), want %x (%d)", got.words, got.seen, want.words, want.seen)
		}
	})
}
