package mapcsv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawPartition(t, sizes(t), 12)
		if m.blockRows == 1 && len(m.labels) > 1000 {
			m.blockRows = 3
		}
		want := []byte(countsHeader)
		for b := range m.Blocks() {
			row, _ := m.GridRow(context.Background(), int64(b))
			for d, n := range row {
				want = fmt.Appendf(want, "%d,%d,%d,%d,%d\n", b, min((b+1)*uint64(m.blockRows), m.Rows()), d, m.dst[d].ID, n)
			}
		}
		rnd := rand.New(rand.NewPCG(1, uint64(len(want))))
		checkFile(t, "counts.csv", func() File { return newText(countsHeader, &countsBody{m: m}) }, want, rnd)
	})
}
