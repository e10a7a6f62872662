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
	read(ctx context.Context, from uint64, dst []uint64) error
}

func toAddr(v uint64) fri.RowAddr { return fri.RowAddr(v) }

// translated is a list of stored addresses as a remapped file has them: the address in the version that is looked at,
// or the row's placeholder. It is safe for concurrent use.
//
// A reader that walks through the list in small steps gets its rows from batches that grow with its progress; one that
// jumps about has just the rows translated that it asks for.
type translated struct {
	src  numbered
	r    Resolver
	pool sync.Pool // *batchWork

	mu   sync.Mutex // protects kept; not held while rows are read or translated
	kept []kept     // latest first, at most streams
}

// kept is a run of translated rows that a sequential reader went through: [from, from+len(values)). Without values only
// the place where the reader stopped is remembered: from.
type kept struct {
	from   uint64
	values []uint64 // never changed once it is here
}

func (k *kept) end() uint64 { return k.from + uint64(len(k.values)) }

// batchWork is what translating one batch needs.
type batchWork struct {
	addrs   []fri.RowAddr
	answers Answers
}

func newTranslated(src numbered, r Resolver) *translated { return &translated{src: src, r: r} }

// fill gives the values of rows [from, from+len(dst)), which lie within the list.
func (t *translated) fill(ctx context.Context, from uint64, dst []uint64) error {
	for len(dst) > 0 {
		n := copy(dst, t.find(from))
		if n == 0 {
			n = min(len(dst), batchRows)
			do := t.translate
			if n < directRows {
				do = t.step
			}
			if err := do(ctx, from, dst[:n]); err != nil {
				return err
			}
		}
		from += uint64(n)
		dst = dst[n:]
	}
	return nil
}

// bytes fills p with the little-endian form of the values from row start on, from byte off of it.
func (t *translated) bytes(ctx context.Context, p []byte, start uint64, off int64) error {
	values := make([]uint64, min((len(p)+14)/8, batchRows))
	for len(p) > 0 {
		row, cut := start+uint64(off/8), int(off%8)
		n := min((cut+len(p)+7)/8, len(values))
		if err := t.fill(ctx, row, values[:n]); err != nil {
			return err
		}
		var b [8]byte
		for _, v := range values[:n] {
			binary.LittleEndian.PutUint64(b[:], v)
			k := copy(p, b[cut:])
			p, off, cut = p[k:], off+int64(k), 0
		}
	}
	return nil
}

// find returns the rest of a kept batch from a row on; nothing where no batch has that row.
func (t *translated) find(from uint64) []uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.kept {
		if k := t.kept[i]; from >= k.from && from < k.end() {
			t.kept = slices.Insert(slices.Delete(t.kept, i, i+1), 0, k)
			return k.values[from-k.from:]
		}
	}
	return nil
}

// step is translate for a reader with small requests. Where the reader came to from in sequence, more rows are
// translated than asked for, and kept.
func (t *translated) step(ctx context.Context, from uint64, dst []uint64) error {
	ahead := 0
	t.mu.Lock()
	if i := slices.IndexFunc(t.kept, func(k kept) bool { return k.end() == from }); i >= 0 {
		ahead = min(max(2*len(t.kept[i].values), directRows), batchRows)
		t.kept = slices.Delete(t.kept, i, i+1)
	}
	t.mu.Unlock()
	ahead = int(min(uint64(ahead), t.src.count()-from))
	k := kept{from: from + uint64(len(dst))}
	if ahead <= len(dst) {
		if err := t.translate(ctx, from, dst); err != nil {
			return err
		}
	} else {
		k = kept{from, make([]uint64, ahead)}
		if err := t.translate(ctx, from, k.values); err != nil {
			return err
		}
		copy(dst, k.values)
	}
	t.mu.Lock()
	t.kept = slices.Insert(t.kept[:min(len(t.kept), streams-1)], 0, k)
	t.mu.Unlock()
	return nil
}

// translate gives the values of rows [from, from+len(dst)), at most batchRows of them. Addresses in order are read and
// translated in pieces; others all at once, since then many of them fall into the same part of a mapping.
func (t *translated) translate(ctx context.Context, from uint64, dst []uint64) error {
	w, ok := t.pool.Get().(*batchWork)
	if !ok {
		w = &batchWork{}
	}
	defer t.pool.Put(w)
	w.addrs = w.addrs[:0] // a failure may have left some
	for len(dst) > 0 {
		n := min(len(dst), pieceRows)
		err := t.load(ctx, w, from, dst[:n])
		if err == nil && n < len(dst) && !inOrder(w.addrs) {
			err = t.load(ctx, w, from+uint64(n), dst[n:])
			n = len(dst)
		}
		if err != nil {
			return err
		}
		if err := t.settle(ctx, w, from, dst[:n]); err != nil {
			return err
		}
		from += uint64(n)
		dst = dst[n:]
	}
	return nil
}

// load reads rows from on, through dst, to the end of w.addrs.
func (t *translated) load(ctx context.Context, w *batchWork, from uint64, dst []uint64) error {
	if err := t.src.read(ctx, from, dst); err != nil {
		return err
	}
	n := len(w.addrs)
	w.addrs = slices.Grow(w.addrs, len(dst))[:n+len(dst)]
	for i, v := range dst {
		w.addrs[n+i] = toAddr(v)
	}
	return nil
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

// settle translates w.addrs, which stand in the rows that begin with from, into dst, and empties w.addrs.
func (t *translated) settle(ctx context.Context, w *batchWork, from uint64, dst []uint64) error {
	addrs := w.addrs
	w.addrs = w.addrs[:0]
	w.answers.Grow(len(addrs))
	if r, ok := t.r.(*segmentResolver); ok {
		if err := r.translate(ctx, addrs, &w.answers); err != nil {
			return err
		}
		r.put(&w.answers, from, dst)
		return nil
	}
	if err := t.r.Resolve(ctx, addrs, &w.answers); err != nil {
		return err
	}
	for i := range dst {
		v := uint64(Placeholder(from + uint64(i)))
		if w.answers.Keep(i) {
			v = uint64(w.answers.New[i])
		}
		dst[i] = v
	}
	return nil
}

// put writes what stands in the rows that begin with from, given answers without coverage: the address of an entry that keeps
// one, else the placeholder. Which rows are gone is beyond the processor's guess, so there is no branch for each.
func (r *segmentResolver) put(a *Answers, from uint64, dst []uint64) {
	for lo := 0; lo < len(dst); lo += groupRows {
		hi := min(lo+groupRows, len(dst))
		addrs, outcomes, out := a.New[lo:hi], a.Outcome[lo:hi], dst[lo:hi]
		first := from + uint64(lo)
		f, ok := together(addrs, outcomes)
		if ok && r.covered.Contains(f) {
			choose(addrs, outcomes, first, out)
			continue
		}
		for i, o := range outcomes {
			v := uint64(Placeholder(first + uint64(i)))
			if !ok && addressed(o) != 0 && r.covered.Contains(uint32(addrs[i]>>32)) {
				v = uint64(addrs[i])
			}
			out[i] = v
		}
	}
}

// choose writes addresses, or placeholders where there are none. It is not inlined, to keep its loop in registers.
//
//go:noinline
func choose(addrs []fri.RowAddr, outcomes []translate.Outcome, first uint64, out []uint64) {
	addrs, outcomes = addrs[:len(out)], outcomes[:len(out)]
	for i := range out {
		gone := uint64(Placeholder(first + uint64(i)))
		out[i] = gone ^ (gone^uint64(addrs[i]))&-addressed(outcomes[i])
	}
}
