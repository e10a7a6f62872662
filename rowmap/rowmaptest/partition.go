package rowmaptest

import (
	"encoding/binary"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/pb"
)

// Encoding says how the labels of a row map are stored.
type Encoding uint8

// The encodings. The zero value is the simplest page that readers of 2.1 and 2.2 take.
const (
	Zipped Encoding = iota // version 2.1: full-zip
	Packed                 // version 2.1: chunks of bit-packed values and levels, as writers choose for random labels
	Array                  // version 2.0: bitmap and values
)

// countsIndexKey is the schema metadata key of the counts buffer.
const countsIndexKey = "lance:stable_partition:counts_buffer_index"

// Labels describes a small partition by its labels.
type Labels struct {
	Labels       []int32 // per source row: the destination, or -1 for a row that was deleted before
	Destinations int
	BlockRows    uint32
	SourceRows   []uint64 // rows of each source; nil means one source with all rows
	FirstID      uint64   // id of the first source; destinations follow
	Encoding     Encoding
	PageRows     int // rows per page; 0 means one page
}

// Build renders the row map, and a record that fits it.
func (l Labels) Build() (*fri.Transition, *lancetest.Content) {
	n := len(l.Labels)
	counts := make([]uint32, l.Destinations)
	var grid []byte
	var deleted uint64
	for i, v := range l.Labels {
		if v < 0 {
			deleted++
		} else {
			counts[v]++
		}
		if (i+1)%int(l.BlockRows) == 0 || i == n-1 {
			for _, c := range counts {
				grid = binary.LittleEndian.AppendUint32(grid, c)
			}
		}
	}
	head := Counts(1, 0, uint32(l.Destinations), l.BlockRows, uint64(n))
	per := l.PageRows
	if per == 0 {
		per = max(n, 1)
	}
	var pages []lancetest.Page
	for from := 0; from < n; from += per {
		part := l.Labels[from:min(from+per, n)]
		pages = append(pages, page(l.Encoding, part, uint64(len(part))))
	}
	c := file(l.Encoding, pages, uint64(n), lancetest.Bytes(append(head, grid...)))
	sources := l.SourceRows
	if sources == nil {
		sources = []uint64{uint64(n)}
	}
	var dests []uint64
	for _, c := range counts {
		dests = append(dests, uint64(c))
	}
	return record(l.FirstID, sources, dests, deleted, c), c
}

// Counts renders the header of a counts buffer.
func Counts(version, representation, destinations, blockRows uint32, rows uint64) []byte {
	b := []byte("LSPC")
	for _, v := range [4]uint32{version, representation, destinations, blockRows} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return binary.LittleEndian.AppendUint64(b, rows)
}

// Pattern describes a partition of any number of rows, in stored blocks of 65,536 rows that all have the same labels.
// It takes no memory to speak of: the file is computed as it is read.
type Pattern struct {
	Rows         uint64
	SourceRows   uint64 // rows of each source but the last; 0 means all
	Destinations int    // at most 65,535
	Deleted      float64
	Seed         uint64
	FirstID      uint64
	Encoding     Encoding
}

const patternRows = 1 << 16

// Build renders the row map, and a record that fits it.
func (p Pattern) Build() (*fri.Transition, *lancetest.Content) {
	rnd := rand.New(rand.NewPCG(p.Seed, 2)) //nolint:gosec // reproducible test data
	labels := make([]int32, patternRows)
	for i := range labels {
		labels[i] = int32(rnd.IntN(p.Destinations))
		if rnd.Float64() < p.Deleted {
			labels[i] = -1
		}
	}
	full, rest := p.Rows/patternRows, int(p.Rows%patternRows)
	tally := func(n int) (counts []uint32, deleted uint64) {
		counts = make([]uint32, p.Destinations)
		for _, v := range labels[:n] {
			if v < 0 {
				deleted++
			} else {
				counts[v]++
			}
		}
		return counts, deleted
	}
	each, gone := tally(patternRows)
	tail, goneTail := tally(rest)
	dests := make([]uint64, p.Destinations)
	for d := range dests {
		dests[d] = full*uint64(each[d]) + uint64(tail[d])
	}
	var pages []lancetest.Page
	const perPage = 8
	for b := uint64(0); b < full; b += perPage {
		pages = append(pages, page(p.Encoding, labels, min(perPage, full-b)*patternRows))
	}
	if rest > 0 {
		pages = append(pages, page(p.Encoding, labels[:rest], uint64(rest)))
	}
	blocks := full
	if rest > 0 {
		blocks++
	}
	head := Counts(1, 0, uint32(p.Destinations), patternRows, p.Rows)
	cell := func(i uint64) uint32 {
		b, d := i/uint64(p.Destinations), i%uint64(p.Destinations)
		if b >= full {
			return uint32(full)*each[d] + tail[d]
		}
		return uint32(b+1) * each[d]
	}
	grid := lancetest.Buffer{Size: int64(len(head)) + 4*int64(blocks)*int64(p.Destinations), Fill: func(out []byte, off int64) {
		for i := 0; i < len(out); {
			at := off + int64(i)
			if at < int64(len(head)) {
				i += copy(out[i:], head[at:])
				continue
			}
			at -= int64(len(head))
			if at%4 == 0 && len(out)-i >= 4 {
				binary.LittleEndian.PutUint32(out[i:], cell(uint64(at/4)))
				i += 4
				continue
			}
			out[i] = byte(cell(uint64(at/4)) >> (8 * (at % 4)))
			i++
		}
	}}
	c := file(p.Encoding, pages, p.Rows, grid)
	per := p.SourceRows
	if per == 0 {
		per = max(p.Rows, 1)
	}
	var sources []uint64
	for left := p.Rows; left > 0; left -= min(left, per) {
		sources = append(sources, min(left, per))
	}
	return record(p.FirstID, sources, dests, full*gone+goneTail, c), c
}

// record makes the record of a row map. The deleted rows are ascribed to the sources in order.
func record(id uint64, sources, dests []uint64, deleted uint64, c *lancetest.Content) *fri.Transition {
	t := &fri.Transition{Seq: 1, Record: 1, Form: fri.Tagged, Kind: fri.StablePartition, Mapping: fri.StablePartition, SourcesOK: true,
		Partition: &fri.Partition{MapID: "00000000-0000-4000-8000-000000000001", SizeBytes: uint64(c.Size())}}
	for _, n := range sources {
		gone := min(deleted, n)
		deleted -= gone
		t.Sources = append(t.Sources, fri.Digest{ID: id, PhysicalRows: n, DeletedRows: gone})
		id++
	}
	for _, n := range dests {
		t.Destinations = append(t.Destinations, fri.Digest{ID: id, PhysicalRows: n})
		id++
	}
	return t
}

func file(e Encoding, pages []lancetest.Page, rows uint64, counts lancetest.Buffer) *lancetest.Content {
	f := lancetest.File{Major: 2, Minor: 1, Rows: rows, Metadata: map[string]string{countsIndexKey: "1"}, Globals: []lancetest.Buffer{counts},
		Columns: []lancetest.Column{{Name: "label", Type: "uint16", Nullable: true, Pages: pages}}}
	if e == Array {
		f.Major, f.Minor = 0, 3
	}
	return f.Build()
}

// page makes a page of rows labels, which repeat the given ones; these are then a multiple of 1,024.
func page(e Encoding, labels []int32, rows uint64) lancetest.Page {
	unit := make([]byte, 0, 3*len(labels))
	switch e {
	case Packed:
		return packedPage(labels, rows)
	case Array:
		valid := make([]byte, (len(labels)+7)/8)
		for i, v := range labels {
			x := uint16(0)
			if v >= 0 {
				x = uint16(v)
				valid[i/8] |= 1 << (i % 8)
			}
			unit = binary.LittleEndian.AppendUint16(unit, x)
		}
		return lancetest.Page{Rows: rows, Encoding: arrayEncoding(),
			Buffers: []lancetest.Buffer{lancetest.Repeat(valid, int64(rows+7)/8), lancetest.Repeat(unit, 2*int64(rows))}}
	}
	for _, v := range labels {
		if v < 0 {
			unit = append(unit, 1, 0, 0)
			continue
		}
		unit = append(unit, 0, byte(v), byte(v>>8))
	}
	return lancetest.Page{Rows: rows, Buffers: []lancetest.Buffer{lancetest.Repeat(unit, 3*int64(rows))},
		Encoding: &pb.PageLayout{Layout: &pb.PageLayout_FullZipLayout{FullZipLayout: &pb.PageLayout_FullZip{
			BitsDef: 1, BitsPerValue: proto.Uint32(16), NumItems: uint32(rows), NumVisibleItems: uint32(rows),
			ValueCompression: lancetest.Flat(16), Layers: []pb.RepDefLayer{pb.RepDefLayer_REPDEF_NULLABLE_ITEM}}}}}
}

func packedPage(labels []int32, rows uint64) lancetest.Page {
	var chunks []lancetest.Chunk
	for from := 0; from < len(labels); from += 1024 {
		part := labels[from:min(from+1024, len(labels))]
		values, levels := make([]uint64, len(part)), make([]uint64, len(part))
		for i, v := range part {
			if v < 0 {
				levels[i] = 1
			} else {
				values[i] = uint64(v)
			}
		}
		chunks = append(chunks, lancetest.Chunk{Values: len(part), Levels: uint16(len(part)),
			Def: lancetest.PackAll(levels, 1, 16, false), Buffers: [][]byte{lancetest.PackInline(values, 16)}})
	}
	words, data := lancetest.Chunks(chunks, false)
	if rows > uint64(len(labels)) {
		// A unit that repeats has no last chunk: its word says 2^10 values like the others.
		words[len(words)-2] |= 10
	}
	times := int64(rows) / int64(len(labels))
	return lancetest.Page{Rows: rows,
		Buffers: []lancetest.Buffer{lancetest.Repeat(words, times*int64(len(words))), lancetest.Repeat(data, times*int64(len(data)))},
		Encoding: &pb.PageLayout{Layout: &pb.PageLayout_MiniBlockLayout{MiniBlockLayout: &pb.PageLayout_MiniBlock{
			DefCompression: lancetest.OutOfLine(16, 1), ValueCompression: lancetest.Inline(16),
			Layers: []pb.RepDefLayer{pb.RepDefLayer_REPDEF_NULLABLE_ITEM}, NumBuffers: 1, NumItems: rows}}}}
}

// arrayEncoding is nullable, some nulls: a bitmap in buffer 0, values in buffer 1.
func arrayEncoding() *pb.ArrayEncoding {
	flat := func(bits uint64, buffer uint32) *pb.ArrayEncoding {
		return &pb.ArrayEncoding{ArrayEncoding: &pb.ArrayEncoding_Flat_{Flat: &pb.ArrayEncoding_Flat{
			BitsPerValue: bits, Buffer: &pb.ArrayEncoding_Buffer{BufferIndex: buffer}}}}
	}
	return &pb.ArrayEncoding{ArrayEncoding: &pb.ArrayEncoding_Nullable_{Nullable: &pb.ArrayEncoding_Nullable{
		Nullability: &pb.ArrayEncoding_Nullable_SomeNulls_{SomeNulls: &pb.ArrayEncoding_Nullable_SomeNulls{
			Validity: flat(1, 0), Values: flat(16, 1)}}}}}
}

// File renders a row map in version 2.1 from the bytes of its zipped page (per row a level, 0 or 1, and a u16) and of
// its counts buffer, whatever they are.
func File(zipped []byte, rows uint64, counts []byte) *lancetest.Content {
	p := page(Zipped, nil, rows)
	p.Buffers = []lancetest.Buffer{lancetest.Bytes(zipped)}
	return file(Zipped, []lancetest.Page{p}, rows, lancetest.Bytes(counts))
}
