package mapcsv

import (
	"fmt"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fri"
)

func naiveHalf(f fri.FragID, off uint32) string {
	return fmt.Sprintf("%d,%d,%d", uint64(f)<<32|uint64(off), f, off)
}

func TestWidth(t *testing.T) {
	vs := []uint64{0, 1, 9, 1<<64 - 1, 1 << 63, 1<<63 - 1}
	for _, p := range pow10 {
		vs = append(vs, p, p-1, p+1)
	}
	for i := range 64 {
		vs = append(vs, 1<<i, 1<<i-1)
	}
	for _, v := range vs {
		want := strconv.FormatUint(v, 10)
		if got := width(v); got != len(want) {
			t.Errorf("width(%d) = %d", v, got)
		}
		if got := string(appendUint(nil, v)); got != want {
			t.Errorf("appendUint(%d) = %s", v, got)
		}
	}
}

// frags draws fragment ids around the places where widths change.
func frags() *rapid.Generator[fri.FragID] {
	return rapid.OneOf(
		rapid.SampledFrom([]fri.FragID{0, 1, 2, 9, 10, 23, 232, 2328, 23283, 232830, 2328306, 23283064, 232830643, 2328306436, 1<<32 - 1}),
		rapid.Custom(func(t *rapid.T) fri.FragID { return fri.FragID(rapid.Uint32().Draw(t, "frag")) }),
	)
}

// offsets draws row offsets around the places where widths change.
func offsets(f fri.FragID) *rapid.Generator[uint64] {
	return rapid.Custom(func(t *rapid.T) uint64 {
		base := rapid.SampledFrom([]uint64{0, 10, 100, 1000, 10000, 100000, 1e6, 1e9, maxRows, widthChange(f, 1e9)}).Draw(t, "base")
		off := int64(base) + int64(rapid.IntRange(-30, 30).Draw(t, "delta"))
		return uint64(min(max(off, 0), maxRows-1))
	})
}

func TestHalfBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := frags().Draw(t, "f")
		lo := offsets(f).Draw(t, "lo")
		n := min(rapid.Uint64Range(0, 2000).Draw(t, "n"), maxRows-lo)
		var want uint64
		for o := lo; o < lo+n; o++ {
			w := len(naiveHalf(f, uint32(o)))
			if got := halfWidth(f, uint32(o)); got != w {
				t.Fatalf("halfWidth(%d,%d) = %d, want %d", f, o, got, w)
			}
			want += uint64(w)
			if o > lo && (w != halfWidth(f, uint32(o-1))) != (widthChange(f, o-1) == o) {
				t.Fatalf("widthChange(%d,%d) = %d", f, o-1, widthChange(f, o-1))
			}
		}
		if got := halfBytes(f, lo, n); got != want {
			t.Fatalf("halfBytes = %d, want %d", got, want)
		}
		s := newSums(f)
		if got := s.prefix(lo+n) - s.prefix(lo); got != want {
			t.Fatalf("prefix = %d, want %d", got, want)
		}
	})
}

func TestHalfPut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := frags().Draw(t, "f")
		off := offsets(f).Draw(t, "off")
		var h half
		h.at(off)
		var d [window]byte
		for range 60 {
			k := rapid.SampledFrom([]uint64{0, 0, 0, 0, 1, 5, 9999, 10000, 25000}).Draw(t, "skip")
			if off+k >= maxRows {
				return
			}
			h.skip(k)
			off += k
			if h.left() == 0 {
				h.refill(f)
			}
			if h.off() != off {
				t.Fatalf("off = %d, want %d", h.off(), off)
			}
			n := h.put(&d, '\n')
			if got, want := string(d[:n]), naiveHalf(f, uint32(off))+"\n"; got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
			off++
			if off == maxRows {
				return
			}
		}
	})
}

func TestSidePut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s side
		var d [window]byte
		f := frags().Draw(t, "f")
		for range 30 {
			if rapid.IntRange(0, 9).Draw(t, "other") == 0 {
				f = frags().Draw(t, "f")
			}
			off := uint32(offsets(f).Draw(t, "off"))
			for range 20 {
				n := s.put(&d, fri.Addr(f, off), '\n')
				if got, want := string(d[:n]), naiveHalf(f, off)+"\n"; got != want {
					t.Fatalf("got %q, want %q", got, want)
				}
				gap := rapid.SampledFrom([]uint32{1, 1, 2, 7, 1000, 10001, 1 << 20}).Draw(t, "gap")
				if off+gap < off {
					break
				}
				off += gap
			}
		}
	})
}
