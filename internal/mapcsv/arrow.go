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
		if err := f.render(ctx, src, s, first+lo, int(hi-lo), i); err != nil {
			return 0, fault.Wrap("mapcsv.MappingArrow", "", err)
		}
		n += copy(p[n:], s.bytes[skip:encodedLen(i, int(hi-lo))])
	}
	return n, nil
}

// encodedLen is the number of bytes that n rows, from a multiple of 8 on, take in a buffer.
func encodedLen(buffer, n int) int {
	if buffer%2 == 0 {
		return (n + 7) / 8
	}
	return n * arrowColumns[buffer/2].width
}

// render fills s.bytes with the n rows from position pos on, as they stand in a buffer.
func (f *arrowFile) render(ctx context.Context, src *spans, s *arrowSlice, pos uint64, n, buffer int) error {
	col := arrowColumns[buffer/2]
	if !col.nullable && buffer%2 == 0 {
		for i := range s.status[:n] {
			s.status[i] = rowmap.Moved
		}
		s.validity(n)
		return nil
	}
	done := 0
	for k := src.at(pos); done < n; k++ {
		d := &src.list[k]
		off := pos + uint64(done) - d.start
		m := min(n-done, int(d.end-d.start-off))
		if col.nullable {
			if err := f.m.ForwardRun(ctx, d.pos, off, s.addr[done:done+m], s.status[done:done+m]); err != nil {
				return err
			}
		} else {
			encodeRun(s.bytes[done*col.width:], buffer/2, fri.Addr(d.frag, uint32(off)), m)
		}
		done += m
	}
	switch {
	case buffer%2 == 0:
		s.validity(n)
	case col.nullable:
		s.encode(buffer/2, n)
	}
	return nil
}

// encodeRun writes m consecutive rows in the form of an old column.
func encodeRun(b []byte, col int, a fri.RowAddr, m int) {
	switch col {
	case 0:
		for i := range m {
			binary.LittleEndian.PutUint64(b[8*i:8*i+8], uint64(a)+uint64(i))
		}
	case 1:
		for i := range m {
			binary.LittleEndian.PutUint32(b[4*i:4*i+4], uint32(a.Frag()))
		}
	default:
		for i := range m {
			binary.LittleEndian.PutUint32(b[4*i:4*i+4], a.Offset()+uint32(i))
		}
	}
}

// isMoved is 1 for rowmap.Moved, else 0.
func isMoved(st rowmap.Status) uint8 { return uint8((st^rowmap.Moved)-1) >> 7 }

// validity writes the validity bits of the first n rows into s.bytes.
func (s *arrowSlice) validity(n int) {
	for i := 0; i < n; i += 8 {
		var v uint8
		for k, st := range s.status[i:min(i+8, n)] {
			v |= isMoved(st) << k
		}
		s.bytes[i/8] = v
	}
}

// encode writes the first n rows in the form of a new column into s.bytes; rows without address are zeros.
func (s *arrowSlice) encode(col, n int) {
	addrs, status := s.addr[:n], s.status[:n]
	switch col {
	case 3:
		b := s.bytes[:8*n]
		for i, a := range addrs {
			binary.LittleEndian.PutUint64(b[8*i:8*i+8], uint64(a)&-uint64(isMoved(status[i])))
		}
	case 4:
		b := s.bytes[:4*n]
		for i, a := range addrs {
			binary.LittleEndian.PutUint32(b[4*i:4*i+4], uint32(a.Frag())&-uint32(isMoved(status[i])))
		}
	default:
		b := s.bytes[:4*n]
		for i, a := range addrs {
			binary.LittleEndian.PutUint32(b[4*i:4*i+4], a.Offset()&-uint32(isMoved(status[i])))
		}
	}
}
