package spill_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/spill"
)

// Whatever is appended comes back, from memory and from the file, while appending and after.
func TestReadsWhatWasAppended(t *testing.T) {
	dir := t.TempDir()
	random := make([]byte, 600_000)
	r := rand.NewChaCha8([32]byte{})
	r.Read(random)
	rapid.Check(t, func(t *rapid.T) {
		s := spill.New(dir, rapid.Int64Range(0, 400_000).Draw(t, "above"))
		defer s.Close()
		var want []byte
		for range rapid.IntRange(0, 8).Draw(t, "appends") {
			p := random[rapid.IntRange(0, 9999).Draw(t, "from"):][:rapid.SampledFrom([]int{0, 1, 63, 4096, 100_000, 256 << 10, 300_000}).Draw(t, "bytes")]
			if err := s.Append(p); err != nil {
				t.Fatal(err)
			}
			want = append(want, p...)
			if s.Size() != int64(len(want)) {
				t.Fatalf("size %d, want %d", s.Size(), len(want))
			}
			off := rapid.Int64Range(0, int64(len(want))+1).Draw(t, "off")
			got := make([]byte, rapid.IntRange(0, 300_000).Draw(t, "length"))
			n, err := s.ReadAt(got, off)
			expect := want[min(off, int64(len(want))):]
			expect = expect[:min(len(got), len(expect))]
			if !bytes.Equal(got[:n], expect) || (errors.Is(err, io.EOF)) != (n < len(got)) || (err != nil && !errors.Is(err, io.EOF)) {
				t.Fatalf("at %d of %d: %d bytes of %d, %v", off, len(want), n, len(got), err)
			}
		}
	})
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

func TestManyReaders(t *testing.T) {
	s := spill.New(t.TempDir(), 10)
	defer s.Close()
	want := bytes.Repeat([]byte("0123456789"), 60_000)
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			for k := range 200 {
				got := make([]byte, 1000)
				n, err := s.ReadAt(got, int64(i*100_000+k*10))
				if !bytes.Equal(got[:n], want[i*100_000+k*10:][:n]) || (err != nil && !errors.Is(err, io.EOF)) {
					t.Errorf("reader %d: %d bytes, %v", i, n, err)
					return
				}
			}
		})
	}
	for b := want; len(b) > 0; b = b[1000:] {
		if err := s.Append(b[:1000]); err != nil {
			t.Fatal(err)
		}
	}
	readers.Wait()
}

func TestErrors(t *testing.T) {
	memory := spill.New("", 10)
	if err := memory.Append(make([]byte, 10)); err != nil {
		t.Error(err)
	}
	if err := memory.Append([]byte{1}); !fault.Is(err, fault.TooLarge) {
		t.Errorf("one byte too many without a folder gives %v", err)
	}
	if n, err := memory.ReadAt(make([]byte, 10), 0); n != 10 || err != nil {
		t.Errorf("then ReadAt gives %d, %v", n, err)
	}
	if _, err := memory.ReadAt(make([]byte, 1), -1); !fault.Is(err, fault.Invalid) {
		t.Errorf("offset -1 gives %v", err)
	}
	if err := spill.New(filepath.Join(t.TempDir(), "none"), 0).Append([]byte{1}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a folder that is not there gives %v", err)
	}
}
