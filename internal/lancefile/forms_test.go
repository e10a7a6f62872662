package lancefile_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/pb"
)

// form writes a page in one form. rows holds the values, -1 for null.
type form struct {
	name     string
	versions []lancefile.Version
	page     func(rows []int64, bits int, v lancefile.Version) lancetest.Page
	kind     rowKind
}

// rowKind says what rows a form can hold.
type rowKind uint8

const (
	anyRows     rowKind = iota
	validRows           // no null
	oneValue            // one distinct value, maybe nulls
	oneValid            // one distinct value, no null
	nullRows            // nulls only
	distinctFew         // few distinct values
)

func plain(rows []int64) (values, levels []uint64) {
	for _, v := range rows {
		l := uint64(0)
		if v < 0 {
			v, l = 3, 1 // a null slot holds something
		}
		values, levels = append(values, uint64(v)), append(levels, l)
	}
	return values, levels
}

func leaf(rows []int64) pb.RepDefLayer {
	if slices.Contains(rows, -1) {
		return pb.RepDefLayer_REPDEF_NULLABLE_ITEM
	}
	return pb.RepDefLayer_REPDEF_ALL_VALID_ITEM
}

func large(v lancefile.Version) bool { return v >= lancefile.V22 }

// levelForm is an encoding of definition levels within a chunk.
type levelForm struct {
	name string
	enc  func(levels []uint64) (*pb.CompressiveEncoding, []byte)
}

var levelForms = []levelForm{
	{"flat", func(l []uint64) (*pb.CompressiveEncoding, []byte) { return lancetest.Flat(16), lancetest.Words(l, 16) }},
	{"inline", func(l []uint64) (*pb.CompressiveEncoding, []byte) {
		return lancetest.Inline(16), lancetest.PackInline(l, 16)
	}},
	{"packed", func(l []uint64) (*pb.CompressiveEncoding, []byte) {
		return lancetest.OutOfLine(16, 1), lancetest.PackAll(l, 1, 16, false)
	}},
	{"packed, raw tail", func(l []uint64) (*pb.CompressiveEncoding, []byte) {
		return lancetest.OutOfLine(16, 1), lancetest.PackAll(l, 1, 16, true)
	}},
	{"packed to 2", func(l []uint64) (*pb.CompressiveEncoding, []byte) {
		return lancetest.OutOfLine(16, 2), lancetest.PackAll(l, 2, 16, false)
	}},
	{"runs", func(l []uint64) (*pb.CompressiveEncoding, []byte) {
		return lancetest.Rle(lancetest.Flat(16), lancetest.Flat(8)), lancetest.RunBlock(l, 16)
	}},
}

// valueForm is an encoding of the values of a chunk.
type valueForm struct {
	name string
	from lancefile.Version
	enc  func(values []uint64, bits int) (*pb.CompressiveEncoding, [][]byte)
}

func compressed(s pb.BufferCompression_Scheme, b []byte, frameOnly bool) []byte {
	if s == pb.BufferCompression_ZSTD {
		w, err := zstd.NewWriter(nil)
		if err != nil {
			panic(err)
		}
		defer w.Close()
		if frameOnly {
			return w.EncodeAll(b, nil)
		}
		return w.EncodeAll(b, binary.LittleEndian.AppendUint64(nil, uint64(len(b))))
	}
	out := make([]byte, lz4.CompressBlockBound(len(b))+16)
	n, err := lz4.CompressBlock(b, out, nil)
	if err != nil || n == 0 { // not compressible: literals only
		out = append(literals(len(b)), b...)
		n = len(out)
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), out[:n]...)
}

// literals is the token of an LZ4 block of n literals.
func literals(n int) []byte {
	if n < 15 {
		return []byte{byte(n << 4)}
	}
	out := []byte{0xF0}
	for n -= 15; n >= 255; n -= 255 {
		out = append(out, 255)
	}
	return append(out, byte(n))
}

var valueForms = []valueForm{
	{"flat", lancefile.V21, func(v []uint64, bits int) (*pb.CompressiveEncoding, [][]byte) {
		return lancetest.Flat(bits), [][]byte{lancetest.Words(v, bits)}
	}},
	{"inline", lancefile.V21, func(v []uint64, bits int) (*pb.CompressiveEncoding, [][]byte) {
		return lancetest.Inline(bits), [][]byte{lancetest.PackInline(v, bits)}
	}},
	{"out of line", lancefile.V21, func(v []uint64, bits int) (*pb.CompressiveEncoding, [][]byte) {
		return lancetest.OutOfLine(bits, bits), [][]byte{lancetest.PackAll(v, bits, bits, false)}
	}},
	{"runs", lancefile.V21, func(v []uint64, bits int) (*pb.CompressiveEncoding, [][]byte) {
		run, n := lancetest.Runs(v, 255)
		return lancetest.Rle(lancetest.Flat(bits), lancetest.Flat(8)), [][]byte{lancetest.Words(run, bits), lancetest.Words(n, 8)}
	}},
	{"runs past the end", lancefile.V21, func(v []uint64, bits int) (*pb.CompressiveEncoding, [][]byte) {
		run, n := lancetest.Runs(v, 200)
		n[len(n)-1] += 50
		return lancetest.Rle(lancetest.Flat(bits), lancetest.Flat(8)), [][]byte{lancetest.Words(append(run, 9), bits), lancetest.Words(append(n, 3), 8)}
	}},
	{"runs of 16 bits", lancefile.V23, func(v []uint64, bits int) (*pb.CompressiveEncoding, [][]byte) {
		run, n := lancetest.Runs(v, 1<<16-1)
		return lancetest.Rle(lancetest.Flat(bits), lancetest.Flat(16)), [][]byte{lancetest.Words(run, bits), lancetest.Words(n, 16)}
	}},
	{"runs, packed lengths", lancefile.V23, func(v []uint64, bits int) (*pb.CompressiveEncoding, [][]byte) {
		run, n := lancetest.Runs(v, 255)
		return lancetest.Rle(lancetest.Flat(bits), lancetest.OutOfLine(8, 8)),
			[][]byte{lancetest.Words(run, bits), lancetest.PackAll(n, 8, 8, true)}
	}},
	{"runs, compressed values", lancefile.V23, func(v []uint64, bits int) (*pb.CompressiveEncoding, [][]byte) {
		run, n := lancetest.Runs(v, 255)
		return lancetest.Rle(lancetest.General(pb.BufferCompression_ZSTD, lancetest.Flat(bits)), lancetest.Flat(8)),
			[][]byte{compressed(pb.BufferCompression_ZSTD, lancetest.Words(run, bits), false), lancetest.Words(n, 8)}
	}},
	{"LZ4 of flat", lancefile.V21, func(v []uint64, bits int) (*pb.CompressiveEncoding, [][]byte) {
		return lancetest.General(pb.BufferCompression_LZ4, lancetest.Flat(bits)),
			[][]byte{compressed(pb.BufferCompression_LZ4, lancetest.Words(v, bits), false)}
	}},
	{"ZSTD of inline", lancefile.V21, func(v []uint64, bits int) (*pb.CompressiveEncoding, [][]byte) {
		return lancetest.General(pb.BufferCompression_ZSTD, lancetest.Inline(bits)),
			[][]byte{compressed(pb.BufferCompression_ZSTD, lancetest.PackInline(v, bits), false)}
	}},
	{"ZSTD frame alone", lancefile.V21, func(v []uint64, bits int) (*pb.CompressiveEncoding, [][]byte) {
		return lancetest.General(pb.BufferCompression_ZSTD, lancetest.Flat(bits)),
			[][]byte{compressed(pb.BufferCompression_ZSTD, lancetest.Words(v, bits), true)}
	}},
	{"ZSTD of runs", lancefile.V21, func(v []uint64, bits int) (*pb.CompressiveEncoding, [][]byte) {
		run, n := lancetest.Runs(v, 255)
		return lancetest.General(pb.BufferCompression_ZSTD, lancetest.Rle(lancetest.Flat(bits), lancetest.Flat(8))),
			[][]byte{compressed(pb.BufferCompression_ZSTD, lancetest.Words(run, bits), false), lancetest.Words(n, 8)}
	}},
}

// chunked makes a chunked page in chunks of 1,024 rows.
func chunked(rows []int64, bits int, v lancefile.Version, vf valueForm, lf levelForm, planar bool) lancetest.Page {
	values, levels := plain(rows)
	return chunkedValues(rows, values, levels, bits, v, vf, lf, planar, nil)
}

type dictionary struct {
	enc   *pb.CompressiveEncoding
	items []byte
	count int
}

func chunkedValues(rows []int64, values, levels []uint64, bits int, v lancefile.Version, vf valueForm, lf levelForm, planar bool, d *dictionary) lancetest.Page {
	var chunks []lancetest.Chunk
	var valueEnc, defEnc *pb.CompressiveEncoding
	nullable := leaf(rows) == pb.RepDefLayer_REPDEF_NULLABLE_ITEM
	for from := 0; from < len(values); from += 1024 {
		end := min(from+1024, len(values))
		c := lancetest.Chunk{Values: end - from}
		valueEnc, c.Buffers = vf.enc(values[from:end], bits)
		if nullable {
			c.Levels = uint16(end - from)
			defEnc, c.Def = lf.enc(levels[from:end])
		}
		chunks = append(chunks, c)
	}
	words, data := lancetest.Chunks(chunks, large(v))
	p := lancetest.Page{Rows: uint64(len(rows)), Buffers: []lancetest.Buffer{lancetest.Bytes(words), lancetest.Bytes(data)}}
	var dict *pb.CompressiveEncoding
	items := uint64(0)
	if d != nil {
		dict, items = d.enc, uint64(d.count)
		p.Buffers = append(p.Buffers, lancetest.Bytes(d.items))
	}
	buffers := uint64(len(chunks[0].Buffers))
	if planar {
		p.Encoding = &pb.PlanarLayout{Structure: dense(leaf(rows)), Values: &pb.PlanarLayout_Values{Kind: &pb.PlanarLayout_Values_Chunked{
			Chunked: &pb.PlanarLayout_Chunked{Compression: valueEnc, Levels: &pb.PlanarLayout_ChunkedLevels{Definition: defEnc},
				Dictionary: dict, NumDictionaryItems: items, NumBuffers: buffers, NumItems: p.Rows}}}}
		return p
	}
	p.Encoding = &pb.PageLayout{Layout: &pb.PageLayout_MiniBlockLayout{MiniBlockLayout: &pb.PageLayout_MiniBlock{
		DefCompression: defEnc, ValueCompression: valueEnc, Dictionary: dict, NumDictionaryItems: items,
		Layers: []pb.RepDefLayer{leaf(rows)}, NumBuffers: buffers, NumItems: p.Rows, HasLargeChunk: large(v)}}}
	return p
}

// indexed is a chunked page of dictionary indices; null rows have an index that is in no dictionary.
func indexed(rows []int64, bits int, v lancefile.Version, indexBits int, scheme pb.BufferCompression_Scheme) lancetest.Page {
	var items, values, levels []uint64
	seen := map[int64]uint64{}
	for _, r := range rows {
		if r < 0 {
			values, levels = append(values, 200), append(levels, 1)
			continue
		}
		k, ok := seen[r]
		if !ok {
			k = uint64(len(items))
			seen[r] = k
			items = append(items, uint64(r))
		}
		values, levels = append(values, k), append(levels, 0)
	}
	d := &dictionary{enc: lancetest.Flat(bits), items: lancetest.Words(items, bits), count: len(items)}
	if scheme != pb.BufferCompression_UNSPECIFIED {
		d.enc, d.items = lancetest.General(scheme, d.enc), compressed(scheme, d.items, false)
	}
	return chunkedValues(rows, values, levels, indexBits, v, valueForms[1], levelForms[0], false, d)
}

func zipped(rows []int64, bits int, control int) []byte {
	var b []byte
	for _, v := range rows {
		level := uint64(0)
		if v < 0 {
			v, level = 77, 1
		}
		if control > 0 {
			b = append(b, lancetest.Words([]uint64{level}, 8*control)...)
		}
		b = append(b, lancetest.Words([]uint64{uint64(v)}, bits)...)
	}
	return b
}

func constant(rows []int64, bits int, inline bool, buffers ...[]byte) lancetest.Page {
	m := &pb.PageLayout_Constant{Layers: []pb.RepDefLayer{leaf(rows)}}
	if inline {
		m.InlineValue = lancetest.Words([]uint64{uint64(slices.Max(rows))}, bits)
	}
	p := lancetest.Page{Rows: uint64(len(rows)), Encoding: &pb.PageLayout{Layout: &pb.PageLayout_ConstantLayout{ConstantLayout: m}}}
	for _, b := range buffers {
		p.Buffers = append(p.Buffers, lancetest.Bytes(b))
	}
	return p
}

func constantOf(p lancetest.Page) *pb.PageLayout_Constant {
	return p.Encoding.(*pb.PageLayout).GetConstantLayout()
}

// sparse makes a sparse planar page over one value or none.
func sparse(rows []int64, bits int, nulls bool, enc func(positions []uint64) (*pb.CompressiveEncoding, []byte)) lancetest.Page {
	var positions []uint64
	meaning := pb.PlanarLayout_PositionSet_VALIDS
	if nulls {
		meaning = pb.PlanarLayout_PositionSet_NULLS
	}
	for i, v := range rows {
		if (v < 0) == nulls {
			positions = append(positions, uint64(i))
		}
	}
	e, b := enc(positions)
	values := &pb.PlanarLayout_Values{Kind: &pb.PlanarLayout_Values_None{None: &pb.PlanarLayout_None{}}}
	if v := slices.Max(append(slices.Clone(rows), -1)); v >= 0 {
		values.Kind = &pb.PlanarLayout_Values_Constant{Constant: &pb.PlanarLayout_Constant{Scalar: lancetest.Words([]uint64{uint64(v)}, bits)}}
	}
	p := lancetest.Page{Rows: uint64(len(rows)), Encoding: &pb.PlanarLayout{Values: values,
		Structure: &pb.PlanarLayout_Structure{Kind: &pb.PlanarLayout_Structure_Sparse{Sparse: &pb.PlanarLayout_Sparse{
			Layers: []*pb.PlanarLayout_SparseLayer{{Kind: &pb.PlanarLayout_SparseLayer_Validity{Validity: &pb.PlanarLayout_PositionSet{
				Meaning: meaning, Positions: e, NumPositions: uint64(len(positions))}}}}}}}}}
	if b != nil {
		p.Buffers = []lancetest.Buffer{lancetest.Bytes(b)}
	}
	return p
}

func deltas(v []uint64) []uint64 {
	var d []uint64
	for i := 1; i < len(v); i++ {
		d = append(d, v[i]-v[i-1])
	}
	return d
}

// positionForm is an encoding of sparse positions, which falls back on flat where it does not fit.
var positionForms = []levelForm{
	{"flat", func(v []uint64) (*pb.CompressiveEncoding, []byte) { return lancetest.Flat(64), lancetest.Words(v, 64) }},
	{"packed", func(v []uint64) (*pb.CompressiveEncoding, []byte) {
		return lancetest.OutOfLine(64, 20), lancetest.PackAll(v, 20, 64, false)
	}},
	{"LZ4", func(v []uint64) (*pb.CompressiveEncoding, []byte) {
		return lancetest.General(pb.BufferCompression_LZ4, lancetest.Flat(64)), compressed(pb.BufferCompression_LZ4, lancetest.Words(v, 64), false)
	}},
	{"delta of flat", func(v []uint64) (*pb.CompressiveEncoding, []byte) {
		if len(v) == 0 {
			return lancetest.Constant(nil), nil
		}
		return lancetest.Delta(v[0], lancetest.Flat(64)), lancetest.Words(deltas(v), 64)
	}},
	{"delta of packed", func(v []uint64) (*pb.CompressiveEncoding, []byte) {
		if len(v) == 0 {
			return lancetest.Constant(nil), nil
		}
		return lancetest.Delta(v[0], lancetest.OutOfLine(64, 12)), lancetest.PackAll(deltas(v), 12, 64, false)
	}},
	{"delta of inline", func(v []uint64) (*pb.CompressiveEncoding, []byte) {
		if len(v) == 0 || len(v) > 1000 {
			return lancetest.Flat(64), lancetest.Words(v, 64)
		}
		return lancetest.Delta(v[0], lancetest.Inline(64)), lancetest.PackInline(deltas(v), 64)
	}},
	{"shortest", func(v []uint64) (*pb.CompressiveEncoding, []byte) {
		d := deltas(v)
		switch {
		case len(v) == 0:
			return lancetest.Constant(nil), nil
		case len(v) == 1:
			return lancetest.Constant(lancetest.Words(v, 64)), nil
		case len(slices.Compact(slices.Clone(d))) == 1:
			return lancetest.Range(v[0], d[0]), nil
		case len(slices.Compact(deltas(d))) == 1 && d[1] > d[0]:
			return lancetest.Delta(v[0], lancetest.Range(d[0], d[1]-d[0])), nil
		}
		return lancetest.Flat(64), lancetest.Words(v, 64)
	}},
	{"delta of constant", func(v []uint64) (*pb.CompressiveEncoding, []byte) {
		if d := deltas(v); len(slices.Compact(slices.Clone(d))) == 1 {
			return lancetest.Delta(v[0], lancetest.Constant(lancetest.Words(d[:1], 64))), nil
		}
		return lancetest.Flat(64), lancetest.Words(v, 64)
	}},
}

var (
	all21  = []lancefile.Version{lancefile.V21, lancefile.V22, lancefile.V23}
	from22 = []lancefile.Version{lancefile.V22, lancefile.V23}
	only20 = []lancefile.Version{lancefile.V20}
	only23 = []lancefile.Version{lancefile.V23}
)

func forms() []form {
	list := []form{
		{"2.0 some nulls", only20, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			valid := make([]byte, (len(r)+7)/8)
			for i, v := range r {
				if v >= 0 {
					valid[i/8] |= 1 << (i % 8)
				}
			}
			values, _ := plain(r)
			return lancetest.Page{Rows: uint64(len(r)), Encoding: array(someNulls(arrayFlat(1, 0), arrayFlat(uint64(bits), 1))),
				Buffers: []lancetest.Buffer{lancetest.Bytes(valid), lancetest.Bytes(lancetest.Words(values, bits))}}
		}, anyRows},
		{"2.0 no nulls", only20, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			values, _ := plain(r)
			return lancetest.Page{Rows: uint64(len(r)), Encoding: array(noNulls(arrayFlat(uint64(bits), 0))),
				Buffers: []lancetest.Buffer{lancetest.Bytes(lancetest.Words(values, bits))}}
		}, validRows},
		{"2.0 constant", only20, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			return lancetest.Page{Rows: uint64(len(r)), Encoding: array(noNulls(&pb.ArrayEncoding{ArrayEncoding: &pb.ArrayEncoding_Constant_{
				Constant: &pb.ArrayEncoding_Constant{Value: lancetest.Words([]uint64{uint64(r[0])}, bits)}}}))}
		}, oneValid},
		{"2.0 all nulls", only20, func(r []int64, _ int, _ lancefile.Version) lancetest.Page {
			return lancetest.Page{Rows: uint64(len(r)), Encoding: array(&pb.ArrayEncoding_Nullable{
				Nullability: &pb.ArrayEncoding_Nullable_AllNulls_{AllNulls: &pb.ArrayEncoding_Nullable_AllNulls{}}})}
		}, nullRows},
		{"full-zip", all21, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			return lancetest.Page{Rows: uint64(len(r)), Encoding: zipLayout(uint32(bits), 1, uint32(len(r))), Buffers: []lancetest.Buffer{lancetest.Bytes(zipped(r, bits, 1))}}
		}, anyRows},
		{"full-zip, wide control word", all21, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			return lancetest.Page{Rows: uint64(len(r)), Encoding: zipLayout(uint32(bits), 9, uint32(len(r))), Buffers: []lancetest.Buffer{lancetest.Bytes(zipped(r, bits, 2))}}
		}, anyRows},
		{"full-zip without control word", all21, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			return lancetest.Page{Rows: uint64(len(r)), Encoding: zipLayout(uint32(bits), 0, uint32(len(r))), Buffers: []lancetest.Buffer{lancetest.Bytes(zipped(r, bits, 0))}}
		}, validRows},
		{"planar zipped", only23, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			return lancetest.Page{Rows: uint64(len(r)), Encoding: zipPlanar(uint32(bits), 1, uint32(len(r))), Buffers: []lancetest.Buffer{lancetest.Bytes(zipped(r, bits, 1))}}
		}, anyRows},
		{"constant, all null", all21, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			return constant(r, bits, false)
		}, nullRows},
		{"constant, all null by raw levels", all21, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			_, l := plain(r)
			return constant(r, bits, false, nil, lancetest.Words(l, 16))
		}, nullRows},
		{"constant, inline", from22, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			return constant(r, bits, true)
		}, oneValid},
		{"constant, inline with empty level buffers", from22, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			return constant(r, bits, true, nil, nil)
		}, oneValid},
		{"constant, inline with levels", from22, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			_, l := plain(r)
			p := constant(r, bits, slices.Max(r) >= 0, nil, lancetest.Words(l, 16))
			constantOf(p).Layers[0] = pb.RepDefLayer_REPDEF_NULLABLE_ITEM
			return p
		}, oneValue},
		{"constant, compressed levels", from22, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			_, l := plain(r)
			p := constant(r, bits, slices.Max(r) >= 0, nil, lancetest.RunBlock(l, 16))
			constantOf(p).Layers[0] = pb.RepDefLayer_REPDEF_NULLABLE_ITEM
			constantOf(p).DefCompression, constantOf(p).NumDefValues = lancetest.Rle(lancetest.Flat(16), lancetest.Flat(8)), uint64(len(r))
			return p
		}, oneValue},
		{"constant, value in a buffer", all21, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			head := lancetest.Words([]uint64{1, uint64(bits / 8)}, 32)
			return constant(r, bits, false, append(head, lancetest.Words([]uint64{uint64(r[0])}, bits)...))
		}, oneValid},
		{"constant, value and levels in buffers", all21, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			_, l := plain(r)
			head := lancetest.Words([]uint64{1, uint64(bits / 8)}, 32)
			p := constant(r, bits, false, append(head, lancetest.Words([]uint64{uint64(max(slices.Max(r), 0))}, bits)...), nil, lancetest.Words(l, 16))
			constantOf(p).Layers[0] = pb.RepDefLayer_REPDEF_NULLABLE_ITEM
			return p
		}, oneValue},
		{"planar constant", only23, func(r []int64, bits int, _ lancefile.Version) lancetest.Page {
			return lancetest.Page{Rows: uint64(len(r)), Encoding: &pb.PlanarLayout{Structure: dense(leaf(r)), Values: &pb.PlanarLayout_Values{
				Kind: &pb.PlanarLayout_Values_Constant{Constant: &pb.PlanarLayout_Constant{Scalar: lancetest.Words([]uint64{uint64(r[0])}, bits)}}}}}
		}, oneValid},
		{"planar none", only23, func(r []int64, _ int, _ lancefile.Version) lancetest.Page {
			return lancetest.Page{Rows: uint64(len(r)), Encoding: &pb.PlanarLayout{Structure: dense(leaf(r)), Values: &pb.PlanarLayout_Values{
				Kind: &pb.PlanarLayout_Values_None{None: &pb.PlanarLayout_None{}}}}}
		}, nullRows},
	}
	for _, vf := range valueForms {
		versions := slices.DeleteFunc(slices.Clone(all21), func(v lancefile.Version) bool { return v < vf.from })
		for k, lf := range levelForms {
			if k > 0 && vf.name != "inline" { // the encodings of levels and of values do not meet
				break
			}
			list = append(list, form{fmt.Sprintf("chunked, %s, levels %s", vf.name, lf.name), versions,
				func(r []int64, bits int, v lancefile.Version) lancetest.Page {
					return chunked(r, bits, v, vf, lf, false)
				}, anyRows})
		}
		list = append(list, form{"planar chunked, " + vf.name, only23,
			func(r []int64, bits int, v lancefile.Version) lancetest.Page {
				return chunked(r, bits, v, vf, levelForms[0], true)
			}, anyRows})
	}
	for _, bits := range []int{8, 16, 32, 64} {
		for _, s := range []pb.BufferCompression_Scheme{pb.BufferCompression_UNSPECIFIED, pb.BufferCompression_LZ4, pb.BufferCompression_ZSTD} {
			list = append(list, form{fmt.Sprintf("dictionary, %d-bit indices, %v", bits, s), all21,
				func(r []int64, width int, v lancefile.Version) lancetest.Page { return indexed(r, width, v, bits, s) }, distinctFew})
		}
	}
	for _, pf := range positionForms {
		for _, nulls := range []bool{false, true} {
			list = append(list, form{fmt.Sprintf("sparse, %s, nulls %v", pf.name, nulls), only23,
				func(r []int64, bits int, _ lancefile.Version) lancetest.Page { return sparse(r, bits, nulls, pf.enc) }, oneValue})
		}
	}
	return list
}

// draw draws rows that a form can hold.
func (f form) draw(rnd *rand.Rand, bits int) []int64 {
	lengths := [...]int{1, 2, 7, 63, 64, 65, 1000, 1023, 1024, 1025, 2048, 2500}
	n := lengths[rnd.IntN(len(lengths))]
	shape, width := rnd.IntN(4), 1+rnd.IntN(bits-1)
	rows := make([]int64, n)
	for i := range rows {
		v := int64(rnd.Uint64() >> (64 - width))
		null := rnd.IntN(4) == 0
		switch shape {
		case 1: // long runs
			v, null = int64(i/300), i/100%3 == 0
		case 2: // every third is null
			null = i%3 == 1
		case 3:
			null = i == n/2 || i == 0
		}
		if v &= 1<<width - 1; f.kind == distinctFew {
			v %= 50
		}
		if f.kind == oneValue || f.kind == oneValid {
			v = 1<<width - 1
		}
		if (null && f.kind != validRows && f.kind != oneValid) || f.kind == nullRows {
			v = -1
		}
		rows[i] = v
	}
	return rows
}

var footers = map[lancefile.Version][2]uint16{lancefile.V20: {0, 3}, lancefile.V21: {2, 1}, lancefile.V22: {2, 2}, lancefile.V23: {2, 3}}

// fileOf puts pages of one column into a file.
func fileOf(v lancefile.Version, bits int, pages ...lancetest.Page) lancetest.File {
	f := lancetest.File{Major: footers[v][0], Minor: footers[v][1],
		Columns: []lancetest.Column{{Name: "c", Type: fmt.Sprintf("uint%d", bits), Nullable: true, Pages: pages}}}
	for _, p := range pages {
		f.Rows += p.Rows
	}
	return f
}

func checkRows[T lancefile.Element](t *testing.T, rnd *rand.Rand, file lancetest.File, rows []int64) {
	t.Helper()
	content := file.Build()
	ctx := t.Context()
	f, err := lancefile.Open(ctx, content, content.Size())
	if err != nil {
		t.Fatal(err)
	}
	c, err := lancefile.OpenColumn[T](ctx, f, 0)
	if err != nil {
		t.Fatal(err)
	}
	for k := range 4 {
		from, n := 0, len(rows)
		if k > 0 {
			from = rnd.IntN(len(rows) + 1)
			n = rnd.IntN(len(rows) - from + 1)
		}
		values, bits := make([]T, n), make([]uint64, (n+63)/64)
		for i := range bits {
			bits[i] = 0xAAAA // must be cleared
		}
		seen, err := c.Read(ctx, uint64(from), values, bits)
		if err != nil {
			t.Fatal(err)
		}
		for i := range values {
			want := rows[from+i]
			null := bits[i/64]>>(i%64)&1 != 0
			if null {
				seen--
			}
			if null != (want < 0) || (!null && uint64(values[i]) != uint64(want)) {
				t.Fatalf("rows [%d, %d) of %v: row %d = %d (null %v), want %d", from, from+n, rows, from+i, values[i], null, want)
			}
		}
		if seen != 0 {
			t.Fatalf("null count is off by %d", seen)
		}
	}
}

// TestForms writes every form of page that is to be read, in every version that has it, and reads ranges of it.
func TestForms(t *testing.T) {
	for _, f := range forms() {
		for _, v := range f.versions {
			t.Run(fmt.Sprintf("%s/%v", f.name, v), func(t *testing.T) {
				for seed := range uint64(4) {
					rnd := rand.New(rand.NewPCG(seed, uint64(len(f.name))))
					bits := []int{16, 16, 64, 32}[seed]
					var pages []lancetest.Page
					var rows []int64
					for range 1 + rnd.IntN(2) {
						r := f.draw(rnd, bits)
						rows = append(rows, r...)
						pages = append(pages, f.page(r, bits, v))
					}
					file := fileOf(v, bits, pages...)
					switch bits {
					case 16:
						checkRows[uint16](t, rnd, file, rows)
					case 32:
						checkRows[uint32](t, rnd, file, rows)
					default:
						checkRows[uint64](t, rnd, file, rows)
					}
				}
			})
		}
	}
}
