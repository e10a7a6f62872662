package integration

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// oldFTS unpacks a table whose full-text indices pylance 0.20.0 made, in a form that releases from 0.28 on do not write
// but read, and that pylance 14.0.2 compacted: integration/py/make_legacy_fts.py.
func oldFTS(t testing.TB) (table, expected string) {
	t.Helper()
	r, err := os.Open(filepath.Join("..", "internal", "indexfile", "testdata", "legacy_fts.tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	z, err := zstd.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir := t.TempDir()
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(dir, "fts.lance"), filepath.Join(dir, "expected.json")
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, path, b)
	}
}

// Official Lance finds words through remapped full-text indices of the oldest form. Through its own handling of the
// fragment reuse index it finds none: the answers differ from those on the table itself.
func TestOldFullTextIndices(t *testing.T) {
	table, expected := oldFTS(t)
	dest := filepath.Join(t.TempDir(), "remapped.lance")
	frifs(t, "export", table, "latest/remapped.lance", dest)
	some := []subject{{name: "export", remapped: dest, table: table, expected: expected, history: true}}
	judge(t, newest, some)
	for _, reader := range readers() {
		t.Run(reader.name, func(t *testing.T) { judge(t, reader.name, some) })
	}
	wrong := 0
	for _, r := range answers(t, newest, []question{{Path: table, Expected: expected}}) {
		wrong += len(r.Failed)
	}
	if wrong < 20 {
		t.Errorf("on the table itself only %d answers are wrong", wrong)
	}
}
