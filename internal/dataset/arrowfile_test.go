package dataset

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"pgregory.net/rapid"

	"github.com/frifs/frifs/fault"
)

// flatBuilder writes FlatBuffers front to back: a table first, what it refers to later, by patching. It is as simple as
// the reader's tests need.
type flatBuilder struct{ buf []byte }

// slot is one field of a table: a scalar of 1, 2, 4 or 8 bytes, or a reference (size 0) that patch fills.
type slot struct {
	index, size int
	value       uint64
}

// table appends a vtable and its table and returns the table's position and those of its fields.
func (b *flatBuilder) table(slots ...slot) (pos int, at map[int]int) {
	for len(b.buf)%8 != 0 {
		b.buf = append(b.buf, 0)
	}
	fields := 0
	for _, s := range slots {
		fields = max(fields, s.index+1)
	}
	vt := len(b.buf)
	b.buf = append(b.buf, make([]byte, 4+2*fields)...)
	for len(b.buf)%8 != 0 {
		b.buf = append(b.buf, 0)
	}
	pos = len(b.buf)
	b.buf = binary.LittleEndian.AppendUint32(b.buf, uint32(pos-vt))
	at = map[int]int{}
	for _, s := range slots {
		size := s.size
		if size == 0 {
			size = 4
		}
		for (len(b.buf)-pos)%size != 0 {
			b.buf = append(b.buf, 0)
		}
		at[s.index] = len(b.buf)
		binary.LittleEndian.PutUint16(b.buf[vt+4+2*s.index:], uint16(len(b.buf)-pos))
		var v [8]byte
		binary.LittleEndian.PutUint64(v[:], s.value)
		b.buf = append(b.buf, v[:size]...)
	}
	binary.LittleEndian.PutUint16(b.buf[vt:], uint16(4+2*fields))
	binary.LittleEndian.PutUint16(b.buf[vt+2:], uint16(len(b.buf)-pos))
	return pos, at
}

func (b *flatBuilder) patch(field, target int) {
	binary.LittleEndian.PutUint32(b.buf[field:], uint32(target-field))
}

// vector appends a vector of structs or bytes, aligned so that the items start at a multiple of 8.
func (b *flatBuilder) vector(n int, items []byte) int {
	for (len(b.buf)+4)%8 != 0 {
		b.buf = append(b.buf, 0)
	}
	pos := len(b.buf)
	b.buf = binary.LittleEndian.AppendUint32(b.buf, uint32(n))
	b.buf = append(b.buf, items...)
	return pos
}

func u64s(v ...uint64) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return b
}

// arrowSpec says how an Arrow file of row ids is written; the zero value is what Lance writes, without compression.
type arrowSpec struct {
	name        string // "row_id"
	signed      bool
	width       uint64 // 32
	columns     int    // 1
	batches     int    // 1
	nulls       uint64
	nodeLength  *uint64
	codec       string // "", "lz4", "zstd", "unknown"
	raw         bool   // with a codec: the buffer is left as it is (prefix -1)
	uncompSize  *uint64
	valueLength *uint64
	oldPrefix   bool // no continuation mark
}

// arrowFileOf writes an Arrow IPC file with one u32 column.
func arrowFileOf(rows []uint32, s arrowSpec) []byte {
	if s.name == "" {
		s.name = "row_id"
	}
	if s.width == 0 {
		s.width = 32
	}
	if s.columns == 0 {
		s.columns = 1
	}
	if s.batches == 0 {
		s.batches = 1
	}
	values := make([]byte, 0, 4*len(rows))
	for _, r := range rows {
		values = binary.LittleEndian.AppendUint32(values, r)
	}
	if s.codec != "" {
		size := uint64(len(values))
		if s.uncompSize != nil {
			size = *s.uncompSize
		}
		var packed bytes.Buffer
		switch {
		case s.raw:
			size = ^uint64(0)
			packed.Write(values)
		case s.codec == "zstd":
			w, _ := zstd.NewWriter(&packed)
			w.Write(values)
			w.Close()
		default:
			w := lz4.NewWriter(&packed)
			w.Write(values)
			w.Close()
		}
		values = append(u64s(size), packed.Bytes()...)
	}
	body := make([]byte, 64) // validity, not looked at
	length := uint64(len(values))
	if s.valueLength != nil {
		length = *s.valueLength
	}
	body = append(body, values...)
	for len(body)%64 != 0 {
		body = append(body, 0)
	}

	msg := &flatBuilder{buf: make([]byte, 4)}
	root, at := msg.table(slot{0, 2, 4}, slot{1, 1, arrowHeaderBatch}, slot{2, 0, 0}, slot{3, 8, uint64(len(body))})
	binary.LittleEndian.PutUint32(msg.buf, uint32(root))
	slots := []slot{{0, 8, uint64(len(rows))}, {1, 0, 0}, {2, 0, 0}}
	if s.codec != "" {
		slots = append(slots, slot{3, 0, 0})
	}
	batch, fields := msg.table(slots...)
	msg.patch(at[2], batch)
	nodeLength := uint64(len(rows))
	if s.nodeLength != nil {
		nodeLength = *s.nodeLength
	}
	msg.patch(fields[1], msg.vector(1, u64s(nodeLength, s.nulls)))
	msg.patch(fields[2], msg.vector(2, u64s(0, 64, 64, length)))
	if s.codec != "" {
		kind := map[string]uint64{"lz4": arrowLZ4, "zstd": arrowZSTD, "unknown": 7}[s.codec]
		codec, _ := msg.table(slot{0, 1, kind}, slot{1, 1, 0})
		msg.patch(fields[3], codec)
	}
	for len(msg.buf)%8 != 0 {
		msg.buf = append(msg.buf, 0)
	}

	file := append([]byte(arrowMagic), 0, 0)
	var blocks []byte
	for range s.batches {
		off := len(file)
		if !s.oldPrefix {
			file = append(file, 0xFF, 0xFF, 0xFF, 0xFF)
		}
		file = binary.LittleEndian.AppendUint32(file, uint32(len(msg.buf)))
		file = append(file, msg.buf...)
		blocks = append(blocks, u64s(uint64(off), uint64(len(file)-off), uint64(len(body)))...)
		file = append(file, body...)
	}

	foot := &flatBuilder{buf: make([]byte, 4)}
	root, at = foot.table(slot{0, 2, 4}, slot{1, 0, 0}, slot{3, 0, 0})
	binary.LittleEndian.PutUint32(foot.buf, uint32(root))
	schema, fields := foot.table(slot{1, 0, 0})
	foot.patch(at[1], schema)
	list := foot.vector(s.columns, make([]byte, 4*s.columns))
	foot.patch(fields[1], list)
	for i := range s.columns {
		field, parts := foot.table(slot{0, 0, 0}, slot{1, 1, 0}, slot{2, 1, arrowTypeInt}, slot{3, 0, 0})
		foot.patch(list+4+4*i, field)
		foot.patch(parts[0], foot.vector(len(s.name), append([]byte(s.name), 0)))
		signed := uint64(0)
		if s.signed {
			signed = 1
		}
		typ, _ := foot.table(slot{0, 4, s.width}, slot{1, 1, signed})
		foot.patch(parts[3], typ)
	}
	foot.patch(at[3], foot.vector(s.batches, blocks))
	file = append(file, foot.buf...)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(foot.buf)))
	return append(file, arrowMagic...)
}

func TestArrowFilesOfEveryForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.Uint32(), 0, 300).Draw(t, "rows")
		spec := arrowSpec{
			codec:     rapid.SampledFrom([]string{"", "zstd", "lz4"}).Draw(t, "codec"),
			raw:       rapid.Bool().Draw(t, "raw"),
			oldPrefix: rapid.Bool().Draw(t, "oldPrefix"),
		}
		got, err := arrowRowIDs(arrowFileOf(rows, spec), uint64(len(rows)))
		if err != nil {
			t.Fatalf("%+v: %v", spec, err)
		}
		if len(got) != len(rows) {
			t.Fatalf("%+v: %d rows of %d", spec, len(got), len(rows))
		}
		for i := range rows {
			if got[i] != rows[i] {
				t.Fatalf("%+v: row %d is %d, want %d", spec, i, got[i], rows[i])
			}
		}
	})
}

func TestArrowFilesThatAreRefused(t *testing.T) {
	rows := []uint32{5, 3, 9}
	at := func(n uint64) *uint64 { return &n }
	good := arrowFileOf(rows, arrowSpec{})
	for _, tt := range []struct {
		name   string
		file   []byte
		expect uint64
		says   string
	}{
		{"empty", nil, 0, "0 bytes"},
		{"no magic in front", append([]byte("X"), good[1:]...), 0, "begin and end"},
		{"no magic at the end", append(bytes.Clone(good[:len(good)-1]), 'X'), 0, "begin and end"},
		{"footer longer than the file", append(append(bytes.Clone(good[:len(good)-10]), 0xFF, 0xFF, 0xFF, 0x7F), arrowMagic...), 0, "footer"},
		{"other column name", arrowFileOf(rows, arrowSpec{name: "rowid"}), 0, `"rowid"`},
		{"signed", arrowFileOf(rows, arrowSpec{signed: true}), 0, "signed: true"},
		{"64 bits", arrowFileOf(rows, arrowSpec{width: 64}), 0, "64 bits"},
		{"two columns", arrowFileOf(rows, arrowSpec{columns: 2}), 0, "2 columns"},
		{"two batches", arrowFileOf(rows, arrowSpec{batches: 2}), 0, "2 record batches"},
		{"nulls", arrowFileOf(rows, arrowSpec{nulls: 1}), 0, "1 nulls"},
		{"column shorter than the batch", arrowFileOf(rows, arrowSpec{nodeLength: at(2)}), 0, "2 rows"},
		{"count of the manifest", good, 4, "manifest says 4"},
		{"values too short", arrowFileOf(rows, arrowSpec{valueLength: at(11)}), 0, "need 12"},
		{"values outside of the body", arrowFileOf(rows, arrowSpec{valueLength: at(1 << 40)}), 0, "outside"},
		{"unknown codec", arrowFileOf(rows, arrowSpec{codec: "unknown"}), 0, "codec 7"},
		{"huge uncompressed length", arrowFileOf(rows, arrowSpec{codec: "zstd", uncompSize: at(1 << 40)}), 0, "uncompressed length"},
		{"small uncompressed length", arrowFileOf(rows, arrowSpec{codec: "zstd", uncompSize: at(8)}), 0, "uncompressed length"},
		{"ZSTD longer than announced", arrowFileOf(rows, arrowSpec{codec: "zstd", uncompSize: at(13)}), 0, "announced"},
		{"LZ4 longer than announced", arrowFileOf(rows, arrowSpec{codec: "lz4", uncompSize: at(13)}), 0, "LZ4"},
	} {
		_, err := DecodeDeletions(0, tt.file, tt.expect)
		if !fault.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want corrupt with %q", tt.name, err, tt.says)
		}
	}
	if _, err := DecodeDeletions(0, arrowFileOf([]uint32{1, 2, 1}, arrowSpec{}), 3); !fault.Is(err, fault.Corrupt) || !contains(err, "more than once") {
		t.Errorf("a row twice: %v", err)
	}
	if _, err := DecodeDeletions(2, good, 3); !fault.Is(err, fault.Unsupported) {
		t.Errorf("type 2: %v, want unsupported", err)
	}
}

// Every single damaged byte gives an error or rows, never a panic.
func TestArrowFilesWithOneDamagedByte(t *testing.T) {
	for _, spec := range []arrowSpec{{}, {codec: "zstd"}, {codec: "lz4", raw: true}} {
		good := arrowFileOf([]uint32{1, 2, 3, 1000, 70000}, spec)
		for i := range good {
			for _, v := range []byte{0, 0xFF, good[i] + 1} {
				b := bytes.Clone(good)
				b[i] = v
				bm, err := DecodeDeletions(0, b, 5)
				if (bm == nil) == (err == nil) {
					t.Fatalf("byte %d = %d: %v, %v", i, v, bm, err)
				}
			}
		}
	}
}
