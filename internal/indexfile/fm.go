package indexfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/lancefile"
)

const (
	fmKey   = "row_ids" // of the schema metadata
	fmWidth = 16        // hex digits of an address: its 8 bytes, the lowest first
)

// fmFile is one part of an FM index: its addresses stand in the schema metadata, as a string of lower-case hex digits.
// They are numbered in the order of the string.
type fmFile struct {
	file *lancefile.File
	off  uint64 // byte of the string in global buffer 0
	n    uint64
}

// newFMFile finds the string in the bytes of the schema, and checks its length. Its digits are checked where it is read.
func newFMFile(ctx context.Context, f *File) (body, error) {
	if f.lance == nil {
		return nil, notThisForm(f)
	}
	v, ok := f.lance.Metadata(fmKey)
	if !ok {
		return nil, fault.New("indexfile.Open", f.Path, fault.Corrupt, "the schema metadata has no %s, which holds the addresses of an FM index", fmKey)
	}
	if len(v)%fmWidth != 0 {
		return nil, fault.New("indexfile.Open", f.Path, fault.Corrupt, "%s has %d hex digits, which is not a multiple of %d", fmKey, len(v), fmWidth)
	}
	start, n := f.lance.GlobalBuffer(0)
	schema := make([]byte, n)
	if err := f.lance.ReadGlobal(ctx, 0, schema, 0); err != nil {
		return nil, err
	}
	off, found := findMetadata(schema, fmKey)
	if found != 1 || !bytes.HasPrefix(schema[off:], v) {
		return nil, fault.New("indexfile.Open", fmt.Sprintf("%s @%d", f.Path, start), fault.Unsupported, "the schema names %s %d times", fmKey, found)
	}
	return &fmFile{f.lance, uint64(off), uint64(len(v) / fmWidth)}, nil
}

// findMetadata finds the value of a key in the bytes of a FileDescriptor {1 schema {5 metadata* {1 key, 2 value}}}: its
// position, and how many values the key has.
func findMetadata(b []byte, key string) (off, found int) {
	eachBytes(b, 0, func(num protowire.Number, at int, schema []byte) {
		if num != 1 {
			return
		}
		eachBytes(schema, at, func(num protowire.Number, at int, entry []byte) {
			if k := lastBytes(entry, 1); num != 5 || string(k) != key {
				return
			}
			eachBytes(entry, at, func(num protowire.Number, at int, _ []byte) {
				if num == 2 {
					off = at
					found++
				}
			})
		})
	})
	return off, found
}

// eachBytes visits the length-delimited fields of a message that stands at base, with their positions, up to where it
// does not decode.
func eachBytes(b []byte, base int, visit func(num protowire.Number, at int, v []byte)) {
	for p := 0; p < len(b); {
		num, typ, n := protowire.ConsumeTag(b[p:])
		if n < 0 {
			return
		}
		p += n
		if n = protowire.ConsumeFieldValue(num, typ, b[p:]); n < 0 {
			return
		}
		if typ == protowire.BytesType {
			v, _ := protowire.ConsumeBytes(b[p:])
			visit(num, base+p+n-len(v), v)
		}
		p += n
	}
}

func (b *fmFile) places() []string { return []string{"metadata " + fmKey} }

func (b *fmFile) count() uint64 { return b.n }

// read implements numbered.
func (b *fmFile) read(ctx context.Context, from uint64, dst []fri.RowAddr) error {
	digits := make([]byte, fmWidth*len(dst))
	if err := b.file.ReadGlobal(ctx, 0, digits, b.off+fmWidth*from); err != nil {
		return err
	}
	var v [8]byte
	for i := range dst {
		d := digits[fmWidth*i : fmWidth*(i+1)]
		if _, err := hex.Decode(v[:], d); err != nil || slices.ContainsFunc(d, isUpper) {
			start, _ := b.file.GlobalBuffer(0)
			return fault.New("indexfile.Read", fmt.Sprintf("@%d", start+b.off+fmWidth*(from+uint64(i))), fault.Corrupt,
				"%s has %q for address %d, which is not %d lower-case hex digits", fmKey, d, from+uint64(i), fmWidth)
		}
		dst[i] = fri.RowAddr(binary.LittleEndian.Uint64(v[:]))
	}
	return nil
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func (b *fmFile) scan(_ context.Context, from Position) (Cursor, error) {
	return scanRows(b, from), nil
}

func (b *fmFile) remap(ctx context.Context, r Resolver, _ Options) (Content, error) {
	t := newTranslated(b, r)
	start, _ := b.file.GlobalBuffer(0)
	over := lancefile.Overlay{Off: int64(start + b.off), Piece: lancefile.Piece{Size: fmWidth * int64(b.n), Read: func(ctx context.Context, p []byte, off int64) error {
		return fmDigits(ctx, t, p, off)
	}}}
	z, err := lancefile.Synthesise(ctx, b.file, lancefile.Edit{Overlays: []lancefile.Overlay{over}})
	if err != nil {
		return nil, err
	}
	return synthesised{z}, nil
}

// fmDigits fills p with the hex digits of the translated addresses, from digit off on.
func fmDigits(ctx context.Context, t *translated, p []byte, off int64) error {
	raw := make([]byte, (off%2+int64(len(p))+1)/2)
	if err := t.bytes(ctx, raw, 0, off/2); err != nil {
		return err
	}
	for i := range p {
		k := int(off%2) + i
		d := raw[k/2]
		if k%2 == 0 {
			d >>= 4
		}
		p[i] = "0123456789abcdef"[d&15]
	}
	return nil
}
