package rowmap_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"sync"
	"testing"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/rowmap"
	"github.com/frifs/frifs/rowmap/rowmaptest"
)

func wantError(t *testing.T, err error, kind fault.Kind, text string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %v: ...%s...", kind, text)
	}
	if fault.KindOf(err) != kind || !strings.Contains(err.Error(), text) {
		t.Fatalf("got %v, want %v: ...%s...", err, kind, text)
	}
}

// The places of the golden file of 2.1 that the tests change.
const (
	atLabels = 0 // 5 x (level, u16)
	atCounts = 64
	atGrid   = atCounts + 28
)

func TestPartitionBadFiles(t *testing.T) {
	put32 := func(at int, v uint32) func([]byte, *fri.Transition) {
		return func(b []byte, _ *fri.Transition) { binary.LittleEndian.PutUint32(b[at:], v) }
	}
	replace := func(old, with string) func([]byte, *fri.Transition) {
		return func(b []byte, _ *fri.Transition) {
			i := bytes.Index(b, []byte(old))
			copy(b[i:], with)
		}
	}
	for _, c := range []struct {
		name   string
		change func(b []byte, t *fri.Transition)
		kind   fault.Kind
		text   string
		check  string // the check that fails, of CheckList
	}{
		{"magic LSPX", replace("LSPC", "LSPX"), fault.Corrupt, `magic "LSPX" instead of "LSPC"`, "row_map_counts"},
		{"version 2", put32(atCounts+4, 2), fault.Unsupported, "version 2, known is 1", "row_map_counts"},
		{"representation 1", put32(atCounts+8, 1), fault.Unsupported, "representation 1, known is 0", "row_map_counts"},
		{"0 destinations", put32(atCounts+12, 0), fault.Corrupt, "0 destinations, allowed are 1 to 65536", "row_map_counts"},
		{"65,537 destinations", put32(atCounts+12, 65537), fault.Corrupt, "65537 destinations, allowed are 1 to 65536", "row_map_counts"},
		{"block_rows 0", put32(atCounts+16, 0), fault.Corrupt, "0 rows per block", "row_map_counts"},
		{"total rows 2^63", put32(atCounts+24, 1<<31), fault.Corrupt, "24 bytes of counts; 9223372036854775813 rows", "row_map_counts_size"},
		{"grid of another block size", put32(atCounts+16, 1), fault.Corrupt, "need 5 blocks x 2 x 4 bytes", "row_map_counts_size"},
		{"a destination more", put32(atCounts+12, 3), fault.Corrupt, "need 3 blocks x 3 x 4 bytes", "row_map_counts_size"},
		{"rows of the counts", put32(atCounts+20, 6), fault.Corrupt, "the file has 5 rows, its counts say 6", "row_map_rows"},
		{"last count 3, digest 2", put32(atGrid+20, 3), fault.Corrupt, "destination 1 has received 3 rows", "row_map_totals"},
		{"last count 1, digest 2", put32(atGrid+20, 1), fault.Corrupt, "destination 1 has received 1 rows in all, its fragment 11 holds 2", "row_map_totals"},
		{"column named labels", replace("\x05label", "\x05lavel"), fault.Corrupt, `column "lavel"`, "row_map_column"},
		{"type uint32", replace("uint16", "uint32"), fault.Corrupt, `of type "uint32"`, "row_map_column"},
		{"not nullable", replace("uint16\x30\x01", "uint16\x30\x00"), fault.Corrupt, "nullable false", "row_map_column"},
		{"metadata key missing", replace("counts_buffer", "kounts_buffer"), fault.Corrupt, "schema metadata has no", "row_map_counts_index"},
		{"metadata x", replace("index\x12\x011", "index\x12\x01x"), fault.Corrupt, `is "x", not a decimal u32`, "row_map_counts_index"},
		{"metadata 7", replace("index\x12\x011", "index\x12\x017"), fault.Corrupt, "names global buffer 7 of 2", "row_map_counts_index"},
		{"schema as counts", replace("index\x12\x011", "index\x12\x010"), fault.Corrupt, "magic", "row_map_counts"},
		{"map_size_bytes one too small", func(_ []byte, t *fri.Transition) { t.Partition.SizeBytes-- }, fault.Corrupt, "the row map has 412 bytes, record 1 says 411", "row_map_file"},
		{"map_size_bytes one too big", func(_ []byte, t *fri.Transition) { t.Partition.SizeBytes++ }, fault.Corrupt, "the row map has 412 bytes, record 1 says 413", "row_map_file"},
		{"not a Lance file", replace("LANC", "LANX"), fault.Corrupt, "magic", "row_map_file"},
		{"sources have another sum", func(_ []byte, t *fri.Transition) { t.Sources[1].PhysicalRows = 3 }, fault.Corrupt, "the row map has 5 rows, the sources of record 1 have 6", "row_map_rows"},
		{"three destinations in the record", func(_ []byte, t *fri.Transition) { t.Destinations = append(t.Destinations, fri.Digest{ID: 12}) }, fault.Corrupt, "the row map has 2 destinations, record 1 has 3", "row_map_destinations"},
		{"no destination in the record", func(_ []byte, t *fri.Transition) { t.Destinations = nil }, fault.Corrupt, "the row map has 2 destinations, record 1 has 0", "row_map_destinations"},
		{"destination of other rows", func(_ []byte, t *fri.Transition) { t.Destinations[0].PhysicalRows = 3 }, fault.Corrupt, "destination 0 has received 2 rows in all", "row_map_totals"},
		{"a source twice", func(_ []byte, t *fri.Transition) { t.Sources[1].ID = 3 }, fault.Corrupt, "listed twice", "row_map_sources"},
		{"a source id of 2^33", func(_ []byte, t *fri.Transition) { t.Sources[1].ID = 1 << 33 }, fault.Corrupt, "over the limit", "row_map_sources"},
		{"encoding that is not known", replace("\x3a\x04\x0a\x02\x08\x10", "\x3a\x04\x32\x02\x08\x10"), fault.Unsupported, "unsupported encoding 6 in column 0 \"label\"", "row_map_pages"},
		{"page of other rows", replace("\x18\x05\x22", "\x18\x04\x22"), fault.Corrupt, "page of 4 rows", "row_map_pages"},
		{"no partition", func(_ []byte, t *fri.Transition) { t.Partition = nil }, fault.Invalid, "no stable partition", "row_map_file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := golden(t, "rm21")
			tr := vector(len(b))
			before := bytes.Clone(b)
			c.change(b, tr)
			if bytes.Equal(b, before) && strings.Contains(c.text, "uint32") {
				t.Fatal("nothing was changed")
			}
			_, err := openBytes(tr, b)
			wantError(t, err, c.kind, c.text)
			checks := rowmap.CheckList(err)
			failed := ""
			for _, x := range checks {
				if x.OK != nil && !*x.OK {
					failed = x.Name
				}
				if failed != "" && x.Name != failed && x.OK != nil {
					t.Errorf("%s was looked at after %s had failed", x.Name, failed)
				}
			}
			if failed != c.check {
				t.Errorf("the failed check is %q, want %q", failed, c.check)
			}
		})
	}
	if rowmap.CheckList(context.Canceled) != nil {
		t.Error("checks of an error from elsewhere")
	}
}

// TestPartitionOtherSizes has a counts buffer with one byte too few or too many, and a file with two columns.
func TestPartitionOtherSizes(t *testing.T) {
	head := rowmaptest.Counts(1, 0, 2, 2, 5)
	cells := []byte{1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0}
	label := func(name string) lancetest.Column {
		return lancetest.Column{Name: name, Type: "uint16", Nullable: true}
	}
	for _, c := range []struct {
		name    string
		counts  []byte
		columns []lancetest.Column
		text    string
	}{
		{"one byte missing", append(bytes.Clone(head), cells[1:]...), []lancetest.Column{label("label")}, "23 bytes of counts"},
		{"one byte extra", append(append(bytes.Clone(head), cells...), 0), []lancetest.Column{label("label")}, "25 bytes of counts"},
		{"27 bytes", head[1:], []lancetest.Column{label("label")}, "27 bytes are too few"},
		{"no bytes", nil, []lancetest.Column{label("label")}, "0 bytes are too few"},
		{"total rows 2^63 without a grid", rowmaptest.Counts(1, 0, 2, 1, 1<<63), []lancetest.Column{label("label")}, "0 bytes of counts"},
		{"sizes that overflow", rowmaptest.Counts(1, 0, 65536, 1, 1<<63), []lancetest.Column{label("label")}, "0 bytes of counts"},
		{"two columns", append(bytes.Clone(head), cells...), []lancetest.Column{label("label"), label("more")}, "2 fields and 2 columns"},
		{"no column", append(bytes.Clone(head), cells...), nil, "0 fields and 0 columns"},
	} {
		t.Run(c.name, func(t *testing.T) {
			content := lancetest.File{Major: 2, Minor: 1, Rows: 5, Columns: c.columns, Globals: []lancetest.Buffer{lancetest.Bytes(c.counts)},
				Metadata: map[string]string{"lance:stable_partition:counts_buffer_index": "1"}}.Build()
			_, err := rowmap.OpenPartition(t.Context(), vector(int(content.Size())), content, rowmap.Options{})
			wantError(t, err, fault.Corrupt, c.text)
		})
	}
}

// TestPartitionBadLabels opens files whose labels and counts are wrong: that is found by whoever needs the block, by
// every way of reading it, and by nobody else.
func TestPartitionBadLabels(t *testing.T) {
	put32 := func(at int, v uint32) func([]byte) {
		return func(b []byte) { binary.LittleEndian.PutUint32(b[at:], v) }
	}
	for _, c := range []struct {
		name   string
		change func(b []byte)
		text   string
	}{
		{"label 2 with 2 destinations", func(b []byte) { b[atLabels+1] = 2 }, "row 0 of the row map has label 2, there are 2 destinations"},
		{"label 9 with 2 destinations", func(b []byte) { b[atLabels+1] = 9 }, "row 0 of the row map has label 9, there are 2 destinations"},
		{"labels permuted", func(b []byte) { b[atLabels+1], b[atLabels+3*3+1] = 1, 0; b[atLabels+3*4+1] = 0 }, "labels disagree with counts"},
		{"a deleted row that is not", func(b []byte) { b[atLabels+3*2] = 0 }, "labels disagree with counts"},
		{"level 2", func(b []byte) { b[atLabels+3*2] = 2 }, "definition level 2"},
		{"counts fall", put32(atGrid+8, 0), "count of destination 0 falls from 1 to 0"},
		{"increase of 3 with 2 rows", put32(atGrid, 3), "destination 0 has received 3 rows, its fragment 10 holds 2"},
		{"increase of 4 in a block of 2", func(b []byte) {
			binary.LittleEndian.PutUint32(b[atGrid:], 2)
			binary.LittleEndian.PutUint32(b[atGrid+4:], 2)
		}, "destinations receive 4 rows from a block of 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := golden(t, "rm21")
			c.change(b)
			ctx := t.Context()
			for name, use := range map[string]func(p *rowmap.Partition) error{
				"Forward": func(p *rowmap.Partition) error {
					return p.Forward(ctx, []fri.RowAddr{fri.Addr(3, 0)}, make([]fri.RowAddr, 1), make([]rowmap.Status, 1))
				},
				"ForwardRun": func(p *rowmap.Partition) error {
					return p.ForwardRun(ctx, 0, 0, make([]fri.RowAddr, 3), make([]rowmap.Status, 3))
				},
				"Inverse": func(p *rowmap.Partition) error {
					return p.Inverse(ctx, []fri.RowAddr{fri.Addr(11, 1)}, make([]fri.RowAddr, 1), make([]rowmap.Status, 1))
				},
				"InverseRun":    func(p *rowmap.Partition) error { return p.InverseRun(ctx, 1, 0, make([]fri.RowAddr, 2)) },
				"InverseWindow": func(p *rowmap.Partition) error { _, err := p.InverseWindow(ctx, 0, 0, 10); return err },
				"Labels":        func(p *rowmap.Partition) error { _, err := p.Labels(ctx, 0); return err },
				"Ranks":         func(p *rowmap.Partition) error { _, err := p.Ranks(ctx, 0); return err },
				"Order":         func(p *rowmap.Partition) error { _, err := p.Order(ctx, 0); return err },
				"Received":      func(p *rowmap.Partition) error { return p.Received(ctx, 0, 1, make([]uint64, 2)) },
			} {
				tr := vector(len(b))
				p, err := openBytes(tr, b)
				if err == nil {
					err = use(p)
				}
				if err == nil {
					t.Errorf("%s: no error", name)
					continue
				}
				wantError(t, err, fault.Corrupt, c.text)
			}
		})
	}
}

// TestPartitionBadBlock spoils one label block of three: the others still answer.
func TestPartitionBadBlock(t *testing.T) {
	l := rowmaptest.Labels{Labels: randomLabels(3*65536, 3, 5, 1), Destinations: 3, BlockRows: 65536}
	tr, content := l.Build()
	b := content.All()
	for _, c := range []struct {
		name string
		at   int
	}{{"label out of range", 3*65536*2 - 30}, {"label of another destination", 3*65536*2 - 30}} {
		t.Run(c.name, func(t *testing.T) {
			b := bytes.Clone(b)
			i := c.at
			for ; b[i] != 0 || i%3 != 0; i++ { // a row that is not deleted
			}
			if b[i+1] = (b[i+1] + 1) % 3; c.name == "label out of range" {
				b[i+1] = 3
			}
			p, err := openBytes(tr, b)
			if err != nil {
				t.Fatal(err)
			}
			n := newNaive(tr, l.Labels)
			for _, block := range []int{0, 2, 1} {
				out, st := make([]fri.RowAddr, 65536), make([]rowmap.Status, 65536)
				err := p.ForwardRun(t.Context(), 0, uint64(block)*65536, out, st)
				if block == 1 {
					wantError(t, err, fault.Corrupt, "")
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				for k, a := range out {
					if st[k] == rowmap.Moved && a != n.forward[block*65536+k] {
						t.Fatalf("row %d: %v, want %v", block*65536+k, a, n.forward[block*65536+k])
					}
				}
			}
			_, err = p.InverseWindow(t.Context(), 0, 0, 10)
			wantError(t, err, fault.Corrupt, "")
		})
	}
}

func TestPartitionBadArguments(t *testing.T) {
	b := golden(t, "rm21")
	p, err := openBytes(vector(len(b)), b)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	out, st := make([]fri.RowAddr, 1), make([]rowmap.Status, 1)
	for name, err := range map[string]error{
		"Forward, a destination": p.Forward(ctx, []fri.RowAddr{fri.Addr(10, 0)}, out, st),
		"Forward, no fragment":   p.Forward(ctx, []fri.RowAddr{fri.Addr(1<<31, 0)}, out, st),
		"Inverse, a source":      p.Inverse(ctx, []fri.RowAddr{fri.Addr(3, 0)}, out, st),
		"ForwardRun":             p.ForwardRun(ctx, 2, 0, out, st),
		"InverseRun":             p.InverseRun(ctx, 2, 0, out),
		"InverseRun, rows":       p.InverseRun(ctx, 0, 2, out),
		"InverseRun, offset":     p.InverseRun(ctx, 0, 1<<40, out),
		"Received":               p.Received(ctx, 2, 0, make([]uint64, 2)),
		"Received, counters":     p.Received(ctx, 0, 0, make([]uint64, 1)),
		"GridRow":                func() error { _, err := p.GridRow(ctx, 3); return err }(),
		"GridRow, negative":      func() error { _, err := p.GridRow(ctx, -2); return err }(),
		"InverseWindow":          func() error { _, err := p.InverseWindow(ctx, 0, 3, 1); return err }(),
	} {
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := p.Inverse(ctx, []fri.RowAddr{fri.Addr(10, 2)}, out, st); err != nil || st[0] != rowmap.OutOfRange {
		t.Errorf("Inverse past the rows: %v, %v", st[0], err)
	}
	if err := p.ForwardRun(ctx, 0, 1<<40, out, st); err != nil || st[0] != rowmap.OutOfRange {
		t.Errorf("ForwardRun past the rows: %v, %v", st[0], err)
	}
}

func TestPartitionChecks(t *testing.T) {
	b := golden(t, "rm21")
	p, err := openBytes(vector(len(b)), b)
	if err != nil {
		t.Fatal(err)
	}
	state := func() map[string]string {
		m := map[string]string{}
		for _, c := range p.Checks() {
			m[c.Name] = "open: " + c.Detail
			if c.OK != nil && *c.OK {
				m[c.Name] = "ok"
			}
		}
		return m
	}
	before := state()
	if before["row_map_totals"] != "ok" || before["row_map_labels"] != "open: made on 0 of 5 rows so far" {
		t.Errorf("before reading: %v", before)
	}
	if _, err := p.Labels(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if after := state(); after["row_map_labels"] != "open: made on 5 of 5 rows so far" || after["row_map_grid"] != "open: made on 3 of 3 blocks so far" {
		t.Errorf("after reading: %v", after)
	}
}

// TestPartitionSequence reads all destinations in runs with a cache that cannot hold the orders of all blocks: windows
// take over, and the answers stay the same.
func TestPartitionSequence(t *testing.T) {
	const dests = 40
	l := rowmaptest.Labels{Labels: randomLabels(400000, dests, 5, 9), Destinations: dests, BlockRows: 65536, Encoding: rowmaptest.Packed}
	for _, cache := range []int64{0, 900_000} {
		p, tr := open(t, l, cache)
		n := newNaive(tr, l.Labels)
		for d := range dests {
			rows := len(n.inverse[d])
			for off := 0; off < rows; off += 1500 {
				if cache == 0 && d > 3 { // without a cache every run loads its blocks anew
					break
				}
				out := make([]fri.RowAddr, min(1500, rows-off))
				if err := p.InverseRun(t.Context(), d, uint64(off), out); err != nil {
					t.Fatal(err)
				}
				for i, a := range out {
					if a != n.inverse[d][off+i] {
						t.Fatalf("destination %d row %d = %v, want %v", d, off+i, a, n.inverse[d][off+i])
					}
				}
			}
		}
	}
}

// TestPartitionConcurrent uses one partition from many goroutines with a cache that evicts all the time.
func TestPartitionConcurrent(t *testing.T) {
	l := rowmaptest.Labels{Labels: randomLabels(150000, 20, 5, 3), Destinations: 20, BlockRows: 16384, Encoding: rowmaptest.Packed,
		SourceRows: []uint64{60000, 90000}}
	p, tr := open(t, l, 600_000)
	n := newNaive(tr, l.Labels)
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			ctx := t.Context()
			addrs := make([]fri.RowAddr, 3000)
			for i := range addrs {
				k := (i*7919 + g*104729) % 150000
				s, off := p.SourceOf(uint64(k))
				addrs[i] = fri.Addr(tr.Sources[s].Frag(), uint32(off))
			}
			out, st := make([]fri.RowAddr, len(addrs)), make([]rowmap.Status, len(addrs))
			for range 3 {
				if err := p.Forward(ctx, addrs, out, st); err != nil {
					t.Error(err)
					return
				}
				for i, a := range addrs {
					if b, want := n.at(a); st[i] != want || (want == rowmap.Moved && out[i] != b) {
						t.Errorf("Forward(%v) = %v %v, want %v", a, out[i], st[i], b)
						return
					}
				}
				d := g % 20
				run := make([]fri.RowAddr, 2000)
				if err := p.InverseRun(ctx, d, 500, run); err != nil {
					t.Error(err)
					return
				}
				for i, a := range run {
					if a != n.inverse[d][500+i] {
						t.Errorf("InverseRun(%d)[%d] = %v, want %v", d, i, a, n.inverse[d][500+i])
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestPartitionCancelled(t *testing.T) {
	p, _ := open(t, rowmaptest.Labels{Labels: randomLabels(1000, 3, 5, 1), Destinations: 3, BlockRows: 100}, 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := p.ForwardRun(ctx, 0, 0, make([]fri.RowAddr, 10), make([]rowmap.Status, 10))
	if fault.KindOf(err) != fault.Cancelled {
		t.Fatalf("got %v, want cancelled", err)
	}
	if err := p.ForwardRun(t.Context(), 0, 0, make([]fri.RowAddr, 10), make([]rowmap.Status, 10)); err != nil {
		t.Fatal(err)
	}
}

// FuzzCounts opens a row map with any counts buffer, and reads everything through it.
func FuzzCounts(f *testing.F) {
	f.Add(append(rowmaptest.Counts(1, 0, 2, 2, 5), 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0), []byte{0, 1, 9, 0, 1})
	f.Add(append(rowmaptest.Counts(1, 0, 1, 65536, 3), 2, 0, 0, 0), []byte{0, 9, 0})
	f.Add(rowmaptest.Counts(1, 0, 65536, 1, 0), []byte{})
	f.Add(rowmaptest.Counts(2, 1, 0, 0, 1<<63), []byte{0})
	f.Add(append(rowmaptest.Counts(1, 0, 3, 1, 2), make([]byte, 24)...), []byte{9, 9})
	f.Fuzz(func(t *testing.T, counts, labels []byte) {
		unit := []byte{}
		for _, l := range labels {
			if l >= 9 {
				unit = append(unit, 1, 0, 0)
			} else {
				unit = append(unit, 0, l, 0)
			}
		}
		content := rowmaptest.File(unit, uint64(len(labels)), counts)
		tr := &fri.Transition{Record: 1, Kind: fri.StablePartition, Sources: []fri.Digest{{ID: 1, PhysicalRows: uint64(len(labels))}},
			Partition: &fri.Partition{SizeBytes: uint64(content.Size())}}
		if len(counts) >= 28 { // a record that fits, as far as that goes
			n := min(binary.LittleEndian.Uint32(counts[12:]), 1<<16)
			last := counts[28:]
			if len(last) > int(n)*4 {
				last = last[len(last)-int(n)*4:]
			}
			for i := range n {
				d := fri.Digest{ID: uint64(i) + 2}
				if len(last) >= 4 {
					d.PhysicalRows = uint64(binary.LittleEndian.Uint32(last))
					last = last[4:]
				}
				tr.Destinations = append(tr.Destinations, d)
			}
		}
		p, err := rowmap.OpenPartition(t.Context(), tr, content, rowmap.Options{})
		if err != nil {
			if k := fault.KindOf(err); k != fault.Corrupt && k != fault.Unsupported {
				t.Fatalf("kind %v: %v", k, err)
			}
			return
		}
		out, st := make([]fri.RowAddr, len(labels)), make([]rowmap.Status, len(labels))
		if err := p.ForwardRun(t.Context(), 0, 0, out, st); err != nil {
			if k := fault.KindOf(err); k != fault.Corrupt {
				t.Fatalf("kind %v: %v", k, err)
			}
			return
		}
		for i, a := range out {
			if st[i] == rowmap.Dropped {
				continue
			}
			var back [1]fri.RowAddr
			var bst [1]rowmap.Status
			if err := p.Inverse(t.Context(), []fri.RowAddr{a}, back[:], bst[:]); err != nil || back[0] != fri.Addr(1, uint32(i)) {
				t.Fatalf("row %d -> %v -> %v %v, %v", i, a, back[0], bst[0], err)
			}
		}
	})
}
