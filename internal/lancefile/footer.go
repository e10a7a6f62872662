package lancefile

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/frifs/frifs/fault"
)

// footerBytes is the length of the footer: three u64 positions, two u32 counts, two u16 version numbers, the magic.
const footerBytes = 40

// magic ends every Lance file.
const magic = "LANC"

// Version is a file version as the grammar knows it; the footer of a 2.0 file says (0, 3) or (2, 0).
type Version uint8

// The known versions. The zero value is unknown.
const (
	VersionUnknown Version = iota
	V20
	V21
	V22
	V23
)

// String is the version as manifests write it.
func (v Version) String() string {
	switch v {
	case V20:
		return "2.0"
	case V21:
		return "2.1"
	case V22:
		return "2.2"
	case V23:
		return "2.3"
	}
	return "unknown"
}

// span is a piece of the file: position and length in bytes.
type span struct{ off, n uint64 }

func (s span) end() uint64 { return s.off + s.n }

// footer is the last 40 bytes of a file, checked against its size.
type footer struct {
	columnMeta, cmo, gbo uint64
	buffers, columns     uint32
	version              Version
}

// parseFooter reads the footer of a file of the given size from its last 40 bytes and checks that the tables it names
// lie in order before it.
func parseFooter(b []byte, size uint64) (footer, error) {
	base := size - footerBytes
	if string(b[36:40]) != magic {
		return footer{}, corrupt(base+36, "magic %x instead of %x (%q): not a Lance file, or its recorded size (%d) is wrong",
			b[36:40], magic, magic, size)
	}
	le := binary.LittleEndian
	f := footer{
		columnMeta: le.Uint64(b), cmo: le.Uint64(b[8:]), gbo: le.Uint64(b[16:]),
		buffers: le.Uint32(b[24:]), columns: le.Uint32(b[28:]),
	}
	major, minor := le.Uint16(b[32:]), le.Uint16(b[34:])
	switch [2]uint16{major, minor} {
	case [2]uint16{0, 3}, [2]uint16{2, 0}:
		f.version = V20
	case [2]uint16{2, 1}:
		f.version = V21
	case [2]uint16{2, 2}:
		f.version = V22
	case [2]uint16{2, 3}:
		f.version = V23
	default:
		return footer{}, fault.New("lancefile.Open", at(base+32), fault.Unsupported,
			"file version (%d, %d); known are (0, 3), (2, 0), (2, 1), (2, 2) and (2, 3)", major, minor)
	}
	if f.buffers == 0 {
		return footer{}, corrupt(base+24, "no global buffer; the schema must be buffer 0")
	}
	if err := tableFits("column offset table", f.cmo, f.columns, base); err != nil {
		return footer{}, err
	}
	if err := tableFits("global buffer table", f.gbo, f.buffers, base); err != nil {
		return footer{}, err
	}
	if f.columnMeta > f.cmo || f.cmo+16*uint64(f.columns) > f.gbo {
		return footer{}, corrupt(base, "column metadata (%d), column offset table (%d, %d columns) and global buffer table (%d) "+
			"are not in this order", f.columnMeta, f.cmo, f.columns, f.gbo)
	}
	return f, nil
}

// tableFits checks that a table of n 16-byte entries at pos ends at or before limit.
func tableFits(name string, pos uint64, n uint32, limit uint64) error {
	if pos > limit || uint64(n) > (limit-pos)/16 {
		return corrupt(pos, "%s of %d entries does not fit before the footer at byte %d", name, n, limit)
	}
	return nil
}

// parseTable decodes 16-byte entries (position, length).
func parseTable(b []byte) []span {
	t := make([]span, len(b)/16)
	for i := range t {
		t[i] = span{binary.LittleEndian.Uint64(b[16*i:]), binary.LittleEndian.Uint64(b[16*i+8:])}
	}
	return t
}

// checkBuffers applies the rules for global buffers: inside the file, aligned from 2.1 on, not overlapping, and buffer
// 0 (the schema) before the column metadata.
func checkBuffers(f footer, size uint64, t []span) error {
	var sum uint64
	for i, b := range t {
		if b.off > size || b.n > size-b.off {
			return corrupt(f.gbo+16*uint64(i), "global buffer %d (%d bytes at %d) lies outside the file of %d bytes", i, b.n, b.off, size)
		}
		if f.version > V20 && b.off%64 != 0 {
			return corrupt(f.gbo+16*uint64(i), "global buffer %d starts at %d, which is not a multiple of 64", i, b.off)
		}
		if sum += b.n; sum > f.columnMeta {
			return corrupt(f.gbo+16*uint64(i), "global buffers up to %d hold %d bytes, more than lie before the column metadata at %d",
				i, sum, f.columnMeta)
		}
	}
	if t[0].end() > f.columnMeta {
		return corrupt(f.gbo, "global buffer 0 ends at %d, after the start of the column metadata at %d", t[0].end(), f.columnMeta)
	}
	order := make([]int, 0, len(t))
	for i, b := range t {
		if b.n > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case t[a].off < t[b].off:
			return -1
		case t[a].off > t[b].off:
			return 1
		}
		return a - b
	})
	for k := 1; k < len(order); k++ {
		a, b := order[k-1], order[k]
		if t[a].end() > t[b].off {
			return corrupt(f.gbo+16*uint64(b), "global buffers %d and %d overlap at byte %d", a, b, t[b].off)
		}
	}
	return nil
}

// checkColumns applies the rule for column entries: each within the column metadata area.
func checkColumns(f footer, t []span) error {
	for i, c := range t {
		if c.off < f.columnMeta || c.off > f.cmo || c.n > f.cmo-c.off {
			return corrupt(f.cmo+16*uint64(i), "metadata of column %d (%d bytes at %d) lies outside the column metadata [%d, %d)",
				i, c.n, c.off, f.columnMeta, f.cmo)
		}
	}
	return nil
}

// readTail fetches the end of the file and parses the footer.
func (s *source) readTail(ctx context.Context) (footer, error) {
	if s.size < footerBytes {
		return footer{}, corrupt(0, "a file of %d bytes is too short for a footer of %d", s.size, footerBytes)
	}
	n := min(s.size, tailBytes)
	tail := make([]byte, n)
	if err := s.readFull(ctx, tail, s.size-n); err != nil {
		return footer{}, err
	}
	s.tail, s.tailOff = tail, s.size-n
	return parseFooter(tail[n-footerBytes:], s.size)
}
