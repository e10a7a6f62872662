package mapcsv

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// sizes draws a bound for the rows of a side: mostly a small one. Larger sides are in tables, not in properties.
func sizes(t *rapid.T) int {
	return rapid.SampledFrom([]int{20, 20, 20, 60, 60, 60, 200, 200, 1500}).Draw(t, "max")
}

// fataler is what *testing.T, *testing.B and *rapid.T share.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// readAll reads a whole file in pieces of the given size.
func readAll(t fataler, f File, piece int) []byte {
	t.Helper()
	size, err := f.Size(context.Background())
	if err != nil {
		t.Fatalf("Size: %v", err)
	}
	out := make([]byte, size)
	for off := int64(0); off < size; off += int64(piece) {
		p := out[off:min(off+int64(piece), size)]
		if n, err := f.ReadAt(context.Background(), p, off); err != nil || n != len(p) {
			t.Fatalf("ReadAt(%d bytes at %d of %d) = %d, %v", len(p), off, size, n, err)
		}
	}
	return out
}

// differ describes the first difference of two texts.
func differ(got, want []byte) string {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	if i == len(got) && i == len(want) {
		return ""
	}
	lo := max(0, i-100)
	return fmt.Sprintf("%d and %d bytes, first difference at %d:\n got %q\nwant %q", len(got), len(want), i,
		got[lo:min(len(got), i+100)], want[lo:min(len(want), i+100)])
}

// checkFile compares a file with the text it must have, read in every manner.
func checkFile(t fataler, name string, open func() File, want []byte, rnd *rand.Rand) {
	t.Helper()
	ctx := context.Background()
	size := int64(len(want))
	f := open()
	if n, err := f.Size(ctx); err != nil || n != size {
		t.Fatalf("%s: Size = %d, %v, want %d; %s", name, n, err, size, differ(readAll(t, f, 1<<16), want))
	}
	for _, piece := range []int{1 << 20, 33333, 4096, 700, 61} {
		if size > int64(piece)*300 {
			continue
		}
		if d := differ(readAll(t, open(), piece), want); d != "" {
			t.Fatalf("%s: in pieces of %d: %s", name, piece, d)
		}
	}
	if size < 3000 {
		if d := differ(readAll(t, open(), 1), want); d != "" {
			t.Fatalf("%s: byte by byte: %s", name, d)
		}
	}
	check := func(f File, off int64, n int) error {
		p := make([]byte, n)
		k, err := f.ReadAt(ctx, p, off)
		if err != nil {
			return err
		}
		w := want[min(off, size):min(off+int64(n), size)]
		if k != len(w) || !bytes.Equal(p[:k], w) {
			return fmt.Errorf("%s: %d bytes at %d: %s", name, n, off, differ(p[:k], w))
		}
		return nil
	}
	for range 30 {
		off := rnd.Int64N(size + 10)
		n := []int{1, 2, 40, 100, 1000, 1056, 5000, 40000}[rnd.IntN(8)]
		if err := check(f, off, n); err != nil {
			t.Fatalf("%v", err)
		}
	}
	for _, off := range []int64{size - 1, size, size + 1, size + 1<<40} {
		if err := check(f, max(off, 0), 10); err != nil {
			t.Fatalf("%v", err)
		}
	}
	if _, err := f.ReadAt(ctx, make([]byte, 1), -1); err == nil {
		t.Fatalf("%s: no error for a negative offset", name)
	}
	f = open()
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for g := range errs {
		seed := rnd.Uint64()
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, 1))
			off := rnd.Int64N(size)
			for range 20 {
				n := 1 + rnd.IntN(3000)
				if errs[g] = check(f, off, n); errs[g] != nil {
					return
				}
				if off += int64(n); off >= size || rnd.IntN(8) == 0 {
					off = rnd.Int64N(size)
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatalf("concurrent: %v", err)
		}
	}
}

func TestTextPastErrors(t *testing.T) {
	f := newText("a\n", failing{})
	if _, err := f.Size(context.Background()); err == nil {
		t.Error("Size of a body without length: no error")
	}
	if _, err := f.ReadAt(context.Background(), make([]byte, 1), 0); err == nil {
		t.Error("ReadAt of a body without length: no error")
	}
}

type failing struct{}

func (failing) length(context.Context) (int64, error) { return 0, fmt.Errorf("no length") }
func (failing) open(context.Context, int64) (lineReader, int, error) {
	return nil, 0, fmt.Errorf("not reached")
}
