package testdata

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// families names the archive folders below testdata/, and the folder that the archives of each have at their top
// ("" for archives that unpack flat).
var families = map[string]string{"legacy": "legacy", "tagged": "tagged", "spliced": ""}

// countFile holds, in the root of an unpacked family, how many files were unpacked: a cleaner of temporary files may
// have taken some away since.
const countFile = ".unpacked"

// unpacked remembers the result per family, so that a test process looks at the archives once.
var unpacked sync.Map // family → func() (string, error)

// Dir returns the folder in which the datasets and expectation files of a family lie, unpacking its archives if no
// test has done so yet. It must be treated as read-only.
func Dir(tb testing.TB, family string) string {
	tb.Helper()
	f, _ := unpacked.LoadOrStore(family, sync.OnceValues(func() (string, error) { return unpackFamily(family) }))
	dir, err := f.(func() (string, error))()
	if err != nil {
		tb.Fatalf("test data of %q: %v", family, err)
	}
	return dir
}

// Root returns the root folder of the project: the nearest folder above the working directory that holds go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = up
	}
}

func unpackFamily(family string) (string, error) {
	top, ok := families[family]
	if !ok {
		return "", fmt.Errorf("no such family; there are legacy, tagged and spliced")
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	archives, err := filepath.Glob(filepath.Join(root, "testdata", family, "*.tar.zst"))
	if err != nil {
		return "", err
	}
	if len(archives) == 0 {
		return "", fmt.Errorf("no archives in %s", filepath.Join(root, "testdata", family))
	}
	slices.Sort(archives)
	sum, err := hashFiles(archives)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("frifs-testdata-%d-%s-%s", os.Getuid(), family, sum[:16]))
	if complete(dir) {
		return filepath.Join(dir, top), nil
	}
	// One process unpacks, the others wait for it.
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if complete(dir) {
		return filepath.Join(dir, top), nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(os.TempDir(), filepath.Base(dir)+".tmp-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // nothing is left of it after the rename
	for _, a := range archives {
		if err := unpack(a, tmp); err != nil {
			return "", fmt.Errorf("%s: %w", a, err)
		}
	}
	n, err := countFiles(tmp)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(tmp, countFile), strconv.AppendInt(nil, int64(n), 10), 0o444); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return "", err
	}
	return filepath.Join(dir, top), nil
}

// complete reports whether dir holds as many files as were unpacked into it.
func complete(dir string) bool {
	want, err := os.ReadFile(filepath.Join(dir, countFile))
	if err != nil {
		return false
	}
	n, err := countFiles(dir)
	return err == nil && strconv.Itoa(n) == string(want)
}

// countFiles counts what is not a directory below dir, countFile left out.
func countFiles(dir string) (n int, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != countFile {
			n++
		}
		return err
	})
	return n, err
}

func hashFiles(paths []string) (string, error) {
	h := sha256.New()
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s\n", filepath.Base(p))
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// unpack extracts one .tar.zst below dir. Times are kept (they are part of an object's identity), files become
// read-only; names that would leave dir are refused.
func unpack(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		return err
	}
	defer z.Close()
	tr := tar.NewReader(z)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.FromSlash(strings.TrimSuffix(h.Name, "/"))
		if !filepath.IsLocal(name) {
			return fmt.Errorf("name %q leaves the folder", h.Name)
		}
		path := filepath.Join(dir, name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeReg:
			err = writeFile(path, tr, 0o444)
			if err == nil {
				err = os.Chtimes(path, h.ModTime, h.ModTime)
			}
		default:
			err = fmt.Errorf("%s: entry type %q", h.Name, h.Typeflag)
		}
		if err != nil {
			return err
		}
	}
}

func writeFile(path string, r io.Reader, perm os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	w, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}
