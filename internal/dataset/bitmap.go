package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"
)

// The portable 32-bit Roaring form (docs/FORMAT.md, "Survivor bitmap", for one fragment).
const (
	cookieNoRuns  = 12346
	cookieRuns    = 12347
	noOffsetLimit = 4    // fewer containers than this have no offset header in the form with runs
	arrayLimit    = 4096 // a container above this cardinality is a bitmap
)

// DecodeBitmap reads a whole portable Roaring bitmap. It is strict: container keys and array values ascend, runs are
// neither empty nor overlapping nor adjacent, cardinalities are right, and nothing follows. The error names the byte.
func DecodeBitmap(b []byte) (*roaring.Bitmap, error) {
	count, err := checkBitmap(b)
	if err != nil {
		return nil, err
	}
	rb := roaring.New()
	if _, err := rb.ReadFrom(bytes.NewReader(b)); err != nil {
		return nil, fmt.Errorf("roaring bitmap: %w", err)
	}
	if got := rb.GetCardinality(); got != count {
		return nil, fmt.Errorf("roaring bitmap: %d values read, %d counted", got, count)
	}
	return rb, nil
}

// checkBitmap checks the structure and returns the number of values. It allocates nothing.
func checkBitmap(b []byte) (uint64, error) {
	if len(b) < 4 {
		return 0, fmt.Errorf("roaring bitmap: %d bytes are too few for a cookie", len(b))
	}
	cookie := binary.LittleEndian.Uint32(b)
	var n, pos int
	var flags []byte
	switch {
	case cookie&0xFFFF == cookieRuns:
		n = int(cookie>>16) + 1
		pos = 4 + (n+7)/8
		if len(b) < pos {
			return 0, fmt.Errorf("roaring bitmap: run flags of %d containers end behind byte %d", n, len(b))
		}
		flags = b[4:pos]
	case cookie == cookieNoRuns:
		if len(b) < 8 {
			return 0, fmt.Errorf("roaring bitmap: no container count in %d bytes", len(b))
		}
		count := binary.LittleEndian.Uint32(b[4:])
		if count > 1<<16 {
			return 0, fmt.Errorf("roaring bitmap @4: %d containers, at most 65536 are possible", count)
		}
		n, pos = int(count), 8
	default:
		return 0, fmt.Errorf("roaring bitmap @0: cookie %d is none of 12346, 12347", cookie)
	}
	header := pos
	pos += 4 * n
	if flags == nil || n >= noOffsetLimit {
		pos += 4 * n
	}
	if pos > len(b) {
		return 0, fmt.Errorf("roaring bitmap @%d: headers of %d containers need %d bytes, there are %d", header, n, pos, len(b))
	}
	total := uint64(0)
	for i, last := 0, -1; i < n; i++ {
		key := int(binary.LittleEndian.Uint16(b[header+4*i:]))
		if key <= last {
			return 0, fmt.Errorf("roaring bitmap @%d: container key %d does not ascend", header+4*i, key)
		}
		last = key
		card := int(binary.LittleEndian.Uint16(b[header+4*i+2:])) + 1
		var used int
		var err error
		switch {
		case flags != nil && flags[i/8]>>(i%8)&1 == 1:
			used, err = checkRuns(b[pos:], card)
		case card <= arrayLimit:
			used, err = checkArray(b[pos:], card)
		default:
			used, err = checkWords(b[pos:], card)
		}
		if err != nil {
			return 0, fmt.Errorf("roaring bitmap @%d: container %d: %w", pos, key, err)
		}
		pos += used
		total += uint64(card)
	}
	if pos != len(b) {
		return 0, fmt.Errorf("roaring bitmap @%d: %d bytes follow the bitmap", pos, len(b)-pos)
	}
	return total, nil
}

func checkArray(b []byte, card int) (int, error) {
	if len(b) < 2*card {
		return 0, fmt.Errorf("array of %d values needs %d bytes, there are %d", card, 2*card, len(b))
	}
	last := -1
	for i := range card {
		v := int(binary.LittleEndian.Uint16(b[2*i:]))
		if v <= last {
			return 0, fmt.Errorf("array value %d does not ascend", v)
		}
		last = v
	}
	return 2 * card, nil
}

func checkWords(b []byte, card int) (int, error) {
	const size = 1 << 13
	if len(b) < size {
		return 0, fmt.Errorf("bitmap needs %d bytes, there are %d", size, len(b))
	}
	got := 0
	for i := 0; i < size; i += 8 {
		got += bits.OnesCount64(binary.LittleEndian.Uint64(b[i:]))
	}
	if got != card {
		return 0, fmt.Errorf("bitmap holds %d values, its header says %d", got, card)
	}
	return size, nil
}

func checkRuns(b []byte, card int) (int, error) {
	if len(b) < 2 {
		return 0, fmt.Errorf("no run count in %d bytes", len(b))
	}
	n := int(binary.LittleEndian.Uint16(b))
	size := 2 + 4*n
	if n == 0 || len(b) < size {
		return 0, fmt.Errorf("%d runs need %d bytes, there are %d", n, size, len(b))
	}
	got, end := 0, -2 // end: last value of the run before
	for i := range n {
		start := int(binary.LittleEndian.Uint16(b[2+4*i:]))
		length := int(binary.LittleEndian.Uint16(b[4+4*i:]))
		if start <= end+1 {
			return 0, fmt.Errorf("run at %d overlaps or touches the run that ends at %d", start, end)
		}
		if end = start + length; end > 0xFFFF {
			return 0, fmt.Errorf("run at %d with %d values leaves the container", start, length+1)
		}
		got += length + 1
	}
	if got != card {
		return 0, fmt.Errorf("runs hold %d values, the header says %d", got, card)
	}
	return size, nil
}
