package indexfile

import (
	"bytes"
	"io"
	"runtime"
	"testing"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/addrset"
	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/spill"
)

// A cell of millions of rows takes, beyond itself, less memory than two of it: at the worst moment there are the new set
// and, where the file compresses cells, a part of its compressed form.
func TestMemoryOfALargeSet(t *testing.T) {
	var x addrset.Builder
	rows := make([]fri.RowAddr, 5_000_000)
	for i := range rows {
		rows[i] = fri.Addr(1, uint32(29*i+i%7)) // arrays of some 2,000 rows in each container
	}
	x.Add(rows...)
	cell, err := addrset.Encode(x.Set(), addrset.Tree)
	noError(t, err)
	stored := anySet(t, "BITMAP", "bitmap_page_lookup.lance")
	f, err := lancefile.Open(t.Context(), bytes.NewReader(stored), int64(len(stored)))
	noError(t, err)
	number, _, err := f.Column("bitmaps")
	noError(t, err)
	w, err := lancefile.NewCellWriter(t.Context(), f, number, spill.New(t.TempDir(), 1<<20), lancefile.CellOptions{})
	noError(t, err)
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, worst, size := live(), uint64(0), 0
	m := setMapper{r: shifting{}, format: addrset.Tree, emit: w.Append, large: func(n int, write func(io.Writer) error) error {
		size = n
		return w.AppendFrom(n, func(to io.Writer) error {
			defer func() { worst = max(worst, live()) }() // all of it is compressed, and all of the set is there
			return write(to)
		})
	}}
	noError(t, m.addCell(t.Context(), cell, func() (*addrset.Set, error) { return addrset.Decode(cell, addrset.Tree) }))
	noError(t, m.flush(t.Context()))
	if size < len(cell)-10 || worst == 0 {
		t.Fatalf("a set of %d bytes was made of one of %d", size, len(cell))
	}
	factor := float64(worst-before) / float64(len(cell))
	t.Logf("a cell of %d bytes took %.2f times its size", len(cell), factor)
	if factor >= 2 {
		t.Errorf("a cell of %d bytes took %.2f times its size", len(cell), factor)
	}
	runtime.KeepAlive(cell)
}
