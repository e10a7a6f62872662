package indexfile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
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

const (
	benchPageRows = 524288 // of a page, as Lance writes them
	benchPages    = 20     // different ones; larger files repeat them
	mappingBytes  = 192 << 20
)

// packedPages makes pages of bit-packed addresses as Lance writes them.
func packedPages(ids []uint64) (pages []lancetest.Page) {
	for rows := range slices.Chunk(ids, benchPageRows) {
		var chunks []lancetest.Chunk
		for v := range slices.Chunk(rows, 1024) {
			chunks = append(chunks, lancetest.Chunk{Values: len(v), Buffers: [][]byte{lancetest.PackInline(v, 64)}})
		}
		words, data := lancetest.Chunks(chunks, true)
		pages = append(pages, lancetest.Page{Rows: uint64(len(rows)), Buffers: []lancetest.Buffer{lancetest.Bytes(words), lancetest.Bytes(data)},
			Encoding: &pb.PageLayout{Layout: &pb.PageLayout_MiniBlockLayout{MiniBlockLayout: &pb.PageLayout_MiniBlock{
				ValueCompression: lancetest.Inline(64), NumBuffers: 1, NumItems: uint64(len(rows)), HasLargeChunk: true,
				Layers: []pb.RepDefLayer{pb.RepDefLayer_REPDEF_ALL_VALID_ITEM},
			}}}})
	}
	return pages
}

// benchShape is an index file whose stored addresses come in some order.
type benchShape struct {
	name, typ, path, column string
	ids                     func(page uint64, pages uint64, rows uint64, rng *rand.Rand) []uint64
}

// benchRow is row i of a table whose ten fragments have so many rows together.
func benchRow(i, rows uint64) uint64 {
	per := rows / 10
	return uint64(fri.Addr(fri.FragID(i/per), uint32(i%per)))
}

// inRowOrder has the rows of the table as they come.
func inRowOrder(page, pages, rows uint64, _ *rand.Rand) []uint64 {
	ids := make([]uint64, benchPageRows)
	for i := range ids {
		ids[i] = benchRow(page*(rows/pages)+uint64(i), rows)
	}
	return ids
}

// benchShapes: a B-tree on a column that rises with the rows, one on a column without order, full text documents, and
// vectors by partition: rows in ascending order within each of as many partitions as Lance makes.
var benchShapes = func() []benchShape {
	return []benchShape{
		{"btree-rising", "BTREE", "page_data.lance", "ids", inRowOrder},
		{"btree-shuffled", "BTREE", "page_data.lance", "ids", func(_, _, rows uint64, rng *rand.Rand) []uint64 {
			ids := make([]uint64, benchPageRows)
			for i := range ids {
				ids[i] = benchRow(rng.Uint64N(rows), rows)
			}
			return ids
		}},
		{"docs", "INVERTED", "part_0_docs.lance", "_rowid", inRowOrder},
		{"ivf", "VECTOR", "auxiliary.idx", "_rowid", func(_, _, rows uint64, rng *rand.Rand) []uint64 {
			ids := make([]uint64, benchPageRows)
			partition := max(rows/4096, 4096)
			at := rows
			for i := range ids {
				if at += 1 + rng.Uint64N(2*(rows/partition)); at >= rows {
					at = rng.Uint64N(rows / partition)
				}
				ids[i] = benchRow(at, rows)
			}
			return ids
		}},
	}
}()

// file makes the file with so many different pages' worth of rows in all. What it takes is the memory of benchPages pages.
func (s benchShape) file(pages uint64) *lancetest.Content {
	f := lancetest.File{Major: 2, Minor: 2, Rows: pages * benchPageRows}
	c := lancetest.Column{Name: s.column, Type: "uint64"}
	rng := rand.New(rand.NewPCG(1, 2))
	for page := range uint64(benchPages) {
		c.Pages = append(c.Pages, packedPages(s.ids(page, benchPages, f.Rows, rng))...)
	}
	for uint64(len(c.Pages)) < pages {
		c.Pages = append(c.Pages, c.Pages[:benchPages]...)
	}
	f.Columns = []lancetest.Column{c}
	return f.Build()
}

// contentFile is a rendered file as a stored one.
type contentFile struct{ *lancetest.Content }

func (contentFile) Close() error { return nil }

func (c contentFile) ReadAtContext(_ context.Context, p []byte, off int64) (int, error) {
	return c.ReadAt(p, off)
}

func (s benchShape) segment(c *lancetest.Content) *Segment {
	files := map[string][]byte{s.path: nil}
	if s.typ == "INVERTED" {
		files["metadata.lance"] = nil
	}
	seg := memSegment(s.typ, files)
	seg.OpenRaw = func(context.Context, string) (Reader, error) { return contentFile{c}, nil }
	return seg
}

// benchHistory prepares a history; what it returns makes a resolver from it as the first read of a mount has to.
type benchHistory struct {
	name    string
	prepare func(tb testing.TB, rows uint64) func(cache int64) Resolver
}

var benchHistories = func() []benchHistory {
	steps := func(n int) func(testing.TB, uint64) func(int64) Resolver {
		return func(tb testing.TB, rows uint64) func(int64) Resolver {
			tb.Helper()
			content := rowmaptest.Compactions{Steps: n, Fragments: 10, Rows: rows / 10, Deleted: 0.05}.History()
			return func(cache int64) Resolver {
				h, err := fri.Open(context.Background(), content, fri.Options{IndexVersion: 1})
				noError(tb, err)
				return resolverOf(h, nil, translate.Options{Mapping: rowmap.Options{Cache: rowmap.NewCache(cache)}})
			}
		}
	}
	return []benchHistory{{"compaction", steps(1)}, {"5compactions", steps(5)}, {"partition64", func(_ testing.TB, rows uint64) func(int64) Resolver {
		p := rowmaptest.Pattern{Rows: rows, SourceRows: rows / 10, Destinations: 64, Deleted: 0.05, Encoding: rowmaptest.Packed}
		tr, file := p.Build()
		return func(cache int64) Resolver {
			var mu sync.Mutex
			var m *rowmap.Partition
			h := &fri.History{IndexVersion: 1, Tagged: true, Transitions: []*fri.Transition{tr}}
			return resolverOf(h, func(ctx context.Context, tr *fri.Transition) (rowmap.Mapping, error) {
				mu.Lock()
				defer mu.Unlock()
				var err error
				if m == nil {
					m, err = rowmap.OpenPartition(ctx, tr, file, rowmap.Options{Cache: rowmap.NewCache(cache)})
				}
				return m, err
			}, translate.Options{})
		}
	}}}
}()

// resolverOf translates to where all destinations of the last transition are live and covered.
func resolverOf(h *fri.History, maps translate.Maps, opt translate.Options) Resolver {
	live, covered := translate.Snapshot{}, roaring.New()
	for _, d := range h.Transitions[len(h.Transitions)-1].Destinations {
		live[d.Frag()] = translate.Fragment{Rows: d.PhysicalRows}
		covered.Add(uint32(d.Frag()))
	}
	return NewResolver(translate.New(h, live, maps, opt), live, covered)
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// gauge is what a benchmark of reads reports beside its time: the rate by processor time, for busy machines, and the
// most memory that was in use on top of what stood before.
type gauge struct {
	b           *testing.B
	cpu         time.Duration
	bytes       int64
	before, top uint64
}

func startGauge(b *testing.B) *gauge {
	b.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return &gauge{b: b, before: m.HeapAlloc}
}

func (g *gauge) begin() { g.cpu = cpuTime() }

func (g *gauge) end() {
	g.b.ReportMetric(float64(g.bytes)/(cpuTime()-g.cpu).Seconds()/1e6, "MB/cpu-s")
	g.b.ReportMetric(float64(g.top)/(1<<20), "MiB-heap")
}

func (g *gauge) look() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	g.top = max(g.top, m.HeapAlloc-min(g.before, m.HeapAlloc))
}

// BenchmarkRemapFlat reads remapped files of 10.5 and 105 M rows through an ordered compaction, five of them, and a
// stable partition: the first byte with nothing opened before, 64 MB in a row in reads of 128 KiB and 1 MiB, and 4 KiB at
// random places, with the mapping in memory; "sparing" gives it the 32 MiB that a mount does by default.
func BenchmarkRemapFlat(b *testing.B) {
	for _, pages := range []uint64{benchPages, 10 * benchPages} {
		rows := pages * benchPageRows
		for _, shape := range benchShapes {
			content := sync.OnceValue(func() *lancetest.Content { return shape.file(pages) })
			for _, history := range benchHistories {
				resolver := sync.OnceValue(func() func(int64) Resolver { return history.prepare(b, rows) })
				name := fmt.Sprintf("%dM/%s/%s/", rows/1_000_000, shape.name, history.name)
				b.Run(name+"first", func(b *testing.B) {
					seg, open := shape.segment(content()), resolver()
					for b.Loop() {
						c, start := openRemapped(b, seg, shape.path, open(mappingBytes))
						_, err := c.ReadAt(context.Background(), make([]byte, 1), start)
						noError(b, err)
					}
				})
				for _, size := range []int64{128 << 10, 1 << 20} {
					b.Run(fmt.Sprintf("%ssequential/%dKiB", name, size>>10), func(b *testing.B) {
						readRemapped(b, shape.segment(content()), shape.path, resolver()(mappingBytes), rows, size, false)
					})
				}
				b.Run(name+"random/4KiB", func(b *testing.B) {
					readRemapped(b, shape.segment(content()), shape.path, resolver()(mappingBytes), rows, 4<<10, true)
				})
				if shape.name == "btree-shuffled" {
					b.Run(name+"sparing/1024KiB", func(b *testing.B) {
						readRemapped(b, shape.segment(content()), shape.path, resolver()(32<<20), rows, 1<<20, false)
					})
				}
			}
		}
	}
}

// openRemapped opens the remapped file, and says where the replaced column begins: where the schema of the stored one
// stands.
func openRemapped(b *testing.B, s *Segment, path string, r Resolver) (c Content, start int64) {
	b.Helper()
	f, err := s.Open(context.Background(), path)
	noError(b, err)
	off, _ := f.lance.GlobalBuffer(0)
	c, err = f.Remap(context.Background(), r, Options{})
	noError(b, err)
	return c, int64(off)
}

// readRemapped measures reads of one size from a remapped file.
func readRemapped(b *testing.B, s *Segment, path string, r Resolver, rows uint64, size int64, random bool) {
	b.Helper()
	g := startGauge(b)
	c, start := openRemapped(b, s, path, r)
	p := make([]byte, size)
	rng := rand.New(rand.NewPCG(5, 6))
	end := int64(8 * rows)
	reads := int64(64<<20) / size
	if random {
		reads = 1024
	}
	all := func(at int64) {
		for range reads {
			if random {
				at = rng.Int64N(end - size)
			}
			_, err := c.ReadAt(context.Background(), p, start+at)
			noError(b, err)
			at += size
		}
	}
	warm := make([]byte, 1<<20)
	for at := int64(0); at+int64(len(warm)) <= end; at += max(end/256, int64(len(warm))) { // all parts of the mapping
		_, err := c.ReadAt(context.Background(), warm, start+at)
		noError(b, err)
	}
	all(0)
	b.SetBytes(reads * size)
	g.begin()
	for b.Loop() {
		all(rng.Int64N(max(end-reads*size, 8)) / 8 * 8)
		g.bytes += reads * size
		g.look()
	}
	g.end()
}
