package indexfile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/rowmap"
	"github.com/frifs/frifs/rowmap/rowmaptest"
	"github.com/frifs/frifs/translate"
)

// packedFile makes page data of a B-tree as Lance writes it: bit-packed addresses in pages of 524,288 rows.
func packedFile(ids []uint64) *lancetest.Content {
	const pageRows = 524288
	f := lancetest.File{Major: 2, Minor: 2, Rows: uint64(len(ids))}
	c := lancetest.Column{Name: "ids", Type: "uint64"}
	for lo := 0; lo < len(ids); lo += pageRows {
		rows := ids[lo:min(lo+pageRows, len(ids))]
		var chunks []lancetest.Chunk
		for at := 0; at < len(rows); at += 1024 {
			v := rows[at:min(at+1024, len(rows))]
			chunks = append(chunks, lancetest.Chunk{Values: len(v), Buffers: [][]byte{lancetest.PackInline(v, 64)}})
		}
		words, data := lancetest.Chunks(chunks, true)
		c.Pages = append(c.Pages, lancetest.Page{Rows: uint64(len(rows)), Buffers: []lancetest.Buffer{lancetest.Bytes(words), lancetest.Bytes(data)},
			Encoding: &pb.PageLayout{Layout: &pb.PageLayout_MiniBlockLayout{MiniBlockLayout: &pb.PageLayout_MiniBlock{
				ValueCompression: lancetest.Inline(64), NumBuffers: 1, NumItems: uint64(len(rows)), HasLargeChunk: true,
				Layers: []pb.RepDefLayer{pb.RepDefLayer_REPDEF_ALL_VALID_ITEM},
			}}}})
	}
	f.Columns = []lancetest.Column{c}
	return f.Build()
}

// compacted is a resolver through one ordered compaction of ten fragments.
func compacted(tb testing.TB, rows uint64) Resolver {
	tb.Helper()
	c := rowmaptest.Compactions{Fragments: 10, Rows: rows, Deleted: 0.05}
	h, err := fri.Open(context.Background(), c.History(), fri.Options{IndexVersion: 1})
	noError(tb, err)
	live, covered := translate.Snapshot{}, roaring.New()
	for _, d := range h.Transitions[len(h.Transitions)-1].Destinations {
		live[d.Frag()] = translate.Fragment{Rows: d.PhysicalRows}
		covered.Add(uint32(d.Frag()))
	}
	tr := translate.New(h, live, nil, translate.Options{Mapping: rowmap.Options{Cache: rowmap.NewCache(1 << 30)}})
	return NewResolver(tr, live, covered)
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRemapFlat reads a remapped B-tree of ten million rows: its first byte from nothing, from end to end, and 4 KiB
// at random places; with stored addresses in order and in random order.
func BenchmarkRemapFlat(b *testing.B) {
	const each = 1_000_000
	content := sync.OnceValue(func() [2][]byte {
		ids := make([]uint64, 10*each)
		for i := range ids {
			ids[i] = uint64(fri.Addr(fri.FragID(i/each), uint32(i%each)))
		}
		inOrder := packedFile(ids).All()
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		return [2][]byte{inOrder, packedFile(ids).All()}
	})
	for i, order := range []string{"ascending", "shuffled"} {
		files := func() *Segment { return memSegment("BTREE", map[string][]byte{"page_data.lance": content()[i]}) }
		open := func(b *testing.B, r Resolver) (c Content, start int64) {
			f, err := files().Open(context.Background(), "page_data.lance")
			noError(b, err)
			start, _ = startOf(f)
			c, err = f.Remap(context.Background(), r, Options{})
			noError(b, err)
			return c, start
		}
		b.Run(order+"/first", func(b *testing.B) {
			content()
			for b.Loop() {
				c, start := open(b, compacted(b, each))
				_, err := c.ReadAt(context.Background(), make([]byte, 1), start)
				noError(b, err)
			}
		})
		for _, size := range []int{128 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/sequential/%dKiB", order, size>>10), func(b *testing.B) {
				c, start := open(b, compacted(b, each))
				p := make([]byte, size)
				walk(b, c, start, p)
				b.SetBytes(80 * each)
				cpu := cpuTime()
				n := 0
				for b.Loop() {
					walk(b, c, start, p)
					n++
				}
				b.ReportMetric(float64(n)*80*each/(cpuTime()-cpu).Seconds()/1e6, "MB/cpu-s")
			})
		}
		b.Run(order+"/random/4KiB", func(b *testing.B) {
			c, start := open(b, compacted(b, each))
			p := make([]byte, 4<<10)
			walk(b, c, start, make([]byte, 1<<20))
			rng := rand.New(rand.NewPCG(5, 6))
			b.SetBytes(int64(len(p)))
			cpu := cpuTime()
			n := 0
			for b.Loop() {
				_, err := c.ReadAt(context.Background(), p, start+rng.Int64N(80*each-int64(len(p))))
				noError(b, err)
				n += len(p)
			}
			b.ReportMetric(float64(n)/(cpuTime()-cpu).Seconds()/1e6, "MB/cpu-s")
		})
	}
}

// startOf is where the replaced column of a remapped file begins: where the schema of the stored one stands.
func startOf(f *File) (int64, int64) {
	off, n := f.lance.GlobalBuffer(0)
	return int64(off), int64(n)
}

func walk(b *testing.B, c Content, from int64, p []byte) {
	b.Helper()
	for off := from; off < from+80_000_000; off += int64(len(p)) {
		_, err := c.ReadAt(context.Background(), p, off)
		noError(b, err)
	}
}
