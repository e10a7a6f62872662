package lancefile

import (
	"encoding/binary"
	"math/bits"

	"github.com/frifs/frifs/internal/pb"
)

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

// setPacked marks rows straight from the packed form of a chunk's levels, where that is one bit per level or run
// lengths, and reports whether it could; if not, nothing is marked. count is the number of levels.
func (n *nulls) setPacked(e *pb.CompressiveEncoding, b []byte, count int) bool {
	if p := e.GetOutOfLineBitpacking(); p != nil {
		f := p.GetValues().GetFlat()
		if p.GetUncompressedBits() != 16 || f == nil || f.GetCompression() != nil || f.GetBitsPerValue() > 1 ||
			len(b) != (count+unitValues-1)/unitValues*unitBytes(int(f.GetBitsPerValue())) {
			return false
		}
		for i := 0; len(b) > 0; i += unitValues {
			n.setUnit((*[unitValues / 8]byte)(b), i, min(unitValues, count-i))
			b = b[unitValues/8:]
		}
		return true
	}
	return false
}

// setUnit marks rows [from, from+count) from a unit of 1,024 one-bit levels in FastLanes order with 16-bit words: bit r
// of word l is level 128*r+l for r below 8, 128*(r-8)+64+l above.
func (n *nulls) setUnit(b *[unitValues / 8]byte, from, count int) {
	var rows [16]uint64
	for g := range 16 {
		x := binary.LittleEndian.Uint64(b[8*g:])
		if x == 0 {
			continue
		}
		for r := range rows {
			// Gather bit r of four words: the product puts them side by side at bit 48.
			m := (x >> r & 0x0001000100010001) * (1<<48 | 1<<33 | 1<<18 | 1<<3) >> 48 & 15
			rows[r] |= m << (4 * g)
		}
	}
	for k := 0; k < 16 && 64*k < count; k++ {
		m := rows[k>>1+k&1*8]
		if left := count - 64*k; left < 64 {
			m &= 1<<left - 1
		}
		n.setBits(from+64*k, m)
	}
}
