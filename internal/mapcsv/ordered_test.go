package mapcsv

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
)

// fakeOrdered is an ordered compaction in memory.
type fakeOrdered struct {
	src, dst []fri.Digest
	live     [][]bool

	once       sync.Once
	old, moves []fri.RowAddr
	moved      []bool
}

func (m *fakeOrdered) Sources() []fri.Digest      { return m.src }
func (m *fakeOrdered) Destinations() []fri.Digest { return m.dst }

func (m *fakeOrdered) First(src int) uint64 {
	var n uint64
	for _, l := range m.live[:src] {
		n += survivors(l)
	}
	return n
}

func (m *fakeOrdered) RankAtContainer(src int, key uint64) uint64 {
	return survivors(m.live[src][:min(key*blockRows, uint64(len(m.live[src])))])
}

func survivors(live []bool) (n uint64) {
	for _, l := range live {
		if l {
			n++
		}
	}
	return n
}

func (m *fakeOrdered) Block(_ context.Context, src int, key uint64) (*rowmap.OrderedBlock, error) {
	l := m.live[src][key*blockRows:]
	l = l[:min(len(l), blockRows)]
	b := &rowmap.OrderedBlock{First: m.First(src) + m.RankAtContainer(src, key), Rows: uint32(len(l))}
	for i, live := range l {
		if live {
			b.Words[i/64].Bits |= 1 << (i % 64)
		}
	}
	for i := range b.Words {
		b.Ranks[i] = uint16(b.Count)
		b.Count += uint32(bits.OnesCount64(b.Words[i].Bits))
	}
	return b, nil
}

// rows lists old and new addresses, in source order.
func (m *fakeOrdered) rows() (old, new []fri.RowAddr, moved []bool) {
	m.once.Do(func() { m.old, m.moves, m.moved = m.list() })
	return m.old, m.moves, m.moved
}

func (m *fakeOrdered) list() (old, new []fri.RowAddr, moved []bool) {
	d, off := 0, uint32(0)
	for i, l := range m.live {
		for o, live := range l {
			old = append(old, fri.Addr(m.src[i].Frag(), uint32(o)))
			moved = append(moved, live)
			if !live {
				new = append(new, 0)
				continue
			}
			for uint64(off) == m.dst[d].PhysicalRows {
				d, off = d+1, 0
			}
			new = append(new, fri.Addr(m.dst[d].Frag(), off))
			off++
		}
	}
	return old, new, moved
}

// naiveLine appends two halves; a nil one is empty.
func naiveLine(b []byte, left, right *fri.RowAddr) []byte {
	for i, a := range [2]*fri.RowAddr{left, right} {
		if i > 0 {
			b = append(b, ',')
		}
		if a == nil {
			b = append(b, ",,"...)
			continue
		}
		b = append(strconv.AppendUint(b, uint64(*a), 10), ',')
		b = append(strconv.AppendUint(b, uint64(*a)>>32, 10), ',')
		b = strconv.AppendUint(b, uint64(*a)&(1<<32-1), 10)
	}
	return b
}

func naiveCSV(header string, left, right []fri.RowAddr, moved []bool) []byte {
	out := []byte(header)
	for i := range left {
		to := &right[i]
		if !moved[i] {
			to = nil
		}
		out = append(naiveLine(out, &left[i], to), '\n')
	}
	return out
}

// distinct draws n different fragment ids.
func distinct(t *rapid.T, n int, label string) []fri.FragID {
	return rapid.SliceOfNDistinct(frags(), n, n, rapid.ID[fri.FragID]).Draw(t, label)
}

// drawOrdered draws an ordered compaction.
func drawOrdered(t *rapid.T, maxRows int) *fakeOrdered {
	m := &fakeOrdered{}
	rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	var total uint64
	for _, f := range distinct(t, rapid.IntRange(0, 4).Draw(t, "sources"), "src") {
		n := rapid.OneOf(rapid.IntRange(0, 70), rapid.SampledFrom([]int{0, 7, 64, 128}), rapid.IntRange(0, maxRows)).Draw(t, "rows")
		n = min(n, maxRows)
		dead := rapid.SampledFrom([]float64{0, 0.05, 0.5, 0.95, 1}).Draw(t, "dead")
		runs := rapid.SampledFrom([]int{1, 1, 50, 3000}).Draw(t, "runs")
		l := make([]bool, n)
		for i := 0; i < n; i += runs {
			live := rnd.Float64() >= dead
			for j := i; j < min(n, i+runs); j++ {
				l[j] = live
			}
		}
		s := survivors(l)
		total += s
		m.src = append(m.src, fri.Digest{ID: uint64(f), PhysicalRows: uint64(n), DeletedRows: uint64(n) - s})
		m.live = append(m.live, l)
	}
	ids := distinct(t, rapid.IntRange(1, 5).Draw(t, "destinations"), "dst")
	for i, f := range ids {
		n := total
		if i+1 < len(ids) {
			n = min(total, uint64(rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(0, maxRows)).Draw(t, "dst rows")))
		}
		total -= n
		m.dst = append(m.dst, fri.Digest{ID: uint64(f), PhysicalRows: n})
	}
	return m
}

func TestMappingOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawOrdered(t, sizes(t))
		old, new, moved := m.rows()
		want := naiveCSV(mappingHeader, old, new, moved)
		rnd := rand.New(rand.NewPCG(1, uint64(len(want))))
		open := func() File { return newText(mappingHeader, &orderedBody{m: m}) }
		checkFile(t, "mapping.csv", open, want, rnd)

		b := &orderedBody{m: m}
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
	})
}

func TestInverseOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawOrdered(t, sizes(t))
		old, new, moved := m.rows()
		want := []byte(inverseHeader)
		for i, a := range new {
			if moved[i] {
				want = append(naiveLine(want, &a, &old[i]), '\n')
			}
		}
		rnd := rand.New(rand.NewPCG(1, uint64(len(want))))
		open := func() File { return newText(inverseHeader, &orderedInverse{m: m}) }
		checkFile(t, "inverse.csv", open, want, rnd)
	})
}

// TestContainerEdges has holes where containers begin and end.
func TestContainerEdges(t *testing.T) {
	const rows = 140000
	m := &fakeOrdered{src: []fri.Digest{{ID: 23283064, PhysicalRows: rows}, {ID: 2, PhysicalRows: 65536}}}
	m.live = [][]bool{make([]bool, rows), make([]bool, 65536)}
	for _, l := range m.live {
		for i := range l {
			l[i] = true
		}
		for _, i := range []int{0, 7, 63, 64, 65535, 65536, 65537, 131071, 131072, rows - 1} {
			if i < len(l) {
				l[i] = false
			}
		}
	}
	for i := 70000; i < 70200; i++ {
		m.live[0][i] = false
	}
	total := survivors(m.live[0]) + survivors(m.live[1])
	m.dst = []fri.Digest{{ID: 99, PhysicalRows: 65534}, {ID: 5}, {ID: 0, PhysicalRows: 1}, {ID: 1 << 31, PhysicalRows: total - 65535}}
	old, new, moved := m.rows()
	rnd := rand.New(rand.NewPCG(3, 3))
	checkFile(t, "mapping.csv", func() File { return newText(mappingHeader, &orderedBody{m: m}) },
		naiveCSV(mappingHeader, old, new, moved), rnd)
	checkFile(t, "inverse.csv", func() File { return newText(inverseHeader, &orderedInverse{m: m}) },
		naiveInverse(m.dst, old, new, moved), rnd)
}
