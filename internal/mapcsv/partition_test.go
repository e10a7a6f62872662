package mapcsv

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
)

// fakePartition is a stable partition in memory.
type fakePartition struct {
	src, dst  []fri.Digest
	labels    []int // -1: dropped
	blockRows uint32
	wide      int // label blocks have at most so many rows

	once       sync.Once
	old, moves []fri.RowAddr
	moved      []bool
}

func (m *fakePartition) Sources() []fri.Digest      { return m.src }
func (m *fakePartition) Destinations() []fri.Digest { return m.dst }
func (m *fakePartition) Rows() uint64               { return uint64(len(m.labels)) }
func (m *fakePartition) BlockRows() uint32          { return m.blockRows }
func (m *fakePartition) Blocks() uint64 {
	return (m.Rows() + uint64(m.blockRows) - 1) / uint64(m.blockRows)
}

// before counts the rows of each destination below a position.
func (m *fakePartition) before(pos uint64) []uint32 {
	n := make([]uint32, len(m.dst))
	for _, l := range m.labels[:pos] {
		if l >= 0 {
			n[l]++
		}
	}
	return n
}

func (m *fakePartition) GridRow(_ context.Context, b int64) ([]uint32, error) {
	return m.before(min(uint64(b+1)*uint64(m.blockRows), m.Rows())), nil
}

func (m *fakePartition) LabelBlockRows() int {
	if n := m.wide / int(m.blockRows); n > 0 {
		return n * int(m.blockRows)
	}
	return m.wide
}

func (m *fakePartition) LabelBlocks() int {
	return (len(m.labels) + m.LabelBlockRows() - 1) / m.LabelBlockRows()
}

func (m *fakePartition) Labels(_ context.Context, i int) (*rowmap.LabelBlock, error) {
	lo := i * m.LabelBlockRows()
	b := &rowmap.LabelBlock{First: uint64(lo), Before: m.before(uint64(lo))}
	rows := m.labels[lo:min(lo+m.LabelBlockRows(), len(m.labels))]
	if len(m.dst) == 1<<16 {
		b.NullBits = make([]uint64, (len(rows)+63)/64)
	}
	for i, l := range rows {
		switch {
		case l >= 0:
			b.Labels = append(b.Labels, uint16(l))
		case b.NullBits != nil:
			b.NullBits[i/64] |= 1 << (i % 64)
			b.Labels = append(b.Labels, uint16(i))
		default:
			b.Labels = append(b.Labels, uint16(len(m.dst)))
		}
	}
	return b, nil
}

func (m *fakePartition) Ranks(ctx context.Context, i int) (*rowmap.RankBlock, error) {
	l, _ := m.Labels(ctx, i)
	r := &rowmap.RankBlock{First: l.First, Before: append(l.Before, 0)}
	next := make([]uint32, len(m.dst)+1)
	for i, d := range l.Labels {
		if l.NullBits != nil && l.Null(i, len(m.dst)) {
			r.Rows = append(r.Rows, rowmap.NullRank)
			continue
		}
		r.Rows = append(r.Rows, uint32(d)<<16|next[d])
		next[d]++
	}
	return r, nil
}

func (m *fakePartition) Order(ctx context.Context, i int) (*rowmap.OrderBlock, error) {
	l, _ := m.Labels(ctx, i)
	o := &rowmap.OrderBlock{First: l.First, Before: l.Before, Starts: []uint32{0}}
	for d := range m.dst {
		for i, v := range l.Labels {
			if int(v) == d && !l.Null(i, len(m.dst)) {
				o.Order = append(o.Order, uint16(i))
			}
		}
		o.Starts = append(o.Starts, uint32(len(o.Order)))
	}
	return o, nil
}

// rows lists old and new addresses, in source order.
func (m *fakePartition) rows() (old, new []fri.RowAddr, moved []bool) {
	m.once.Do(func() { m.old, m.moves, m.moved = m.list() })
	return m.old, m.moves, m.moved
}

func (m *fakePartition) list() (old, new []fri.RowAddr, moved []bool) {
	next := make([]uint32, len(m.dst))
	at := 0
	for _, s := range m.src {
		for o := range s.PhysicalRows {
			old = append(old, fri.Addr(s.Frag(), uint32(o)))
			l := m.labels[at]
			at++
			moved = append(moved, l >= 0)
			if l < 0 {
				new = append(new, 0)
				continue
			}
			new = append(new, fri.Addr(m.dst[l].Frag(), next[l]))
			next[l]++
		}
	}
	return old, new, moved
}

// drawPartition draws a stable partition.
func drawPartition(t *rapid.T, maxRows, maxDest int) *fakePartition {
	m := &fakePartition{
		blockRows: uint32(rapid.SampledFrom([]int{1, 7, 64, 1000, 4096, 10000, 65536, 100000}).Draw(t, "block rows")),
		wide:      rapid.SampledFrom([]int{300, 4096, 65536}).Draw(t, "wide"),
	}
	rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	total := 0
	for _, f := range distinct(t, rapid.IntRange(0, 4).Draw(t, "sources"), "src") {
		n := rapid.IntRange(0, maxRows).Draw(t, "rows")
		n = min(n, maxRows)
		total += n
		m.src = append(m.src, fri.Digest{ID: uint64(f), PhysicalRows: uint64(n)})
	}
	n := rapid.IntRange(1, maxDest).Draw(t, "destinations")
	dead := rapid.SampledFrom([]float64{0, 0.05, 0.5, 1}).Draw(t, "dead")
	skew := rapid.SampledFrom([]int{1, 1, 4}).Draw(t, "skew")
	run := rapid.SampledFrom([]int{1, 1, 40, 2000}).Draw(t, "run")
	counts := make([]uint64, n)
	for len(m.labels) < total {
		l := -1
		if rnd.Float64() >= dead {
			l = n - 1
			for range skew {
				l = rnd.IntN(l + 1)
			}
		}
		for range min(run, total-len(m.labels)) {
			m.labels = append(m.labels, l)
			if l >= 0 {
				counts[l]++
			}
		}
	}
	for i, f := range distinct(t, n, "dst") {
		m.dst = append(m.dst, fri.Digest{ID: uint64(f), PhysicalRows: counts[i]})
	}
	return m
}

func TestMappingPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawPartition(t, sizes(t), 40)
		checkPartition(t, m)
	})
}

func checkPartition(t fataler, m *fakePartition) {
	old, new, moved := m.rows()
	want := naiveCSV(mappingHeader, old, new, moved)
	rnd := rand.New(rand.NewPCG(1, uint64(len(want))))
	open := func() File {
		return newText(mappingHeader, &partitionBody{m: m})
	}
	checkFile(t, "mapping.csv", open, want, rnd)

	b := &partitionBody{m: m}
	at := int64(0)
	for i, s := range m.src {
		off, n, err := b.section(context.Background(), i)
		if err != nil || off != at && s.PhysicalRows > 0 {
			t.Fatalf("section %d = %d+%d, %v, want at %d", i, off, n, err, at)
		}
		at = off + n
	}
	if at != int64(len(want)-len(mappingHeader)) {
		t.Fatalf("sections end at %d of %d", at, len(want)-len(mappingHeader))
	}
}

func TestMappingPartition65536(t *testing.T) {
	m := &fakePartition{src: []fri.Digest{{ID: 3, PhysicalRows: 36000}}, blockRows: 1 << 15, wide: 1 << 15}
	rnd := rand.New(rand.NewPCG(5, 5))
	counts := make([]uint64, 1<<16)
	for range 36000 {
		l := -1
		if rnd.IntN(3) > 0 {
			l = rnd.IntN(1 << 16)
			counts[l]++
		}
		m.labels = append(m.labels, l)
	}
	for i, n := range counts {
		m.dst = append(m.dst, fri.Digest{ID: uint64(100 + 3*i), PhysicalRows: n})
	}
	checkPartition(t, m)
}

func (m *fakePartition) InverseRun(_ context.Context, dst int, off uint64, out []fri.RowAddr) error {
	old, new, moved := m.rows()
	f := m.dst[dst].Frag()
	for i, a := range new {
		if moved[i] && a.Frag() == f && uint64(a.Offset()) >= off && uint64(a.Offset()) < off+uint64(len(out)) {
			out[uint64(a.Offset())-off] = old[i]
		}
	}
	return nil
}

func TestInversePartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawPartition(t, sizes(t), 20)
		old, new, moved := m.rows()
		want := []byte(inverseHeader)
		for _, d := range m.dst {
			for i, a := range new {
				if moved[i] && a.Frag() == d.Frag() {
					want = append(appendHalf(want, a.Frag(), a.Offset()), ',')
					want = append(appendHalf(want, old[i].Frag(), old[i].Offset()), '\n')
				}
			}
		}
		rnd := rand.New(rand.NewPCG(1, uint64(len(want))))
		checkFile(t, "inverse.csv", func() File { return newText(inverseHeader, &partitionInverse{m: m}) }, want, rnd)

		// Far more changes than the table holds: counts in between are computed.
		b := &partitionInverse{m: m}
		x, err := newPartitionArrivals(context.Background(), m)
		if err != nil {
			t.Fatalf("%v", err)
		}
		n := len(m.dst)
		const group = 3
		var counts []uint32
		var bytes []uint64
		for j := 0; j < len(x.widths); j += group {
			counts = append(counts, x.counts[j*n:(j+1)*n]...)
			bytes = append(bytes, x.bytes[j*n:(j+1)*n]...)
		}
		x.counts, x.bytes, x.group = counts, bytes, group
		b.index.v = x
		checkFile(t, "inverse.csv in groups", func() File { return newText(inverseHeader, b) }, want, rnd)
	})
}
