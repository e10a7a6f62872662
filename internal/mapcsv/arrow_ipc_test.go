package mapcsv

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"pgregory.net/rapid"

	"github.com/frifs/frifs/fri"
)

// checkArrow reads an Arrow file with Arrow's own reader and compares it with the rows.
func checkArrow(t fataler, b []byte, batch int, old, new []fri.RowAddr, moved []bool) {
	t.Helper()
	r, err := ipc.NewFileReader(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("NewFileReader: %v", err)
	}
	defer r.Close()
	if want := (len(old) + batch - 1) / batch; r.NumRecords() != want {
		t.Fatalf("%d batches, want %d", r.NumRecords(), want)
	}
	fields := r.Schema().Fields()
	for i, want := range []arrow.Field{
		{Name: "old_row_addr", Type: arrow.PrimitiveTypes.Uint64}, {Name: "old_fragment", Type: arrow.PrimitiveTypes.Uint32},
		{Name: "old_offset", Type: arrow.PrimitiveTypes.Uint32},
		{Name: "new_row_addr", Type: arrow.PrimitiveTypes.Uint64, Nullable: true},
		{Name: "new_fragment", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
		{Name: "new_offset", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
	} {
		if !fields[i].Equal(want) {
			t.Fatalf("field %d is %v, want %v", i, fields[i], want)
		}
	}
	at := 0
	for k := range r.NumRecords() {
		rec, err := r.RecordBatch(k)
		if err != nil {
			t.Fatalf("batch %d: %v", k, err)
		}
		n := int(rec.NumRows())
		if want := min(batch, len(old)-at); n != want {
			t.Fatalf("batch %d has %d rows, want %d", k, n, want)
		}
		u64 := func(c int) *array.Uint64 { return rec.Column(c).(*array.Uint64) }
		u32 := func(c int) *array.Uint32 { return rec.Column(c).(*array.Uint32) }
		nulls := 0
		for i := range n {
			o, w := old[at+i], new[at+i]
			if u64(0).Value(i) != uint64(o) || u32(1).Value(i) != uint32(o.Frag()) || u32(2).Value(i) != o.Offset() ||
				u64(0).IsNull(i) || u32(1).IsNull(i) || u32(2).IsNull(i) {
				t.Fatalf("row %d: old address %d", at+i, u64(0).Value(i))
			}
			for c := 3; c < 6; c++ {
				if rec.Column(c).IsNull(i) == moved[at+i] {
					t.Fatalf("row %d, column %d: null is %v", at+i, c, rec.Column(c).IsNull(i))
				}
			}
			if !moved[at+i] {
				nulls++
			} else if u64(3).Value(i) != uint64(w) || u32(4).Value(i) != uint32(w.Frag()) || u32(5).Value(i) != w.Offset() {
				t.Fatalf("row %d: new address %d, want %d", at+i, u64(3).Value(i), uint64(w))
			}
		}
		for c := range 6 {
			if got, want := rec.Column(c).NullN(), nulls*(c/3); got != want {
				t.Fatalf("batch %d, column %d: null count %d, want %d", k, c, got, want)
			}
		}
		at += n
	}
	if at != len(old) {
		t.Fatalf("%d rows, want %d", at, len(old))
	}
}

func TestMappingArrowByArrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawOrdered(t, rapid.SampledFrom([]int{100, 3000, 140000}).Draw(t, "max"))
		batch := rapid.SampledFrom([]int{64, 100, 9000, 1 << 16, 70000}).Draw(t, "batch")
		old, new, moved := m.rows()
		if batch < 1000 && len(old) > 5000 {
			batch = 1 << 16
		}
		open := func() File { return &arrowFile{m: m, batch: uint64(batch), dropped: m.dropped} }
		whole := readAll(t, open(), 1<<22)
		checkArrow(t, whole, batch, old, new, moved)
		if len(old) < 10000 {
			checkFile(t, "mapping.arrow", open, whole, rand.New(rand.NewPCG(1, uint64(len(whole)))))
		}
	})
}
