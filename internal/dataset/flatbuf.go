package dataset

import (
	"encoding/binary"
	"fmt"
)

// flatTable is a table of a FlatBuffers message, read in place. Every access is checked against the buffer; offsets are
// unsigned and forward, so that nothing can loop.
type flatTable struct {
	buf    []byte
	pos    int // of the table
	vtable []byte
}

// errFlat is the one complaint of this reader: the metadata points outside of itself.
func errFlat(pos int) error {
	return fmt.Errorf("the Arrow metadata @%d points outside of its buffer", pos)
}

// flatRoot returns the root table of a buffer.
func flatRoot(buf []byte) (flatTable, error) {
	if len(buf) < 8 {
		return flatTable{}, errFlat(0)
	}
	return flatAt(buf, uint64(binary.LittleEndian.Uint32(buf)))
}

func flatAt(buf []byte, at uint64) (flatTable, error) {
	if at+4 > uint64(len(buf)) {
		return flatTable{}, errFlat(int(min(at, uint64(len(buf)))))
	}
	pos := int(at)
	// The offset to the vtable is signed and subtracted.
	vt := int64(pos) - int64(int32(binary.LittleEndian.Uint32(buf[pos:])))
	if vt < 0 || vt+4 > int64(len(buf)) {
		return flatTable{}, errFlat(pos)
	}
	size := int64(binary.LittleEndian.Uint16(buf[vt:]))
	if size < 4 || vt+size > int64(len(buf)) {
		return flatTable{}, errFlat(int(vt))
	}
	return flatTable{buf, pos, buf[vt : vt+size]}, nil
}

// field returns the position of field i, 0 if it is absent. n bytes can be read there.
func (t flatTable) field(i, n int) (int, error) {
	at := 4 + 2*i
	if at+2 > len(t.vtable) {
		return 0, nil
	}
	off := int(binary.LittleEndian.Uint16(t.vtable[at:]))
	if off == 0 {
		return 0, nil
	}
	if t.pos+off+n > len(t.buf) {
		return 0, errFlat(t.pos)
	}
	return t.pos + off, nil
}

// uint returns a scalar field of n bytes, 0 if it is absent: the default of every field that is read here.
func (t flatTable) uint(i, n int) (uint64, error) {
	p, err := t.field(i, n)
	if err != nil || p == 0 {
		return 0, err
	}
	v := uint64(0)
	for k := n - 1; k >= 0; k-- {
		v = v<<8 | uint64(t.buf[p+k])
	}
	return v, nil
}

// table returns a table field; ok is false if it is absent.
func (t flatTable) table(i int) (sub flatTable, ok bool, err error) {
	p, err := t.field(i, 4)
	if err != nil || p == 0 {
		return flatTable{}, false, err
	}
	sub, err = flatAt(t.buf, uint64(p)+uint64(binary.LittleEndian.Uint32(t.buf[p:])))
	return sub, err == nil, err
}

// vector returns a vector field of items of the given size: the position of the first one and how many there are.
func (t flatTable) vector(i, size int) (pos, n int, err error) {
	p, err := t.field(i, 4)
	if err != nil || p == 0 {
		return 0, 0, err
	}
	at := uint64(p) + uint64(binary.LittleEndian.Uint32(t.buf[p:]))
	if at+4 > uint64(len(t.buf)) {
		return 0, 0, errFlat(p)
	}
	count := uint64(binary.LittleEndian.Uint32(t.buf[at:]))
	if count > (uint64(len(t.buf))-at-4)/uint64(size) {
		return 0, 0, errFlat(int(at))
	}
	return int(at) + 4, int(count), nil
}

// tableOf returns the table that the vector item at pos refers to.
func (t flatTable) tableOf(pos int) (flatTable, error) {
	return flatAt(t.buf, uint64(pos)+uint64(binary.LittleEndian.Uint32(t.buf[pos:])))
}

// text returns a string field.
func (t flatTable) text(i int) (string, error) {
	pos, n, err := t.vector(i, 1)
	return string(t.buf[pos : pos+n]), err
}
