package mapcsv

import "encoding/binary"

// flatbuf writes FlatBuffers front to back: a table first, then what it refers to. Unlike the usual builders, which
// write back to front, this lets a vector of any length be the last thing in a buffer.
type flatbuf struct{ b []byte }

// fbField is a field of a table: its size in bytes (0 = absent) and its value. References have size 4 and are set
// by refer.
type fbField struct {
	size  int
	value uint64
}

func (f *flatbuf) align(n int) {
	for len(f.b)%n != 0 {
		f.b = append(f.b, 0)
	}
}

// root reserves the reference to the root table.
func (f *flatbuf) root() int {
	f.b = append(f.b, 0, 0, 0, 0)
	return len(f.b) - 4
}

// refer makes the reference at slot point to target, which lies behind it.
func (f *flatbuf) refer(slot, target int) {
	binary.LittleEndian.PutUint32(f.b[slot:], uint32(target-slot))
}

// table writes a vtable and a table and returns where the table is and where each of its fields is.
func (f *flatbuf) table(fields ...fbField) (at int, slots []int) {
	size := 4
	slots = make([]int, len(fields))
	for i, d := range fields {
		if d.size == 0 {
			continue
		}
		size = (size + d.size - 1) / d.size * d.size
		slots[i] = size
		size += d.size
	}
	vsize := 4 + 2*len(fields)
	for (len(f.b)+vsize)%8 != 0 {
		f.b = append(f.b, 0)
	}
	v := len(f.b)
	f.b = binary.LittleEndian.AppendUint16(f.b, uint16(vsize))
	f.b = binary.LittleEndian.AppendUint16(f.b, uint16(size))
	for _, s := range slots {
		f.b = binary.LittleEndian.AppendUint16(f.b, uint16(s))
	}
	at = len(f.b)
	f.b = append(f.b, make([]byte, size)...)
	binary.LittleEndian.PutUint32(f.b[at:], uint32(at-v))
	for i, d := range fields {
		slots[i] += at
		for k := range d.size {
			f.b[slots[i]+k] = byte(d.value >> (8 * k))
		}
	}
	return at, slots
}

// vector writes the count of a vector whose elements are aligned to 8 bytes and follow.
func (f *flatbuf) vector(n int) int {
	for (len(f.b)+4)%8 != 0 {
		f.b = append(f.b, 0)
	}
	f.b = binary.LittleEndian.AppendUint32(f.b, uint32(n))
	return len(f.b) - 4
}

func (f *flatbuf) text(s string) int {
	f.align(4)
	at := len(f.b)
	f.b = binary.LittleEndian.AppendUint32(f.b, uint32(len(s)))
	f.b = append(append(f.b, s...), 0)
	return at
}
