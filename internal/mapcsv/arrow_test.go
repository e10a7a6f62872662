package mapcsv

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/rowmap"
)

// ForwardRun maps as fakeOrdered.rows tells.
func (m *fakeOrdered) ForwardRun(_ context.Context, src int, off uint64, out []fri.RowAddr, st []rowmap.Status) error {
	_, addrs, moved := m.rows()
	at := int(off)
	for _, l := range m.live[:src] {
		at += len(l)
	}
	for i := range out {
		out[i], st[i] = 12345, rowmap.Dropped // what stands beside Dropped is unspecified
		if moved[at+i] {
			out[i], st[i] = addrs[at+i], rowmap.Moved
		}
	}
	return nil
}

func (m *fakeOrdered) dropped(_ context.Context, lo, hi uint64) (n uint64, err error) {
	_, _, moved := m.rows()
	for _, ok := range moved[lo:hi] {
		if !ok {
			n++
		}
	}
	return n, nil
}

// checkArrowValues compares the buffers of an Arrow file, found by the blocks at its end, with the rows.
func checkArrowValues(t fataler, b []byte, batch int, old, new []fri.RowAddr, moved []bool) {
	t.Helper()
	le := binary.LittleEndian
	if len(b) < 32 || string(b[:8]) != "ARROW1\x00\x00" || string(b[len(b)-6:]) != "ARROW1" {
		t.Fatalf("no Arrow file")
	}
	batches := (len(old) + batch - 1) / batch
	blocks := b[len(b)-10-24*batches:]
	if foot := int(le.Uint32(b[len(b)-10:])); foot < 24*batches || le.Uint64(b[len(b)-10-foot-8:]) != 0xFFFFFFFF {
		t.Fatalf("a footer of %d bytes does not follow the end of the stream", foot)
	}
	for k := range batches {
		off, meta, body := le.Uint64(blocks[24*k:]), le.Uint32(blocks[24*k+8:]), le.Uint64(blocks[24*k+16:])
		if le.Uint32(b[off:]) != 0xFFFFFFFF || le.Uint32(b[off+4:])+8 != meta || meta%8 != 0 || off%8 != 0 {
			t.Fatalf("no message of %d bytes at %d", meta, off)
		}
		rows := min(batch, len(old)-k*batch)
		l := newBatchLayout(uint64(rows))
		if uint64(l.body) != body {
			t.Fatalf("a body of %d bytes, want %d", body, l.body)
		}
		data := b[off+uint64(meta):][:body]
		for i := range rows {
			at := k*batch + i
			for c, v := range [6]uint64{
				uint64(old[at]), uint64(old[at].Frag()), uint64(old[at].Offset()),
				uint64(new[at]), uint64(new[at].Frag()), uint64(new[at].Offset()),
			} {
				valid := data[l.buffers[2*c].off+int64(i/8)]>>(i%8)&1 != 0
				p := data[l.buffers[2*c+1].off+int64(i*arrowColumns[c].width):]
				got := uint64(le.Uint32(p))
				if arrowColumns[c].width == 8 {
					got = le.Uint64(p)
				}
				if want := c < 3 || moved[at]; valid != want || valid && got != v {
					t.Fatalf("row %d, column %d: %d (valid: %v), want %d (%v)", at, c, got, valid, v, want)
				}
			}
		}
	}
}

func TestMappingArrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawOrdered(t, sizes(t))
		batch := rapid.SampledFrom([]int{64, 100, 9000, 1 << 16, 70000}).Draw(t, "batch")
		old, new, moved := m.rows()
		if batch < 1000 && len(old) > 5000 {
			batch = 1 << 16
		}
		open := func() File { return &arrowFile{m: m, batch: uint64(batch), dropped: m.dropped} }
		whole := readAll(t, open(), 1<<22)
		checkArrowValues(t, whole, batch, old, new, moved)
		if len(old) < 10000 {
			checkFile(t, "mapping.arrow", open, whole, rand.New(rand.NewPCG(1, uint64(len(whole)))))
		}
	})
}
