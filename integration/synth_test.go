package integration

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/spill"
	"github.com/frifs/frifs/internal/testdata"
)

// lanceFile is what integration/py/read_lance_file.py prints of a file.
type lanceFile struct {
	Rows    uint64
	Columns map[string][]any
	Globals []any
}

// readLance lets the official reader read files.
func readLance(t testing.TB, paths []string) map[string]lanceFile {
	t.Helper()
	files := map[string]lanceFile{}
	s := bufio.NewScanner(strings.NewReader(python(t, strings.Join(paths, "\n")+"\n", "read_lance_file.py", "read")))
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		var f struct {
			lanceFile
			Path string
		}
		d := json.NewDecoder(strings.NewReader(s.Text()))
		d.UseNumber()
		if err := d.Decode(&f); err != nil {
			t.Fatal(err)
		}
		files[f.Path] = f.lanceFile
	}
	if len(files) != len(paths) {
		t.Fatalf("%d of %d files were read", len(files), len(paths))
	}
	return files
}

// shown is how the script prints a cell.
func shown(cell []byte) string {
	return fmt.Sprintf("%d:%x", len(cell), sha256.Sum256(cell))[:len(fmt.Sprint(len(cell)))+17]
}

// synthCase is a file to make from an original, and the columns that come out new.
type synthCase struct {
	path, original string
	want           map[string][]any
	globals        map[int]string
}

// originalFile is an opened original with the edit that grows on it.
type originalFile struct {
	*lancefile.File
	t    testing.TB
	edit lancefile.Edit
	synthCase
}

func openOriginal(t testing.TB, path string) *originalFile {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := lancefile.Open(t.Context(), bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return &originalFile{File: f, t: t, synthCase: synthCase{original: path, want: map[string][]any{}, globals: map[int]string{}}}
}

// number is the column of a field in a schema without nesting.
func (o *originalFile) number(name string) int {
	for i, f := range o.Fields() {
		if f.GetName() == name {
			return i
		}
	}
	o.t.Fatalf("%s has no column %q", o.original, name)
	return -1
}

// flat replaces a u64 column by numbers that need all bits.
func (o *originalFile) flat(name string, pageRows uint64) {
	value := func(row uint64) uint64 { return row*0x9E3779B97F4A7C15 + 0xFFFFFFFE<<32 }
	o.edit.Flats = append(o.edit.Flats, lancefile.Flat{Column: o.number(name), PageRows: pageRows,
		Fill: func(_ context.Context, from uint64, dst []uint64) error {
			for i := range dst {
				dst[i] = value(from + uint64(i))
			}
			return nil
		}})
	o.want[name] = []any{}
	for row := range o.Rows() {
		o.want[name] = append(o.want[name], json.Number(fmt.Sprint(value(row))))
	}
}

// cells replaces a binary column; cell gives nil for a null.
func (o *originalFile) cells(name string, cell func(row uint64) []byte) {
	sink := spill.New(o.t.TempDir(), 1<<20)
	o.t.Cleanup(func() { sink.Close() })
	w, err := lancefile.NewCellWriter(o.t.Context(), o.File, o.number(name), sink, lancefile.CellOptions{})
	if err != nil {
		o.t.Fatal(err)
	}
	o.want[name] = []any{}
	for row := range o.Rows() {
		c := cell(row)
		if err := w.Append(c, c == nil); err != nil {
			o.t.Fatal(err)
		}
		if c == nil {
			o.want[name] = append(o.want[name], nil)
		} else {
			o.want[name] = append(o.want[name], shown(c))
		}
	}
	pages, err := w.Finish()
	if err != nil {
		o.t.Fatal(err)
	}
	o.edit.Cells = append(o.edit.Cells, pages)
}

// global replaces a global buffer by n bytes.
func (o *originalFile) global(i, n int) {
	b := bytes.Repeat([]byte{byte(n), 1, 2}, n/3+1)[:n]
	if o.edit.Globals == nil {
		o.edit.Globals = map[int]lancefile.Piece{}
	}
	o.edit.Globals[i] = lancefile.Bytes(b)
	o.globals[i] = shown(b)
}

// write writes the synthesised file, read in uneven pieces.
func (o *originalFile) write(name string) synthCase {
	o.path = filepath.Join(o.t.TempDir(), name)
	s, err := lancefile.Synthesise(o.t.Context(), o.File, o.edit)
	if err != nil {
		o.t.Fatalf("%s: %v", o.original, err)
	}
	b := make([]byte, s.Size())
	for off := 0; off < len(b); {
		n := min(40_001, len(b)-off)
		if _, err := s.ReadAt(o.t.Context(), b[off:off+n], int64(off)); err != nil {
			o.t.Fatal(err)
		}
		off += n
	}
	if err := os.WriteFile(o.path, b, 0o600); err != nil {
		o.t.Fatal(err)
	}
	return o.synthCase
}

// posting is a cell like those of an index: of many lengths, up to some 100 KiB, now and then null or empty.
func posting(nulls bool) func(row uint64) []byte {
	r := rand.New(rand.NewPCG(7, 7))
	return func(row uint64) []byte {
		switch {
		case nulls && row%13 == 5:
			return nil
		case row%17 == 2:
			return []byte{}
		case row%40 == 20:
			return bytes.Repeat(fmt.Appendf(nil, "%d ", r.Uint64()), 6000)
		}
		b := make([]byte, r.IntN(700))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
}

// The official reader takes files that differ from its own in flat columns, cells and global buffers, in every version,
// and finds what was put in; all else is as in the original.
func TestOfficialReaderReadsSynthesisedFiles(t *testing.T) {
	folder := t.TempDir()
	python(t, "", "read_lance_file.py", "write", folder)
	var cases []synthCase
	for _, version := range []string{"2.0", "2.1", "2.2", "2.3"} {
		path := filepath.Join(folder, "original-"+version+".lance")
		for _, c := range []struct {
			name string
			edit func(o *originalFile)
		}{
			{"flat", func(o *originalFile) { o.flat("ids", 0) }},
			{"flats-in-pages", func(o *originalFile) { o.flat("ids", 64); o.flat("row", 8) }},
			{"cells", func(o *originalFile) { o.cells("cells", posting(true)) }},
			{"small-cells", func(o *originalFile) {
				o.cells("cells", func(row uint64) []byte { return []byte{byte(row)} })
				o.cells("text", func(row uint64) []byte { return nil })
			}},
			{"all-cells", func(o *originalFile) {
				o.cells("large", posting(true))
				o.cells("plain", posting(false))
				o.cells("cells", posting(false))
			}},
			{"globals", func(o *originalFile) { o.global(1, 100_000); o.global(2, 0) }},
			{"everything", func(o *originalFile) {
				o.flat("ids", 0)
				o.cells("plain", posting(false))
				o.cells("large", posting(true))
				o.global(2, 77)
			}},
		} {
			o := openOriginal(t, path)
			if version == "2.0" {
				// Its nullable column has a page with validity, over which nothing can be written.
				if c.name == "flats-in-pages" {
					continue
				}
			}
			c.edit(o)
			cases = append(cases, o.write(c.name+"-"+version+".lance"))
		}
	}
	checkSynthesised(t, cases)
}

// The same from real index files: the column with addresses, or the cells, are new.
func TestOfficialReaderReadsSynthesisedIndexFiles(t *testing.T) {
	var cases []synthCase
	seen := map[string]bool{}
	for _, family := range []string{"legacy", "tagged"} {
		err := filepath.WalkDir(testdata.Dir(t, family), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			column, cells := "", false
			switch d.Name() {
			case "page_data.lance":
				column = "ids"
			case "auxiliary.idx", "part_0_docs.lance", "signatures.lance":
				column = "_rowid"
			case "bitmap_page_lookup.lance":
				column, cells = "bitmaps", true
			case "ngram_postings.lance":
				column, cells = "posting_list", true
			case "nulls.lance":
				column, cells = "nulls", true
			default:
				return nil
			}
			o := openOriginal(t, path)
			if !slices.ContainsFunc(o.Fields(), func(f *pb.FileField) bool { return f.GetName() == column }) {
				return nil // the leaves of an RTREE
			}
			key := fmt.Sprint(d.Name(), o.Version(), o.GlobalBuffers(), len(o.Fields()))
			if seen[key] {
				return nil
			}
			seen[key] = true
			if cells {
				o.cells(column, posting(false))
			} else {
				o.flat(column, 0)
			}
			cases = append(cases, o.write(d.Name()))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(cases) < 20 {
		t.Errorf("only %d kinds of index files", len(cases))
	}
	checkSynthesised(t, cases)
}

func checkSynthesised(t *testing.T, cases []synthCase) {
	t.Helper()
	var paths []string
	for _, c := range cases {
		paths = append(paths, c.path)
		if !slices.Contains(paths, c.original) {
			paths = append(paths, c.original)
		}
	}
	files := readLance(t, paths)
	for _, c := range cases {
		got, original := files[c.path], files[c.original]
		name := filepath.Base(c.path)
		if got.Rows != original.Rows || len(got.Columns) != len(original.Columns) || len(got.Globals) != len(original.Globals) {
			t.Errorf("%s: %d rows, %d columns, %d global buffers; the original: %d, %d, %d", name,
				got.Rows, len(got.Columns), len(got.Globals), original.Rows, len(original.Columns), len(original.Globals))
			continue
		}
		for column, v := range original.Columns {
			if want, changed := c.want[column]; changed {
				v = want
			}
			if !slices.Equal(got.Columns[column], v) {
				t.Errorf("%s (from %s): column %q reads %.200s, want %.200s", name, c.original, column, fmt.Sprint(got.Columns[column]), fmt.Sprint(v))
			}
		}
		for i, v := range original.Globals {
			if want, changed := c.globals[i+1]; changed {
				v = want
			}
			if got.Globals[i] != v {
				t.Errorf("%s: global buffer %d reads %v, want %v", name, i+1, got.Globals[i], v)
			}
		}
	}
}
