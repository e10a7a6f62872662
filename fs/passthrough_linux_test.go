package fs

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// passthroughHere reports whether kernel and rights allow it. Where they do not, this process serves the files, and they
// are read the same.
func passthroughHere(t testing.TB) bool {
	t.Helper()
	needFUSE(t)
	c := checkPassthrough(os.Geteuid() == 0)
	if !c.OK {
		t.Logf("no passthrough here: %s", c.Detail)
	}
	return c.OK
}

func localDir(t testing.TB, sizes map[string]int64) string {
	t.Helper()
	dir := t.TempDir()
	for name, size := range sizes {
		b := make([]byte, size)
		fill(b, 0)
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLocalFilesArePassedThrough(t *testing.T) {
	const size = 3<<20 + 777
	for _, tc := range []struct {
		name, env string
		through   bool
	}{
		{"as the machine can", "FRIFS_FS_TEST_NOPASS=", passthroughHere(t)},
		{"switched off", "FRIFS_FS_TEST_NOPASS=1", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := localDir(t, map[string]int64{"file-a": size, "file-b": size, "file-empty": 0, "file-small": 5})
			s := start(t, localEnv+"="+dir, tc.env)
			want := make([]byte, size)
			fill(want, 0)
			for _, name := range []string{"local/file-a", "local/file-b"} {
				checkLocal(t, s.path(name), want)
			}
			if b, err := os.ReadFile(s.path("local/file-small")); err != nil || !bytes.Equal(b, want[:5]) {
				t.Errorf("small: %x, %v", b, err)
			}
			if b, err := os.ReadFile(s.path("local/file-empty")); err != nil || len(b) != 0 {
				t.Errorf("empty: %x, %v", b, err)
			}
			if n := s.freshCalls(t)["local.reads"]; (n == 0) != tc.through {
				t.Errorf("%d reads came to the process; passed through: %v", n, tc.through)
			}
			if err := s.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
			if l := s.line(t); strings.Contains(l, "Passed:0}") == tc.through {
				t.Errorf("stats: %s", l)
			}
		})
	}
}

// checkLocal reads a file whole, at offsets, mapped, and with many opens at once.
func checkLocal(t *testing.T, path string, want []byte) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mapped, err := syscall.Mmap(int(f.Fd()), 0, len(want), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatalf("mmap: %v", err)
	}
	defer func() { _ = syscall.Munmap(mapped) }()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for range 20 {
				b, err := os.ReadFile(path)
				if err != nil || !bytes.Equal(b, want) {
					t.Errorf("%s: %d bytes, %v", path, len(b), err)
					return
				}
			}
			p := make([]byte, 4096)
			off := int64(g) * 100_003
			if _, err := f.ReadAt(p, off); err != nil || !bytes.Equal(p, want[off:off+4096]) {
				t.Errorf("%s at %d: %v", path, off, err)
			}
		})
	}
	wg.Wait()
	if !bytes.Equal(mapped, want) {
		t.Errorf("%s: mapped bytes differ", path)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil || st.Size != int64(len(want)) || st.Mtim.Nano() != fakeTime.UnixNano() {
		t.Errorf("%s: after reading, stat says %d bytes of %d, %v", path, st.Size, st.Mtim.Nano(), err)
	}
}

// TestReplacedLocalFilesAreStale has the file below replaced, shortened and removed: an open that comes after is
// refused, and one that came before keeps what it had.
func TestReplacedLocalFilesAreStale(t *testing.T) {
	passthroughHere(t)
	const size = 1 << 20
	dir := localDir(t, map[string]int64{"file-replaced": size, "bytes-replaced": size, "file-shorter": size, "file-gone": size})
	s := start(t, localEnv+"="+dir)
	want := make([]byte, size)
	fill(want, 0)
	replace := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, "new"), make([]byte, size), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]func(string){
		"file-replaced":  replace,
		"bytes-replaced": replace,
		"file-shorter": func(name string) {
			if err := os.Truncate(filepath.Join(dir, name), 10); err != nil {
				t.Fatal(err)
			}
		},
		"file-gone": func(name string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		before, err := os.Open(s.path("local/" + name))
		if err != nil {
			t.Fatal(err)
		}
		change(name)
		if b, err := os.ReadFile(s.path("local/" + name)); err == nil {
			t.Errorf("%s: an open after the change gave %d bytes", name, len(b))
		}
		if name != "file-shorter" {
			if b, err := io.ReadAll(before); err != nil || !bytes.Equal(b, want) {
				t.Errorf("%s: the open file gave %d bytes, %v", name, len(b), err)
			}
		}
		before.Close()
		if b, err := os.ReadFile(s.path("local/" + name)); err == nil {
			t.Errorf("%s: an open after the close gave %d bytes", name, len(b))
		}
	}
}

// BenchmarkLocalFile reads 1 GiB that lies in the page cache: directly, through the mount by the kernel alone, and
// through the mount by this process.
func BenchmarkLocalFile(b *testing.B) {
	const size = 1 << 30
	dir := localDir(b, map[string]int64{"file-a": size})
	read := func(b *testing.B, path string, drop bool) {
		buf := make([]byte, 1<<20)
		b.SetBytes(size)
		for b.Loop() {
			f, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			if drop { // what the mount has cached; what lies below stays cached
				if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
					b.Fatal(err)
				}
			}
			if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buf); err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	}
	b.Run("native", func(b *testing.B) { read(b, filepath.Join(dir, "file-a"), false) })
	for _, tc := range []struct{ name, env string }{{"through", ""}, {"served", "FRIFS_FS_TEST_NOPASS=1"}} {
		b.Run(tc.name, func(b *testing.B) {
			if tc.env == "" && !passthroughHere(b) {
				return
			}
			s := startAt(b, b.TempDir(), localEnv+"="+dir, tc.env)
			if line := s.line(b); line != "ready" {
				b.Fatal(line)
			}
			read(b, s.path("local/file-a"), true)
		})
	}
}
