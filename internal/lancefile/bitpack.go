package lancefile

import (
	"encoding/binary"
	"fmt"
)

// unitValues is the number of values in a bit-packed unit.
const unitValues = 1024

// unitBytes is the size of a unit of w-bit values; it does not depend on the uncompressed width.
func unitBytes(w int) int { return unitValues / 8 * w }

// laneOrder gives the position of each group of eight rows in a unit.
var laneOrder = [8]int{0, 4, 2, 6, 1, 5, 3, 7}

// unpackUnit decodes 1,024 values of w bits from a unit of unitBytes(w) bytes in FastLanes order: word number
// lanes*i + lane, where each lane's rows are concatenated lowest bit first (docs/FORMAT.md, "Lance file").
// w is at most the width of T.
func unpackUnit[T Word](packed []byte, w int, out *[unitValues]T) {
	if w == 0 {
		clear(out[:])
		return
	}
	size := width[T]()
	tbits := 8 * size
	row := unitValues / 8 // bytes of one word per lane, all lanes
	lanes := unitValues / tbits
	// Several lanes share a 64-bit word: masks are repeated once per lane.
	lane := uint64(^T(0))
	rep := ^uint64(0) / lane
	mask := lane >> (tbits - w)
	for r := range tbits {
		i, sh := r*w/tbits, r*w%tbits
		o := out[laneOrder[r/8]*16+r%8*128:][:lanes]
		a := packed[i*row:][:row]
		if sh+w <= tbits {
			m := mask * rep
			unpackRow(o, a, a, sh, 0, m, 0, size)
			continue
		}
		lo := lane >> sh // bits that the first word gives
		b := packed[(i+1)*row:][:row]
		unpackRow(o, a, b, sh, tbits-sh, lo*rep, (mask&^lo)*rep, size)
	}
}

// unpackRow writes one value per lane: (a >> right & lo) | (b << left & hi), on as many lanes at once as a 64-bit word
// holds.
func unpackRow[T Word](out []T, a, b []byte, right, left int, lo, hi uint64, size int) {
	r, l := uint(right)&63, uint(left)&63
	switch size {
	case 1:
		for k := 0; k+8 <= len(out); k += 8 {
			x := binary.LittleEndian.Uint64(a[k:])>>r&lo | binary.LittleEndian.Uint64(b[k:])<<l&hi
			o := out[k : k+8 : k+8]
			o[0], o[1], o[2], o[3] = T(uint8(x)), T(uint8(x>>8)), T(uint8(x>>16)), T(uint8(x>>24))
			o[4], o[5], o[6], o[7] = T(uint8(x>>32)), T(uint8(x>>40)), T(uint8(x>>48)), T(uint8(x>>56))
		}
	case 2:
		for k := 0; k+4 <= len(out); k += 4 {
			x := binary.LittleEndian.Uint64(a[2*k:])>>r&lo | binary.LittleEndian.Uint64(b[2*k:])<<l&hi
			o := out[k : k+4 : k+4]
			o[0], o[1], o[2], o[3] = T(uint16(x)), T(uint16(x>>16)), T(uint16(x>>32)), T(uint16(x>>48))
		}
	case 4:
		for k := 0; k+2 <= len(out); k += 2 {
			x := binary.LittleEndian.Uint64(a[4*k:])>>r&lo | binary.LittleEndian.Uint64(b[4*k:])<<l&hi
			out[k], out[k+1] = T(uint32(x)), T(uint32(x>>32))
		}
	default:
		for k := range out {
			out[k] = T(binary.LittleEndian.Uint64(a[8*k:])>>r&lo | binary.LittleEndian.Uint64(b[8*k:])<<l&hi)
		}
	}
}

// unpackAll decodes len(out) values of w bits from whole units and a tail. The tail is raw words of T, or a padded
// unit; the length of b tells which.
func unpackAll[T Word](b []byte, w int, out []T) error {
	size := width[T]()
	if w > 8*size {
		return fmt.Errorf("bit-packed values of %d bits do not fit %d", w, 8*size)
	}
	full, tail := len(out)/unitValues, len(out)%unitValues
	raw := full*unitBytes(w) + tail*size
	padded := raw
	if tail > 0 {
		padded = (full + 1) * unitBytes(w)
	}
	if len(b) != raw && len(b) != padded {
		return fmt.Errorf("%d bit-packed values of %d bits take %d or %d bytes, not %d", len(out), w, raw, padded, len(b))
	}
	for ; len(out) >= unitValues; out = out[unitValues:] {
		unpackUnit(b, w, (*[unitValues]T)(out))
		b = b[unitBytes(w):]
	}
	switch {
	case len(out) == 0:
	case len(b) == tail*size:
		loadWords(b, out)
	default:
		var unit [unitValues]T
		unpackUnit(b, w, &unit)
		copy(out, unit[:])
	}
	return nil
}

// unpackInline decodes len(out) values, at most 1,024, from a unit that begins with its bit width in one word of T.
func unpackInline[T Word](b []byte, out []T) error {
	size := width[T]()
	if len(out) > unitValues {
		return fmt.Errorf("%d values in one bit-packed unit, at most %d fit", len(out), unitValues)
	}
	if len(b) < size {
		return fmt.Errorf("bit-packed unit of %d bytes has no width", len(b))
	}
	w := uint64(loadWord[T](b[:size]))
	if w > uint64(8*size) {
		return fmt.Errorf("bit-packed values of %d bits do not fit %d", w, 8*size)
	}
	if b = b[size:]; len(b) < unitBytes(int(w)) {
		return fmt.Errorf("bit-packed unit of %d-bit values takes %d bytes, not %d", w, unitBytes(int(w)), len(b))
	}
	if len(out) == unitValues {
		unpackUnit(b, int(w), (*[unitValues]T)(out))
		return nil
	}
	var unit [unitValues]T
	unpackUnit(b, int(w), &unit)
	copy(out, unit[:])
	return nil
}
