package indexfile

import (
	"bufio"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/spill"
)

// postingRows is how many postings are read and translated together, and how many of one token are sorted in memory.
const postingRows = 16384

// postingsWriter puts postings into the order of their new addresses.
type postingsWriter struct {
	file    *postingsFile
	r       Resolver
	options Options
	columns [3]*lancefile.ArrayWriter // row addresses, frequencies and, if there are any, positions
	changed bool                      // some row has another address than before

	first       uint64        // row of the batch
	addrs       []fri.RowAddr // as stored
	now         []uint64
	frequencies []uint32
	positions   *lancefile.Array // nil: none
	answers     Answers
	order       []int
}

// posting is a row. The positions are bytes of the batch that it was read with, or of a buffer that the next one takes.
type posting struct {
	addr      uint64
	frequency uint32
	positions []byte
}

// all writes the postings of all tokens; starts are their first rows, and the number of rows.
func (w *postingsWriter) all(ctx context.Context, starts []uint64) error {
	for k := 0; k < len(starts)-1; {
		from, to := starts[k], starts[k+1]
		if to-from > postingRows {
			if err := w.long(ctx, from, to); err != nil {
				return err
			}
			k++
			continue
		}
		n := 1
		for k+n+1 < len(starts) && starts[k+n+1]-from <= postingRows {
			n++
		}
		if err := w.load(ctx, from, starts[k+n]); err != nil {
			return err
		}
		for i := k; i < k+n; i++ {
			w.sort(int(starts[i]-from), int(starts[i+1]-from))
			for _, j := range w.order {
				if err := w.put(w.at(j)); err != nil {
					return err
				}
			}
		}
		k += n
	}
	return nil
}

// load reads and translates the rows of a batch.
func (w *postingsWriter) load(ctx context.Context, from, to uint64) (err error) {
	n := int(to - from)
	w.first, w.positions = from, nil
	w.addrs = slices.Grow(w.addrs[:0], n)[:n]
	w.now = slices.Grow(w.now[:0], n)[:n]
	w.frequencies = slices.Grow(w.frequencies[:0], n)[:n]
	if n == 0 {
		return ctx.Err()
	}
	if err := w.file.read(ctx, from, w.addrs); err != nil {
		return err
	}
	if _, err := w.file.frequencies.Read(ctx, from, w.frequencies, nil); err != nil {
		return err
	}
	if w.file.positions != nil {
		if w.positions, err = w.file.readPositions(ctx, from, uint64(n)); err != nil {
			return err
		}
	}
	w.answers.Grow(n)
	if err := w.r.Resolve(ctx, w.addrs, &w.answers); err != nil {
		return err
	}
	for i := range w.now {
		w.now[i] = uint64(Placeholder(from + uint64(i)))
		if w.answers.Keep(i) {
			w.now[i] = uint64(w.answers.New[i])
		}
		w.changed = w.changed || w.now[i] != uint64(w.addrs[i])
	}
	return nil
}

// sort sets order to rows [from, to) of the batch, ascending by new address. Placeholders come last: no fragment has a
// higher id.
func (w *postingsWriter) sort(from, to int) {
	w.order = w.order[:0]
	for i := from; i < to; i++ {
		w.order = append(w.order, i)
	}
	slices.SortStableFunc(w.order, func(a, b int) int { return cmp.Compare(w.now[a], w.now[b]) })
}

// at is row i of the batch.
func (w *postingsWriter) at(i int) posting {
	p := posting{addr: w.now[i], frequency: w.frequencies[i]}
	if a := w.positions; a != nil {
		p.positions = a.Child.Fixed[a.Offsets[i]*a.Child.Width : a.Offsets[i+1]*a.Child.Width]
	}
	return p
}

// put writes the next row.
func (w *postingsWriter) put(p posting) error {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], p.addr)
	if err := w.columns[0].Append(b[:]); err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(b[:], p.frequency)
	if err := w.columns[1].Append(b[:4]); err != nil || w.columns[2] == nil {
		return err
	}
	return w.columns[2].Append(p.positions)
}

// long writes the postings of one token that are too many for one batch: each batch is sorted by itself and put aside,
// and then they are merged. A batch that follows on the one before continues it, so that through compactions, which
// mostly keep the order, there are few to merge.
func (w *postingsWriter) long(ctx context.Context, from, to uint64) error {
	kept, gone := postingRuns{to: spill.New(w.options.SpillDir, w.options.SpillAbove)}, postingRuns{to: spill.New(w.options.SpillDir, w.options.SpillAbove)}
	defer kept.to.Close() //nolint:errcheck // it only held what was written elsewhere
	defer gone.to.Close() //nolint:errcheck // likewise
	for ; from < to; from += postingRows {
		n := int(min(to-from, postingRows))
		if err := w.load(ctx, from, from+uint64(n)); err != nil {
			return err
		}
		w.sort(0, n)
		for _, i := range w.order {
			runs := &kept
			if fri.RowAddr(w.now[i]).Frag() == PlaceholderFragment {
				runs = &gone
			}
			if err := runs.add(w.at(i)); err != nil {
				return err
			}
		}
	}
	for _, runs := range []*postingRuns{&kept, &gone} {
		if err := runs.merge(ctx, w.put); err != nil {
			return err
		}
	}
	return nil
}

// postingRuns are postings put aside, in runs of ascending addresses. A posting takes 16 bytes and its positions.
type postingRuns struct {
	to    *spill.Buffer
	from  []int64 // where each run begins
	last  uint64
	bytes []byte
}

func (s *postingRuns) add(p posting) error {
	if len(s.from) == 0 || p.addr < s.last {
		s.from = append(s.from, s.to.Size()+int64(len(s.bytes)))
	}
	s.last = p.addr
	s.bytes = binary.LittleEndian.AppendUint64(s.bytes, p.addr)
	s.bytes = binary.LittleEndian.AppendUint32(s.bytes, p.frequency)
	s.bytes = binary.LittleEndian.AppendUint32(s.bytes, uint32(len(p.positions)))
	s.bytes = append(s.bytes, p.positions...)
	if len(s.bytes) < 1<<16 {
		return nil
	}
	return s.flush()
}

func (s *postingRuns) flush() error {
	err := s.to.Append(s.bytes)
	s.bytes = s.bytes[:0]
	return err
}

// merge hands on all postings in the order of their addresses; equal ones stay in the order in which they came.
func (s *postingRuns) merge(ctx context.Context, put func(posting) error) error {
	if err := s.flush(); err != nil {
		return err
	}
	var runs postingHeap
	for i, from := range s.from {
		to := s.to.Size()
		if i+1 < len(s.from) {
			to = s.from[i+1]
		}
		r := &postingRun{number: i, in: bufio.NewReaderSize(io.NewSectionReader(s.to, from, to-from), 8192)}
		if ok, err := r.next(); err != nil {
			return err
		} else if ok {
			runs = append(runs, r)
		}
	}
	heap.Init(&runs)
	for n := 0; len(runs) > 0; n++ {
		if n%postingRows == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r := runs[0]
		if err := put(r.posting); err != nil {
			return err
		}
		switch ok, err := r.next(); {
		case err != nil:
			return err
		case ok:
			heap.Fix(&runs, 0)
		default:
			heap.Pop(&runs)
		}
	}
	return nil
}

// postingRun reads a run back.
type postingRun struct {
	posting
	number int
	in     *bufio.Reader
	head   [16]byte
}

// next reads the next posting; false at the end of the run.
func (r *postingRun) next() (bool, error) {
	if _, err := r.in.Peek(1); errors.Is(err, io.EOF) {
		return false, nil
	}
	if _, err := io.ReadFull(r.in, r.head[:]); err != nil {
		return false, fault.New("indexfile.Postings", "", fault.Unavailable, "what was put aside: %w", err)
	}
	r.addr, r.frequency = binary.LittleEndian.Uint64(r.head[:]), binary.LittleEndian.Uint32(r.head[8:])
	n := int(binary.LittleEndian.Uint32(r.head[12:]))
	r.positions = slices.Grow(r.positions[:0], n)[:n]
	if _, err := io.ReadFull(r.in, r.positions); err != nil {
		return false, fault.New("indexfile.Postings", "", fault.Unavailable, "what was put aside: %w", err)
	}
	return true, nil
}

// postingHeap has the run with the lowest address first.
type postingHeap []*postingRun

func (h postingHeap) Len() int      { return len(h) }
func (h postingHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *postingHeap) Push(x any)   { *h = append(*h, x.(*postingRun)) } //nolint:forcetypeassert // it holds nothing else

func (h postingHeap) Less(i, j int) bool {
	if h[i].addr != h[j].addr {
		return h[i].addr < h[j].addr
	}
	return h[i].number < h[j].number
}

// Pop implements heap.Interface.
func (h *postingHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
