package mapcsv

import (
	"encoding/binary"
	"unsafe"

	"github.com/frifs/frifs/fri"
)

// room is how many bytes past the start of a line must be writable for the functions that put lines.
const room = 2 * window

// maxLine is the longest line of two halves.
const maxLine = 2 * maxHalf

// pair renders lines of two halves, each of consecutive rows of one fragment.
type pair struct {
	l, r   half
	lf, rf fri.FragID

	// The template of a whole line; n is its length, 0 when it does not hold any more.
	head [64]byte
	tail [32]byte
	n    int
}

// atLeft and atRight set one side to a row.
func (p *pair) atLeft(f fri.FragID, off uint64)  { p.lf, p.n = f, 0; p.l.at(off) }
func (p *pair) atRight(f fri.FragID, off uint64) { p.rf, p.n = f, 0; p.r.at(off) }

// ready makes both halves putable and returns for how many lines they are.
func (p *pair) ready() uint32 {
	if p.l.left() == 0 {
		p.l.refill(p.lf)
		p.n = 0
	}
	if p.r.left() == 0 {
		p.r.refill(p.rf)
		p.n = 0
	}
	return min(p.l.left(), p.r.left())
}

// dropped writes the line of a row that has no new address at dst[pos:] and returns the position after it.
func (p *pair) dropped(dst []byte, pos int) int {
	if p.l.left() == 0 {
		p.l.refill(p.lf)
		p.n = 0
	}
	pos += p.l.put((*[window]byte)(dst[pos:]), ',')
	d := (*[3]byte)(dst[pos:])
	d[0], d[1], d[2] = ',', ',', '\n'
	return pos + 3
}

// lines writes up to k lines of consecutive rows on both sides at dst[pos:], fewer where the room in dst ends, and
// returns how many and the position after them. At least one line is written when k > 0 and pos <= len(dst)-room.
func (p *pair) lines(dst []byte, pos int, k uint32) (done uint32, end int) {
	for done < k && pos <= len(dst)-room {
		n := min(p.ready(), k-done)
		ln := int(p.l.n) + int(p.r.n)
		if space := len(dst) - room - pos; int(n-1)*ln > space {
			n = uint32(space/ln) + 1
		}
		switch {
		case n < 3 && p.n == 0, p.l.sh != 0, p.r.sh != 0, p.l.a == aside, p.r.a == aside:
			for range n {
				pos += p.l.put((*[window]byte)(dst[pos:]), ',')
				pos += p.r.put((*[window]byte)(dst[pos:]), '\n')
			}
		default:
			if p.n == 0 {
				p.compose()
			}
			if p.n <= len(p.head) {
				pos = p.short(dst, pos, n)
			} else {
				pos = p.long(dst, pos, n)
			}
		}
		done += n
	}
	return done, pos
}

// compose makes the template of a line from those of the halves.
func (p *pair) compose() {
	var b [maxHalf + tmplLen + 24]byte
	copy(b[:], p.l.tmpl[:])
	b[p.l.n-1] = ','
	copy(b[p.l.n:], p.r.tmpl[:])
	p.n = int(p.l.n) + int(p.r.n)
	b[p.n-1] = '\n'
	p.head = [64]byte(b[:64])
	p.tail = [32]byte(b[64:96])
}

// short writes n lines of at most 64 bytes at dst[pos:].
//
// This loop is where the time goes, and bounds checks on its four stores cost a third of the speed. Every store lies
// within window bytes of the start of its line, since positions in a template are uint8; that the window of the last
// line lies in dst is checked before.
func (p *pair) short(dst []byte, pos int, n uint32) int {
	la, lo, ra, ro := uintptr(p.l.a), uintptr(p.l.o), uintptr(p.l.n+p.r.a), uintptr(p.l.n+p.r.o)
	lx, ly, rx, ry := uint16(p.l.c), uint16(p.l.c>>16), uint16(p.r.c), uint16(p.r.c>>16)
	ln, end := p.n, pos+int(n)*p.n
	_ = dst[end-ln : end-ln+window]
	d := unsafe.Pointer(&dst[pos])
	for range n {
		*(*[64]byte)(d) = p.head
		put4(unsafe.Add(d, la), digits4[lx])
		put4(unsafe.Add(d, lo), digits4[ly])
		put4(unsafe.Add(d, ra), digits4[rx])
		put4(unsafe.Add(d, ro), digits4[ry])
		d = unsafe.Add(d, ln)
		lx++
		ly++
		rx++
		ry++
	}
	p.advance(n)
	return end
}

// put4 stores four bytes in little-endian order; the compiler makes one store of it where the machine has one.
func put4(p unsafe.Pointer, v uint32) { binary.LittleEndian.PutUint32((*[4]byte)(p)[:], v) }

// long is short for lines of up to 86 bytes, which very large fragment ids have.
func (p *pair) long(dst []byte, pos int, n uint32) int {
	la, lo, ra, ro := p.l.a, p.l.o, p.l.n+p.r.a, p.l.n+p.r.o
	lx, ly, rx, ry := uint16(p.l.c), uint16(p.l.c>>16), uint16(p.r.c), uint16(p.r.c>>16)
	for i := range uint16(n) {
		d := (*[window]byte)(dst[pos:])
		*(*[64]byte)(d[:64]) = p.head
		*(*[32]byte)(d[64:96]) = p.tail
		binary.LittleEndian.PutUint32(d[la:], digits4[lx+i])
		binary.LittleEndian.PutUint32(d[lo:], digits4[ly+i])
		binary.LittleEndian.PutUint32(d[ra:], digits4[rx+i])
		binary.LittleEndian.PutUint32(d[ro:], digits4[ry+i])
		pos += p.n
	}
	p.advance(n)
	return pos
}

// advance moves both halves over n rows of their templates.
func (p *pair) advance(n uint32) {
	p.l.advance(n)
	p.r.advance(n)
}

// scatter writes the lines of consecutive rows on the left that went to the destinations with the given labels, whose
// states are st. It ends early at a state that needs a new template, and returns how many lines it wrote and the
// position after them. l.left() must not be below len(labels), and each line must have maxLine and the last one room
// bytes in dst. As in short, every store lies within window bytes of the start of its half.
func scatter(dst []byte, pos int, l *half, st []half, labels []uint16) (n, end int) {
	if len(labels) == 0 {
		return 0, pos
	}
	_ = dst[pos+(len(labels)-1)*maxLine : pos+(len(labels)-1)*maxLine+room]
	start := unsafe.Pointer(&dst[pos])
	p := start
	ln, la, lo, lsh := uintptr(l.n), uintptr(l.a), uintptr(l.o), l.sh&31
	lx, ly := uint16(l.c), uint16(l.c>>16)
	for _, v := range labels {
		h := &st[v]
		c := h.c
		if c>>32 == 0 {
			break
		}
		h.c = c + oneRow
		*(*[tmplLen]byte)(p) = l.tmpl
		put4(unsafe.Add(p, la), digits4[lx])
		put4(unsafe.Add(p, lo), digits4[ly]>>lsh)
		lx++
		ly++
		p = unsafe.Add(p, ln)
		*(*byte)(unsafe.Add(p, -1)) = ','
		*(*[tmplLen]byte)(p) = h.tmpl
		put4(unsafe.Add(p, h.a), digits4[uint16(c)])
		put4(unsafe.Add(p, h.o), digits4[uint16(c>>16)]>>(h.sh&31))
		p = unsafe.Add(p, h.n)
		*(*byte)(unsafe.Add(p, -1)) = '\n'
		n++
	}
	l.advance(uint32(n))
	return n, pos + int(uintptr(p)-uintptr(start))
}
