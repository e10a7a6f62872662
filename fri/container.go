package fri

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// decodeContainer checks a payload against its header and the strict list of docs/FORMAT.md, "Survivor bitmap", and
// stores it as bits. On a violation it returns a message and its place in b; an empty message means that all is well.
func decodeContainer(c Container, b []byte, words *[1024]uint64) (at int, msg string) {
	switch c.Kind {
	case ContainerArray:
		return decodeArray(c, b, words)
	case ContainerBitmap:
		return decodeBits(c, b, words)
	case ContainerRun:
		return decodeRuns(c, b, words)
	default:
		return 0, fmt.Sprintf("container %d has no kind", c.Key)
	}
}

func decodeArray(c Container, b []byte, words *[1024]uint64) (int, string) {
	if len(b) != 2*int(c.Card) {
		return 0, fmt.Sprintf("array container %d: %d bytes for %d values", c.Key, len(b), c.Card)
	}
	*words = [1024]uint64{}
	prev := -1
	for i := 0; i+1 < len(b); i += 2 {
		v := int(binary.LittleEndian.Uint16(b[i:]))
		if v <= prev {
			return i, fmt.Sprintf("array container %d: value %d after %d; values must ascend", c.Key, v, prev)
		}
		words[v>>6] |= 1 << (v & 63)
		prev = v
	}
	return 0, ""
}

func decodeBits(c Container, b []byte, words *[1024]uint64) (int, string) {
	if len(b) != 8192 {
		return 0, fmt.Sprintf("bitmap container %d: %d bytes, want 8192", c.Key, len(b))
	}
	n := 0
	for i := range words {
		w := binary.LittleEndian.Uint64(b[8*i:])
		words[i] = w
		n += bits.OnesCount64(w)
	}
	if n != int(c.Card) {
		return 0, fmt.Sprintf("bitmap container %d: %d bits are set, the header says %d", c.Key, n, c.Card)
	}
	return 0, ""
}

func decodeRuns(c Container, b []byte, words *[1024]uint64) (int, string) {
	if len(b) < 2 {
		return 0, fmt.Sprintf("run container %d: %d bytes", c.Key, len(b))
	}
	runs := int(binary.LittleEndian.Uint16(b))
	if runs == 0 {
		return 0, fmt.Sprintf("run container %d has no runs", c.Key)
	}
	if len(b) != 2+4*runs {
		return 0, fmt.Sprintf("run container %d: %d runs in %d bytes", c.Key, runs, len(b))
	}
	*words = [1024]uint64{}
	n, prevEnd := 0, -2
	for i := 2; i < len(b); i += 4 {
		start := int(binary.LittleEndian.Uint16(b[i:]))
		end := start + int(binary.LittleEndian.Uint16(b[i+2:]))
		if end > 0xFFFF {
			return i, fmt.Sprintf("run container %d: the run from %d ends at %d, past 65535", c.Key, start, end)
		}
		if start <= prevEnd+1 {
			return i, fmt.Sprintf("run container %d: the run from %d follows one that ends at %d; runs must ascend and not touch",
				c.Key, start, prevEnd)
		}
		setRange(words, start, end)
		n += end - start + 1
		prevEnd = end
	}
	if n != int(c.Card) {
		return 0, fmt.Sprintf("run container %d: its runs hold %d values, the header says %d", c.Key, n, c.Card)
	}
	return 0, ""
}

// setRange sets the bits first..last, both included, of an all-zero range.
func setRange(words *[1024]uint64, first, last int) {
	lo, hi := first>>6, last>>6
	loMask := ^uint64(0) << (first & 63)
	hiMask := ^uint64(0) >> (63 - last&63)
	if lo == hi {
		words[lo] |= loMask & hiMask
		return
	}
	words[lo] |= loMask
	for i := lo + 1; i < hi; i++ {
		words[i] = ^uint64(0)
	}
	words[hi] |= hiMask
}
