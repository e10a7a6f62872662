package addrset

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/frifs/frifs/fault"
)

// Encode writes a set. The same set gives the same bytes, however it was made: each container takes the form that is
// the shortest, and fragments without an address are left out. The bitmaps of s are brought into that form. Errors are
// fault.Invalid: fragments that do not ascend, a whole fragment in Treemap64, which cannot say that, or an unknown
// format; fault.TooLarge for a bitmap of 4 GiB, which no set has.
func Encode(s *Set, f Format) ([]byte, error) {
	if f != Tree && f != Treemap64 {
		return nil, fault.New("addrset.Encode", "", fault.Invalid, "set format %d", f)
	}
	size, count := uint64(8), uint64(0)
	for i := range s.Entries {
		e := &s.Entries[i]
		if i > 0 && s.Entries[i-1].Frag >= e.Frag {
			return nil, fault.New("addrset.Encode", "", fault.Invalid, "fragment %d after fragment %d", e.Frag, s.Entries[i-1].Frag)
		}
		switch {
		case e.Whole && f != Tree:
			return nil, fault.New("addrset.Encode", "", fault.Invalid, "the whole fragment %d in a treemap", e.Frag)
		case e.empty():
			continue
		case !e.Whole:
			e.Bitmap.RunOptimize()
			n := e.Bitmap.GetSerializedSizeInBytes()
			if n > math.MaxUint32 {
				return nil, fault.New("addrset.Encode", "", fault.TooLarge, "the bitmap of fragment %d takes %d bytes", e.Frag, n)
			}
			size += n
		}
		size += 8
		count++
	}
	w := bytes.NewBuffer(make([]byte, 0, size))
	var word [8]byte
	put := func(v uint64, n int) {
		binary.LittleEndian.PutUint64(word[:], v)
		w.Write(word[:n])
	}
	if f == Tree {
		put(count, 4)
	} else {
		put(count, 8)
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.empty() {
			continue
		}
		put(uint64(e.Frag), 4)
		switch {
		case e.Whole:
			put(0, 4)
			continue
		case f == Tree:
			put(e.Bitmap.GetSerializedSizeInBytes(), 4)
		}
		if _, err := e.Bitmap.WriteTo(w); err != nil {
			return nil, fault.New("addrset.Encode", "", fault.Invalid, "fragment %d: %w", e.Frag, err)
		}
	}
	return w.Bytes(), nil
}

// empty reports whether an entry stands for no address at all.
func (e *Entry) empty() bool { return !e.Whole && (e.Bitmap == nil || e.Bitmap.IsEmpty()) }
