package indexfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/lancefile"
)

// trailerBytes is the end of a file of the legacy format: u64 position of the message, u16 major, u16 minor, "LANC".
const trailerBytes = 16

// beforeV2 reports whether a file ends as those of the legacy (0.1) format do. What is no Lance file at all is left to
// whoever reads it.
func beforeV2(ctx context.Context, r Reader) (bool, error) {
	if r.Size() < trailerBytes {
		return false, nil
	}
	var b [8]byte
	if err := readFull(ctx, r, b[:], r.Size()-8); err != nil {
		return false, err
	}
	le := binary.LittleEndian
	return string(b[4:]) == "LANC" && le.Uint16(b[:]) == 0 && le.Uint16(b[2:]) <= 2, nil
}

// readFull fills p from byte off; a file that ends before is fault.Corrupt.
func readFull(ctx context.Context, r Reader, p []byte, off int64) error {
	n, err := r.ReadAtContext(ctx, p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fault.New("indexfile.Read", fmt.Sprintf("@%d", off), fault.Corrupt, "the file ends after byte %d, and is said to hold %d", off+int64(max(n, 0)), r.Size())
	}
	return fault.Wrap("indexfile.Read", fmt.Sprintf("@%d", off), err)
}

// legacyVectors is an index.idx of before version 3 of the vector layout, of an IVF_PQ index: for each partition the
// codes of its vectors, and right after them their addresses; then a message that says where the partitions are.
// Addresses are numbered through the partitions, in the order of the message.
type legacyVectors struct {
	r      Reader
	parts  []legacyPart
	starts []uint64 // first number of each partition, and the count at the end

	bits, subVectors uint64 // of the codes
}

type legacyPart struct {
	ids int64 // byte of the first address
	n   uint64
}

// newLegacyVectorFile reads the message at the end of a legacy index.idx and checks every partition against the file.
func newLegacyVectorFile(ctx context.Context, f *File) (body, error) {
	if f.lance != nil {
		return nil, fault.New("indexfile.Open", f.Path, fault.Unsupported,
			"an index.idx of file version %s keeps its addresses in auxiliary.idx, which is not among the files of the segment", f.Version)
	}
	b, err := openLegacyVectors(ctx, f.raw)
	if err != nil {
		return nil, err
	}
	f.Rows = b.count()
	return b, nil
}

func openLegacyVectors(ctx context.Context, r Reader) (*legacyVectors, error) {
	size := r.Size()
	var tail [trailerBytes]byte
	if size < trailerBytes {
		return nil, legacyCorrupt(0, "a file of %d bytes is too short for a trailer of %d", size, trailerBytes)
	}
	if err := readFull(ctx, r, tail[:], size-trailerBytes); err != nil {
		return nil, err
	}
	pos := binary.LittleEndian.Uint64(tail[:])
	limit := uint64(size - trailerBytes)
	if pos > limit || limit-pos < 4 {
		return nil, legacyCorrupt(limit, "the message is said to be at %d of %d bytes", pos, size)
	}
	var head [4]byte
	if err := readFull(ctx, r, head[:], int64(pos)); err != nil {
		return nil, err
	}
	n := uint64(binary.LittleEndian.Uint32(head[:]))
	if n > limit-pos-4 {
		return nil, legacyCorrupt(pos, "a message of %d bytes does not fit before the trailer at %d", n, limit)
	}
	msg := make([]byte, n)
	if err := readFull(ctx, r, msg, int64(pos)+4); err != nil {
		return nil, err
	}
	ivf, err := legacyStages(msg)
	if err != nil {
		return nil, fault.Wrap("indexfile.Open", fmt.Sprintf("@%d", pos), err)
	}
	b := &legacyVectors{r: r, bits: ivf.bits, subVectors: ivf.subVectors}
	return b, b.place(ivf, ivf.bits*ivf.subVectors/8, pos)
}

func legacyCorrupt(off uint64, format string, args ...any) error {
	return fault.New("indexfile.Open", fmt.Sprintf("@%d", off), fault.Corrupt, format, args...)
}

// place checks the partitions: inside the file before the message, none over another.
func (b *legacyVectors) place(ivf legacyIVF, codeBytes, limit uint64) error {
	if len(ivf.offsets) != len(ivf.lengths) {
		return legacyCorrupt(limit, "%d offsets and %d lengths of partitions", len(ivf.offsets), len(ivf.lengths))
	}
	b.starts = append(make([]uint64, 0, len(ivf.offsets)+1), 0)
	var total uint64
	for i, off := range ivf.offsets {
		n := ivf.lengths[i]
		if n > 0 && (off > limit || n > (limit-off)/(codeBytes+8)) {
			return legacyCorrupt(limit, "partition %d (%d vectors of %d + 8 bytes at %d) does not lie before the message at %d", i, n, codeBytes, off, limit)
		}
		if n > 0 {
			b.parts = append(b.parts, legacyPart{int64(off + n*codeBytes), n})
			total += n
			b.starts = append(b.starts, total)
		}
	}
	order := slices.Clone(b.parts)
	begin := func(p legacyPart) uint64 { return uint64(p.ids) - p.n*codeBytes }
	slices.SortFunc(order, func(p, q legacyPart) int { return int(p.ids - q.ids) })
	for i := 1; i < len(order); i++ {
		if end := uint64(order[i-1].ids) + 8*order[i-1].n; begin(order[i]) < end {
			return legacyCorrupt(begin(order[i]), "a partition begins here, and another one ends at %d", end)
		}
	}
	return nil
}

// legacyIVF is the part of the message that tells where partitions are, and how long codes.
type legacyIVF struct {
	offsets, lengths []uint64
	bits, subVectors uint64
}

// legacyStages reads a pb Index message {5 vector_index {3 stages*, ...}}, whose stages must be an IVF {2 offsets, 3
// lengths} and a PQ {1 num_bits, 2 num_sub_vectors}, after an optional transform.
func legacyStages(msg []byte) (ivf legacyIVF, err error) {
	var haveIVF, havePQ bool
	stage := func(num protowire.Number, v []byte) error {
		switch num {
		case 2:
			haveIVF = true
			return eachField(v, func(num protowire.Number, x uint64, _ []byte) error {
				switch num {
				case 2:
					ivf.offsets = append(ivf.offsets, x)
				case 3:
					ivf.lengths = append(ivf.lengths, x)
				}
				return nil
			}, 2, 3)
		case 3:
			havePQ = true
			err := eachField(v, func(num protowire.Number, x uint64, _ []byte) error {
				switch num {
				case 1:
					ivf.bits = x
				case 2:
					ivf.subVectors = x
				}
				return nil
			})
			bits, parts := ivf.bits, ivf.subVectors
			if (bits != 8 && bits != 4) || parts == 0 || parts > 1<<20 || bits*parts%8 != 0 {
				return fault.New("indexfile.Open", "", fault.Unsupported, "a PQ of %d sub-vectors of %d bits", parts, bits)
			}
			return err
		case 4:
			return nil
		}
		return fault.New("indexfile.Open", "", fault.Unsupported, "stage %d in a legacy vector index; known are 2 (IVF), 3 (PQ) and 4 (a transform)", num)
	}
	err = eachField(msg, func(num protowire.Number, _ uint64, index []byte) error {
		if num != 5 {
			return nil
		}
		return eachField(index, func(num protowire.Number, _ uint64, st []byte) error {
			if num != 3 {
				return nil
			}
			return eachField(st, func(num protowire.Number, _ uint64, v []byte) error { return stage(num, v) })
		})
	})
	if err == nil && !(haveIVF && havePQ) {
		err = fault.New("indexfile.Open", "", fault.Unsupported, "a legacy vector index that is not IVF_PQ")
	}
	return ivf, err
}

// eachField visits the varint and length-delimited fields of a message; those in packed are arrays of varints, and are
// visited element by element.
func eachField(b []byte, visit func(num protowire.Number, x uint64, v []byte) error, packed ...protowire.Number) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fault.New("indexfile.Open", "", fault.Corrupt, "the message does not decode: %w", protowire.ParseError(n))
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(num, typ, b); n < 0 {
			return fault.New("indexfile.Open", "", fault.Corrupt, "field %d does not decode: %w", num, protowire.ParseError(n))
		}
		var err error
		switch typ {
		case protowire.VarintType:
			x, _ := protowire.ConsumeVarint(b)
			err = visit(num, x, nil)
		case protowire.BytesType:
			v, _ := protowire.ConsumeBytes(b)
			if !slices.Contains(packed, num) {
				err = visit(num, 0, v)
				break
			}
			for len(v) > 0 && err == nil {
				x, k := protowire.ConsumeVarint(v)
				if k < 0 {
					return fault.New("indexfile.Open", "", fault.Corrupt, "field %d does not decode: %w", num, protowire.ParseError(k))
				}
				err = visit(num, x, nil)
				v = v[k:]
			}
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (b *legacyVectors) places() []string { return []string{"partitions"} }

func (b *legacyVectors) count() uint64 { return b.starts[len(b.starts)-1] }

// read implements numbered.
func (b *legacyVectors) read(ctx context.Context, from uint64, dst []fri.RowAddr) error {
	var buf []byte
	for k := b.part(from); len(dst) > 0; k++ {
		row := from - b.starts[k]
		n := int(min(uint64(len(dst)), b.parts[k].n-row))
		buf = slices.Grow(buf[:0], 8*n)[:8*n]
		if err := readFull(ctx, b.r, buf, b.parts[k].ids+8*int64(row)); err != nil {
			return err
		}
		for i := range n {
			dst[i] = fri.RowAddr(binary.LittleEndian.Uint64(buf[8*i:]))
		}
		from += uint64(n)
		dst = dst[n:]
	}
	return nil
}

// part is the partition of a row, which must be below count.
func (b *legacyVectors) part(row uint64) int {
	return sort.Search(len(b.parts), func(k int) bool { return b.starts[k+1] > row })
}

func (b *legacyVectors) scan(_ context.Context, from Position) (Cursor, error) {
	return scanRows(b, from), nil
}

func (b *legacyVectors) remap(_ context.Context, r Resolver, _ Options) (Content, error) {
	t := newTranslated(b, r)
	over := make([]lancefile.Overlay, len(b.parts))
	for k, p := range b.parts {
		start := b.starts[k]
		over[k] = lancefile.Overlay{Off: p.ids, Piece: lancefile.Piece{Size: 8 * int64(p.n), Read: func(ctx context.Context, q []byte, off int64) error {
			return t.bytes(ctx, q, start, off)
		}}}
	}
	z, err := lancefile.Overlaid(b.r, b.r.Size(), over)
	if err != nil {
		return nil, err
	}
	return synthesised{z}, nil
}
