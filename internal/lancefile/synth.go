package lancefile

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sort"
	"sync"

	"github.com/frifs/frifs/fault"
)

// Synth is a file that is computed as it is read. It keeps its plan in memory: a few words for each replaced range,
// and the page descriptions and tables that differ from the original's. It is safe for concurrent use where the
// functions given to it are.
type Synth struct {
	zones []zone // ascending, without gaps
	size  int64
}

// zone is a range of the file that one source fills.
type zone struct {
	off, end int64
	from     filler
	base     int64 // position in the source of the zone's first byte
}

// filler writes the bytes of a zone. The range lies within what the zone names.
type filler interface {
	fill(ctx context.Context, p []byte, off int64) error
}

// Size returns the size in bytes. It follows from the plan alone.
func (s *Synth) Size() int64 { return s.size }

// ReadAt fills p from byte off on. It returns fewer bytes than asked for only with an error: io.EOF at the end of the
// file, otherwise that of the original's reader or of a function of the Edit, with its kind. Bytes below the returned
// count are right even then.
func (s *Synth) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fault.New("lancefile.Synth", "", fault.Invalid, "offset %d", off)
	}
	done := 0
	k := sort.Search(len(s.zones), func(k int) bool { return s.zones[k].end > off })
	for ; k < len(s.zones) && done < len(p); k++ {
		z := &s.zones[k]
		at := off + int64(done)
		n := int(min(int64(len(p)-done), z.end-at))
		if err := z.from.fill(ctx, p[done:done+n], z.base+at-z.off); err != nil {
			return done, fault.Wrap("lancefile.Synth", fmt.Sprintf("@%d", at), err)
		}
		done += n
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// fill reads the original.
func (s *source) fill(ctx context.Context, p []byte, off int64) error {
	return s.readFull(ctx, p, uint64(off))
}

// fill reads what the caller of Synthesise gave.
func (x Piece) fill(ctx context.Context, p []byte, off int64) error { return x.Read(ctx, p, off) }

// memory is a filler of bytes at hand.
type memory []byte

func (m memory) fill(_ context.Context, p []byte, off int64) error {
	copy(p, m[off:])
	return nil
}

// padding is a filler of what stands between buffers, as writers do it.
type padding struct{}

func (padding) fill(_ context.Context, p []byte, _ int64) error {
	for i := range p {
		p[i] = 'H'
	}
	return nil
}

// rowBytes is a filler of a flat column whose values the caller of Synthesise writes as bytes, from byte base of them on.
type rowBytes struct {
	write func(ctx context.Context, p []byte, off int64) error
	base  int64
}

func (r rowBytes) fill(ctx context.Context, p []byte, off int64) error {
	return r.write(ctx, p, r.base+off)
}

// batchRows is how many rows of a Flat are asked for at a time.
const batchRows = 1 << 16

// words is a filler of a flat u64 column: eight bytes a row, from row first on.
type words struct {
	fillRows func(ctx context.Context, from uint64, dst []uint64) error
	first    uint64
	pool     *sync.Pool // *[]uint64
}

func (w *words) fill(ctx context.Context, p []byte, off int64) error {
	buf, ok := w.pool.Get().(*[]uint64)
	if !ok {
		buf = new([]uint64)
	}
	defer w.pool.Put(buf)
	cut := int(off & 7) // bytes of the first row that are not asked for
	for row := w.first + uint64(off)/8; len(p) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min((cut+len(p)+7)/8, batchRows)
		*buf = grow(*buf, n)
		if err := w.fillRows(ctx, row, *buf); err != nil {
			return err
		}
		row += uint64(n)
		v := *buf
		if cut > 0 {
			p = p[partial(p, v[0], cut):]
			v, cut = v[1:], 0
		}
		whole := min(len(v), len(p)/8)
		storeWords(p[:8*whole], v[:whole])
		p = p[8*whole:]
		if whole < len(v) {
			p = p[partial(p, v[whole], 0):]
		}
	}
	return nil
}

// partial writes the bytes of v from number cut on, as many as p takes, and returns how many that are.
func partial(p []byte, v uint64, cut int) int {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return copy(p, b[cut:])
}

// storeWords writes values as little-endian words; p has eight bytes for each.
func storeWords(p []byte, v []uint64) {
	for len(v) >= 8 && len(p) >= 64 {
		q, w := (*[64]byte)(p), (*[8]uint64)(v)
		for i := range 8 {
			binary.LittleEndian.PutUint64(q[8*i:8*i+8], w[i])
		}
		p, v = p[64:], v[8:]
	}
	for i, x := range v {
		binary.LittleEndian.PutUint64(p[8*i:], x)
	}
}
