package mapcsv

import "encoding/binary"

// The metadata of an Arrow IPC file, as FlatBuffers (Message.fbs, Schema.fbs and File.fbs of Apache Arrow).

const (
	arrowMagic   = "ARROW1"
	arrowV5      = 4 // MetadataVersion
	headerSchema = 1 // MessageHeader
	headerBatch  = 3
	typeInt      = 2 // Type
	blockSize    = 24
)

// arrowColumn is a column of unsigned integers.
type arrowColumn struct {
	name     string
	width    int // bytes
	nullable bool
}

var arrowColumns = [...]arrowColumn{
	{"old_row_addr", 8, false},
	{"old_fragment", 4, false},
	{"old_offset", 4, false},
	{"new_row_addr", 8, true},
	{"new_fragment", 4, true},
	{"new_offset", 4, true},
}

// schemaTable writes the Schema table.
func (f *flatbuf) schemaTable() int {
	at, slots := f.table(fbField{2, 0}, fbField{4, 0})
	vec := f.vector(len(arrowColumns))
	f.refer(slots[1], vec)
	f.b = append(f.b, make([]byte, 4*len(arrowColumns))...)
	for i, c := range arrowColumns {
		nullable := uint64(0)
		if c.nullable {
			nullable = 1
		}
		field, s := f.table(fbField{4, 0}, fbField{1, nullable}, fbField{1, typeInt}, fbField{4, 0}, fbField{}, fbField{4, 0})
		f.refer(vec+4+4*i, field)
		f.refer(s[0], f.text(c.name))
		typ, _ := f.table(fbField{4, uint64(8 * c.width)}, fbField{1, 0})
		f.refer(s[3], typ)
		f.refer(s[5], f.vector(0))
	}
	return at
}

// message frames a Message table: the continuation mark, the length, and padding to 8 bytes.
func message(kind uint64, bodyLen int64, header func(f *flatbuf) int) []byte {
	var f flatbuf
	root := f.root()
	at, slots := f.table(fbField{2, arrowV5}, fbField{1, kind}, fbField{4, 0}, fbField{8, uint64(bodyLen)})
	f.refer(root, at)
	f.refer(slots[2], header(&f))
	f.align(8)
	out := append(make([]byte, 0, 8+len(f.b)), 0xFF, 0xFF, 0xFF, 0xFF)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(f.b)))
	return append(out, f.b...)
}

// schemaMessage is the first message of the file.
func schemaMessage() []byte {
	return message(headerSchema, 0, func(f *flatbuf) int { return f.schemaTable() })
}

// batchMessage is the metadata of a record batch. Its length does not depend on the values.
func batchMessage(l *batchLayout, nulls uint64) []byte {
	return message(headerBatch, l.body, func(f *flatbuf) int {
		at, slots := f.table(fbField{8, l.rows}, fbField{4, 0}, fbField{4, 0})
		f.refer(slots[1], f.vector(len(arrowColumns)))
		for _, c := range arrowColumns {
			n := uint64(0)
			if c.nullable {
				n = nulls
			}
			f.b = binary.LittleEndian.AppendUint64(f.b, l.rows)
			f.b = binary.LittleEndian.AppendUint64(f.b, n)
		}
		f.refer(slots[2], f.vector(len(l.buffers)))
		for _, b := range l.buffers {
			f.b = binary.LittleEndian.AppendUint64(f.b, uint64(b.off))
			f.b = binary.LittleEndian.AppendUint64(f.b, uint64(b.len))
		}
		return at
	})
}

// footerHead is the footer up to the first of its n record batch blocks, which end it.
func footerHead(n int) []byte {
	var f flatbuf
	root := f.root()
	at, slots := f.table(fbField{2, arrowV5}, fbField{4, 0}, fbField{4, 0}, fbField{4, 0})
	f.refer(root, at)
	f.refer(slots[1], f.schemaTable())
	f.refer(slots[2], f.vector(0))
	f.refer(slots[3], f.vector(n))
	return f.b
}

// batchLayout is where the buffers of a batch lie in its body: validity and values of each column.
type batchLayout struct {
	rows    uint64
	buffers [2 * len(arrowColumns)]arrowBuffer
	body    int64
}

type arrowBuffer struct{ off, len int64 }

func newBatchLayout(rows uint64) *batchLayout {
	l := &batchLayout{rows: rows}
	for i, c := range arrowColumns {
		for k, n := range [2]int64{int64(rows+7) / 8, int64(rows) * int64(c.width)} {
			l.buffers[2*i+k] = arrowBuffer{l.body, n}
			l.body += (n + 63) &^ 63
		}
	}
	return l
}
