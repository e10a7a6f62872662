package lancefile_test

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/testdata"
)

// appendText appends the canonical text of value i, as integration/py/dump_lance_file.py writes it.
func appendText(b []byte, a *lancefile.Array, i int) []byte {
	if !a.Valid(i) {
		return append(b, "null"...)
	}
	list := func(lo, hi int) {
		b = append(b, '[')
		for k := lo; k < hi; k++ {
			if k > lo {
				b = append(b, ',')
			}
			b = appendText(b, a.Child, k)
		}
		b = append(b, ']')
	}
	switch {
	case a.Size > 0:
		list(i*a.Size, (i+1)*a.Size)
	case a.Child != nil:
		list(a.Offsets[i], a.Offsets[i+1])
	case a.Fields != nil:
		b = append(b, '{')
		for k, m := range a.Fields {
			if k > 0 {
				b = append(b, ',')
			}
			b = appendText(b, m.Array, i)
		}
		b = append(b, '}')
	default:
		b = hex.AppendEncode(b, a.Value(i))
	}
	return b
}

// texts returns the lines of an array.
func texts(a *lancefile.Array) []byte {
	var b []byte
	for i := range a.Len {
		b = append(appendText(b, a, i), '\n')
	}
	return b
}

// openPath opens a file of the test data.
func openPath(t testing.TB, path string) *lancefile.File {
	t.Helper()
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	st, err := r.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := lancefile.Open(t.Context(), r, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// checkField reads a field whole, compares the hash of its text, and reads random ranges again.
func checkField(t *testing.T, f *lancefile.File, field string, rows uint64, sum string) {
	t.Helper()
	v, err := lancefile.OpenValues(t.Context(), f, field)
	if err != nil {
		t.Errorf("%s: %v", field, err)
		return
	}
	if v.Rows() != rows {
		t.Errorf("%s: %d rows, want %d", field, v.Rows(), rows)
		return
	}
	a, err := v.Read(t.Context(), 0, rows)
	if err != nil {
		t.Errorf("%s: %v", field, err)
		return
	}
	whole := texts(a)
	if h := sha256.Sum256(whole); hex.EncodeToString(h[:8]) != sum {
		t.Errorf("%s: the text of %d rows has hash %x, want %s; it begins\n%.200s", field, rows, h[:8], sum, whole)
		return
	}
	if rows == 0 {
		return
	}
	starts := []int{0}
	for i, c := range whole {
		if c == '\n' {
			starts = append(starts, i+1)
		}
	}
	if a.Offsets != nil && a.Child == nil {
		checkCells(t, f, field, whole, starts)
	}
	rng := rand.New(rand.NewPCG(rows, uint64(len(whole))))
	for range 4 {
		from := rng.Uint64N(rows)
		n := rng.Uint64N(min(rows-from, 300) + 1)
		part, err := v.Read(t.Context(), from, n)
		if err != nil {
			t.Errorf("%s: rows [%d, %d): %v", field, from, from+n, err)
			return
		}
		want := whole[starts[from]:starts[from+n]]
		if got := texts(part); string(got) != string(want) {
			t.Errorf("%s: rows [%d, %d) read\n%.200s, want\n%.200s", field, from, from+n, got, want)
			return
		}
	}
}

// checkCells reads the cells of a string or binary field, all and some, and compares with the text of the values.
func checkCells(t *testing.T, f *lancefile.File, field string, whole []byte, starts []int) {
	t.Helper()
	col, _, err := f.Column(field)
	if err != nil {
		t.Errorf("%s: %v", field, err)
		return
	}
	c, err := lancefile.OpenCells(t.Context(), f, col)
	if err != nil {
		t.Errorf("%s: %v", field, err)
		return
	}
	rows := c.Rows()
	for _, from := range []uint64{0, rows / 2, rows - 1} {
		var got []byte
		next := from
		err = c.Read(t.Context(), from, rows-from, func(row uint64, cell []byte, null bool) error {
			if row != next {
				return fmt.Errorf("row %d, want %d", row, next)
			}
			next++
			if null {
				got = append(got, "null\n"...)
				return nil
			}
			got = append(hex.AppendEncode(got, cell), '\n')
			return nil
		})
		if want := whole[starts[from]:]; err != nil || string(got) != string(want) {
			t.Errorf("%s: cells from %d are\n%.200s (%v), want\n%.200s", field, from, got, err, want)
			return
		}
	}
}

// goldenLine is a field of a file, and the hash of what official Lance reads.
type goldenLine struct {
	path, field, sum string
	rows             uint64
}

func parseGolden(text string) ([]goldenLine, error) {
	var out []goldenLine
	for line := range strings.Lines(text) {
		c := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(c) != 4 {
			return nil, fmt.Errorf("line %q", line)
		}
		n, err := strconv.ParseUint(c[2], 10, 64)
		if err != nil {
			return nil, err
		}
		out = append(out, goldenLine{c[0], c[1], c[3], n})
	}
	return out, nil
}

// oracleLines reads testdata/oracle/<name>.tsv.
func oracleLines(t testing.TB, name string) []goldenLine {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "oracle", name+".tsv"))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := parseGolden(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// formFiles unpacks testdata/forms.tar.zst, the files that integration/py/make_lance_files.py wrote, by path.
func formFiles(t testing.TB) map[string][]byte {
	t.Helper()
	r, err := os.Open(filepath.Join("testdata", "forms.tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(1<<27))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out := map[string][]byte{}
	for a := tar.NewReader(z); ; {
		h, err := a.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		b, err := io.ReadAll(a)
		if err != nil {
			t.Fatal(err)
		}
		out[path.Clean(h.Name)] = b
	}
}

// TestOracleForms reads files of every type, null pattern, list shape and compression in every version, and compares with
// what official Lance read.
func TestOracleForms(t *testing.T) {
	files := formFiles(t)
	lines := oracleLines(t, "forms")
	if len(lines) != len(files) || len(lines) < 1500 {
		t.Fatalf("%d golden lines for %d files", len(lines), len(files))
	}
	for _, l := range lines {
		t.Run(l.path, func(t *testing.T) {
			f := open(t, files[l.path])
			if path.Base(l.path) == "packed.lance" {
				_, err := lancefile.OpenValues(t.Context(), f, l.field)
				wantError(t, err, fault.Unsupported, "packed struct in column 0")
				return
			}
			checkField(t, f, l.field, l.rows, l.sum)
		})
	}
}

// TestOracle reads every field of every index file of the test data and compares with what official Lance read.
func TestOracle(t *testing.T) {
	for _, family := range []string{"legacy", "tagged", "spliced"} {
		t.Run(family, func(t *testing.T) {
			lines := oracleLines(t, family)
			dir := testdata.Dir(t, family)
			var f *lancefile.File
			for i, l := range lines {
				if i == 0 || l.path != lines[i-1].path {
					f = openPath(t, filepath.Join(dir, l.path))
				}
				checkField(t, f, l.field, l.rows, l.sum)
				if t.Failed() {
					t.Fatalf("in %s", l.path)
				}
			}
		})
	}
}
