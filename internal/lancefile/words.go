package lancefile

import (
	"encoding/binary"
	"math/bits"
)

// Word is the type of a decoded value. The element of a column is at least 16 bits wide; uint8 serves run lengths.
type Word interface {
	uint8 | uint16 | uint32 | uint64
}

// width is the size of T in bytes.
func width[T Word]() int { return bits.Len64(uint64(^T(0))) / 8 }

// loadWords decodes len(out) little-endian values from b, which holds at least that many.
func loadWords[T Word](b []byte, out []T) {
	switch width[T]() {
	case 1:
		for i := range out {
			out[i] = T(b[i])
		}
	case 2:
		b = b[:2*len(out)]
		i := 0
		for ; i+4 <= len(out); i += 4 {
			x := binary.LittleEndian.Uint64(b[2*i:])
			o := out[i : i+4 : i+4]
			o[0], o[1], o[2], o[3] = T(x), T(x>>16), T(x>>32), T(x>>48)
		}
		for ; i < len(out); i++ {
			out[i] = T(binary.LittleEndian.Uint16(b[2*i:]))
		}
	case 4:
		for i := range out {
			out[i] = T(binary.LittleEndian.Uint32(b[4*i:]))
		}
	case 8:
		for i := range out {
			out[i] = T(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
}

// loadWord decodes one little-endian value from b, which has exactly width[T]() bytes.
func loadWord[T Word](b []byte) T {
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return T(v)
}

// nulls collects the null rows of a read: bit base+i of words is row i of the piece at hand. A nil words means that
// the caller does not accept nulls; seen is counted all the same.
type nulls struct {
	words []uint64
	base  int
	seen  int
}

// at returns the collector for the piece that begins i rows later. Its count is separate.
func (n *nulls) at(i int) nulls { return nulls{words: n.words, base: n.base + i} }

// set marks row i.
func (n *nulls) set(i int) {
	n.seen++
	if n.words != nil {
		i += n.base
		n.words[i>>6] |= 1 << (i & 63)
	}
}

// setRun marks rows [from, to).
func (n *nulls) setRun(from, to int) {
	if from >= to {
		return
	}
	n.seen += to - from
	if n.words == nil {
		return
	}
	for i, end := n.base+from, n.base+to; i < end; {
		w := i >> 6
		stop := min(end, (w+1)<<6)
		n.words[w] |= (^uint64(0) >> (64 - (stop - i))) << (i & 63)
		i = stop
	}
}

// setBits marks the rows whose bit is set in m, which holds rows [from, from+64).
func (n *nulls) setBits(from int, m uint64) {
	if m == 0 {
		return
	}
	n.seen += bits.OnesCount64(m)
	if n.words == nil {
		return
	}
	i := n.base + from
	w, s := i>>6, i&63
	n.words[w] |= m << s
	if hi := m >> (64 - s); s > 0 && hi != 0 {
		n.words[w+1] |= hi
	}
}

// setLevels marks the rows whose definition level is 1 and reports the first level above 1, or -1.
func (n *nulls) setLevels(levels []uint16) (bad int) {
	for i := 0; i < len(levels); i += 64 {
		l := levels[i:min(i+64, len(levels))]
		var m, over uint64
		for k, v := range l {
			m |= uint64(v&1) << k
			over |= uint64(v)
		}
		if over > 1 {
			for k, v := range l {
				if v > 1 {
					return i + k
				}
			}
		}
		n.setBits(i, m)
	}
	return -1
}
