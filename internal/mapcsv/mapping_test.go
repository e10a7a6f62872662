package mapcsv

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
	"github.com/frifs/frifs/rowmap/rowmaptest"
	"github.com/frifs/frifs/translate"
)

// TestFilesOfPartitions reads all files of row maps whose stored blocks are label blocks, are joined to label blocks,
// or are split into several.
func TestFilesOfPartitions(t *testing.T) {
	for _, c := range []struct {
		name         string
		rows         []uint64
		destinations int
		blockRows    uint32
		firstID      uint64
	}{
		{"stored blocks of 65,536", []uint64{60000, 0, 10000, 3}, 5, 1 << 16, 0},
		{"joined", []uint64{3000, 1, 2000}, 3, 7, 1},
		{"split", []uint64{90000, 40000}, 40, 70000, 1000},
		{"split, one block", []uint64{100, 79900}, 2, 1 << 20, 5},
		{"65,536 destinations", []uint64{10000, 30000}, 1 << 16, 1 << 16, 7},
		{"no rows", []uint64{0}, 2, 64, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(len(c.name)), 1))
			n := uint64(0)
			for _, r := range c.rows {
				n += r
			}
			m := &fakePartition{}
			labels := make([]int32, n)
			for i := range labels {
				if labels[i] = int32(rnd.IntN(c.destinations)); rnd.IntN(8) == 0 {
					labels[i] = -1
				}
				m.labels = append(m.labels, int(labels[i]))
			}
			tr, file := rowmaptest.Labels{Labels: labels, Destinations: c.destinations, BlockRows: c.blockRows, SourceRows: c.rows,
				FirstID: c.firstID}.Build()
			p, err := rowmap.OpenPartition(context.Background(), tr, file, rowmap.Options{Cache: rowmap.NewCache(8 << 20)})
			if err != nil {
				t.Fatal(err)
			}
			m.src, m.dst = tr.Sources, tr.Destinations
			checkMapping(t, p, m, rnd)
		})
	}
}

// lister lists the rows of a mapping, in source order.
type lister interface {
	rows() (old, new []fri.RowAddr, moved []bool)
}

func checkMapping(t *testing.T, m rowmap.Mapping, rows lister, rnd *rand.Rand) {
	t.Helper()
	old, new, moved := rows.rows()
	want := naiveCSV(mappingHeader, old, new, moved)
	checkFile(t, "mapping.csv", func() File { return opened(t)(Mapping(m)) }, want, rnd)
	checkFile(t, "inverse.csv", func() File { return opened(t)(Inverse(m)) }, naiveInverse(m.Destinations(), old, new, moved), rnd)

	f, err := MappingArrow(m)
	if err != nil {
		t.Fatal(err)
	}
	batch := batchRows
	if p, ok := m.(*rowmap.Partition); ok {
		b := int(p.BlockRows())
		batch = (batchRows + b - 1) / b * b
	}
	checkArrowValues(t, readAll(t, f, 1<<17), batch, old, new, moved)

	csv, err := Mapping(m)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(len(mappingHeader))
	for i, s := range m.Sources() {
		off, n, err := csv.SourceOffset(context.Background(), i)
		if err != nil || s.PhysicalRows > 0 && off != at {
			t.Fatalf("SourceOffset(%d) = %d, %d, %v, want at %d", i, off, n, err, at)
		}
		if s.PhysicalRows > 0 {
			at = off + n
		}
	}
	if at != int64(len(want)) {
		t.Fatalf("the last source ends at %d of %d", at, len(want))
	}
	for _, src := range []int{-1, len(m.Sources())} {
		if _, _, err := csv.SourceOffset(context.Background(), src); !fault.Is(err, fault.Invalid) {
			t.Errorf("SourceOffset(%d): %v, want invalid", src, err)
		}
	}
}

func opened(t *testing.T) func(f any, err error) File {
	return func(f any, err error) File {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return f.(File)
	}
}

func naiveInverse(dests []fri.Digest, old, new []fri.RowAddr, moved []bool) []byte {
	byDest := make(map[fri.FragID][]byte)
	for i, a := range new {
		if moved[i] {
			b := append(appendHalf(byDest[a.Frag()], a.Frag(), a.Offset()), ',')
			byDest[a.Frag()] = append(appendHalf(b, old[i].Frag(), old[i].Offset()), '\n')
		}
	}
	out := []byte(inverseHeader)
	for _, d := range dests {
		out = append(out, byDest[d.Frag()]...)
	}
	return out
}

// naiveOrdered lists an ordered compaction by its own forward mapping.
type naiveOrdered struct{ m *rowmap.Ordered }

func (n naiveOrdered) rows() (old, new []fri.RowAddr, moved []bool) {
	for _, s := range n.m.Sources() {
		for o := range s.PhysicalRows {
			old = append(old, fri.Addr(s.Frag(), uint32(o)))
		}
	}
	new = make([]fri.RowAddr, len(old))
	st := make([]rowmap.Status, len(old))
	if err := n.m.Forward(context.Background(), old, new, st); err != nil {
		panic(err)
	}
	for _, s := range st {
		moved = append(moved, s == rowmap.Moved)
	}
	return old, new, moved
}

func TestFilesOfCompactions(t *testing.T) {
	for _, c := range []rowmaptest.Compactions{
		{Fragments: 2, Rows: 70000, DestRows: 50001, Deleted: 0.1},
		{Fragments: 40, Rows: 10, DestRows: 7, Deleted: 0.5, FirstID: 95},
		{Fragments: 1, Rows: 65536, Deleted: 0.99, FirstID: 1 << 31},
	} {
		m := newOrdered(t, c, 1<<20)
		checkMapping(t, m, naiveOrdered{m}, rand.New(rand.NewPCG(c.Rows, 1)))
	}
}

// TestComposedOfHistories compares composed.csv with the translator's answers, row by row.
func TestComposedOfHistories(t *testing.T) {
	tr, file := rowmaptest.Pattern{Rows: 70000, SourceRows: 20000, Destinations: 9, Deleted: 0.1, FirstID: 30}.Build()
	spread := &fri.History{IndexVersion: 1, Tagged: true, Transitions: []*fri.Transition{tr}}
	maps := func(ctx context.Context, tr *fri.Transition) (rowmap.Mapping, error) {
		return rowmap.OpenPartition(ctx, tr, file, rowmap.Options{})
	}
	for _, c := range []struct {
		name string
		h    *fri.History
		maps translate.Maps
	}{
		{"three compactions", history(t, rowmaptest.Compactions{Steps: 3, Fragments: 4, Rows: 9000, DestRows: 7000, Deleted: 0.1, FirstID: 8}.History()), nil},
		{"a partition", spread, maps},
	} {
		t.Run(c.name, func(t *testing.T) {
			live := translate.Snapshot{}
			for i, d := range c.h.Transitions[len(c.h.Transitions)-1].Destinations {
				if i != 1 { // the rows of one are dangling
					live[d.Frag()] = translate.Fragment{Rows: d.PhysicalRows}
				}
			}
			x := translate.New(c.h, live, c.maps, translate.Options{})
			want := []byte(composedHeader)
			for _, s := range x.Sources() {
				r := translate.Results{New: make([]fri.RowAddr, s.Rows), Outcome: make([]translate.Outcome, s.Rows)}
				if err := x.TranslateRun(context.Background(), fri.Addr(s.Frag, 0), int(s.Rows), &r); err != nil {
					t.Fatal(err)
				}
				for i, o := range r.Outcome {
					want = append(appendHalf(want, s.Frag, uint32(i)), ',')
					if a := r.New[i]; o.HasAddress() {
						want = appendHalf(want, a.Frag(), a.Offset())
					} else {
						want = append(want, ",,"...)
					}
					want = append(append(append(want, ','), o.String()...), '\n')
				}
			}
			checkFile(t, "composed.csv", func() File { return Composed(x) }, want, rand.New(rand.NewPCG(7, 7)))
		})
	}
}

func TestUnknownMapping(t *testing.T) {
	var m rowmap.Mapping
	for name, open := range map[string]func() error{
		"Mapping":      func() error { _, err := Mapping(m); return err },
		"Inverse":      func() error { _, err := Inverse(m); return err },
		"MappingArrow": func() error { _, err := MappingArrow(m); return err },
		"Counts":       func() error { _, err := Counts(m); return err },
	} {
		defer func() {
			if r := recover(); r != nil {
				t.Errorf("%s(nil) panics: %v", name, r)
			}
		}()
		if err := open(); !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s(nil): %v, want unsupported", name, err)
		}
	}
}
