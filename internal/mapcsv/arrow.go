package mapcsv

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
)

const (
	// batchRows is the number of rows of a record batch, where the mapping has no blocks of its own.
	batchRows = 1 << 16
	// sliceRows is the number of rows that are translated at a time.
	sliceRows = 1 << 13
)

// runner is what mapping.arrow needs of a rowmap.Mapping.
type runner interface {
	Sources() []fri.Digest
	ForwardRun(ctx context.Context, src int, off uint64, out []fri.RowAddr, st []rowmap.Status) error
}

// arrowFile is mapping.arrow: an Arrow IPC file of equal record batches, uncompressed, with all validity buffers. So
// the place of every value follows from its row. It holds no state between reads.
type arrowFile struct {
	m     runner
	batch uint64 // rows of a batch
	// dropped counts the rows without new address among rows [lo, hi) in source order; lo is a multiple of batch.
	dropped func(ctx context.Context, lo, hi uint64) (uint64, error)
	layout  lazy[arrowLayout]
	slices  sync.Pool // *arrowSlice
}

// arrowLayout holds the places of all parts of the file.
type arrowLayout struct {
	src        spans
	head       []byte // magic and schema
	full, last *batchLayout
	meta       int64 // length of a batch's message
	batches    int64 // with the last
	tail       int64 // where the tail begins
	foot       []byte
	size       int64
}

// arrowSlice is room for translating a few rows.
type arrowSlice struct {
	addr   [sliceRows]fri.RowAddr
	status [sliceRows]rowmap.Status
	bytes  [8 * sliceRows]byte
}

func (f *arrowFile) load(ctx context.Context) (*arrowLayout, error) {
	return f.layout.get(ctx, func(context.Context) (*arrowLayout, error) { return newArrowLayout(f.m.Sources(), f.batch) })
}

func newArrowLayout(sources []fri.Digest, batch uint64) (*arrowLayout, error) {
	l := &arrowLayout{}
	var err error
	if l.src, err = newSpans(sources); err != nil {
		return nil, err
	}
	l.head = append([]byte(arrowMagic+"\x00\x00"), schemaMessage()...)
	l.full = newBatchLayout(batch)
	l.last = newBatchLayout(l.src.rows % batch)
	l.meta = int64(len(batchMessage(l.full, 0)))
	l.tail = int64(len(l.head)) + int64(l.src.rows/batch)*(l.meta+l.full.body)
	l.batches = int64(l.src.rows / batch)
	if l.last.rows > 0 {
		l.tail += l.meta + l.last.body
		l.batches++
	}
	if l.batches > (1<<31-1-1<<16)/blockSize {
		return nil, fault.New("mapcsv.MappingArrow", "", fault.TooLarge,
			"an Arrow file has at most 2^31 bytes of footer; %d rows need more", l.src.rows)
	}
	l.foot = append([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0}, footerHead(int(l.batches))...)
	l.size = l.tail + int64(len(l.foot)) + blockSize*l.batches + 4 + int64(len(arrowMagic))
	return l, nil
}

// Size returns the exact size in bytes. It reads nothing.
func (f *arrowFile) Size(ctx context.Context) (int64, error) {
	l, err := f.load(ctx)
	if err != nil {
		return 0, err
	}
	return l.size, nil
}

// ReadAt reads len(p) bytes at off; see File.
func (f *arrowFile) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fault.New("mapcsv.ReadAt", "", fault.Invalid, "negative offset %d", off)
	}
	l, err := f.load(ctx)
	if err != nil {
		return 0, err
	}
	if off >= l.size {
		return 0, nil
	}
	p = p[:min(int64(len(p)), l.size-off)]
	n := 0
	for n < len(p) {
		k, err := f.part(ctx, l, p[n:], off+int64(n))
		if err != nil {
			return n, err
		}
		n += k
	}
	return n, nil
}

// part reads from the one part of the file that byte off lies in.
func (f *arrowFile) part(ctx context.Context, l *arrowLayout, p []byte, off int64) (int, error) {
	head := int64(len(l.head))
	switch {
	case off < head:
		return copy(p, l.head[off:]), nil
	case off >= l.tail:
		return l.footer(p, off-l.tail), nil
	}
	step := l.meta + l.full.body
	b, at := (off-head)/step, (off-head)%step
	lay := l.full
	first := uint64(b) * f.batch
	if first+f.batch > l.src.rows {
		lay = l.last
	}
	if at < l.meta {
		nulls, err := f.dropped(ctx, first, first+lay.rows)
		if err != nil {
			return 0, fault.Wrap("mapcsv.MappingArrow", "", err)
		}
		return copy(p, batchMessage(lay, nulls)[at:]), nil
	}
	at -= l.meta
	p = p[:min(int64(len(p)), lay.body-at)]
	i := len(lay.buffers) - 1
	for lay.buffers[i].off > at {
		i--
	}
	buf := lay.buffers[i]
	end := lay.body
	if i+1 < len(lay.buffers) {
		end = lay.buffers[i+1].off
	}
	at -= buf.off
	if at >= buf.len { // padding
		p = p[:min(int64(len(p)), end-buf.off-at)]
		clear(p)
		return len(p), nil
	}
	p = p[:min(int64(len(p)), buf.len-at)]
	return f.values(ctx, &l.src, p, first, lay.rows, i, at)
}

// footer reads from the end-of-stream mark, the footer, its length and the magic.
func (l *arrowLayout) footer(p []byte, at int64) int {
	n := int64(len(l.foot))
	if at < n {
		return copy(p, l.foot[at:])
	}
	at -= n
	if i := at / blockSize; i < l.batches {
		var b [blockSize]byte
		lay := l.full
		if i == l.batches-1 && l.last.rows > 0 {
			lay = l.last
		}
		binary.LittleEndian.PutUint64(b[0:], uint64(int64(len(l.head))+i*(l.meta+l.full.body)))
		binary.LittleEndian.PutUint32(b[8:], uint32(l.meta))
		binary.LittleEndian.PutUint64(b[16:], uint64(lay.body))
		return copy(p, b[at%blockSize:])
	}
	end := binary.LittleEndian.AppendUint32(nil, uint32(n-8+blockSize*l.batches))
	return copy(p, append(end, arrowMagic...)[at-blockSize*l.batches:])
}

// values reads from byte at of buffer i (two for each column) of the batch of the given rows.
func (f *arrowFile) values(ctx context.Context, src *spans, p []byte, first, rows uint64, i int, at int64) (int, error) {
	col := arrowColumns[i/2]
	s, _ := f.slices.Get().(*arrowSlice)
	if s == nil {
		s = new(arrowSlice)
	}
	defer f.slices.Put(s)
	n := 0
	for n < len(p) {
		var lo, skip uint64 // row of the batch; bytes of its encoding that come before
		want := uint64(len(p) - n)
		pos := uint64(at) + uint64(n)
		var hi uint64
		if i%2 == 0 {
			lo, hi = 8*pos, min(rows, 8*(pos+want), 8*pos+sliceRows)
		} else {
			w := uint64(col.width)
			lo, skip = pos/w, pos%w
			hi = min(rows, (pos+want+w-1)/w, lo+sliceRows)
		}
		if err := f.translate(ctx, src, s, first+lo, int(hi-lo), i); err != nil {
			return 0, fault.Wrap("mapcsv.MappingArrow", "", err)
		}
		n += copy(p[n:], s.encode(i, int(hi-lo))[skip:])
	}
	return n, nil
}

// translate fills s with the n rows from position pos on: their old addresses for the first columns, else their new
// ones.
func (f *arrowFile) translate(ctx context.Context, src *spans, s *arrowSlice, pos uint64, n, buffer int) error {
	done := 0
	for k := src.at(pos); done < n; k++ {
		d := &src.list[k]
		off := pos + uint64(done) - d.start
		m := min(n-done, int(d.end-d.start-off))
		out, st := s.addr[done:done+m], s.status[done:done+m]
		if arrowColumns[buffer/2].nullable {
			if err := f.m.ForwardRun(ctx, d.pos, off, out, st); err != nil {
				return err
			}
		} else {
			a := fri.Addr(d.frag, 0) + fri.RowAddr(off)
			for i := range out {
				out[i], st[i] = a+fri.RowAddr(i), rowmap.Moved
			}
		}
		done += m
	}
	return nil
}

// encode returns the first n rows of s as they stand in a buffer.
func (s *arrowSlice) encode(buffer, n int) []byte {
	addrs, status := s.addr[:n], s.status[:n]
	if buffer%2 == 0 {
		b := s.bytes[:(n+7)/8]
		clear(b)
		for i, st := range status {
			if st == rowmap.Moved {
				b[i/8] |= 1 << (i % 8)
			}
		}
		return b
	}
	for i, st := range status {
		if st != rowmap.Moved {
			addrs[i] = 0
		}
	}
	switch buffer / 2 % 3 {
	case 0:
		b := s.bytes[:8*n]
		for i, a := range addrs {
			binary.LittleEndian.PutUint64(b[8*i:8*i+8], uint64(a))
		}
		return b
	case 1:
		b := s.bytes[:4*n]
		for i, a := range addrs {
			binary.LittleEndian.PutUint32(b[4*i:4*i+4], uint32(a.Frag()))
		}
		return b
	default:
		b := s.bytes[:4*n]
		for i, a := range addrs {
			binary.LittleEndian.PutUint32(b[4*i:4*i+4], a.Offset())
		}
		return b
	}
}
