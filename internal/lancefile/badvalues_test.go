package lancefile_test

import (
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/pb"
)

const (
	allValid  = pb.RepDefLayer_REPDEF_ALL_VALID_ITEM
	nullItem  = pb.RepDefLayer_REPDEF_NULLABLE_ITEM
	emptyList = pb.RepDefLayer_REPDEF_NULL_AND_EMPTY_LIST
)

// variable is an encoding of values of any length, with offsets of 32 bits.
func variable() *pb.CompressiveEncoding {
	return &pb.CompressiveEncoding{Compression: &pb.CompressiveEncoding_Variable_{
		Variable: &pb.CompressiveEncoding_Variable{Offsets: lancetest.Flat(32)}}}
}

// fsst wraps variable values in a symbol table.
func fsst(table []byte) *pb.CompressiveEncoding {
	return &pb.CompressiveEncoding{Compression: &pb.CompressiveEncoding_Fsst_{
		Fsst: &pb.CompressiveEncoding_Fsst{SymbolTable: table, Values: variable()}}}
}

// table is a symbol table that is switched on.
func table(symbols ...string) []byte {
	b := make([]byte, 8)
	b[0], b[3] = byte(len(symbols)), 1
	var sizes []byte
	for _, s := range symbols {
		b = append(append(b, s...), make([]byte, 8-len(s))...)
		sizes = append(sizes, byte(len(s)))
	}
	return append(b, sizes...)
}

// cellsPage is a zipped page of cells: control words of 8 bits where def is set, and lengths of 32 bits.
func cellsPage(rows uint64, def uint32, e *pb.CompressiveEncoding, data []byte, at ...uint64) lancetest.Page {
	layer, bits := allValid, uint32(32)
	if def > 0 {
		layer = nullItem
	}
	return lancetest.Page{Rows: rows, Buffers: []lancetest.Buffer{lancetest.Bytes(data), lancetest.Bytes(lancetest.Words(at, 32))},
		Encoding: &pb.PageLayout{Layout: &pb.PageLayout_FullZipLayout{FullZipLayout: &pb.PageLayout_FullZip{BitsDef: def, BitsPerOffset: &bits,
			NumItems: uint32(rows), NumVisibleItems: uint32(rows), ValueCompression: e, Layers: []pb.RepDefLayer{layer}}}}}
}

// cell is a value with its length in front.
func cell(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
}

// stringChunk is a chunked page of strings: offsets as given, then the bytes.
func stringChunk(rows int, e *pb.CompressiveEncoding, offsets []uint64, data string) lancetest.Page {
	words, chunks := lancetest.Chunks([]lancetest.Chunk{{Values: rows, Buffers: [][]byte{append(lancetest.Words(offsets, 32), data...)}}}, true)
	return lancetest.Page{Rows: uint64(rows), Buffers: []lancetest.Buffer{lancetest.Bytes(words), lancetest.Bytes(chunks)},
		Encoding: &pb.PageLayout{Layout: &pb.PageLayout_MiniBlockLayout{MiniBlockLayout: &pb.PageLayout_MiniBlock{ValueCompression: e,
			Layers: []pb.RepDefLayer{allValid}, NumBuffers: 1, NumItems: uint64(rows), HasLargeChunk: true}}}}
}

// listPage is a constant page of lists of 7: raw levels.
func listPage(rows uint64, rep, def []uint64, layers ...pb.RepDefLayer) lancetest.Page {
	return lancetest.Page{Rows: rows, Buffers: []lancetest.Buffer{lancetest.Bytes(lancetest.Words(rep, 16)), lancetest.Bytes(lancetest.Words(def, 16))},
		Encoding: &pb.PageLayout{Layout: &pb.PageLayout_ConstantLayout{ConstantLayout: &pb.PageLayout_Constant{
			InlineValue: []byte{7, 0, 0, 0}, Layers: layers}}}}
}

// scalarPage is a constant page with its value in a buffer.
func scalarPage(b []byte) lancetest.Page {
	return lancetest.Page{Rows: 3, Buffers: []lancetest.Buffer{lancetest.Bytes(b)}, Encoding: &pb.PageLayout{
		Layout: &pb.PageLayout_ConstantLayout{ConstantLayout: &pb.PageLayout_Constant{Layers: []pb.RepDefLayer{allValid}}}}}
}

// binaryPage is a page of version 2.0: ends and bytes.
func binaryPage(ends []uint64, data string, adjust uint64) lancetest.Page {
	indices := &pb.ArrayEncoding{ArrayEncoding: &pb.ArrayEncoding_Nullable_{Nullable: noNulls(arrayFlat(64, 0))}}
	return lancetest.Page{Rows: uint64(len(ends)), Buffers: []lancetest.Buffer{lancetest.Bytes(lancetest.Words(ends, 64)), lancetest.Bytes([]byte(data))},
		Encoding: &pb.ArrayEncoding{ArrayEncoding: &pb.ArrayEncoding_Binary_{Binary: &pb.ArrayEncoding_Binary{
			Indices: indices, Bytes: arrayFlat(8, 1), NullAdjustment: adjust}}}}
}

// changed applies a change to a page.
func changed(p lancetest.Page, change func(m *pb.PageLayout)) lancetest.Page {
	m := proto.Clone(p.Encoding).(*pb.PageLayout)
	change(m)
	p.Encoding = m
	return p
}

// listSparse is a sparse planar page of lists of 7.
func listSparse(rows, items uint64, some *pb.CompressiveEncoding, n uint64, counts *pb.CompressiveEncoding) lancetest.Page {
	none := func(m pb.PlanarLayout_PositionSet_Meaning) *pb.PlanarLayout_PositionSet {
		return &pb.PlanarLayout_PositionSet{Meaning: m, Positions: lancetest.Constant(nil)}
	}
	nulls := none(pb.PlanarLayout_PositionSet_NULLS)
	return lancetest.Page{Rows: rows, Encoding: &pb.PlanarLayout{
		Structure: &pb.PlanarLayout_Structure{Kind: &pb.PlanarLayout_Structure_Sparse{Sparse: &pb.PlanarLayout_Sparse{Layers: []*pb.PlanarLayout_SparseLayer{
			{Kind: &pb.PlanarLayout_SparseLayer_List{List: &pb.PlanarLayout_SparseList{NumChildSlots: items, NonEmptyPositions: some,
				NumNonEmptyPositions: n, Counts: counts, Validity: nulls}}},
			{Kind: &pb.PlanarLayout_SparseLayer_Validity{Validity: nulls}},
		}}}},
		Values: &pb.PlanarLayout_Values{Kind: &pb.PlanarLayout_Values_Constant{Constant: &pb.PlanarLayout_Constant{Scalar: []byte{7, 0, 0, 0}}}}}}
}

// readBad reads all of field "v" as values, and as cells where it is a string.
func readBad(types []string, v lancefile.Version, p lancetest.Page) error {
	ctx := context.Background()
	file := fileOf(v, 16, p)
	file.Fields = fieldsOf(types)
	c := file.Build()
	f, err := lancefile.Open(ctx, c, c.Size())
	if err != nil {
		return err
	}
	values, err := lancefile.OpenValues(ctx, f, "v")
	if err != nil {
		return err
	}
	n := min(values.Rows(), 4000)
	_, err = values.Read(ctx, 0, n)
	if len(types) > 1 || types[0] != "binary" {
		return err
	}
	cells, cellErr := lancefile.OpenCells(ctx, f, 0)
	if cellErr == nil {
		cellErr = cells.Read(ctx, 0, n, func(uint64, []byte, bool) error { return nil })
	}
	if (err == nil) != (cellErr == nil) {
		panic("values and cells disagree")
	}
	return err
}

func TestBadValues(t *testing.T) {
	zstdCell := func(stated uint64, b string) []byte {
		c := compressed(pb.BufferCompression_ZSTD, []byte(b), false)
		binary.LittleEndian.PutUint64(c, stated)
		return cell(c)
	}
	zstd := lancetest.General(pb.BufferCompression_ZSTD, variable())
	lz4 := lancetest.General(pb.BufferCompression_LZ4, variable())
	n := func(b []byte) uint64 { return uint64(len(b)) }
	good := zstdCell(5, "hello")
	huge := cell([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0x1F, 'a', 1, 0, 255, 255})
	list := []string{"list", "int32"}
	bin := []string{"binary"}
	hello := cell([]byte("hello"))
	unknown := &pb.CompressiveEncoding{}
	unknown.ProtoReflect().SetUnknown([]byte{0xAA, 0x01, 0x00}) // field 21
	for _, c := range []struct {
		name  string
		types []string
		v     lancefile.Version
		page  lancetest.Page
		kind  fault.Kind // Unknown: no error
		text  string
	}{
		{"good cell", bin, lancefile.V22, cellsPage(1, 0, zstd, good, 0, n(good)), fault.Unknown, ""},
		{"stated length 2^62", bin, lancefile.V22, cellsPage(1, 0, zstd, zstdCell(1<<62, "hello"), 0, n(good)), fault.Corrupt, "4611686018427387904 bytes uncompressed"},
		{"stated length 1 GiB", bin, lancefile.V22, cellsPage(1, 0, zstd, zstdCell(1<<30, "hello"), 0, n(good)), fault.Corrupt, "gives 5 bytes, its length says 1073741824"},
		{"stated length too small", bin, lancefile.V22, cellsPage(1, 0, zstd, zstdCell(4, "hello"), 0, n(good)), fault.Corrupt, "ZSTD frame"},
		{"no frame", bin, lancefile.V22, cellsPage(1, 0, zstd, hello, 0, n(hello)), fault.Corrupt, "ZSTD buffer of 5 bytes has no length"},
		{"LZ4 of 0.5 GiB", bin, lancefile.V22, cellsPage(1, 0, lz4, huge, 0, n(huge)), fault.Corrupt, "LZ4"},
		{"unknown compression", bin, lancefile.V22, cellsPage(1, 0, lancetest.General(9, variable()), good, 0, n(good)), fault.Unsupported, "unsupported compression 9 in column 0 \"v\""},
		{"unknown encoding", bin, lancefile.V22, cellsPage(1, 0, unknown, hello, 0, n(hello)), fault.Unsupported, "unsupported encoding 21 in column 0 \"v\""},
		{"flat cells", bin, lancefile.V22, cellsPage(1, 0, lancetest.Flat(8), hello, 0, n(hello)), fault.Unsupported, "unsupported encoding 1"},
		{"positions past the end", bin, lancefile.V22, cellsPage(1, 0, variable(), hello, 0, 99), fault.Corrupt, "row 1 begins at byte 99 of 9"},
		{"positions descend", bin, lancefile.V22, cellsPage(2, 0, variable(), hello, 0, 9, 4), fault.Corrupt, "row 2 begins at byte 4"},
		{"positions of no width", bin, lancefile.V22, cellsPage(4, 0, variable(), hello, 0), fault.Corrupt, "4 bytes of positions for 4 rows"},
		{"cell past its bytes", bin, lancefile.V22, cellsPage(1, 0, variable(), cell([]byte("hello"))[:7], 0, 7), fault.Corrupt, "value of 5 bytes, 3 are there"},
		{"half a length", bin, lancefile.V22, cellsPage(1, 0, variable(), hello, 0, 3), fault.Corrupt, "3 bytes of a length of 4"},
		{"two cells for one row", bin, lancefile.V22, cellsPage(1, 0, variable(), append(hello, hello...), 0, 18), fault.Corrupt, "2 rows, 1 are expected"},
		{"level 1 without nulls", bin, lancefile.V22, cellsPage(1, 2, variable(), []byte{3}, 0, 1), fault.Corrupt, "definition 3, at most 1"},
		{"levels of 17 bits", bin, lancefile.V22, cellsPage(1, 17, variable(), hello, 0, 9), fault.Corrupt, "17 bits, at most 16"},
		{"null", bin, lancefile.V22, cellsPage(1, 1, variable(), []byte{1}, 0, 1), fault.Unknown, ""},

		{"offsets", bin, lancefile.V22, stringChunk(2, variable(), []uint64{12, 14, 15}, "abc"), fault.Unknown, ""},
		{"offsets descend", bin, lancefile.V22, stringChunk(2, variable(), []uint64{12, 15, 14}, "abc"), fault.Corrupt, "offset 2 is 14 after 15"},
		{"offsets past the end", bin, lancefile.V22, stringChunk(2, variable(), []uint64{12, 15, 1 << 31}, "abc"), fault.Corrupt, "offset 2 is 2147483648"},
		{"first value among the offsets", bin, lancefile.V22, stringChunk(2, variable(), []uint64{4, 15, 15}, "abc"), fault.Corrupt, "first value at byte 4, within 3 offsets"},
		{"too few offsets", bin, lancefile.V22, stringChunk(9, variable(), []uint64{40, 40}, "abc"), fault.Corrupt, "10 offsets of 32 bits in 11 bytes"},
		{"encoded offsets before 2.3", bin, lancefile.V22, stringChunk(2, &pb.CompressiveEncoding{Compression: &pb.CompressiveEncoding_Variable_{
			Variable: &pb.CompressiveEncoding_Variable{Offsets: lancetest.Range(0, 2)}}}, []uint64{12, 15, 15}, "abc"), fault.Unsupported, "unsupported encoding 14"},
		{"symbols", bin, lancefile.V22, stringChunk(1, fsst(table("ab", "c")), []uint64{8, 11}, "\x00\xffz"), fault.Unknown, ""},
		{"symbol past the table", bin, lancefile.V22, stringChunk(1, fsst(table("ab")), []uint64{8, 9}, "\x01"), fault.Corrupt, "code 1 in a table of 1 symbols"},
		{"escape at the end", bin, lancefile.V22, stringChunk(1, fsst(table("ab")), []uint64{8, 9}, "\xff"), fault.Corrupt, "ends within an escape"},
		{"short symbol table", bin, lancefile.V22, stringChunk(1, fsst(table("ab")[:16]), []uint64{8, 9}, "\x00"), fault.Corrupt, "symbol table of 16 bytes for 1 symbols"},
		{"symbol of no bytes", bin, lancefile.V22, stringChunk(1, fsst(table("")), []uint64{8, 9}, "\x00"), fault.Corrupt, "symbol 0 of 0 bytes"},
		{"dictionary of 2^24", bin, lancefile.V22, changed(stringChunk(2, lancetest.Flat(32), nil, ""), func(m *pb.PageLayout) {
			m.GetMiniBlockLayout().Dictionary, m.GetMiniBlockLayout().NumDictionaryItems = variable(), 1<<24
		}), fault.Corrupt, "2 buffers, not 3"},

		{"lists", list, lancefile.V22, listPage(2, []uint64{1, 0, 1}, []uint64{0, 0, 2}, allValid, emptyList), fault.Unknown, ""},
		{"rows of lists", list, lancefile.V22, listPage(3, []uint64{1, 0, 1}, []uint64{0, 0, 2}, allValid, emptyList), fault.Corrupt, "end in row 1"},
		{"first level goes on", list, lancefile.V22, listPage(2, []uint64{0, 0, 1}, []uint64{0, 0, 2}, allValid, emptyList), fault.Corrupt, "does not begin with a new list"},
		{"repetition 2 of 1", list, lancefile.V22, listPage(2, []uint64{1, 2, 1}, []uint64{0, 0, 2}, allValid, emptyList), fault.Corrupt, "repeats 2 of 1 lists"},
		{"definition 3 of 2", list, lancefile.V22, listPage(2, []uint64{1, 0, 1}, []uint64{0, 3, 2}, allValid, emptyList), fault.Corrupt, "definition 3, at most 2"},
		{"levels of two lengths", list, lancefile.V22, listPage(2, []uint64{1, 0, 1}, []uint64{0, 0}, allValid, emptyList), fault.Corrupt, "3 repetition and 2 definition levels"},
		{"too few levels", list, lancefile.V22, listPage(2, []uint64{1}, []uint64{0}, allValid, emptyList), fault.Corrupt, "2 bytes of levels for 2 rows"},
		{"no repetition", list, lancefile.V22, listPage(2, nil, []uint64{0, 0}, allValid, emptyList), fault.Corrupt, "without repetition levels"},
		{"layers of a plain column", list, lancefile.V22, listPage(2, []uint64{1, 1}, nil, allValid), fault.Unsupported, "unsupported layers"},
		{"layers the wrong way", list, lancefile.V22, listPage(2, []uint64{1, 1}, nil, emptyList, allValid), fault.Corrupt, "do not match field"},
		{"no layers", list, lancefile.V22, listPage(2, []uint64{1, 1}, nil), fault.Corrupt, "page without layers"},
		{"layer 0", list, lancefile.V22, listPage(2, []uint64{1, 1}, nil, 0, emptyList), fault.Unsupported, "unsupported layer 0"},

		{"scalar", bin, lancefile.V22, scalarPage(append(lancetest.Words([]uint64{2, 8, 3, 0, 3}, 32), "abc"...)), fault.Unknown, ""},
		{"scalar past the buffer", bin, lancefile.V22, scalarPage(append(lancetest.Words([]uint64{2, 8, 9, 0, 3}, 32), "abc"...)), fault.Corrupt, "has 9 bytes, 3 are left"},
		{"scalar in 2^32-1 buffers", bin, lancefile.V22, scalarPage(lancetest.Words([]uint64{1<<32 - 1, 8, 9, 0, 3}, 32)), fault.Corrupt, "in 4294967295 buffers"},
		{"scalar offsets", bin, lancefile.V22, scalarPage(append(lancetest.Words([]uint64{2, 8, 3, 0, 4}, 32), "abc"...)), fault.Corrupt, "offset 1 is 4"},

		{"2.0 cells", bin, lancefile.V20, binaryPage([]uint64{2, 103, 3}, "abc", 100), fault.Unknown, ""},
		{"2.0 ends descend", bin, lancefile.V20, binaryPage([]uint64{2, 1, 3}, "abc", 100), fault.Corrupt, "value 1 ends at 1 of"},
		{"2.0 end past the bytes", bin, lancefile.V20, binaryPage([]uint64{2, 2, 99}, "abc", 100), fault.Corrupt, "no 99 values"},
		{"2.0 end at 2^61", bin, lancefile.V20, binaryPage([]uint64{2, 2, 1 << 61}, "abc", 0), fault.TooLarge, "bytes in one read"},

		{"sparse lists", list, lancefile.V23, listSparse(9, 6, lancetest.Range(1, 3), 3, lancetest.Constant([]byte{2})), fault.Unknown, ""},
		{"sparse positions past the rows", list, lancefile.V23, listSparse(7, 6, lancetest.Range(1, 3), 3, lancetest.Constant([]byte{2})), fault.Corrupt, "go past 7 rows"},
		{"sparse counts", list, lancefile.V23, listSparse(9, 7, lancetest.Range(1, 3), 3, lancetest.Constant([]byte{2})), fault.Corrupt, "6 items of 7"},
		{"sparse counts over", list, lancefile.V23, listSparse(9, 5, lancetest.Range(1, 3), 3, lancetest.Constant([]byte{2})), fault.Corrupt, "2 items, 1 are left"},
		{"sparse counts of 0", list, lancefile.V23, listSparse(9, 0, lancetest.Range(1, 3), 3, lancetest.Constant(nil)), fault.Corrupt, "list 0 has 0 items"},
		{"2^40 sparse lists", list, lancefile.V23, listSparse(1<<41, 1<<40, lancetest.Range(0, 1), 1<<40, lancetest.Constant([]byte{1})), fault.Unsupported, "1099511627776 lists in one page"},
		{"2^47 items", list, lancefile.V23, listSparse(9, 3<<45, lancetest.Range(1, 3), 3, lancetest.Constant(lancetest.Words([]uint64{1 << 45}, 64))), fault.TooLarge, "bytes in one read"},
		{"sparse without counts", list, lancefile.V23, listSparse(9, 6, lancetest.Range(1, 3), 3, nil), fault.Corrupt, "list layer without counts"},
		{"sparse without positions", list, lancefile.V23, listSparse(9, 6, nil, 3, lancetest.Constant([]byte{2})), fault.Corrupt, "set without positions"},
		{"counts in a buffer that is not there", list, lancefile.V23, listSparse(9, 6, lancetest.Range(1, 3), 3, lancetest.Flat(64)), fault.Corrupt, "its structure takes more"},
		{"sparse lists in a plain column", []string{"int32"}, lancefile.V23, listSparse(9, 6, lancetest.Range(1, 3), 3, lancetest.Constant([]byte{2})), fault.Unsupported, "unsupported layers"},
		{"type", []string{"blob"}, lancefile.V22, scalarPage(nil), fault.Unsupported, `unsupported type: "blob" in column 0 "v"`},
		{"wide lists", []string{"fixed_size_list:float:4294967295"}, lancefile.V22, scalarPage(nil), fault.Corrupt, "at most 16777216 are read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := readBad(c.types, c.v, c.page)
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > 24<<20 {
				t.Errorf("%d bytes allocated", got)
			}
			if c.kind == fault.Unknown {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantError(t, err, c.kind, c.text)
		})
	}
}

// TestBadPaths asks for fields and columns that are not there.
func TestBadPaths(t *testing.T) {
	file := fileOf(lancefile.V22, 16, listPage(2, []uint64{1, 0, 1}, []uint64{0, 0, 2}, allValid, emptyList))
	file.Fields = fieldsOf([]string{"list", "int32"})
	c := file.Build()
	ctx := t.Context()
	f, err := lancefile.Open(ctx, c, c.Size())
	if err != nil {
		t.Fatal(err)
	}
	want := []lancefile.Leaf{{Path: "v.item", Type: "int32", Column: 0, Nullable: true}}
	if got := f.Leaves(); !slices.Equal(got, want) {
		t.Errorf("leaves %v, want %v", got, want)
	}
	if col, field, err := f.Column("v.item"); err != nil || col != 0 || field.GetLogicalType() != "int32" {
		t.Errorf("v.item is column %d of type %q (%v)", col, field.GetLogicalType(), err)
	}
	_, _, err = f.Column("v")
	wantError(t, err, fault.Invalid, `"v" has no column of its own`)
	_, _, err = f.Column("v.item.x")
	wantError(t, err, fault.NotFound, `no field "v.item.x"`)
	_, err = lancefile.OpenValues(ctx, f, "v.item")
	wantError(t, err, fault.Invalid, `is an item of "v"`)
	_, err = lancefile.OpenCells(ctx, f, 0)
	wantError(t, err, fault.Invalid, "is in a list")
	_, err = lancefile.OpenCells(ctx, f, 7)
	wantError(t, err, fault.Invalid, "has column 7 of 1")
	v, err := lancefile.OpenValues(ctx, f, "v")
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Read(ctx, 1, 2)
	wantError(t, err, fault.Invalid, "has no 2 rows at 1")
}
