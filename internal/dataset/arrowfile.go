package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The parts of the Arrow IPC file format that a deletion file uses. The reader is our own because the file is hostile
// until proven otherwise: sizes are compared with what is there before anything is allocated.
const (
	arrowMagic       = "ARROW1"
	arrowTypeInt     = 2 // Type union: Int
	arrowHeaderBatch = 3 // MessageHeader union: RecordBatch
	arrowLZ4         = 0
	arrowZSTD        = 1
	arrowRaw         = -1 // the prefix of a buffer that was left uncompressed

	// maxArrowRows bounds the rows of one file. Lance writes up to 5000 in this form.
	maxArrowRows = 16 << 20
)

// arrowRowIDs returns the values of the one column of an Arrow deletion file: field row_id, u32, no nulls, in exactly
// one record batch; in file order. expect is the recorded number of rows, 0 if unknown.
func arrowRowIDs(file []byte, expect uint64) ([]uint32, error) {
	footer, err := arrowFooter(file)
	if err != nil {
		return nil, err
	}
	if err := checkArrowSchema(footer); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	const blockSize = 24 // i64 offset, i32 metadata length, 4 bytes of padding, i64 body length
	pos, n, err := footer.vector(3, blockSize)
	if err != nil {
		return nil, err
	}
	if n != 1 {
		return nil, fmt.Errorf("%d record batches, there must be exactly one", n)
	}
	block := footer.buf[pos : pos+blockSize]
	off := binary.LittleEndian.Uint64(block)
	metaLen := uint64(binary.LittleEndian.Uint32(block[8:]))
	bodyLen := binary.LittleEndian.Uint64(block[16:])
	size := uint64(len(file))
	if off > size || metaLen > size-off || bodyLen > size-off-metaLen {
		return nil, fmt.Errorf("the record batch at %d with %d + %d bytes lies outside of the file", off, metaLen, bodyLen)
	}
	meta, body := file[off:off+metaLen], file[off+metaLen:off+metaLen+bodyLen]
	return arrowBatch(meta, body, expect)
}

// arrowFooter finds the footer: "ARROW1" at both ends, and the footer's length before the second one.
func arrowFooter(file []byte) (flatTable, error) {
	const ends = 8 + 4 + 6 // magic with padding, length, magic
	if len(file) < ends || string(file[:6]) != arrowMagic || string(file[len(file)-6:]) != arrowMagic {
		return flatTable{}, fmt.Errorf("the file of %d bytes does not begin and end with %q", len(file), arrowMagic)
	}
	end := len(file) - 10
	n := binary.LittleEndian.Uint32(file[end:])
	if uint64(n) > uint64(end-8) {
		return flatTable{}, fmt.Errorf("a footer of %d bytes does not fit into the file", n)
	}
	return flatRoot(file[end-int(n) : end])
}

func checkArrowSchema(footer flatTable) error {
	schema, ok, err := footer.table(1)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("the footer has none")
	}
	if order, err := schema.uint(0, 2); err != nil || order != 0 {
		return fmt.Errorf("the file is not little-endian (%w)", orNil(err))
	}
	pos, n, err := schema.vector(1, 4)
	if err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("%d columns, there must be exactly one", n)
	}
	field, err := schema.tableOf(pos)
	if err != nil {
		return err
	}
	name, err := field.text(0)
	if err != nil {
		return err
	}
	kind, err := field.uint(2, 1)
	if err != nil {
		return err
	}
	typ, hasType, err := field.table(3)
	if err != nil {
		return err
	}
	if _, dict, err := field.table(4); err != nil || dict {
		return fmt.Errorf("column %q is dictionary encoded", name)
	}
	if name != "row_id" || kind != arrowTypeInt || !hasType {
		return fmt.Errorf("the column is %q of Arrow type %d, not row_id of type %d (integer)", name, kind, arrowTypeInt)
	}
	width, err := typ.uint(0, 4)
	if err != nil {
		return err
	}
	signed, err := typ.uint(1, 1)
	if err != nil {
		return err
	}
	if width != 32 || signed != 0 {
		return fmt.Errorf("row_id is an integer of %d bits (signed: %t), not an unsigned one of 32", width, signed != 0)
	}
	return nil
}

// orNil gives %w something to wrap.
func orNil(err error) error {
	if err == nil {
		return fmt.Errorf("big-endian")
	}
	return err
}

// arrowBatch reads the values of the batch: meta is the encapsulated message, body its buffers.
func arrowBatch(meta, body []byte, expect uint64) ([]uint32, error) {
	// The length has a continuation mark before it, except in files from before Arrow 0.15.
	if len(meta) >= 8 && binary.LittleEndian.Uint32(meta) == 0xFFFFFFFF {
		meta = meta[4:]
	}
	if len(meta) < 4 {
		return nil, fmt.Errorf("the message of the record batch has no length")
	}
	n := binary.LittleEndian.Uint32(meta)
	if uint64(n) > uint64(len(meta)-4) {
		return nil, fmt.Errorf("the message of the record batch has %d bytes, there are %d", n, len(meta)-4)
	}
	msg, err := flatRoot(meta[4 : 4+n])
	if err != nil {
		return nil, err
	}
	kind, err := msg.uint(1, 1)
	if err != nil {
		return nil, err
	}
	batch, ok, err := msg.table(2)
	if err != nil {
		return nil, err
	}
	if kind != arrowHeaderBatch || !ok {
		return nil, fmt.Errorf("the message is of type %d, not a record batch", kind)
	}
	rows, err := arrowRows(batch, expect)
	if err != nil {
		return nil, err
	}
	data, err := arrowData(batch, body, rows)
	if err != nil {
		return nil, err
	}
	out := make([]uint32, rows)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return out, nil
}

// arrowRows returns the number of rows, which must be the same everywhere and hold no nulls.
func arrowRows(batch flatTable, expect uint64) (int, error) {
	rows, err := batch.uint(0, 8)
	if err != nil {
		return 0, err
	}
	if rows > maxArrowRows {
		return 0, fmt.Errorf("%d rows are over the limit of %d", rows, maxArrowRows)
	}
	if expect != 0 && rows != expect {
		return 0, fmt.Errorf("%d rows, the manifest says %d", rows, expect)
	}
	pos, n, err := batch.vector(1, 16) // FieldNode: i64 length, i64 null count
	if err != nil {
		return 0, err
	}
	if n != 1 {
		return 0, fmt.Errorf("%d columns in the batch, there must be exactly one", n)
	}
	length, nulls := binary.LittleEndian.Uint64(batch.buf[pos:]), binary.LittleEndian.Uint64(batch.buf[pos+8:])
	if length != rows || nulls != 0 {
		return 0, fmt.Errorf("the column has %d rows and %d nulls, the batch has %d rows", length, nulls, rows)
	}
	return int(rows), nil
}

// arrowData returns the uncompressed values buffer, at least 4*rows bytes. The validity buffer says nothing more than
// the null count of 0 and is not read.
func arrowData(batch flatTable, body []byte, rows int) ([]byte, error) {
	pos, n, err := batch.vector(2, 16) // Buffer: i64 offset, i64 length
	if err != nil {
		return nil, err
	}
	if n != 2 {
		return nil, fmt.Errorf("%d buffers, there must be two (validity, values)", n)
	}
	off, length := binary.LittleEndian.Uint64(batch.buf[pos+16:]), binary.LittleEndian.Uint64(batch.buf[pos+24:])
	if off > uint64(len(body)) || length > uint64(len(body))-off {
		return nil, fmt.Errorf("the values buffer at %d with %d bytes lies outside of the body of %d", off, length, len(body))
	}
	data := body[off : off+length]
	codec, compressed, err := batch.table(3)
	if err != nil {
		return nil, err
	}
	if compressed && rows > 0 {
		kind, err := codec.uint(0, 1)
		if err != nil {
			return nil, err
		}
		if data, err = inflate(data, kind, 4*rows); err != nil {
			return nil, fmt.Errorf("values buffer: %w", err)
		}
	}
	if len(data) < 4*rows {
		return nil, fmt.Errorf("the values buffer has %d bytes, %d rows need %d", len(data), rows, 4*rows)
	}
	return data, nil
}

// inflate uncompresses a buffer: i64 uncompressed length, or -1 and raw bytes. need is what the values take; a buffer
// may be padded to 64 bytes, no more is accepted.
func inflate(b []byte, codec uint64, need int) ([]byte, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("%d bytes are too few for the length of a compressed buffer", len(b))
	}
	size := int64(binary.LittleEndian.Uint64(b))
	b = b[8:]
	if size == arrowRaw {
		return b, nil
	}
	if size < int64(need) || size > int64(need)+64 {
		return nil, fmt.Errorf("the uncompressed length is %d, the values take %d", size, need)
	}
	var out []byte
	switch codec {
	case arrowZSTD:
		dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return nil, err
		}
		defer dec.Close()
		if out, err = dec.DecodeAll(b, make([]byte, 0, size)); err != nil {
			return nil, fmt.Errorf("ZSTD: %w", err)
		}
	case arrowLZ4:
		out = make([]byte, size)
		n, err := io.ReadFull(lz4.NewReader(bytes.NewReader(b)), out)
		if err != nil {
			return nil, fmt.Errorf("LZ4: %d of %d bytes came: %w", n, size, err)
		}
	default:
		return nil, fmt.Errorf("compression codec %d is not known", codec)
	}
	if int64(len(out)) != size {
		return nil, fmt.Errorf("%d bytes came out, %d were announced", len(out), size)
	}
	return out, nil
}
