package indexfile

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/translate"
)

const (
	// batchRows is how many addresses are read and translated together.
	batchRows = 65536
	// pieceRows is how many of them are handled together where they come in order: what that takes stays in the
	// processor's cache.
	pieceRows = 8192
	// directRows is the length from which on a request is translated straight into its destination: batches kept for
	// the next request would win nothing.
	directRows = 4096
	// streams is how many sequential readers with small requests are told apart, and how many batches are kept.
	streams = 4
)

// numbered is a list of stored addresses, one for each of the rows from 0 on. It is safe for concurrent use.
type numbered interface {
	count() uint64
	// read gives the stored addresses of rows [from, from+len(dst)), which lie within count.
	read(ctx context.Context, from uint64, dst []fri.RowAddr) error
}

// translated is a list of stored addresses as a remapped file has them: the address in the version that is looked at,
// or the row's placeholder, as little-endian words. It is safe for concurrent use.
//
// A reader that walks through the list in small steps gets its rows from batches that grow with its progress; one that
// jumps about has just the rows translated that it asks for.
type translated struct {
	src  numbered
	r    Resolver
	pool sync.Pool // *batchWork
	cuts sync.Pool // *[]byte, of requests that begin or end within a row

	mu   sync.Mutex // protects kept; not held while rows are read or translated
	kept []kept     // latest first, at most streams
}

// kept is a run of translated rows that a sequential reader went through, from row from on. Without words only the place
// where the reader stopped is remembered: from.
type kept struct {
	from  uint64
	words []byte // never changed once it is here
}

func (k *kept) rows() int { return len(k.words) / 8 }

func (k *kept) end() uint64 { return k.from + uint64(k.rows()) }

// batchWork is what translating one batch needs.
type batchWork struct {
	addrs   []fri.RowAddr
	answers Answers
}

func newTranslated(src numbered, r Resolver) *translated { return &translated{src: src, r: r} }

// bytes fills p with the words of the rows from start on, from byte off of them.
func (t *translated) bytes(ctx context.Context, p []byte, start uint64, off int64) error {
	row, cut := start+uint64(off/8), int(off%8)
	if cut == 0 && len(p)%8 == 0 {
		return t.fill(ctx, row, p)
	}
	buf, ok := t.cuts.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	defer t.cuts.Put(buf)
	for len(p) > 0 {
		n := min((cut+len(p)+7)&^7, 8*pieceRows)
		*buf = slices.Grow((*buf)[:0], n)[:n]
		b := *buf
		if err := t.fill(ctx, row, b); err != nil {
			return err
		}
		p = p[copy(p, b[cut:]):]
		row, cut = row+uint64(len(b)/8), 0
	}
	return nil
}

// fill writes the words of len(p)/8 rows, beginning with row from, which lie within the list.
func (t *translated) fill(ctx context.Context, from uint64, p []byte) error {
	for len(p) > 0 {
		n := copy(p, t.find(from))
		if n == 0 {
			n = min(len(p), 8*batchRows)
			do := t.translate
			if n < 8*directRows {
				do = t.step
			}
			if err := do(ctx, from, p[:n]); err != nil {
				return err
			}
		}
		from += uint64(n / 8)
		p = p[n:]
	}
	return nil
}

// find returns the rest of a kept batch from a row on; nothing where no batch has that row.
func (t *translated) find(from uint64) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.kept {
		if k := t.kept[i]; from >= k.from && from < k.end() {
			t.kept = slices.Insert(slices.Delete(t.kept, i, i+1), 0, k)
			return k.words[8*(from-k.from):]
		}
	}
	return nil
}

// step is translate for a reader with small requests. Where the reader came to from in sequence, more rows are
// translated than asked for, and kept.
func (t *translated) step(ctx context.Context, from uint64, p []byte) error {
	ahead := 0
	t.mu.Lock()
	// A request that ended within a row is followed by one that begins with that row.
	if i := slices.IndexFunc(t.kept, func(k kept) bool { return k.end()-from <= 1 }); i >= 0 {
		ahead = min(max(2*t.kept[i].rows(), directRows), batchRows)
		t.kept = slices.Delete(t.kept, i, i+1)
	}
	t.mu.Unlock()
	ahead = int(min(uint64(ahead), t.src.count()-from))
	k := kept{from: from + uint64(len(p)/8)}
	if 8*ahead <= len(p) {
		if err := t.translate(ctx, from, p); err != nil {
			return err
		}
	} else {
		k = kept{from, make([]byte, 8*ahead)}
		if err := t.translate(ctx, from, k.words); err != nil {
			return err
		}
		copy(p, k.words)
	}
	t.mu.Lock()
	t.kept = slices.Insert(t.kept[:min(len(t.kept), streams-1)], 0, k)
	t.mu.Unlock()
	return nil
}

// translate writes the words of len(p)/8 rows, beginning with row from, at most batchRows of them. Addresses in order are read
// and translated in pieces; others all at once, since then many of them fall into the same part of a mapping.
func (t *translated) translate(ctx context.Context, from uint64, p []byte) error {
	w, ok := t.pool.Get().(*batchWork)
	if !ok {
		w = &batchWork{}
	}
	defer t.pool.Put(w)
	w.addrs = w.addrs[:0] // a failure may have left some
	for len(p) > 0 {
		n := min(len(p)/8, pieceRows)
		err := t.load(ctx, w, from, n)
		if err == nil && 8*n < len(p) && !inOrder(w.addrs) {
			err = t.load(ctx, w, from+uint64(n), len(p)/8-n)
			n = len(p) / 8
		}
		if err != nil {
			return err
		}
		if err := t.settle(ctx, w, from, p[:8*n]); err != nil {
			return err
		}
		from += uint64(n)
		p = p[8*n:]
	}
	return nil
}

// load reads n rows, beginning with row from, to the end of w.addrs.
func (t *translated) load(ctx context.Context, w *batchWork, from uint64, n int) error {
	have := len(w.addrs)
	w.addrs = slices.Grow(w.addrs, n)[:have+n]
	return t.src.read(ctx, from, w.addrs[have:])
}

// inOrder reports whether most addresses come close after their predecessor, judged by a sample.
func inOrder(addrs []fri.RowAddr) bool {
	const step = 16
	jumps := 0
	for i := 1; i < len(addrs); i += step {
		if addrs[i]-addrs[i-1] > pieceRows { // also where it is less
			jumps++
		}
	}
	return jumps <= len(addrs)/(16*step)+1
}

// settle translates w.addrs, which stand in the rows that begin with from, into p, and empties w.addrs.
func (t *translated) settle(ctx context.Context, w *batchWork, from uint64, p []byte) error {
	addrs := w.addrs
	w.addrs = w.addrs[:0]
	w.answers.Grow(len(addrs))
	if r, ok := t.r.(*segmentResolver); ok {
		if err := r.translate(ctx, addrs, &w.answers); err != nil {
			return err
		}
		r.put(&w.answers, from, p)
		return nil
	}
	if err := t.r.Resolve(ctx, addrs, &w.answers); err != nil {
		return err
	}
	for i := range addrs {
		v := Placeholder(from + uint64(i))
		if w.answers.Keep(i) {
			v = w.answers.New[i]
		}
		binary.LittleEndian.PutUint64(p[8*i:], uint64(v))
	}
	return nil
}

// put writes what stands in the rows that begin with from, given answers without coverage: the address of an entry that
// keeps one, else the placeholder.
func (r *segmentResolver) put(a *Answers, from uint64, p []byte) {
	addrs, outcomes := a.New, a.Outcome
	for ; len(addrs) >= groupRows; from += groupRows {
		r.covered.putGroup((*[groupRows]fri.RowAddr)(addrs), (*[groupRows]translate.Outcome)(outcomes), from, (*[8 * groupRows]byte)(p))
		addrs, outcomes, p = addrs[groupRows:], outcomes[groupRows:], p[8*groupRows:]
	}
	for i, o := range outcomes {
		v := Placeholder(from + uint64(i))
		if addressed(o) != 0 && r.covered.Contains(uint32(addrs[i]>>32)) {
			v = addrs[i]
		}
		binary.LittleEndian.PutUint64(p[8*i:], uint64(v))
	}
}

// putGroup does that for a group. Which rows are gone, and where the others went, is beyond the processor's guess, so
// that nothing here branches on it.
func (s *fragments) putGroup(addrs *[groupRows]fri.RowAddr, outcomes *[groupRows]translate.Outcome, from uint64, p *[8 * groupRows]byte) {
	least, bits := s.least, s.bits
	for i := range addrs {
		v, gone := uint64(addrs[i]), uint64(Placeholder(from+uint64(i)))
		k := uint32(v>>32) - least
		keep := addressed(outcomes[i])
		if at := int(k >> 6); at < len(bits) {
			keep &= bits[at] >> (k & 63)
		} else if keep != 0 && !s.Contains(uint32(v>>32)) {
			keep = 0
		}
		binary.LittleEndian.PutUint64(p[8*i:8*i+8], gone^(gone^v)&-keep)
	}
}
