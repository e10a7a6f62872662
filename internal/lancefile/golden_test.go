package lancefile_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/testdata"
)

// golden reads testdata/golden/<name>.hex.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "golden", name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func open(t testing.TB, b []byte) *lancefile.File {
	t.Helper()
	f, err := lancefile.Open(t.Context(), bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// read decodes a whole column; nulls come as -1.
func read[T lancefile.Element](t testing.TB, f *lancefile.File, i int) []int64 {
	t.Helper()
	c, err := lancefile.OpenColumn[T](t.Context(), f, i)
	if err != nil {
		t.Fatal(err)
	}
	values, bits := make([]T, c.Rows()), make([]uint64, (c.Rows()+63)/64)
	n, err := c.Read(t.Context(), 0, values, bits)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]int64, len(values))
	for k, v := range values {
		out[k] = int64(v)
		if bits[k/64]>>(k%64)&1 != 0 {
			out[k] = -1
			n--
		}
	}
	if n != 0 {
		t.Fatalf("null count is off by %d", n)
	}
	return out
}

var (
	goldenIDs    = []int64{7, 1 << 32, 1<<32 + 1}
	goldenLabels = []int64{5, -1, 9}
)

// goldenFile describes the golden files, so that they can be rendered anew.
func goldenFile(major, minor uint16) lancetest.File {
	ids, labels := lancetest.Words([]uint64{7, 1 << 32, 1<<32 + 1}, 64), []byte{0, 5, 0, 1, 0, 0, 0, 9, 0}
	f := lancetest.File{Major: major, Minor: minor, Rows: 3, Columns: []lancetest.Column{
		{Name: "ids", Type: "uint64", Pages: []lancetest.Page{{Rows: 3, Buffers: []lancetest.Buffer{lancetest.Bytes(ids)}}}},
		{Name: "label", Type: "uint16", Nullable: true, Pages: []lancetest.Page{{Rows: 3, Buffers: []lancetest.Buffer{lancetest.Bytes(labels)}}}},
	}}
	idPage, labelPage := &f.Columns[0].Pages[0], &f.Columns[1].Pages[0]
	switch minor {
	case 2:
		idPage.Encoding, labelPage.Encoding = zipLayout(64, 0, 3), zipLayout(16, 1, 3)
	case 3:
		if major == 2 {
			idPage.Encoding, labelPage.Encoding = zipPlanar(64, 0, 3), zipPlanar(16, 1, 3)
			break
		}
		idPage.Encoding = array(noNulls(arrayFlat(64, 0)))
		labelPage.Encoding = array(someNulls(arrayFlat(1, 0), arrayFlat(16, 1)))
		labelPage.Buffers = []lancetest.Buffer{lancetest.Bytes([]byte{5}), lancetest.Bytes([]byte{5, 0, 0, 0, 9, 0})}
	}
	return f
}

func zipLayout(bits, def, rows uint32) proto.Message {
	layer := pb.RepDefLayer_REPDEF_ALL_VALID_ITEM
	if def > 0 {
		layer = pb.RepDefLayer_REPDEF_NULLABLE_ITEM
	}
	return &pb.PageLayout{Layout: &pb.PageLayout_FullZipLayout{FullZipLayout: &pb.PageLayout_FullZip{BitsDef: def,
		BitsPerValue: &bits, NumItems: rows, NumVisibleItems: rows,
		ValueCompression: lancetest.Flat(int(bits)), Layers: []pb.RepDefLayer{layer}}}}
}

func zipPlanar(bits, def, rows uint32) proto.Message {
	layer := pb.RepDefLayer_REPDEF_ALL_VALID_ITEM
	if def > 0 {
		layer = pb.RepDefLayer_REPDEF_NULLABLE_ITEM
	}
	return &pb.PlanarLayout{Structure: dense(layer), Values: &pb.PlanarLayout_Values{Kind: &pb.PlanarLayout_Values_Zipped{
		Zipped: &pb.PlanarLayout_Zipped{Compression: lancetest.Flat(int(bits)), Levels: &pb.PlanarLayout_ZippedLevels{BitsDefinition: def},
			BitsPerValue: &bits, NumItems: uint64(rows), NumVisibleItems: uint64(rows)}}}}
}

func dense(layers ...pb.RepDefLayer) *pb.PlanarLayout_Structure {
	return &pb.PlanarLayout_Structure{Kind: &pb.PlanarLayout_Structure_Dense{Dense: &pb.PlanarLayout_Dense{Layers: layers}}}
}

func array(n *pb.ArrayEncoding_Nullable) *pb.ArrayEncoding {
	return &pb.ArrayEncoding{ArrayEncoding: &pb.ArrayEncoding_Nullable_{Nullable: n}}
}

func noNulls(v *pb.ArrayEncoding) *pb.ArrayEncoding_Nullable {
	return &pb.ArrayEncoding_Nullable{Nullability: &pb.ArrayEncoding_Nullable_NoNulls_{NoNulls: &pb.ArrayEncoding_Nullable_NoNulls{Values: v}}}
}

func someNulls(validity, v *pb.ArrayEncoding) *pb.ArrayEncoding_Nullable {
	return &pb.ArrayEncoding_Nullable{Nullability: &pb.ArrayEncoding_Nullable_SomeNulls_{
		SomeNulls: &pb.ArrayEncoding_Nullable_SomeNulls{Validity: validity, Values: v}}}
}

func arrayFlat(bits uint64, buffer uint32) *pb.ArrayEncoding {
	return &pb.ArrayEncoding{ArrayEncoding: &pb.ArrayEncoding_Flat_{Flat: &pb.ArrayEncoding_Flat{
		BitsPerValue: bits, Buffer: &pb.ArrayEncoding_Buffer{BufferIndex: buffer}}}}
}

func TestGolden(t *testing.T) {
	for _, c := range []struct {
		name         string
		major, minor uint16
		version      lancefile.Version
	}{
		{"mini20", 0, 3, lancefile.V20},
		{"mini22", 2, 2, lancefile.V22},
		{"mini23", 2, 3, lancefile.V23},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := golden(t, c.name)
			f := open(t, b)
			if f.Version() != c.version || f.Rows() != 3 || f.Columns() != 2 || f.GlobalBuffers() != 1 {
				t.Errorf("version %v, %d rows, %d columns, %d global buffers", f.Version(), f.Rows(), f.Columns(), f.GlobalBuffers())
			}
			if got := read[uint64](t, f, 0); !slices.Equal(got, goldenIDs) {
				t.Errorf("ids %v, want %v", got, goldenIDs)
			}
			if got := read[uint16](t, f, 1); !slices.Equal(got, goldenLabels) {
				t.Errorf("label %v, want %v", got, goldenLabels)
			}
			if got := goldenFile(c.major, c.minor).Build().All(); !bytes.Equal(got, b) {
				t.Errorf("rendered anew it is\n%x, want\n%x", got, b)
			}
		})
	}
}

// TestOtherVersions reads the 2.2 file under the other numbers that its grammar carries.
func TestOtherVersions(t *testing.T) {
	for _, minor := range []byte{1, 3} {
		b := golden(t, "mini22")
		b[len(b)-6] = minor
		f := open(t, b)
		if got := read[uint16](t, f, 1); !slices.Equal(got, goldenLabels) {
			t.Errorf("minor %d: label %v, want %v", minor, got, goldenLabels)
		}
	}
	b := golden(t, "mini20")
	b[len(b)-8], b[len(b)-6] = 2, 0
	if got := read[uint64](t, open(t, b), 0); !slices.Equal(got, goldenIDs) {
		t.Errorf("version (2, 0): ids %v, want %v", got, goldenIDs)
	}
}

// TestSpliced reads the single files that were checked with a released reader.
func TestSpliced(t *testing.T) {
	for _, name := range []string{"mini20", "mini21", "mini22"} {
		b, err := os.ReadFile(filepath.Join(testdata.Dir(t, "spliced"), name+".lance"))
		if err != nil {
			t.Fatal(err)
		}
		f := open(t, b)
		if got := read[uint64](t, f, 0); !slices.Equal(got, goldenIDs) {
			t.Errorf("%s: ids %v, want %v", name, got, goldenIDs)
		}
		if got := read[uint16](t, f, 1); !slices.Equal(got, goldenLabels) {
			t.Errorf("%s: label %v, want %v", name, got, goldenLabels)
		}
	}
}
