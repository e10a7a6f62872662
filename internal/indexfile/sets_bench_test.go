package indexfile

import (
	"context"
	"testing"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/addrset"
	"github.com/frifs/frifs/translate"
)

// shifting is a Resolver that costs next to nothing: rows move by one fragment.
type shifting struct{}

func (shifting) Rows(fri.FragID) (uint64, bool) { return 0, false }

func (shifting) Resolve(_ context.Context, addrs []fri.RowAddr, a *Answers) error {
	for i, x := range addrs {
		a.New[i], a.Outcome[i], a.Covered[i] = x+1<<32, translate.Moved, true
	}
	return nil
}

// BenchmarkTranslateSets translates sets without the reading and writing of files: one of many members, and many of one.
func BenchmarkTranslateSets(b *testing.B) {
	for _, c := range []struct {
		name          string
		sets, members int
		step          uint32
	}{{"every second row", 1, 10_000_000, 2}, {"every row", 1, 10_000_000, 1}, {"a row each", 200_000, 1, 1}} {
		b.Run(c.name, func(b *testing.B) {
			var cells [][]byte
			for k := range c.sets {
				var x addrset.Builder
				for i := range c.members {
					x.Add(fri.Addr(1, uint32(k)+uint32(i)*c.step))
				}
				cell, err := addrset.Encode(x.Set(), addrset.Tree)
				noError(b, err)
				cells = append(cells, cell)
			}
			b.ReportAllocs()
			for b.Loop() {
				m := setMapper{r: shifting{}, format: addrset.Tree, emit: func([]byte, bool) error { return nil }}
				for _, cell := range cells {
					noError(b, m.addCell(b.Context(), cell, func() (*addrset.Set, error) { return addrset.Decode(cell, addrset.Tree) }))
				}
				noError(b, m.flush(b.Context()))
			}
			b.ReportMetric(float64(b.N)*float64(c.sets*c.members)/b.Elapsed().Seconds()/1e6, "Maddr/s")
		})
	}
}
