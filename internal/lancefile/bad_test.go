package lancefile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/pb"
)

// readAll opens a file and reads its first column as u16, in pieces.
func readAll(r io.ReaderAt, size int64) error {
	ctx := context.Background()
	f, err := lancefile.Open(ctx, r, size)
	if err != nil {
		return err
	}
	c, err := lancefile.OpenColumn[uint16](ctx, f, 0)
	if err != nil {
		return err
	}
	n := min(c.Rows(), 1<<16)
	_, err = c.Read(ctx, 0, make([]uint16, n), make([]uint64, (n+63)/64))
	return err
}

func wantError(t *testing.T, err error, kind fault.Kind, text string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %v: ...%s...", kind, text)
	}
	if fault.KindOf(err) != kind || !strings.Contains(err.Error(), text) {
		t.Fatalf("got %v, want %v: ...%s...", err, kind, text)
	}
}

func put64(b []byte, at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }

// TestBadContainers changes the golden file of 2.2: footer at 462, column offset table at 414 (2 entries), global
// buffer table at 446 (1 entry), schema at 128 (66 bytes), column metadata at 194 and 303.
func TestBadContainers(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(b []byte) []byte
		kind   fault.Kind
		text   string
	}{
		{"empty", func([]byte) []byte { return nil }, fault.Corrupt, "a file of 0 bytes is too short"},
		{"39 bytes", func(b []byte) []byte { return b[len(b)-39:] }, fault.Corrupt, "39 bytes is too short"},
		{"footer alone", func(b []byte) []byte { return b[len(b)-40:] }, fault.Corrupt, "does not fit before the footer"},
		{"last byte missing", func(b []byte) []byte { return b[:len(b)-1] }, fault.Corrupt, "magic"},
		{"one byte more", func(b []byte) []byte { return append(b, 0) }, fault.Corrupt, "magic"},
		{"magic", func(b []byte) []byte { b[501] = 'X'; return b }, fault.Corrupt, "4c414e58 instead of 4c414e43"},
		{"version (9, 9)", func(b []byte) []byte { b[494], b[496] = 9, 9; return b }, fault.Unsupported, "file version (9, 9)"},
		{"legacy version", func(b []byte) []byte { b[494], b[496] = 0, 2; return b }, fault.Unsupported, "file version (0, 2)"},
		{"column table past the end", func(b []byte) []byte { put64(b, 470, 1<<40); return b }, fault.Corrupt, "column offset table"},
		{"column table over the footer", func(b []byte) []byte { put64(b, 470, 431); return b }, fault.Corrupt, "does not fit"},
		{"buffer table past the end", func(b []byte) []byte { put64(b, 478, 1<<63); return b }, fault.Corrupt, "global buffer table"},
		{"buffer table over the footer", func(b []byte) []byte { put64(b, 478, 447); return b }, fault.Corrupt, "does not fit"},
		{"tables overlap", func(b []byte) []byte { put64(b, 478, 430); return b }, fault.Corrupt, "not in this order"},
		{"columns 2^32-1", func(b []byte) []byte { binary.LittleEndian.PutUint32(b[490:], 1<<32-1); return b }, fault.Corrupt, "4294967295 entries"},
		{"buffers 2^32-1", func(b []byte) []byte { binary.LittleEndian.PutUint32(b[486:], 1<<32-1); return b }, fault.Corrupt, "4294967295 entries"},
		{"no buffers", func(b []byte) []byte { binary.LittleEndian.PutUint32(b[486:], 0); return b }, fault.Corrupt, "no global buffer"},
		{"column metadata after its table", func(b []byte) []byte { put64(b, 462, 420); return b }, fault.Corrupt, "not in this order"},
		{"schema outside the file", func(b []byte) []byte { put64(b, 446, 1<<50); return b }, fault.Corrupt, "lies outside the file"},
		{"schema length", func(b []byte) []byte { put64(b, 454, 1<<63); return b }, fault.Corrupt, "lies outside the file"},
		{"schema not aligned", func(b []byte) []byte { put64(b, 446, 130); return b }, fault.Corrupt, "not a multiple of 64"},
		{"schema after the column metadata", func(b []byte) []byte { put64(b, 446, 192); return b }, fault.Corrupt, "after the start of the column metadata"},
		{"column entry before the area", func(b []byte) []byte { put64(b, 414, 128); return b }, fault.Corrupt, "metadata of column 0"},
		{"column entry too long", func(b []byte) []byte { put64(b, 422, 300); return b }, fault.Corrupt, "metadata of column 0"},
		{"schema is no message", func(b []byte) []byte { b[128] = 0xFF; return b }, fault.Corrupt, "schema does not decode"},
		{"column metadata is no message", func(b []byte) []byte { b[194] = 0xFF; return b }, fault.Corrupt, "does not decode"},
		{"row count of the schema", func(b []byte) []byte { b[193] = 4; return b }, fault.Corrupt, `column 0 "ids": its 1 pages hold 3 rows, the file 4`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := c.change(golden(t, "mini22"))
			ctx := t.Context()
			f, err := lancefile.Open(ctx, bytes.NewReader(b), int64(len(b)))
			if err == nil {
				_, err = lancefile.OpenColumn[uint64](ctx, f, 0)
			}
			wantError(t, err, c.kind, c.text)
		})
	}
}

func TestBadGlobalBuffers(t *testing.T) {
	f := goldenFile(2, 2)
	f.Globals = []lancetest.Buffer{lancetest.Bytes(make([]byte, 100)), lancetest.Bytes(make([]byte, 10))}
	content := f.Build()
	whole := content.All()
	table := int(binary.LittleEndian.Uint64(whole[len(whole)-24:]))
	for _, c := range []struct {
		name       string
		entry      int
		off, n     uint64
		text       string
		wantErrNot bool
	}{
		{"as it is", 1, 128, 100, "", true},
		{"empty buffers may lie anywhere", 1, 128, 0, "", true},
		{"two name the same bytes", 2, 128, 10, "global buffers 1 and 2 overlap at byte 128", false},
		{"two overlap", 2, 192, 64, "overlap at byte 192", false},
		{"one covers the other", 1, 128, 190, "overlap", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bytes.Clone(whole)
			put64(b, table+16*c.entry, c.off)
			put64(b, table+16*c.entry+8, c.n)
			_, err := lancefile.Open(t.Context(), bytes.NewReader(b), int64(len(b)))
			if c.wantErrNot {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantError(t, err, fault.Corrupt, c.text)
		})
	}
	// More bytes in buffers than lie before the column metadata: upstream computes the rest by subtraction.
	b := bytes.Clone(whole)
	put64(b, table+24, uint64(len(b))-128)
	_, err := lancefile.Open(t.Context(), bytes.NewReader(b), int64(len(b)))
	wantError(t, err, fault.Corrupt, "more than lie before the column metadata")
}

// mini is a chunked page of five u16 rows whose only chunk can be changed.
func mini(v lancefile.Version, change func(*pb.PageLayout_MiniBlock, *[][]byte)) lancetest.File {
	p := chunked([]int64{5, -1, 5, 9, -1}, 16, v, valueForms[0], levelForms[0], false)
	var bufs [][]byte
	for _, b := range p.Buffers {
		x := make([]byte, b.Size)
		b.Fill(x, 0)
		bufs = append(bufs, x)
	}
	change(p.Encoding.(*pb.PageLayout).GetMiniBlockLayout(), &bufs)
	p.Buffers = nil
	for _, b := range bufs {
		p.Buffers = append(p.Buffers, lancetest.Bytes(b))
	}
	return fileOf(v, 16, p)
}

func TestBadPages(t *testing.T) {
	type mb = pb.PageLayout_MiniBlock
	v21, v22, v23 := lancefile.V21, lancefile.V22, lancefile.V23
	page := func(v lancefile.Version, p lancetest.Page) lancetest.File { return fileOf(v, 16, p) }
	positions := func(e *pb.CompressiveEncoding, n uint64, b []byte) lancetest.File {
		p := sparse([]int64{5, -1, 5, 5, -1}, 16, true, func([]uint64) (*pb.CompressiveEncoding, []byte) { return e, b })
		p.Encoding.(*pb.PlanarLayout).GetStructure().GetSparse().GetLayers()[0].GetValidity().NumPositions = n
		return fileOf(v23, 16, p)
	}
	w64 := func(v ...uint64) []byte { return lancetest.Words(v, 64) }
	unknown := func(num byte) *pb.CompressiveEncoding {
		e := &pb.CompressiveEncoding{}
		e.ProtoReflect().SetUnknown([]byte{num<<3 | 2, 0})
		return e
	}
	zip := func(change func(*pb.PageLayout_FullZip, *lancetest.Page)) lancetest.File {
		p := lancetest.Page{Rows: 3, Encoding: zipLayout(16, 1, 3), Buffers: []lancetest.Buffer{lancetest.Bytes(zipped([]int64{1, -1, 2}, 16, 1))}}
		change(p.Encoding.(*pb.PageLayout).GetFullZipLayout(), &p)
		return fileOf(v22, 16, p)
	}
	lz4Bomb := append([]byte{0, 0, 0, 0xFF}, make([]byte, 10)...)
	for _, c := range []struct {
		name string
		file lancetest.File
		kind fault.Kind
		text string
	}{
		{"2.2 without large chunks", mini(v22, func(m *mb, _ *[][]byte) { m.HasLargeChunk = false }), fault.Corrupt, "has_large_chunk is false in a file of version 2.2"},
		{"2.1 with large chunks", mini(v21, func(m *mb, _ *[][]byte) { m.HasLargeChunk = true }), fault.Corrupt, "has_large_chunk is true in a file of version 2.1"},
		{"chunk past the data", mini(v22, func(_ *mb, b *[][]byte) { (*b)[0][1] = 1 }), fault.Corrupt, "chunk 0 ends at byte"},
		{"data too short", mini(v22, func(_ *mb, b *[][]byte) { (*b)[1] = (*b)[1][:8] }), fault.Corrupt, "chunk 0 ends at byte"},
		{"2^13 values in 2.1", mini(v21, func(_ *mb, b *[][]byte) { (*b)[0][0] |= 13 }), fault.Corrupt, "2^13 values"},
		{"two chunk words", mini(v22, func(_ *mb, b *[][]byte) { (*b)[0] = append((*b)[0], (*b)[0]...); (*b)[1] = append((*b)[1], (*b)[1]...) }), fault.Corrupt, "chunk 0 has 2^0 values"},
		{"no chunk word", mini(v22, func(_ *mb, b *[][]byte) { (*b)[0] = nil }), fault.Corrupt, "chunk words of 0 bytes"},
		{"half a chunk word", mini(v22, func(_ *mb, b *[][]byte) { (*b)[0] = (*b)[0][:3] }), fault.Corrupt, "chunk words of 3 bytes"},
		{"items differ from rows", mini(v22, func(m *mb, _ *[][]byte) { m.NumItems = 6 }), fault.Corrupt, "6 items in a page of 5 rows"},
		{"level count", mini(v22, func(_ *mb, b *[][]byte) { (*b)[1][0] = 4 }), fault.Corrupt, "4 definition levels for 5 values"},
		{"level 2", mini(v22, func(_ *mb, b *[][]byte) { (*b)[1][8] = 2 }), fault.Corrupt, "value 0 has definition level 2"},
		{"level bytes", mini(v22, func(_ *mb, b *[][]byte) { (*b)[1][2] = 200 }), fault.Corrupt, "definition levels of 200 bytes"},
		{"value bytes", mini(v22, func(_ *mb, b *[][]byte) { (*b)[1][6] = 1 }), fault.Corrupt, "value buffer of 65546 bytes"},
		{"nulls under a layer without", mini(v22, func(m *mb, _ *[][]byte) { m.Layers[0] = 1 }), fault.Corrupt, "2 null values in a page whose layer allows none"},
		{"no layers", mini(v22, func(m *mb, _ *[][]byte) { m.Layers = nil }), fault.Corrupt, "without layers"},
		{"layer 0", mini(v22, func(m *mb, _ *[][]byte) { m.Layers[0] = 0 }), fault.Corrupt, "layer 0"},
		{"list", mini(v22, func(m *mb, _ *[][]byte) { m.Layers = append(m.Layers, 4) }), fault.Unsupported, "nested column"},
		{"repetition", mini(v22, func(m *mb, _ *[][]byte) { m.RepCompression = lancetest.Flat(16) }), fault.Unsupported, "repetition"},
		{"three buffers", mini(v22, func(_ *mb, b *[][]byte) { *b = append(*b, nil) }), fault.Corrupt, "3 buffers, not 2"},
		{"no value encoding", mini(v22, func(m *mb, _ *[][]byte) { m.ValueCompression = nil }), fault.Corrupt, "encoding missing"},
		{"FSST", mini(v22, func(m *mb, _ *[][]byte) { m.ValueCompression = unknown(6) }), fault.Unsupported, `unsupported encoding 6 in column 0 "c"`},
		{"unknown number", mini(v22, func(m *mb, _ *[][]byte) { m.ValueCompression = unknown(13) }), fault.Unsupported, "unsupported encoding 13"},
		{"range in 2.2", mini(v22, func(m *mb, _ *[][]byte) { m.ValueCompression = lancetest.Range(1, 1) }), fault.Unsupported, "unsupported encoding 14"},
		{"32-bit values", mini(v22, func(m *mb, _ *[][]byte) { m.ValueCompression = lancetest.Flat(32) }), fault.Corrupt, "values of 32 bits where 16 are expected"},
		{"dictionary too large", mini(v22, func(m *mb, b *[][]byte) {
			m.Dictionary, m.NumDictionaryItems = lancetest.Flat(16), 1<<40
			*b = append(*b, nil)
		}), fault.Corrupt, "1099511627776 dictionary items for 5 rows"},
		{"dictionary too short", mini(v22, func(m *mb, b *[][]byte) {
			m.Dictionary, m.NumDictionaryItems = lancetest.Flat(16), 3
			*b = append(*b, []byte{1, 2, 3, 4})
		}), fault.Corrupt, "3 flat values of 16 bits in 4 bytes"},
		{"index outside the dictionary", mini(v22, func(m *mb, b *[][]byte) {
			m.Dictionary, m.NumDictionaryItems = lancetest.Flat(16), 2
			*b = append(*b, []byte{1, 2, 3, 4})
		}), fault.Corrupt, "index 5 in a dictionary of 2"},
		{"packed to more bits than there are", mini(v22, func(m *mb, _ *[][]byte) { m.DefCompression = lancetest.OutOfLine(16, 17) }), fault.Corrupt, "bit-packed values of 17 bits do not fit 16"},
		{"packed size", mini(v22, func(m *mb, b *[][]byte) { m.DefCompression = lancetest.OutOfLine(16, 3); (*b)[1][2] = 8 }), fault.Corrupt, "5 bit-packed values of 3 bits take 10 or 384 bytes, not 8"},
		{"inline width 5", mini(v22, func(m *mb, _ *[][]byte) { m.ValueCompression = lancetest.Inline(16) }), fault.Corrupt, "5-bit values takes 640 bytes, not 8"},
		{"LZ4 of 4 GiB", mini(v22, func(m *mb, b *[][]byte) {
			m.ValueCompression = lancetest.General(pb.BufferCompression_LZ4, lancetest.Flat(16))
			*b = chunkOf(v22, lz4Bomb)
		}), fault.Corrupt, "4278190080 bytes uncompressed, at most 10 are expected"},
		{"ZSTD of 2^62", mini(v22, func(m *mb, b *[][]byte) {
			m.ValueCompression = lancetest.General(pb.BufferCompression_ZSTD, lancetest.Flat(16))
			*b = chunkOf(v22, append(w64(1<<62), 1, 2, 3, 4))
		}), fault.Corrupt, "4611686018427387904 bytes uncompressed"},
		{"ZSTD length differs from the frame", mini(v22, func(m *mb, b *[][]byte) {
			m.ValueCompression = lancetest.General(pb.BufferCompression_ZSTD, lancetest.Flat(16))
			*b = chunkOf(v22, append(w64(10), compressed(pb.BufferCompression_ZSTD, make([]byte, 8), true)...))
		}), fault.Corrupt, "gives 8 bytes, its length says 10"},
		{"ZSTD frame of more than expected", mini(v22, func(m *mb, b *[][]byte) {
			m.ValueCompression = lancetest.General(pb.BufferCompression_ZSTD, lancetest.Flat(16))
			*b = chunkOf(v22, compressed(pb.BufferCompression_ZSTD, make([]byte, 1<<20), true))
		}), fault.Corrupt, "ZSTD frame"},
		{"compression 3", mini(v22, func(m *mb, _ *[][]byte) { m.ValueCompression = lancetest.General(3, lancetest.Flat(16)) }), fault.Unsupported, "unsupported compression 3"},
		{"run of length 0", mini(v22, func(m *mb, b *[][]byte) {
			m.ValueCompression, m.NumBuffers = lancetest.Rle(lancetest.Flat(16), lancetest.Flat(8)), 2
			*b = chunkOf(v22, []byte{1, 0, 2, 0}, []byte{5, 0})
		}), fault.Corrupt, ""},
		{"wide run lengths in 2.2", mini(v22, func(m *mb, b *[][]byte) {
			m.ValueCompression, m.NumBuffers = lancetest.Rle(lancetest.Flat(16), lancetest.Flat(16)), 2
			*b = chunkOf(v22, []byte{1, 0}, []byte{5, 0})
		}), fault.Corrupt, "run-length children"},
		{"runs too few", mini(v22, func(m *mb, b *[][]byte) {
			m.ValueCompression, m.NumBuffers = lancetest.Rle(lancetest.Flat(16), lancetest.Flat(8)), 2
			*b = chunkOf(v22, []byte{1, 0}, []byte{4})
		}), fault.Corrupt, "1 runs give 4 values, not 5"},
		{"runs and lengths differ", mini(v22, func(m *mb, b *[][]byte) {
			m.ValueCompression, m.NumBuffers = lancetest.Rle(lancetest.Flat(16), lancetest.Flat(8)), 2
			*b = chunkOf(v22, []byte{1, 0}, []byte{4, 1})
		}), fault.Corrupt, "1 run values and 2 run lengths"},
		{"constant with inline value and 1 buffer", page(v22, constant([]int64{7, 7}, 16, true, []byte{1})), fault.Corrupt, "constant page with 1 buffers"},
		{"constant with inline value and 3 buffers", page(v22, constant([]int64{7, 7}, 16, true, nil, nil, nil)), fault.Corrupt, "constant page with 3 buffers"},
		{"constant of 4 bytes", page(v22, constant([]int64{7, 7}, 32, true)), fault.Corrupt, "constant of 4 bytes for values of 16 bits"},
		{"inline value in 2.1", page(v21, constant([]int64{7, 7}, 16, true)), fault.Corrupt, "inline value or compressed levels in a file of version 2.1"},
		{"constant without value or null", page(v22, constant([]int64{7, 7}, 16, false)), fault.Corrupt, "allows no null"},
		{"constant levels too short", page(v22, constant([]int64{7, -1}, 16, true, nil, []byte{0, 0})), fault.Corrupt, "2 bytes of definition levels for 2 rows"},
		{"constant with repetition", page(v22, constant([]int64{7, -1}, 16, true, []byte{0, 0}, nil)), fault.Unsupported, "repetition"},
		{"valid row without a value", page(v22, constant([]int64{-1, -1}, 16, false, nil, []byte{0, 0, 1, 0})), fault.Corrupt, "1 rows of a page without a value are not null"},
		{"zipped items", zip(func(m *pb.PageLayout_FullZip, _ *lancetest.Page) { m.NumItems = 2 }), fault.Corrupt, "2 items, 3 of them visible"},
		{"zipped too short", zip(func(_ *pb.PageLayout_FullZip, p *lancetest.Page) { p.Buffers[0].Size = 8 }), fault.Corrupt, "3 zipped values take 9 bytes, the buffer has 8"},
		{"zipped level 2", zip(func(_ *pb.PageLayout_FullZip, p *lancetest.Page) {
			p.Buffers[0] = lancetest.Bytes([]byte{0, 1, 0, 2, 0, 0, 0, 2, 0})
		}), fault.Corrupt, "row 1 has definition level 2"},
		{"zipped with repetition", zip(func(m *pb.PageLayout_FullZip, _ *lancetest.Page) { m.BitsRep = 1 }), fault.Unsupported, "repetition"},
		{"zipped levels of 17 bits", zip(func(m *pb.PageLayout_FullZip, _ *lancetest.Page) { m.BitsDef = 17 }), fault.Corrupt, "17 bits"},
		{"zipped values compressed", zip(func(m *pb.PageLayout_FullZip, _ *lancetest.Page) {
			m.ValueCompression = lancetest.General(pb.BufferCompression_ZSTD, lancetest.Flat(16))
		}), fault.Unsupported, "compressed one by one"},
		{"zipped, two buffers", zip(func(_ *pb.PageLayout_FullZip, p *lancetest.Page) { p.Buffers = append(p.Buffers, p.Buffers[0]) }), fault.Corrupt, "2 buffers, not 1"},
		{"no layout", page(v22, lancetest.Page{Rows: 3, Encoding: &pb.PageLayout{}}), fault.Corrupt, "layout missing"},
		{"2.2 page of 2.0", page(v22, lancetest.Page{Rows: 3, Encoding: array(noNulls(arrayFlat(16, 0)))}), fault.Unsupported, "ArrayEncoding"},
		{"planar page in 2.2", page(v22, lancetest.Page{Rows: 3, Encoding: zipPlanar(16, 0, 3)}), fault.Unsupported, "PlanarLayout"},
		{"planar without levels", page(v23, lancetest.Page{Rows: 3, Encoding: &pb.PlanarLayout{Structure: dense(1), Values: &pb.PlanarLayout_Values{
			Kind: &pb.PlanarLayout_Values_Zipped{Zipped: &pb.PlanarLayout_Zipped{}}}}}), fault.Corrupt, "without levels"},
		{"planar without values", page(v23, lancetest.Page{Rows: 3, Encoding: &pb.PlanarLayout{Structure: dense(1)}}), fault.Corrupt, "without values"},
		{"planar without layers", page(v23, lancetest.Page{Rows: 3, Encoding: &pb.PlanarLayout{Structure: dense(), Values: &pb.PlanarLayout_Values{
			Kind: &pb.PlanarLayout_Values_None{None: &pb.PlanarLayout_None{}}}}}), fault.Corrupt, "without layers"},
		{"delta of runs", positions(lancetest.Delta(1, lancetest.Rle(lancetest.Flat(64), lancetest.Flat(8))), 2, w64(1)), fault.Corrupt, "may not stand there"},
		{"delta of as many values", positions(lancetest.Delta(1, lancetest.Flat(64)), 2, w64(1, 2)), fault.Corrupt, "1 flat values of 64 bits in 16 bytes"},
		{"delta of an unknown kind", positions(lancetest.Delta(1, unknown(9)), 2, w64(1)), fault.Unsupported, "unsupported encoding 9"},
		{"positions do not ascend", positions(lancetest.Flat(64), 2, w64(3, 3)), fault.Corrupt, "does not ascend"},
		{"position past the rows", positions(lancetest.Flat(64), 2, w64(3, 5)), fault.Corrupt, "not below the row count 5"},
		{"range past the rows", positions(lancetest.Range(1, 4), 2, nil), fault.Corrupt, "go past 5 rows"},
		{"range that stands still", positions(lancetest.Range(1, 0), 2, nil), fault.Corrupt, "do not ascend"},
		{"range that overflows", positions(lancetest.Range(1, 1<<63), 3, nil), fault.Corrupt, "go past 5 rows"},
		{"more positions than rows", positions(lancetest.Range(0, 1), 6, nil), fault.Corrupt, "6 positions in a page of 5 rows"},
		{"no positions", positions(nil, 0, nil), fault.Corrupt, "set without positions"},
		{"positions without a buffer", positions(lancetest.Flat(64), 2, nil), fault.Corrupt, "0 buffers, its positions take 1"},
		{"buffer of a range", positions(lancetest.Range(1, 1), 2, w64(1)), fault.Corrupt, "1 buffers, its positions take 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			content := c.file.Build()
			wantError(t, readAll(content, content.Size()), c.kind, c.text)
		})
	}
}

// chunkOf makes words and data of a chunk of five rows, nulls at 1 and 4.
func chunkOf(v lancefile.Version, bufs ...[]byte) [][]byte {
	words, data := lancetest.Chunks([]lancetest.Chunk{{Values: 5, Levels: 5, Def: lancetest.Words([]uint64{0, 1, 0, 0, 1}, 16), Buffers: bufs}}, large(v))
	return [][]byte{words, data}
}

// TestBadBuffers has pages whose buffers are not where they should be; the writer of the tests would not do that.
func TestBadBuffers(t *testing.T) {
	whole := golden(t, "mini22")
	i := bytes.Index(whole, []byte{0x0a, 1, 64, 0x12, 1, 9}) // of the page of column 1: offsets [64], sizes [9]
	for _, c := range []struct {
		name string
		at   int
		v    byte
		text string
	}{
		{"as it is", 2, 64, ""},
		{"a larger buffer is no error", 5, 127, ""},
		{"offset not aligned", 2, 65, "not a multiple of 64"},
		{"no sizes", 3, 0x2A, "1 buffer offsets and 0 buffer sizes"}, // field 5 instead of 2
		{"too small", 5, 3, "take 9 bytes, the buffer has 3"},
		{"no message", 1, 200, "does not decode"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bytes.Clone(whole)
			b[i+c.at] = c.v
			_, err := lancefile.OpenColumn[uint16](t.Context(), open(t, b), 1)
			if c.text == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantError(t, err, fault.Corrupt, c.text)
		})
	}
	f := goldenFile(2, 2)
	f.Columns[1].Pages[0].Buffers[0] = lancetest.Repeat([]byte{0}, 1<<20) // sizes of three bytes
	whole = f.Build().All()
	i = bytes.Index(whole, []byte{0x12, 3, 0x80, 0x80, 0x40})
	whole[i+4] = 0x7F
	_, err := lancefile.OpenColumn[uint16](t.Context(), open(t, whole), 1)
	wantError(t, err, fault.Corrupt, "buffer 0 (2080768 bytes at 64) lies outside the file")
}

// failing is a reader that fails, or ends early.
type failing struct {
	b   []byte
	err error
	at  int64
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off < f.at {
		return 0, f.err
	}
	return bytes.NewReader(f.b).ReadAt(p, off)
}

func TestReadErrors(t *testing.T) {
	f := fileOf(lancefile.V22, 16, lancetest.Page{Rows: 40000, Encoding: zipLayout(16, 1, 40000), Buffers: []lancetest.Buffer{lancetest.Repeat([]byte{0, 1, 0}, 120000)}})
	b := f.Build().All()
	down := fault.New("store.Read", "x", fault.Unavailable, "down")
	wantError(t, readAll(failing{b, down, int64(len(b))}, int64(len(b))), fault.Unavailable, "down")
	wantError(t, readAll(failing{b, down, 100000}, int64(len(b))), fault.Unavailable, "down")
	wantError(t, readAll(failing{b, io.EOF, 100000}, int64(len(b))), fault.Corrupt, "the file ends after byte 0")
	wantError(t, readAll(bytes.NewReader(b[:len(b)-100]), int64(len(b))), fault.Corrupt, "the file ends after byte")
	ctx, cancel := context.WithCancel(t.Context())
	file, err := lancefile.Open(ctx, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	c, err := lancefile.OpenColumn[uint16](ctx, file, 0)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_, err = c.Read(ctx, 0, make([]uint16, 10), nil)
	if !errors.Is(err, context.Canceled) || fault.KindOf(err) != fault.Cancelled {
		t.Fatalf("got %v, want cancelled", err)
	}
	_, err = c.Read(t.Context(), 39990, make([]uint16, 11), nil)
	wantError(t, err, fault.Invalid, "no rows [39990, 40001)")
	if _, err := c.Read(t.Context(), 40000, nil, nil); err != nil {
		t.Fatal(err)
	}
	_, err = lancefile.OpenColumn[uint16](t.Context(), file, 1)
	wantError(t, err, fault.Invalid, "column 1 of 1")
}

// TestNullsNotAccepted reads a null without a place for it.
func TestNullsNotAccepted(t *testing.T) {
	c, err := lancefile.OpenColumn[uint16](t.Context(), open(t, golden(t, "mini22")), 1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Read(t.Context(), 0, make([]uint16, 3), nil)
	wantError(t, err, fault.Corrupt, `column 1 "label", page 0: 1 null values`)
	if _, err := c.Read(t.Context(), 2, make([]uint16, 1), nil); err != nil {
		t.Fatal(err)
	}
}
