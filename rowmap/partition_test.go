package rowmap_test

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
	"github.com/frifs/frifs/rowmap/rowmaptest"
)

// naive is the mapping of labels, row by row.
type naive struct {
	starts  map[fri.FragID]int // position of each source's first row
	forward []fri.RowAddr      // by position
	labels  []int32
	sources map[fri.FragID]int // rows
	inverse [][]fri.RowAddr
}

func newNaive(t *fri.Transition, labels []int32) *naive {
	n := &naive{starts: map[fri.FragID]int{}, sources: map[fri.FragID]int{}, labels: labels, inverse: make([][]fri.RowAddr, len(t.Destinations))}
	for _, s := range t.Sources {
		n.starts[s.Frag()], n.sources[s.Frag()] = len(n.forward), int(s.PhysicalRows)
		for off := range s.PhysicalRows {
			l := labels[len(n.forward)]
			if l < 0 {
				n.forward = append(n.forward, 0)
				continue
			}
			n.forward = append(n.forward, fri.Addr(t.Destinations[l].Frag(), uint32(len(n.inverse[l]))))
			n.inverse[l] = append(n.inverse[l], fri.Addr(s.Frag(), uint32(off)))
		}
	}
	return n
}

// at is the answer for one source address.
func (n *naive) at(a fri.RowAddr) (fri.RowAddr, rowmap.Status) {
	if int(a.Offset()) >= n.sources[a.Frag()] {
		return 0, rowmap.OutOfRange
	}
	pos := n.starts[a.Frag()] + int(a.Offset())
	if n.labels[pos] < 0 {
		return 0, rowmap.Dropped
	}
	return n.forward[pos], rowmap.Moved
}

func open(t testing.TB, l rowmaptest.Labels, cache int64) (*rowmap.Partition, *fri.Transition) {
	t.Helper()
	tr, file := l.Build()
	p, err := rowmap.OpenPartition(t.Context(), tr, file, rowmap.Options{Cache: rowmap.NewCache(cache)})
	if err != nil {
		t.Fatal(err)
	}
	return p, tr
}

// checkForward compares every source row, and one past each source's end, in an order with duplicates.
func checkForward(t rapid.TB, p *rowmap.Partition, n *naive) {
	ctx := context.Background()
	var addrs []fri.RowAddr
	var pos []int // of each address; -1 past the end of its source
	for _, s := range p.Sources() {
		for off := range int(s.PhysicalRows) {
			addrs, pos = append(addrs, fri.Addr(s.Frag(), uint32(off))), append(pos, n.starts[s.Frag()]+off)
		}
		addrs, pos = append(addrs, fri.Addr(s.Frag(), uint32(s.PhysicalRows))), append(pos, -1)
	}
	for i, k := 0, len(addrs); i < k; i += 3 {
		j := (i * 7919) % k
		addrs, pos = append(addrs, addrs[j]), append(pos, pos[j])
	}
	out, st := make([]fri.RowAddr, len(addrs)), make([]rowmap.Status, len(addrs))
	if err := p.Forward(ctx, addrs, out, st); err != nil {
		t.Fatal(err)
	}
	for i, k := range pos {
		want := rowmap.OutOfRange
		if k >= 0 {
			if want = rowmap.Moved; n.labels[k] < 0 {
				want = rowmap.Dropped
			}
		}
		if st[i] != want || (want == rowmap.Moved && out[i] != n.forward[k]) {
			t.Fatalf("Forward(%v) = %v %v, want %v", addrs[i], out[i], st[i], want)
		}
	}
}

func checkRuns(t rapid.TB, p *rowmap.Partition, n *naive, from, size int) {
	ctx := context.Background()
	pos := 0
	for s, d := range p.Sources() {
		rows := int(d.PhysicalRows)
		for off := min(from, rows); off <= rows; off += size {
			out, st := make([]fri.RowAddr, size), make([]rowmap.Status, size)
			if err := p.ForwardRun(ctx, s, uint64(off), out, st); err != nil {
				t.Fatal(err)
			}
			for i := range out {
				want := rowmap.OutOfRange
				if off+i < rows {
					if want = rowmap.Moved; n.labels[pos+off+i] < 0 {
						want = rowmap.Dropped
					}
				}
				if st[i] != want || (want == rowmap.Moved && out[i] != n.forward[pos+off+i]) {
					t.Fatalf("ForwardRun source %d row %d = %v %v, want %v", s, off+i, out[i], st[i], want)
				}
			}
		}
		pos += rows
	}
}

func checkInverse(t rapid.TB, p *rowmap.Partition, n *naive, from, size int) {
	ctx := context.Background()
	var addrs, want []fri.RowAddr
	for d, f := range p.Destinations() {
		rows := len(n.inverse[d])
		for off := range rows {
			addrs, want = append(addrs, fri.Addr(f.Frag(), uint32(off))), append(want, n.inverse[d][off])
		}
		for off := min(from, rows); off < rows && d%(1+len(n.inverse)/1000) == 0; off += size {
			out := make([]fri.RowAddr, min(size, rows-off))
			if err := p.InverseRun(ctx, d, uint64(off), out); err != nil {
				t.Fatal(err)
			}
			for i, a := range out {
				if a != n.inverse[d][off+i] {
					t.Fatalf("InverseRun destination %d row %d = %v, want %v", d, off+i, a, n.inverse[d][off+i])
				}
			}
		}
	}
	for i := range addrs {
		j := (i * 7919) % len(addrs)
		addrs[i], addrs[j], want[i], want[j] = addrs[j], addrs[i], want[j], want[i]
	}
	out, st := make([]fri.RowAddr, len(addrs)), make([]rowmap.Status, len(addrs))
	if err := p.Inverse(ctx, addrs, out, st); err != nil {
		t.Fatal(err)
	}
	for i, a := range addrs {
		if st[i] != rowmap.Moved || out[i] != want[i] {
			t.Fatalf("Inverse(%v) = %v %v, want %v", a, out[i], st[i], want[i])
		}
	}
	if len(p.Destinations()) == 0 {
		return
	}
	w, err := p.InverseWindow(ctx, 0, uint64(min(from, len(n.inverse[0]))), size*3)
	if err != nil {
		t.Fatal(err)
	}
	var all []fri.RowAddr
	for d := range n.inverse {
		all = append(all, n.inverse[d]...)
	}
	all = all[min(from, len(n.inverse[0])):]
	got := make([]fri.RowAddr, w.Len())
	if err := w.Addrs(ctx, 0, got); err != nil {
		t.Fatal(err)
	}
	if len(got) != min(len(all), size*3) {
		t.Fatalf("window of %d rows, want %d", len(got), min(len(all), size*3))
	}
	for i, a := range got {
		if a != all[i] {
			t.Fatalf("window row %d = %v, want %v", i, a, all[i])
		}
	}
}

func checkReceived(t rapid.TB, p *rowmap.Partition, labels []int32, pos int) {
	src, off := 0, uint64(pos)
	for src < len(p.Sources())-1 && off > p.Sources()[src].PhysicalRows {
		off -= p.Sources()[src].PhysicalRows
		src++
	}
	got, want := make([]uint64, len(p.Destinations())), make([]uint64, len(p.Destinations()))
	if err := p.Received(context.Background(), src, off, got); err != nil {
		t.Fatal(err)
	}
	for _, l := range labels[:pos] {
		if l >= 0 {
			want[l]++
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("Received(%d, %d) = %v, want %v", src, off, got, want)
	}
}

func TestPartitionAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SampledFrom([]int{0, 1, 7, 63, 64, 65, 300, 1500}).Draw(t, "rows")
		dests := rapid.SampledFrom([]int{1, 2, 3, 40, 300}).Draw(t, "destinations")
		deleted := rapid.SampledFrom([]int{0, 1, 5, 10}).Draw(t, "deleted")
		seed := rapid.Uint64().Draw(t, "seed")
		l := rowmaptest.Labels{Destinations: dests, FirstID: 3,
			BlockRows: rapid.SampledFrom([]uint32{1, 2, 7, 64, 100, 1024, 65536, 70000}).Draw(t, "blockRows"),
			Encoding:  rowmaptest.Encoding(rapid.IntRange(0, 2).Draw(t, "encoding")),
			PageRows:  rapid.SampledFrom([]int{0, 13, 100}).Draw(t, "pageRows")}
		for i := range rows {
			seed = seed*6364136223846793005 + 1442695040888963407
			v := int32(seed >> 33 % uint64(dests))
			if int(seed>>50%10) < deleted {
				v = -1
			}
			l.Labels = append(l.Labels, v)
			_ = i
		}
		for left := rows; left > 0; {
			n := rapid.IntRange(0, left).Draw(t, "source")
			l.SourceRows = append(l.SourceRows, uint64(n))
			left -= n
			if len(l.SourceRows) > 4 {
				l.SourceRows = append(l.SourceRows, uint64(left))
				break
			}
		}
		tr, file := l.Build()
		p, err := rowmap.OpenPartition(t.Context(), tr, file, rowmap.Options{Cache: rowmap.NewCache(1 << 20)})
		if err != nil {
			t.Fatal(err)
		}
		n := newNaive(tr, l.Labels)
		from, size := rapid.IntRange(0, 100).Draw(t, "from"), rapid.IntRange(1, 700).Draw(t, "size")
		checkRuns(t, p, n, from, size)
		checkForward(t, p, n)
		checkForward(t, p, n)
		checkInverse(t, p, n, from, size)
		checkReceived(t, p, l.Labels, min(from, rows))
	})
}

// randomLabels draws labels from a fixed sequence; deleted is in percent.
func randomLabels(n, dests, deleted int, seed uint64) []int32 {
	out := make([]int32, n)
	for i := range out {
		seed = seed*6364136223846793005 + 1442695040888963407
		out[i] = int32(seed >> 33 % uint64(dests))
		if int(seed>>40%100) < deleted {
			out[i] = -1
		}
	}
	return out
}

func TestPartitionBlocks(t *testing.T) {
	for _, c := range []struct {
		name        string
		rows, dests int
		blockRows   uint32
		encoding    rowmaptest.Encoding
		cache       int64
	}{
		{"one block, short", 65535, 3, 65536, rowmaptest.Zipped, 16 << 20},
		{"one block, full", 65536, 3, 65536, rowmaptest.Packed, 16 << 20},
		{"two blocks", 65537, 300, 65536, rowmaptest.Packed, 16 << 20},
		{"small blocks", 70000, 5, 7, rowmaptest.Zipped, 16 << 20},
		{"split in two", 140500, 5, 70001, rowmaptest.Packed, 16 << 20},
		{"split, nothing cached", 140500, 5, 70001, rowmaptest.Packed, 0},
		{"one large block", 140000, 7, 1 << 31, rowmaptest.Array, 16 << 20},
		{"split at the edge", 131072 + 100, 2, 131072, rowmaptest.Zipped, 1 << 20},
		{"all labels in use", 70000, 65536, 65536, rowmaptest.Zipped, 32 << 20},
		{"all labels in use, small blocks", 3000, 65536, 1000, rowmaptest.Packed, 32 << 20},
		{"last label but one", 70000, 65535, 65536, rowmaptest.Packed, 32 << 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := rowmaptest.Labels{Labels: randomLabels(c.rows, c.dests, 10, 5), Destinations: c.dests, BlockRows: c.blockRows,
				Encoding: c.encoding, SourceRows: []uint64{uint64(c.rows / 3), 0, uint64(c.rows - c.rows/3)}}
			p, tr := open(t, l, c.cache)
			n := newNaive(tr, l.Labels)
			if c.cache > 0 { // else each short run would load its block anew
				checkRuns(t, p, n, 5, 50000)
			}
			checkRuns(t, p, n, 0, c.rows)
			checkForward(t, p, n)
			if c.cache > 0 {
				checkInverse(t, p, n, 3, 30000)
			}
			for _, pos := range []int{0, 1, c.rows / 3, c.rows/3 + 1, c.rows - 1, c.rows} {
				checkReceived(t, p, l.Labels, pos)
			}
		})
	}
}
