package lancefile_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/spill"
)

// postings is a file of version 2.0 with the columns of old full-text postings and one more. What stands in them cannot
// be read, so that what is read must have been written.
func postings(rows, items int) lancetest.File {
	d := dialects[0]
	page := func(n int, id byte) []lancetest.Page {
		if n == 0 {
			return nil
		}
		return []lancetest.Page{d.opaquePage(n, bytes.Repeat([]byte{id}, 100))}
	}
	field := func(id, parent int32, name, typ string) *pb.FileField {
		return &pb.FileField{Id: id, ParentId: parent, Name: name, LogicalType: typ, Encoding: 1}
	}
	ids := make([]uint64, rows)
	for i := range ids {
		ids[i] = uint64(i)
	}
	f := lancetest.File{Major: d.major, Minor: d.minor, Rows: uint64(rows), Columns: []lancetest.Column{
		{Pages: page(rows, 1)}, {Pages: page(rows, 2)}, {Pages: page(rows, 3)}, {Pages: page(items, 4)}, {},
	}, Fields: []*pb.FileField{
		field(0, -1, "_rowid", "uint64"), field(1, -1, "_frequency", "float"), field(2, -1, "_position", "list"),
		field(3, 2, "item", "int32"), field(4, -1, "kept", "uint64"),
	}}
	if rows > 0 {
		f.Columns[4].Pages = []lancetest.Page{d.idPage(ids)}
	}
	return f
}

// arrays writes rows of a field.
func arrays(t testing.TB, f *lancefile.File, path string, rows [][]byte) lancefile.CellPages {
	t.Helper()
	w, err := lancefile.NewArrayWriter(f, path, spill.New("", 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	pages, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

// What ArrayWriter writes, OpenValues reads, and the columns that are not named stay.
func TestArraysComeBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 2, 9, 70}).Draw(r, "rows")
		longest := rapid.SampledFrom([]int{0, 3, 40_000}).Draw(r, "longest list")
		var ids, frequencies, positions [][]byte
		for i := range n {
			ids = append(ids, binary.LittleEndian.AppendUint64(nil, uint64(i)<<33))
			frequencies = append(frequencies, binary.LittleEndian.AppendUint32(nil, uint32(i*i)))
			k := rapid.IntRange(0, longest).Draw(r, "positions")
			positions = append(positions, bytes.Repeat(binary.LittleEndian.AppendUint32(nil, uint32(i+7)), k))
		}
		b := postings(n, rapid.SampledFrom([]int{0, n, 3*n + 1}).Draw(r, "items")).Build().All()
		f := open(t, b)
		edit := lancefile.Edit{Cells: []lancefile.CellPages{arrays(t, f, "_position", positions), arrays(t, f, "_rowid", ids), arrays(t, f, "_frequency", frequencies)}}
		got := open(t, synthesise(t, b, edit))
		for path, want := range map[string][][]byte{"_rowid": ids, "_frequency": frequencies, "_position": positions} {
			from := rapid.IntRange(0, n).Draw(r, "from")
			v, err := lancefile.OpenValues(t.Context(), got, path)
			if err != nil {
				r.Fatal(err)
			}
			a, err := v.Read(t.Context(), uint64(from), uint64(n-from))
			if err != nil || a.Len != n-from || a.Validity != nil {
				r.Fatalf("%s: %d values of %d: %v", path, a.Len, n-from, err)
			}
			for i, w := range want[from:] {
				g := a.Fixed[i*a.Width : (i+1)*a.Width]
				if a.Child != nil {
					g = a.Child.Fixed[4*a.Offsets[i] : 4*a.Offsets[i+1]]
				}
				if !bytes.Equal(g, w) {
					r.Fatalf("%s, row %d: %d bytes, want %d", path, from+i, len(g), len(w))
				}
			}
		}
		kept, err := lancefile.OpenColumn[uint64](t.Context(), got, 4)
		if err != nil {
			r.Fatal(err)
		}
		values := make([]uint64, n)
		if _, err := kept.Read(t.Context(), 0, values, nil); err != nil || n > 0 && values[n-1] != uint64(n-1) {
			r.Fatalf("the column that stays: %v %v", values, err)
		}
	})
}

func TestArrayWriterRefuses(t *testing.T) {
	old := open(t, postings(2, 3).Build().All())
	newer := lancetest.File{Major: 2, Minor: 1, Rows: 0, Columns: []lancetest.Column{{Name: "_rowid", Type: "uint64"}}}
	cells := cellFile(t, dialects[0], "binary", 2, nil)
	for _, c := range []struct {
		name string
		file *lancefile.File
		path string
		want fault.Kind
	}{
		{"no such field", old, "other", fault.NotFound},
		{"items of lists", old, "_position.item", fault.Unsupported},
		{"a newer file", open(t, newer.Build().All()), "_rowid", fault.Unsupported},
		{"cells", open(t, cells), open(t, cells).Leaves()[0].Path, fault.Unsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := lancefile.NewArrayWriter(c.file, c.path, spill.New("", 100)); fault.KindOf(err) != c.want {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	for _, c := range []struct {
		name, path string
		rows       []int // their bytes
		want       fault.Kind
	}{
		{"too few", "_rowid", []int{8}, fault.Invalid},
		{"too many", "_rowid", []int{8, 8, 8}, fault.Invalid},
		{"half a number", "_rowid", []int{4, 8}, fault.Invalid},
		{"two numbers", "_frequency", []int{8, 4}, fault.Invalid},
		{"half an item", "_position", []int{8, 6}, fault.Invalid},
		{"more than the sink takes", "_position", []int{0, 200}, fault.TooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := lancefile.NewArrayWriter(old, c.path, spill.New("", 100))
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range c.rows {
				err = w.Append(make([]byte, n))
			}
			if _, last := w.Finish(); fault.KindOf(last) != c.want || err != nil && fault.KindOf(err) != c.want {
				t.Errorf("got %v and %v, want %v", err, last, c.want)
			}
		})
	}
}

// A list column and its items' column are replaced together.
func TestItemsAreReplacedOnce(t *testing.T) {
	b := postings(2, 3).Build().All()
	f := open(t, b)
	positions := arrays(t, f, "_position", [][]byte{make([]byte, 4), nil})
	_, err := lancefile.Synthesise(t.Context(), f, lancefile.Edit{Cells: slices.Repeat([]lancefile.CellPages{positions}, 2)})
	if fault.KindOf(err) != fault.Invalid {
		t.Errorf("got %v, want an invalid edit", err)
	}
}
