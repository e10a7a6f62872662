package rowmaptest

import (
	"encoding/binary"
	"io"
	"math/bits"
	"math/rand/v2"
	"sort"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fri"
)

// Compactions describes a tagged history of ordered compactions, each of which rewrites all destinations of the one
// before. Every 65,536 rows have the same pattern of survivors.
type Compactions struct {
	Steps     int    // 0 means 1
	Fragments int    // sources of the first step
	Rows      uint64 // of each of them
	DestRows  uint64 // rows of each destination but the last; 0 means Rows
	FirstID   uint64 // id of the first source; further ids count up
	// Deleted is the share of rows that do not survive a step.
	Deleted float64
	Seed    uint64
}

const (
	containerRows = 1 << 16
	blockWords    = containerRows / 64
	// arrayLimit is the highest cardinality that Roaring stores as an array.
	arrayLimit = 4096
)

// History renders the content of the history. Only headers and one pattern are in memory, whatever the number of
// rows: payloads are made as they are read.
func (c Compactions) History() fri.Reader {
	rnd := rand.New(rand.NewPCG(c.Seed, 1)) //nolint:gosec // reproducible test data
	var words [blockWords]uint64
	for i := range containerRows {
		if rnd.Float64() >= c.Deleted {
			words[i/64] |= 1 << (i % 64)
		}
	}
	id := c.FirstID
	var sources []fri.Digest
	for range c.Fragments {
		sources = append(sources, fri.Digest{ID: id, PhysicalRows: c.Rows})
		id++
	}
	out := &content{}
	for range max(c.Steps, 1) {
		var rec content
		var total uint64
		treemap := treemap(sources, &words, &total)
		for _, d := range sources {
			rec.literal(digest(1, d))
		}
		per := c.DestRows
		if per == 0 {
			per = max(c.Rows, 1)
		}
		sources = nil
		for left := total; left > 0; {
			n := min(left, per)
			d := fri.Digest{ID: id, PhysicalRows: n}
			id++
			left -= n
			sources = append(sources, d)
			rec.literal(digest(2, d))
		}
		rec.literal(lengthKey(3, uint64(treemap.size)+uint64(protowire.SizeTag(1)+protowire.SizeVarint(uint64(treemap.size)))))
		rec.literal(lengthKey(1, uint64(treemap.size)))
		rec.append(treemap)
		out.literal(lengthKey(2, uint64(rec.size)))
		out.append(&rec)
	}
	return out
}

// digest encodes a FragmentDigest as a field.
func digest(num protowire.Number, d fri.Digest) []byte {
	var b []byte
	for i, v := range [3]uint64{d.ID, d.PhysicalRows, d.DeletedRows} {
		if v != 0 {
			b = protowire.AppendTag(b, protowire.Number(i+1), protowire.VarintType)
			b = protowire.AppendVarint(b, v)
		}
	}
	return append(lengthKey(num, uint64(len(b))), b...)
}

// lengthKey encodes the key and the length of a length-delimited field.
func lengthKey(num protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.BytesType), n)
}

// treemap encodes the survivors of the sources and sums them up. A source's digest gets its deleted rows.
func treemap(sources []fri.Digest, words *[blockWords]uint64, total *uint64) *content {
	full := payload(words, containerRows)
	out := &content{}
	out.literal(binary.LittleEndian.AppendUint64(nil, uint64(len(sources))))
	for i := range sources {
		d := &sources[i]
		n := int((d.PhysicalRows + containerRows - 1) / containerRows)
		tail := payload(words, int(d.PhysicalRows-uint64(max(n-1, 0))*containerRows))
		head := binary.LittleEndian.AppendUint32(nil, uint32(d.ID))
		head = binary.LittleEndian.AppendUint32(head, 12346)
		sets := n
		if n > 0 && tail.card == 0 {
			sets--
		}
		head = binary.LittleEndian.AppendUint32(head, uint32(sets))
		at := func(k int) set {
			if k == n-1 {
				return tail
			}
			return full
		}
		var kept uint64
		for k := range sets {
			head = binary.LittleEndian.AppendUint16(head, uint16(k))
			head = binary.LittleEndian.AppendUint16(head, uint16(at(k).card-1))
			kept += uint64(at(k).card)
		}
		off := 8 + 8*sets
		for k := range sets {
			head = binary.LittleEndian.AppendUint32(head, uint32(off))
			off += len(at(k).bytes)
		}
		out.literal(head)
		if n > 1 {
			out.repeat(full.bytes, int64(n-1))
		}
		if sets == n && n > 0 {
			out.literal(tail.bytes)
		}
		d.DeletedRows = d.PhysicalRows - kept
		*total += kept
	}
	return out
}

// set is an encoded container.
type set struct {
	card  int
	bytes []byte
}

// payload encodes the first rows of the pattern as the container that Roaring would use, runs left aside.
func payload(words *[blockWords]uint64, rows int) set {
	var s set
	var raw, array []byte
	for i, w := range words {
		if lo := rows - i*64; lo <= 0 {
			w = 0
		} else if lo < 64 {
			w &= 1<<lo - 1
		}
		raw = binary.LittleEndian.AppendUint64(raw, w)
		s.card += bits.OnesCount64(w)
		for ; w != 0; w &= w - 1 {
			array = binary.LittleEndian.AppendUint16(array, uint16(i*64+bits.TrailingZeros64(w)))
		}
	}
	if s.bytes = raw; s.card <= arrayLimit {
		s.bytes = array
	}
	return s
}

// content is a sequence of byte strings, some of them repeated.
type content struct {
	parts []part
	size  int64
}

type part struct {
	start int64
	bytes []byte
	times int64
}

func (c *content) literal(b []byte) { c.repeat(b, 1) }

func (c *content) repeat(b []byte, times int64) {
	if len(b) == 0 || times == 0 {
		return
	}
	c.parts = append(c.parts, part{c.size, b, times})
	c.size += int64(len(b)) * times
}

func (c *content) append(o *content) {
	for _, p := range o.parts {
		c.repeat(p.bytes, p.times)
	}
}

// Size returns the length in bytes.
func (c *content) Size() int64 { return c.size }

// ReadAt reads from the sequence; it fills p unless the end comes first.
func (c *content) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= c.size {
		return 0, io.EOF
	}
	i := sort.Search(len(c.parts), func(i int) bool { return c.parts[i].start > off }) - 1
	n := 0
	for ; n < len(p) && i < len(c.parts); i++ {
		q := &c.parts[i]
		l := int64(len(q.bytes))
		for at := off + int64(n) - q.start; n < len(p) && at < l*q.times; at = off + int64(n) - q.start {
			n += copy(p[n:], q.bytes[at%l:])
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
