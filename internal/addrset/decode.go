package addrset

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
)

// What the portable Roaring format fixes.
const (
	cookiePlain   = 12346 // no run containers; an offset table
	cookieRuns    = 12347 // in the low half; the number of containers less one in the high half
	tableFrom     = 4     // with run containers, as many containers as this have an offset table
	maxContainers = 1 << 16
	maxArray      = 4096 // more values than this are stored as bits
	bitsLen       = 8192
)

// violation is what is wrong with a set, and at which byte of it.
type violation struct {
	at  int
	msg string
}

func (v *violation) Error() string { return v.msg }

func violationf(at int, format string, args ...any) error {
	return &violation{at, fmt.Sprintf(format, args...)}
}

// Decode reads a set. The result refers to b, which must stay as it is while the set is used. Bytes behind the set are
// ignored, and the offset tables of bitmaps are not looked at, as in Lance's reader. What Lance's bitmap reader refuses
// is fault.Corrupt, with the byte: containers and array values that do not ascend, run containers that are empty or
// whose runs do not ascend, overlap or touch, cardinalities that are not those of the payloads. So are fragments that
// do not strictly ascend: Lance takes the last of equal ones, and no writer makes such a set. fault.Invalid stands for
// an unknown format.
func Decode(b []byte, f Format) (*Set, error) {
	s := &Set{}
	err := eachEntry(b, f, func(count uint64) { s.Entries = make([]Entry, count) }, func(i int, frag fri.FragID, bitmap []byte) error {
		e := &s.Entries[i]
		if e.Frag, e.Whole = frag, bitmap == nil; e.Whole {
			return nil
		}
		e.Bitmap = roaring.New()
		if _, err := e.Bitmap.FromBuffer(bitmap); err != nil {
			return violationf(0, "the bitmap of fragment %d: %v", frag, err)
		}
		return nil
	})
	if err != nil {
		return nil, located(err)
	}
	return s, nil
}

// located turns a violation into an error of its kind.
func located(err error) error {
	if v, ok := err.(*violation); ok { //nolint:errorlint // nothing wraps one
		return fault.New("addrset.Decode", fmt.Sprintf("byte %d of the set", v.at), fault.Corrupt, "%s", v.msg)
	}
	return err
}

// eachEntry visits the fragments of an encoded set, after their number: a bitmap that was checked, or nil for a whole
// fragment. begin may be nil.
func eachEntry(b []byte, f Format, begin func(count uint64), visit func(i int, frag fri.FragID, bitmap []byte) error) error {
	var count uint64
	var pos, least int
	switch f {
	case Tree:
		if len(b) < 4 {
			return violationf(0, "the number of fragments needs 4 bytes, there are %d", len(b))
		}
		count, pos, least = uint64(binary.LittleEndian.Uint32(b)), 4, 8
	case Treemap64:
		if len(b) < 8 {
			return violationf(0, "the number of fragments needs 8 bytes, there are %d", len(b))
		}
		count, pos, least = binary.LittleEndian.Uint64(b), 8, 12
	default:
		return fault.New("addrset.Decode", "", fault.Invalid, "set format %d", f)
	}
	if room := uint64(len(b)-pos) / uint64(least); count > room {
		return violationf(0, "it claims %d fragments, its %d bytes hold at most %d", count, len(b), room)
	}
	if begin != nil {
		begin(count)
	}
	last := fri.FragID(0)
	for i := range int(count) {
		if len(b)-pos < least {
			return violationf(pos, "fragment entry %d needs %d bytes or more, %d are left", i, least, len(b)-pos)
		}
		frag := fri.FragID(binary.LittleEndian.Uint32(b[pos:]))
		if i > 0 && last >= frag {
			return violationf(pos, "fragment %d after fragment %d; fragments must ascend", frag, last)
		}
		last = frag
		pos += 4
		end := len(b)
		if f == Tree {
			n := binary.LittleEndian.Uint32(b[pos:])
			if uint64(n) > uint64(len(b)-pos-4) {
				return violationf(pos, "the bitmap of fragment %d is said to have %d bytes, %d are left", frag, n, len(b)-pos-4)
			}
			pos += 4
			if n == 0 {
				if err := visit(i, frag, nil); err != nil {
					return err
				}
				continue
			}
			end = pos + int(n)
		}
		n, err := checkBitmap(b[:end], pos)
		if err == nil {
			err = visit(i, frag, b[pos:pos+n:pos+n])
		}
		if err != nil {
			return err
		}
		if pos += n; f == Tree {
			pos = end
		}
	}
	return nil
}

// checkBitmap checks the bitmap at b[pos:], every byte that decides what is in it, and returns its length.
func checkBitmap(b []byte, pos int) (int, error) {
	start := pos
	if len(b)-pos < 8 {
		return 0, violationf(pos, "a bitmap needs 8 bytes or more, %d are left", len(b)-pos)
	}
	cookie := binary.LittleEndian.Uint32(b[pos:])
	var n int
	var flags []byte
	switch {
	case cookie == cookiePlain:
		c := binary.LittleEndian.Uint32(b[pos+4:])
		if c > maxContainers {
			return 0, violationf(pos+4, "a bitmap of %d containers; the limit is %d", c, maxContainers)
		}
		n, pos = int(c), pos+8
	case cookie&0xFFFF == cookieRuns:
		n, pos = int(cookie>>16)+1, pos+4
		k := (n + 7) / 8
		if len(b)-pos < k {
			return 0, violationf(pos, "the run flags of %d containers need %d bytes, %d are left", n, k, len(b)-pos)
		}
		flags, pos = b[pos:pos+k], pos+k
	default:
		return 0, violationf(pos, "cookie %#x is not that of a Roaring bitmap", cookie)
	}
	header := 4 * n
	if flags == nil || n >= tableFrom {
		header = 8 * n
	}
	if len(b)-pos < header {
		return 0, violationf(pos, "the headers of %d containers need %d bytes, %d are left", n, header, len(b)-pos)
	}
	pairs, pairsAt := b[pos:pos+4*n], pos
	pos += header
	for i, last := 0, -1; i < n; i++ {
		key := int(binary.LittleEndian.Uint16(pairs[4*i:]))
		card := int(binary.LittleEndian.Uint16(pairs[4*i+2:])) + 1
		if key <= last {
			return 0, violationf(pairsAt+4*i, "container %d after container %d; containers must ascend", key, last)
		}
		last = key
		var size int
		var err error
		switch {
		case flags != nil && flags[i/8]>>(i%8)&1 == 1:
			size, err = checkRuns(b, pos, key, card)
		case card <= maxArray:
			size, err = checkArray(b, pos, key, card)
		default:
			size, err = checkBits(b, pos, key, card)
		}
		if err != nil {
			return 0, err
		}
		pos += size
	}
	return pos - start, nil
}

func checkArray(b []byte, pos, key, card int) (int, error) {
	if len(b)-pos < 2*card {
		return 0, violationf(pos, "array container %d needs %d bytes, %d are left", key, 2*card, len(b)-pos)
	}
	last := -1
	for i := range card {
		v := int(binary.LittleEndian.Uint16(b[pos+2*i:]))
		if v <= last {
			return 0, violationf(pos+2*i, "array container %d: value %d after %d; values must ascend", key, v, last)
		}
		last = v
	}
	return 2 * card, nil
}

func checkBits(b []byte, pos, key, card int) (int, error) {
	if len(b)-pos < bitsLen {
		return 0, violationf(pos, "bitmap container %d needs %d bytes, %d are left", key, bitsLen, len(b)-pos)
	}
	n := 0
	for i := 0; i < bitsLen; i += 8 {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(b[pos+i:]))
	}
	if n != card {
		return 0, violationf(pos, "bitmap container %d: %d bits are set, the header says %d", key, n, card)
	}
	return bitsLen, nil
}

func checkRuns(b []byte, pos, key, card int) (int, error) {
	if len(b)-pos < 2 {
		return 0, violationf(pos, "run container %d needs 2 bytes or more, %d are left", key, len(b)-pos)
	}
	runs := int(binary.LittleEndian.Uint16(b[pos:]))
	size := 2 + 4*runs
	if runs == 0 {
		return 0, violationf(pos, "run container %d has no runs", key)
	}
	if len(b)-pos < size {
		return 0, violationf(pos, "run container %d needs %d bytes, %d are left", key, size, len(b)-pos)
	}
	n, last := 0, -2
	for at := pos + 2; at < pos+size; at += 4 {
		from := int(binary.LittleEndian.Uint16(b[at:]))
		to := from + int(binary.LittleEndian.Uint16(b[at+2:]))
		if to > 0xFFFF {
			return 0, violationf(at, "run container %d: the run from %d ends at %d, past 65535", key, from, to)
		}
		if from <= last+1 {
			return 0, violationf(at, "run container %d: the run from %d follows one that ends at %d; runs must ascend and not touch", key, from, last)
		}
		n, last = n+to-from+1, to
	}
	if n != card {
		return 0, violationf(pos, "run container %d: its runs hold %d values, the header says %d", key, n, card)
	}
	return size, nil
}
