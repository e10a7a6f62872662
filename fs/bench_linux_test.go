package fs

import (
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
)

// The benchmarks read a mount that another process serves; what the tree below costs is left out, so that they show
// what the adapter and the kernel cost.

func benchServer(b *testing.B) *server {
	b.Helper()
	s := startAt(b, b.TempDir(), "FRIFS_FS_TEST_BENCH=1")
	if line := s.line(b); line != "ready" {
		b.Fatal(line)
	}
	return s
}

// BenchmarkSequentialRead reads a file for the first time, 1 MiB a read.
func BenchmarkSequentialRead(b *testing.B) {
	s := benchServer(b)
	f, err := os.Open(s.path("zeros.bin"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 1<<20)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if _, err := io.ReadFull(f, buf); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRandomRead reads 4 KiB at random offsets that the kernel has not cached.
func BenchmarkRandomRead(b *testing.B) {
	s := benchServer(b)
	f, err := os.Open(s.path("zeros.bin"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 4096)
	r := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		if _, err := f.ReadAt(buf, r.Int64N(zerosSize>>12)<<12); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLookup looks up names that the kernel has never seen.
func BenchmarkLookup(b *testing.B) {
	s := benchServer(b)
	i := 0
	for b.Loop() {
		i++
		if _, err := os.Lstat(s.path("trace/" + itoa(i))); err != nil {
			b.Fatal(err)
		}
	}
}

func itoa(i int) string {
	var d []byte
	for ; i > 0; i /= 10 {
		d = append(d, byte('0'+i%10))
	}
	return string(d) + "x"
}

// BenchmarkLs lists 20,000 names whose attributes are at hand: names only, and with attributes.
func BenchmarkLs(b *testing.B) {
	for _, flag := range []string{"-f", "-l"} {
		b.Run("ls"+flag, func(b *testing.B) {
			s := benchServer(b)
			for b.Loop() {
				if out, err := exec.Command("ls", flag, s.path("thousands")).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
			}
		})
	}
}
