package indexfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fri"
)

// list is a numbered list in memory, which counts what is read from it.
type list struct {
	mu     sync.Mutex
	values []uint64
	asked  int
	fail   error
}

func (l *list) count() uint64 { return uint64(len(l.values)) }

func (l *list) read(_ context.Context, from uint64, dst []fri.RowAddr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked += len(dst)
	if l.fail != nil {
		return l.fail
	}
	for i := range dst {
		dst[i] = fri.RowAddr(l.values[from+uint64(i)])
	}
	return nil
}

func TestTranslatedRanges(t *testing.T) {
	values := mixed(150_000)
	var made []byte
	for row, v := range values {
		made = binary.LittleEndian.AppendUint64(made, shiftedWant(row, v))
	}
	rapid.Check(t, func(t *rapid.T) {
		x := newTranslated(&list{values: values}, shifted{})
		n := uint64(len(values))
		last := uint64(0)
		for range rapid.IntRange(1, 12).Draw(t, "reads") {
			from := last
			if rapid.Bool().Draw(t, "jump") {
				from = rapid.Uint64Range(0, n-1).Draw(t, "from")
			}
			size := min(rapid.Uint64Range(0, 4200).Draw(t, "rows"), n-from)
			if rapid.IntRange(0, 99).Draw(t, "large") == 99 {
				size = min(70_000, n-from)
			}
			off := int64(rapid.IntRange(0, 7).Draw(t, "cut"))
			if size == 0 {
				off = 0
			}
			p := make([]byte, 8*int64(size)-off)
			if err := x.bytes(context.Background(), p, from, off); err != nil {
				t.Fatal(err)
			}
			if want := made[8*from+uint64(off):][:len(p)]; !bytes.Equal(p, want) {
				t.Fatalf("%d bytes at %d of rows from %d on differ", len(p), off, from)
			}
			last = from + size
			if len(x.kept) > streams {
				t.Fatalf("%d batches kept", len(x.kept))
			}
		}
	})
}

func TestSmallStepsAreBatched(t *testing.T) {
	src := &list{values: mixed(300_000)}
	x := newTranslated(src, shifted{})
	const rows = 512
	dst := make([]byte, 8*rows)
	reads := 0
	for from := 0; from+rows <= len(src.values); from += rows {
		noError(t, x.fill(t.Context(), uint64(from), dst))
		reads++
	}
	if src.asked > len(src.values)+2*rows {
		t.Errorf("%d rows were read for %d", src.asked, len(src.values))
	}
	// A reader that jumps about reads what it asks for, and no more.
	src.asked = 0
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		noError(t, x.fill(t.Context(), uint64(2*rng.IntN(100_000)+1), dst))
	}
	if src.asked > 200*rows+directRows {
		t.Errorf("%d rows were read for %d", src.asked, 200*rows)
	}
}

func TestFailuresAreNotKept(t *testing.T) {
	src := &list{values: mixed(1000), fail: errors.New("away")}
	x := newTranslated(src, shifted{})
	var dst [80]byte
	if err := x.fill(t.Context(), 5, dst[:]); !errors.Is(err, src.fail) {
		t.Fatalf("%v", err)
	}
	src.fail = nil
	noError(t, x.fill(t.Context(), 5, dst[:]))
	if got, want := binary.LittleEndian.Uint64(dst[:]), shiftedWant(5, src.values[5]); got != want {
		t.Errorf("%x, want %x", got, want)
	}
}

func TestTranslatedByManyReaders(t *testing.T) {
	src := &list{values: mixed(100_000)}
	x := newTranslated(src, shifted{})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(g)))
			const rows = 900
			dst := make([]byte, 8*rows)
			from := 0
			for range 60 {
				if from+rows > len(src.values) || rng.IntN(5) == 0 {
					from = rng.IntN(len(src.values) - rows)
				}
				if err := x.fill(t.Context(), uint64(from), dst); err != nil {
					t.Error(err)
					return
				}
				for i := range rows {
					v := binary.LittleEndian.Uint64(dst[8*i:])
					if want := shiftedWant(from+i, src.values[from+i]); v != want {
						t.Errorf("row %d: %x, want %x", from+i, v, want)
						return
					}
				}
				from += rows
			}
		})
	}
	wg.Wait()
}
