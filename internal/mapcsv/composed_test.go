package mapcsv

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/translate"
)

// fakeTranslator answers from a list per fragment.
type fakeTranslator map[fri.FragID][]answer

type answer struct {
	addr fri.RowAddr
	what translate.Outcome
}

func (m fakeTranslator) Push(_ context.Context, f fri.FragID, from, to uint64) (p translate.Push, err error) {
	for _, a := range m[f][from:to] {
		p.Rows[a.what]++
		if a.what.HasAddress() {
			o := uint64(a.addr.Offset())
			p.Ranges = append(p.Ranges, translate.Range{Frag: a.addr.Frag(), From: o, To: o + 1})
		}
	}
	return p, nil
}

func (m fakeTranslator) TranslateRun(_ context.Context, start fri.RowAddr, n int, r *translate.Results) error {
	for i, a := range m[start.Frag()][start.Offset():][:n] {
		r.New[i], r.Outcome[i] = a.addr, a.what
		if !a.what.HasAddress() {
			r.New[i] = 777 // unspecified
		}
	}
	return nil
}

func TestComposed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		ids := distinct(t, rapid.IntRange(0, 4).Draw(t, "fragments"), "src")
		slices.Sort(ids)
		dests := distinct(t, 3, "dst")
		maxRows := sizes(t)
		m := fakeTranslator{}
		var sources []translate.Source
		want := []byte(composedHeader)
		for _, f := range ids {
			n := rapid.IntRange(0, maxRows).Draw(t, "rows")
			sources = append(sources, translate.Source{Frag: f, Rows: uint64(n), Ordered: rapid.Bool().Draw(t, "ordered")})
			at := uint64(rapid.SampledFrom([]uint32{0, 9, 990, 99990, 1 << 31}).Draw(t, "at"))
			run, dest := 0, 0
			what := translate.Moved
			for off := range n {
				if run == 0 {
					run = rnd.IntN(30)
					what = translate.Outcome(rnd.IntN(translate.NumOutcomes))
					dest = rnd.IntN(3)
				}
				run--
				a := answer{fri.Addr(dests[dest], uint32(at)), what}
				at++
				m[f] = append(m[f], a)
				from, to := fri.Addr(f, uint32(off)), &a.addr
				if !what.HasAddress() {
					to = nil
				}
				want = append(append(append(naiveLine(want, &from, to), ','), what.String()...), '\n')
			}
		}
		rnd = rand.New(rand.NewPCG(1, uint64(len(want))))
		checkFile(t, "composed.csv", func() File { return newComposed(m, sources) }, want, rnd)
	})
}
