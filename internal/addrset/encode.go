package addrset

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"

	"github.com/frifs/frifs/fault"
)

// Encode writes a set. The same set gives the same bytes, however it was made: each container takes the form that is
// the shortest, and fragments without an address are left out. The bitmaps of s are brought into that form. Errors are
// fault.Invalid: fragments that do not ascend, a whole fragment in Treemap64, which cannot say that, or an unknown
// format; fault.TooLarge for a bitmap of 4 GiB, which no set has.
func Encode(s *Set, f Format) ([]byte, error) {
	size, err := EncodedSize(s, f)
	if err != nil {
		return nil, err
	}
	w := bytes.NewBuffer(make([]byte, 0, size))
	if err := Write(w, s, f); err != nil {
		return nil, err
	}
	return w.Bytes(), nil
}

// EncodedSize is how many bytes Encode gives. Errors are those of Encode.
func EncodedSize(s *Set, f Format) (uint64, error) {
	size := uint64(4)
	switch f {
	case Tree:
	case Treemap64:
		size = 8
	default:
		return 0, fault.New("addrset.Encode", "", fault.Invalid, "set format %d", f)
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		if i > 0 && s.Entries[i-1].Frag >= e.Frag {
			return 0, fault.New("addrset.Encode", "", fault.Invalid, "fragment %d after fragment %d", e.Frag, s.Entries[i-1].Frag)
		}
		switch {
		case e.Whole && f != Tree:
			return 0, fault.New("addrset.Encode", "", fault.Invalid, "the whole fragment %d in a treemap", e.Frag)
		case e.empty():
			continue
		case !e.Whole:
			e.Bitmap.RunOptimize()
			n := e.Bitmap.GetSerializedSizeInBytes()
			if n > math.MaxUint32 {
				return 0, fault.New("addrset.Encode", "", fault.TooLarge, "the bitmap of fragment %d takes %d bytes", e.Frag, n)
			}
			size += n
		}
		if size += 4; f == Tree {
			size += 4
		}
	}
	return size, nil
}

// Write writes what Encode gives, of a set that EncodedSize has accepted. Errors are those of w.
func Write(w io.Writer, s *Set, f Format) error {
	var word [8]byte
	put := func(v uint64, n int) error {
		binary.LittleEndian.PutUint64(word[:], v)
		_, err := w.Write(word[:n])
		return err
	}
	count, width := uint64(0), 4
	for i := range s.Entries {
		if !s.Entries[i].empty() {
			count++
		}
	}
	if f == Treemap64 {
		width = 8
	}
	if err := put(count, width); err != nil {
		return err
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.empty() {
			continue
		}
		if err := put(uint64(e.Frag), 4); err != nil {
			return err
		}
		if f == Tree {
			size := uint64(0)
			if !e.Whole {
				size = e.Bitmap.GetSerializedSizeInBytes()
			}
			if err := put(size, 4); err != nil {
				return err
			}
		}
		if e.Whole {
			continue
		}
		if _, err := e.Bitmap.WriteTo(w); err != nil {
			return err
		}
	}
	return nil
}

// empty reports whether an entry stands for no address at all.
func (e *Entry) empty() bool { return !e.Whole && (e.Bitmap == nil || e.Bitmap.IsEmpty()) }
