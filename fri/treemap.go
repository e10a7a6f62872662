package fri

import (
	"encoding/binary"
	"math/bits"
)

// Cookies of the portable Roaring format.
const (
	cookieNoRuns = 12346
	cookieRuns   = 12347
	noOffsets    = 4 // with runs, fewer containers than this have no offset table
	arrayMax     = 4096
	bitmapLen    = 8192

	// minBitmap is the shortest entry of a treemap: key, cookie, number of containers.
	minBitmap = 4 + 8
	// headerAhead is read behind a last container, in the hope that it holds the next fragment's header, which is
	// mostly as long as the last one; tailLen is the part of a bitmap that mostly holds its highest bit.
	headerAhead = 1 << 10
	tailLen     = 512
)

// treemapReader reads the headers of a 64-bit Roaring treemap: the bytes [pos, end) of the window. Payloads are
// skipped, but for the last container of each fragment, which tells the highest offset.
type treemapReader struct {
	w        *window
	base     int64 // what the offsets of the index count from
	pos, end int64
	idx      *survivorIndex
	header   int // length of the last bitmap's header

	readable  bool // the violation that read returned is one that Lance does not mind
	inPayload bool // the violation was found in a payload
}

func (t *treemapReader) check() string {
	if t.inPayload {
		return checkPayload
	}
	return checkHeaders
}

// peek returns exactly n bytes at off, or says what they were needed for.
func (t *treemapReader) peek(off int64, n int64, what string) ([]byte, error) {
	if n > t.end-off {
		return nil, violationf(off, "%s needs %d bytes, %d are left", what, n, t.end-off)
	}
	return t.w.peek(off, int(n))
}

func (t *treemapReader) read() error {
	b, err := t.peek(t.pos, 8, "the number of fragments")
	if err != nil {
		return err
	}
	count := binary.LittleEndian.Uint64(b)
	room := uint64(t.end-t.pos-8) / minBitmap
	if count > room {
		return violationf(t.pos, "it claims %d fragments, its %d bytes hold at most %d", count, t.end-t.pos, room)
	}
	t.pos += 8
	for range count {
		if err := t.fragment(); err != nil {
			return err
		}
	}
	t.idx.trailing = t.end - t.pos
	t.idx.end = t.pos - t.base
	return nil
}

// fragment reads one key and the header of its 32-bit bitmap, and steps behind it.
func (t *treemapReader) fragment() error {
	b, err := t.peek(t.pos, minBitmap, "a fragment's bitmap")
	if err != nil {
		return err
	}
	key := FragID(binary.LittleEndian.Uint32(b))
	if n := len(t.idx.keys); n > 0 && t.idx.keys[n-1] >= key {
		t.readable = true
		return violationf(t.pos, "fragment %d after fragment %d; fragments must ascend (Lance reads such a set, the last bitmap "+
			"of a fragment wins; no known writer makes one)", key, t.idx.keys[n-1])
	}
	t.pos += 4
	cs, err := t.containers(binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:]))
	if err != nil {
		return err
	}
	fs := FragSurvivors{Containers: cs}
	for _, c := range cs {
		fs.Rows += uint64(c.Card)
	}
	if len(cs) > 0 {
		if fs.Max, err = t.highest(cs[len(cs)-1]); err != nil {
			return err
		}
	}
	t.idx.keys = append(t.idx.keys, key)
	t.idx.frags = append(t.idx.frags, fs)
	t.idx.total += fs.Rows
	t.idx.nCont += len(cs)
	return nil
}

// containers reads a bitmap's header, which starts at pos, and steps behind the bitmap. cookie and size are its first
// two words.
func (t *treemapReader) containers(cookie, size uint32) ([]Container, error) {
	start := t.pos
	var n, flagLen, fixed int64
	runs := false
	switch {
	case cookie == cookieNoRuns:
		n, fixed = int64(size), 8
		if n > 1<<16 {
			return nil, violationf(start+4, "a bitmap of %d containers; the limit is 65536", n)
		}
	case cookie&0xFFFF == cookieRuns:
		n, fixed, runs = int64(cookie>>16)+1, 4, true
		flagLen = (n + 7) / 8
	default:
		return nil, violationf(start, "cookie %#x is not that of a Roaring bitmap", cookie)
	}
	table := !runs || n >= noOffsets
	header := fixed + flagLen + 4*n
	if table {
		header += 4 * n
	}
	t.header = int(header)
	h, err := t.peek(start, header, "a bitmap's header")
	if err != nil {
		return nil, err
	}
	flags, pairs, offsets := h[fixed:fixed+flagLen], h[fixed+flagLen:], h[min(header, fixed+flagLen+4*n):]
	cs := make([]Container, n)
	for i := range cs {
		c := &cs[i]
		c.Key = binary.LittleEndian.Uint16(pairs[4*i:])
		c.Card = uint32(binary.LittleEndian.Uint16(pairs[4*i+2:])) + 1
		if i > 0 && cs[i-1].Key >= c.Key {
			return nil, violationf(start+fixed+flagLen+4*int64(i), "container %d after container %d; keys must ascend",
				c.Key, cs[i-1].Key)
		}
		switch {
		case runs && flags[i/8]>>(i%8)&1 == 1:
			c.Kind = ContainerRun
		case c.Card <= arrayMax:
			c.Kind, c.Len = ContainerArray, 2*c.Card
		default:
			c.Kind, c.Len = ContainerBitmap, bitmapLen
		}
		if table {
			c.Off = start + int64(binary.LittleEndian.Uint32(offsets[4*i:]))
		}
	}
	if err := t.place(cs, start+header, start+header-4*n, table); err != nil {
		return nil, err
	}
	for i := range cs {
		cs[i].Off -= t.base
	}
	return cs, nil
}

// place finds where each payload lies and how long it is, and moves pos behind the last one. The offset table, if
// there is one, must say what the payloads' lengths say; a run container's length is taken from it.
func (t *treemapReader) place(cs []Container, at, tableAt int64, table bool) error {
	for i := range cs {
		c := &cs[i]
		switch {
		case !table:
			c.Off = at
		case c.Off != at:
			t.readable = true
			return violationf(tableAt+4*int64(i), "the offset table puts container %d at byte %d, it lies at byte %d "+
				"(Lance does not look at the table)", c.Key, c.Off, at)
		}
		if c.Kind == ContainerRun {
			if err := t.runLen(c, cs[i+1:], table); err != nil {
				return err
			}
		}
		if int64(c.Len) > t.end-at {
			return violationf(at, "container %d needs %d bytes, %d are left", c.Key, c.Len, t.end-at)
		}
		at += int64(c.Len)
	}
	t.pos = at
	return nil
}

// runLen finds the length of a run container: up to the next container if there is a table, else by its first word.
func (t *treemapReader) runLen(c *Container, rest []Container, table bool) error {
	if table && len(rest) > 0 {
		n := rest[0].Off - c.Off
		if n < 6 || n > maxContainerLen || (n-2)%4 != 0 {
			t.readable = true
			return violationf(c.Off, "run container %d is %d bytes long by the offset table, which is no length of a run container",
				c.Key, n)
		}
		c.Len = uint32(n)
		return nil
	}
	b, err := t.peek(c.Off, 2, "a run container")
	if err != nil {
		return err
	}
	runs := uint32(binary.LittleEndian.Uint16(b))
	c.Len = 2 + 4*runs
	if runs == 0 {
		return violationf(c.Off, "run container %d has no runs", c.Key)
	}
	if c.Len > maxContainerLen {
		return violationf(c.Off, "run container %d has %d runs; %d fill it", c.Key, runs, (maxContainerLen-2)/4)
	}
	return nil
}

// highest returns the highest offset in a fragment's last container. The rest of the payload is not checked.
func (t *treemapReader) highest(c Container) (uint32, error) {
	at, n := c.Off+t.base, int(c.Len)
	top := uint32(c.Key) << 16
	ahead := max(headerAhead, 2*t.header)
	if c.Kind == ContainerBitmap {
		for _, part := range [...]int{tailLen, bitmapLen} {
			b, err := t.w.peekJump(at+int64(n-part), part, ahead)
			if err != nil {
				return 0, err
			}
			for i := part - 8; i >= 0; i -= 8 {
				if w := binary.LittleEndian.Uint64(b[i:]); w != 0 {
					return top | uint32((n-part+i)*8+bits.Len64(w)-1), nil
				}
			}
		}
		return 0, violationf(at, "bitmap container %d has no bit set, the header says %d", c.Key, c.Card)
	}
	b, err := t.w.peekJump(at+int64(n)-4, 4, ahead) // both kinds are preceded by at least two bytes of the bitmap
	if err != nil {
		return 0, err
	}
	last := uint32(binary.LittleEndian.Uint16(b[2:]))
	if c.Kind == ContainerRun {
		if last += uint32(binary.LittleEndian.Uint16(b)); last > 0xFFFF {
			return 0, violationf(at+int64(n)-4, "run container %d: its last run ends at %d, past 65535", c.Key, last)
		}
	}
	return top | last, nil
}

// payloads checks every container; the record is in memory.
func (t *treemapReader) payloads() error {
	t.inPayload = true
	var words [1024]uint64
	for i := range t.idx.frags {
		for _, c := range t.idx.frags[i].Containers {
			b, err := t.w.peek(c.Off+t.base, int(c.Len))
			if err != nil {
				return err
			}
			if at, msg := decodeContainer(c, b, &words); msg != "" {
				return violationf(c.Off+t.base+int64(at), "fragment %d: %s", t.idx.keys[i], msg)
			}
		}
	}
	t.idx.checked = true
	return nil
}
