package rowmap

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/fritest"
)

// naive is an ordered compaction as a table of rows.
type naive struct {
	rec  fritest.Record
	to   map[fri.RowAddr]fri.RowAddr
	rank map[fri.RowAddr]uint64 // of survivors
	all  []fri.RowAddr          // survivors by rank
}

// newNaive makes a random compaction of sources with the given row counts.
func newNaive(rnd *rand.Rand, rows []uint64) *naive {
	n := &naive{to: map[fri.RowAddr]fri.RowAddr{}, rank: map[fri.RowAddr]uint64{}}
	ids := rnd.Perm(len(rows) * 3)
	if rnd.IntN(4) == 0 {
		ids[0] = 1 << 30
	}
	for i, r := range rows {
		d := fri.Digest{ID: uint64(ids[i]), PhysicalRows: r}
		run, kept := 0, false
		shape := rnd.IntN(5)
		for o := range r {
			switch shape {
			case 0:
				kept = true
			case 1:
				kept = false
			case 2:
				kept = rnd.IntN(20) != 0
			case 3:
				kept = rnd.IntN(200) == 0
			case 4:
				if run--; run < 0 {
					run, kept = rnd.IntN(300), !kept
				}
			}
			if !kept {
				d.DeletedRows++
				continue
			}
			a := fri.Addr(d.Frag(), uint32(o))
			n.rank[a] = uint64(len(n.all))
			n.all = append(n.all, a)
		}
		n.rec.Sources = append(n.rec.Sources, d)
	}
	n.rec.Survivors = fritest.Treemap(n.all, rnd.IntN(2) == 0)
	id := uint64(1000)
	for done := 0; done < len(n.all) || rnd.IntN(4) == 0; id++ {
		k := len(n.all) - done
		if rnd.IntN(3) != 0 {
			k = min(k, []int{0, 1, 7, 63, 64, 65, 1000, 65535, 65536}[rnd.IntN(9)])
		}
		n.rec.Destinations = append(n.rec.Destinations, fri.Digest{ID: id, PhysicalRows: uint64(k)})
		for i, a := range n.all[done : done+k] {
			n.to[a] = fri.Addr(fri.FragID(id), uint32(i))
		}
		done += k
	}
	return n
}

func (n *naive) open(t *testing.T, cache int64) *Ordered {
	t.Helper()
	m, err := NewOrdered(transition(t, n.rec), Options{Cache: NewCache(cache)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func transition(t testing.TB, rec fritest.Record) *fri.Transition {
	t.Helper()
	b := fritest.AppendTransition(nil, rec)
	h, err := fri.Open(context.Background(), bytes.NewReader(b), fri.Options{IndexVersion: 1})
	if err != nil || len(h.Transitions) != 1 || !h.Transitions[0].Usable() {
		t.Fatalf("no usable record: %v %v", err, h.Errors)
	}
	return h.Transitions[0]
}

// want is the naive forward answer.
func (n *naive) want(a fri.RowAddr) (fri.RowAddr, Status) {
	for _, d := range n.rec.Sources {
		if d.Frag() == a.Frag() && uint64(a.Offset()) >= d.PhysicalRows && d.PhysicalRows > 0 {
			return 0, OutOfRange
		}
	}
	if to, ok := n.to[a]; ok {
		return to, Moved
	}
	return 0, Dropped
}

func (n *naive) check(t *testing.T, how string, addrs, out []fri.RowAddr, st []Status) {
	t.Helper()
	for i, a := range addrs {
		to, s := n.want(a)
		if st[i] != s || s == Moved && out[i] != to {
			t.Fatalf("%s: %v gives %v %v, want %v %v", how, a, out[i], st[i], to, s)
		}
	}
}

var edges = []uint64{0, 1, 7, 63, 64, 65, 300, 65535, 65536, 65537, 131072}

func TestOrderedAgainstNaive(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for seed := range uint64(rounds) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		var rows []uint64
		for range 1 + rnd.IntN(4) {
			k := rnd.IntN(len(edges))
			if seed%4 != 0 {
				k = rnd.IntN(7)
			}
			rows = append(rows, edges[k])
		}
		n := newNaive(rnd, rows)
		m := n.open(t, []int64{0, 40000, 1 << 30}[seed%3])
		var addrs []fri.RowAddr
		for i, d := range n.rec.Sources {
			for o := range d.PhysicalRows + 2 {
				addrs = append(addrs, fri.Addr(d.Frag(), uint32(o)))
			}
			addrs = append(addrs, fri.Addr(d.Frag(), 1<<32-1))
			n.checkRuns(t, rnd, m, i)
		}
		out, st := make([]fri.RowAddr, len(addrs)), make([]Status, len(addrs))
		for _, how := range []string{"ascending", "gaps", "mixed", "shuffled"} {
			switch how {
			case "gaps":
				kept := addrs[:0:0]
				for _, a := range addrs {
					if rnd.IntN(10) != 0 {
						kept = append(kept, a)
					}
				}
				addrs = kept
			case "mixed":
				addrs = mixedOrder(rnd, addrs)
			case "shuffled":
				addrs = append(addrs, addrs[:len(addrs)/4]...)
				rnd.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
			}
			out, st = append(out, addrs...)[:len(addrs)], append(st, make([]Status, len(addrs))...)[:len(addrs)]
			if err := m.Forward(ctx, addrs, out, st); err != nil {
				t.Fatal(err)
			}
			n.check(t, how, addrs, out, st)
		}
		n.checkInverse(t, rnd, m)
		n.checkBlocks(t, m)
	}
}

// mixedOrder takes stretches of sorted addresses, now as they come, now backwards, now far apart or at random.
func mixedOrder(rnd *rand.Rand, addrs []fri.RowAddr) (out []fri.RowAddr) {
	for len(out) < len(addrs) {
		at, n := rnd.IntN(len(addrs)), []int{1, 63, 64, 70, 300}[rnd.IntN(5)]
		step := []int{1, 1, 2, 50, 1500, len(addrs) - 1, len(addrs) - 97}[rnd.IntN(7)]
		for range n {
			out = append(out, addrs[at])
			if at += max(step, 0); step == 1500 {
				at += rnd.IntN(1000)
			}
			at %= len(addrs)
		}
	}
	return out
}

// checkRuns compares ForwardRun, Rank and Received at random offsets of source src.
func (n *naive) checkRuns(t *testing.T, rnd *rand.Rand, m *Ordered, src int) {
	t.Helper()
	ctx := context.Background()
	d := n.rec.Sources[src]
	for range 5 {
		off := rnd.Uint64N(d.PhysicalRows + 3)
		k := rnd.IntN(min(int(d.PhysicalRows)+3, 1000))
		addrs, out, st := make([]fri.RowAddr, k), make([]fri.RowAddr, k), make([]Status, k)
		for i := range addrs {
			addrs[i] = fri.Addr(d.Frag(), uint32(off)+uint32(i))
		}
		if err := m.ForwardRun(ctx, src, off, out, st); err != nil {
			t.Fatal(err)
		}
		n.check(t, "run", addrs, out, st)
		var rank uint64
		for o := range min(off, d.PhysicalRows) {
			if _, ok := n.to[fri.Addr(d.Frag(), uint32(o))]; ok {
				rank++
			}
		}
		if got, err := m.Rank(ctx, src, off); err != nil || got != rank {
			t.Fatalf("Rank(%d, %d) = %d, %v; want %d", src, off, got, err, rank)
		}
		rank += m.First(src)
		counts := make([]uint64, len(n.rec.Destinations))
		if err := m.Received(ctx, src, off, counts); err != nil {
			t.Fatal(err)
		}
		for i, got := range counts {
			want := min(rank, n.rec.Destinations[i].PhysicalRows)
			if rank -= want; got != want {
				t.Fatalf("Received(%d, %d) gives %v", src, off, counts)
			}
		}
	}
}

func (n *naive) checkInverse(t *testing.T, rnd *rand.Rand, m *Ordered) {
	t.Helper()
	ctx := context.Background()
	rank := uint64(0)
	var addrs, want []fri.RowAddr
	for i, d := range n.rec.Destinations {
		from := rnd.Uint64N(d.PhysicalRows + 1)
		out := make([]fri.RowAddr, d.PhysicalRows-from)
		if err := m.InverseRun(ctx, i, from, out); err != nil {
			t.Fatal(err)
		}
		for k, a := range out {
			if a != n.all[rank+from+uint64(k)] {
				t.Fatalf("InverseRun(%d, %d): row %d comes from %v, want %v", i, from, k, a, n.all[rank+from+uint64(k)])
			}
		}
		for range min(d.PhysicalRows, 200) {
			o := rnd.Uint64N(d.PhysicalRows)
			addrs, want = append(addrs, fri.Addr(d.Frag(), uint32(o))), append(want, n.all[rank+o])
		}
		if dst, off, left := m.Dest(rank); d.PhysicalRows > 0 && (dst != i || off != 0 || left != d.PhysicalRows) {
			t.Fatalf("Dest(%d) = %d, %d, %d; want destination %d", rank, dst, off, left, i)
		}
		addrs, want = append(addrs, fri.Addr(d.Frag(), uint32(d.PhysicalRows))), append(want, ^fri.RowAddr(0))
		rank += d.PhysicalRows
	}
	out, st := make([]fri.RowAddr, len(addrs)), make([]Status, len(addrs))
	if err := m.Inverse(ctx, addrs, out, st); err != nil {
		t.Fatal(err)
	}
	for i, a := range addrs {
		if want[i] == ^fri.RowAddr(0) && st[i] != OutOfRange || want[i] != ^fri.RowAddr(0) && (st[i] != Moved || out[i] != want[i]) {
			t.Fatalf("Inverse(%v) = %v %v, want %v", a, out[i], st[i], want[i])
		}
	}
}

// checkBlocks compares the words that package mapcsv reads.
func (n *naive) checkBlocks(t *testing.T, m *Ordered) {
	t.Helper()
	for i, d := range n.rec.Sources {
		for c := uint64(0); c<<16 < d.PhysicalRows; c++ {
			b, err := m.Block(context.Background(), i, c)
			if err != nil {
				t.Fatal(err)
			}
			rank := b.First
			for row := range uint64(b.Rows) {
				a := fri.Addr(d.Frag(), uint32(c<<16|row))
				_, kept := n.to[a]
				if got := b.Words[row/64].Bits>>(row%64)&1 == 1; got != kept || b.RankBefore(uint32(row)) != rank {
					t.Fatalf("block %d of source %d: row %d kept %v, rank %d; want %v, %d", c, i, row, got, b.RankBefore(uint32(row)), kept, rank)
				}
				if kept {
					if to, ok := m.AddressOf(rank); !ok || to != n.to[a] || n.rank[a] != rank {
						t.Fatalf("AddressOf(%d) = %v %v, want %v", rank, to, ok, n.to[a])
					}
					rank++
				}
			}
		}
	}
	if _, ok := m.AddressOf(m.Rows()); ok {
		t.Fatal("a rank that no survivor has gave an address")
	}
}

// TestOrderedWorkedShape is the worked shape of docs/FORMAT.md, "Survivor bitmap": fragment 10 (8 rows, 2 and 5
// deleted) and 11 (4 rows) become fragment 200.
func TestOrderedWorkedShape(t *testing.T) {
	t.Parallel()
	var kept []fri.RowAddr
	for _, o := range []uint32{0, 1, 3, 4, 6, 7} {
		kept = append(kept, fri.Addr(10, o))
	}
	for o := range uint32(4) {
		kept = append(kept, fri.Addr(11, o))
	}
	m, err := NewOrdered(transition(t, fritest.Record{
		Sources:      []fri.Digest{{ID: 10, PhysicalRows: 8, DeletedRows: 2}, {ID: 11, PhysicalRows: 4}},
		Destinations: []fri.Digest{{ID: 200, PhysicalRows: 10}},
		Survivors:    fritest.Treemap(kept, true),
	}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		a    fri.RowAddr
		to   fri.RowAddr
		st   Status
	}{
		{"first", fri.Addr(10, 0), fri.Addr(200, 0), Moved},
		{"deleted", fri.Addr(10, 2), 0, Dropped},
		{"after a deleted one", fri.Addr(10, 3), fri.Addr(200, 2), Moved},
		{"last of the first source", fri.Addr(10, 7), fri.Addr(200, 5), Moved},
		{"second source", fri.Addr(11, 0), fri.Addr(200, 6), Moved},
		{"last", fri.Addr(11, 3), fri.Addr(200, 9), Moved},
		{"past the end", fri.Addr(10, 8), 0, OutOfRange},
		{"far past the end", fri.Addr(11, 1<<20), 0, OutOfRange},
	} {
		out, st := []fri.RowAddr{0}, []Status{Unknown}
		if err := m.Forward(context.Background(), []fri.RowAddr{c.a}, out, st); err != nil {
			t.Fatal(err)
		}
		if st[0] != c.st || c.st == Moved && out[0] != c.to {
			t.Errorf("%s: %v gives %v %v, want %v %v", c.name, c.a, out[0], st[0], c.to, c.st)
		}
	}
}

func TestOrderedRefuses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	n := newNaive(rand.New(rand.NewPCG(1, 1)), []uint64{300, 65536})
	m := n.open(t, 1<<20)
	one, st := make([]fri.RowAddr, 1), make([]Status, 1)
	for _, c := range []struct {
		name string
		err  error
	}{
		{"an address of no source", m.Forward(ctx, []fri.RowAddr{fri.Addr(777, 0)}, one, st)},
		{"an address of no destination", m.Inverse(ctx, []fri.RowAddr{fri.Addr(777, 0)}, one, st)},
		{"slices of other lengths", m.Forward(ctx, one, nil, st)},
		{"a source that is not there", m.ForwardRun(ctx, 2, 0, one, st)},
		{"a destination that is not there", m.InverseRun(ctx, 1<<20, 0, one)},
		{"rows past the destination", m.InverseRun(ctx, 0, 1<<33, one)},
	} {
		if !fault.Is(c.err, fault.Invalid) {
			t.Errorf("%s: error %v, want one of kind invalid", c.name, c.err)
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := n.open(t, 0).Forward(gone, n.all[:1], one, st); !fault.Is(err, fault.Cancelled) {
		t.Errorf("cancelled: error %v", err)
	}
}

func BenchmarkForwardRun(b *testing.B) {
	n := newNaive(rand.New(rand.NewPCG(3, 1)), []uint64{0})
	for o := range uint32(1 << 20) {
		if o%20 != 3 {
			n.all = append(n.all, fri.Addr(5, o))
		}
	}
	dead := uint64(1<<20 - len(n.all))
	m, err := NewOrdered(transition(b, fritest.Record{
		Sources:      []fri.Digest{{ID: 5, PhysicalRows: 1 << 20, DeletedRows: dead}},
		Destinations: []fri.Digest{{ID: 6, PhysicalRows: uint64(len(n.all))}},
		Survivors:    fritest.Treemap(n.all, false),
	}), Options{})
	if err != nil {
		b.Fatal(err)
	}
	out, st := make([]fri.RowAddr, 1<<16), make([]Status, 1<<16)
	rows := 0
	for b.Loop() {
		for off := uint64(0); off < 1<<20; off += 1 << 16 {
			if err := m.ForwardRun(context.Background(), 0, off, out, st); err != nil {
				b.Fatal(err)
			}
			rows += len(out)
		}
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}
