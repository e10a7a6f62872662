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
	unpackSome(packed, w, out, 0, unitValues)
}

// unpackSome is unpackUnit for values lo to hi-1. What it leaves in the other places of out is unspecified.
func unpackSome[T Word](packed []byte, w int, out *[unitValues]T, lo, hi int) {
	if w == 0 {
		clear(out[lo:hi])
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
		first := laneOrder[r/8]*16 + r%8*128
		if first >= hi || first+lanes <= lo {
			continue
		}
		o := out[first:][:lanes]
		a := packed[i*row:][:row]
		if sh+w <= tbits {
			unpackRow(o, a, uint(sh), mask*rep)
			continue
		}
		low := lane >> sh // bits that the first word gives
		unpackTwo(o, a, packed[(i+1)*row:][:row], uint(sh), uint(tbits-sh), low*rep, (mask&^low)*rep)
	}
}

// unpackRow writes one value per lane: a >> sh & mask, on as many lanes at once as a 64-bit word holds.
func unpackRow[T Word](out []T, a []byte, sh uint, mask uint64) {
	switch width[T]() {
	case 1:
		for len(out) >= 8 && len(a) >= 8 {
			put8(out, binary.LittleEndian.Uint64(a)>>(sh&63)&mask)
			out, a = out[8:], a[8:]
		}
	case 2: // 64 lanes; constant bounds make this the fastest case, which is the one of labels
		o, a := (*[64]T)(out), (*[128]byte)(a)
		for k := 0; k < 64; k += 4 {
			x := binary.LittleEndian.Uint64(a[2*k:2*k+8]) >> (sh & 63) & mask
			o[k], o[k+1], o[k+2], o[k+3] = T(x), T(x>>16), T(x>>32), T(x>>48)
		}
	case 4:
		for len(out) >= 2 && len(a) >= 8 {
			x := binary.LittleEndian.Uint64(a) >> (sh & 63) & mask
			out[0], out[1] = T(uint32(x)), T(x>>32)
			out, a = out[2:], a[8:]
		}
	default: // 16 lanes, of addresses
		o, a := (*[16]T)(out), (*[128]byte)(a)
		for k := range o {
			o[k] = T(binary.LittleEndian.Uint64(a[8*k:8*k+8]) >> (sh & 63) & mask)
		}
	}
}

// unpackTwo writes one value per lane whose bits stand in two words: (a >> right & lo) | (b << left & hi).
func unpackTwo[T Word](out []T, a, b []byte, right, left uint, lo, hi uint64) {
	b = b[:len(a)]
	switch width[T]() {
	case 1:
		for i := 0; i+8 <= len(out) && i+8 <= len(a) && i+8 <= len(b); i += 8 {
			put8(out[i:], binary.LittleEndian.Uint64(a[i:])>>(right&63)&lo|binary.LittleEndian.Uint64(b[i:])<<(left&63)&hi)
		}
	case 2:
		o, a, b := (*[64]T)(out), (*[128]byte)(a), (*[128]byte)(b)
		for k := 0; k < 64; k += 4 {
			x := binary.LittleEndian.Uint64(a[2*k:2*k+8])>>(right&63)&lo | binary.LittleEndian.Uint64(b[2*k:2*k+8])<<(left&63)&hi
			o[k], o[k+1], o[k+2], o[k+3] = T(x), T(x>>16), T(x>>32), T(x>>48)
		}
	case 4:
		for len(out) >= 2 && len(a) >= 8 && len(b) >= 8 {
			x := binary.LittleEndian.Uint64(a)>>(right&63)&lo | binary.LittleEndian.Uint64(b)<<(left&63)&hi
			out[0], out[1] = T(uint32(x)), T(x>>32)
			out, a, b = out[2:], a[8:], b[8:]
		}
	default:
		o, a, b := (*[16]T)(out), (*[128]byte)(a), (*[128]byte)(b)
		for k := range o {
			o[k] = T(binary.LittleEndian.Uint64(a[8*k:8*k+8])>>(right&63)&lo | binary.LittleEndian.Uint64(b[8*k:8*k+8])<<(left&63)&hi)
		}
	}
}

// put8 writes the eight 8-bit parts of x.
func put8[T Word](out []T, x uint64) {
	o := out[:8:8]
	for k := range o {
		o[k] = T(uint8(x >> (8 * k)))
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
	if len(out) > unitValues {
		return fmt.Errorf("%d values in one bit-packed unit, at most %d fit", len(out), unitValues)
	}
	if len(out) == unitValues {
		return unpackPart(b, (*[unitValues]T)(out), 0, unitValues)
	}
	var unit [unitValues]T
	if err := unpackPart(b, &unit, 0, len(out)); err != nil {
		return err
	}
	copy(out, unit[:])
	return nil
}

// unpackPart decodes values lo to hi-1 from a unit that begins with its bit width in one word of T. What it leaves in the
// other places of out is unspecified.
func unpackPart[T Word](b []byte, out *[unitValues]T, lo, hi int) error {
	size := width[T]()
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
	unpackSome(b, int(w), out, lo, hi)
	return nil
}
