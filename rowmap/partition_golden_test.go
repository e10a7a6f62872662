package rowmap_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/testdata"
	"github.com/frifs/frifs/rowmap"
	"github.com/frifs/frifs/rowmap/rowmaptest"
)

func golden(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "golden", name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// vector is the partition of the golden files: sources (3: 3 rows, 1 deleted) and (4: 2 rows), destinations (10: 2) and
// (11: 2), labels 0, 1, deleted, 0, 1.
func vector(size int) *fri.Transition {
	return &fri.Transition{Seq: 1, Record: 1, Kind: fri.StablePartition, Mapping: fri.StablePartition, SourcesOK: true,
		Sources:      []fri.Digest{{ID: 3, PhysicalRows: 3, DeletedRows: 1}, {ID: 4, PhysicalRows: 2}},
		Destinations: []fri.Digest{{ID: 10, PhysicalRows: 2}, {ID: 11, PhysicalRows: 2}},
		Partition:    &fri.Partition{MapID: "m", SizeBytes: uint64(size)}}
}

func openBytes(t *fri.Transition, b []byte) (*rowmap.Partition, error) {
	return rowmap.OpenPartition(context.Background(), t, bytes.NewReader(b), rowmap.Options{})
}

func TestPartitionGolden(t *testing.T) {
	rm22 := golden(t, "rm21")
	rm22[len(rm22)-6] = 2
	files := map[string][]byte{"rm20": golden(t, "rm20"), "rm21": golden(t, "rm21"), "rm22": rm22}
	for name, b := range files {
		t.Run(name, func(t *testing.T) {
			p, err := openBytes(vector(len(b)), b)
			if err != nil {
				t.Fatal(err)
			}
			if p.Rows() != 5 || p.BlockRows() != 2 || p.Blocks() != 3 {
				t.Errorf("%d rows in %d blocks of %d", p.Rows(), p.Blocks(), p.BlockRows())
			}
			addrs := []fri.RowAddr{fri.Addr(3, 0), fri.Addr(3, 1), fri.Addr(3, 2), fri.Addr(4, 0), fri.Addr(4, 1), fri.Addr(4, 2)}
			want := []fri.RowAddr{fri.Addr(10, 0), fri.Addr(11, 0), 0, fri.Addr(10, 1), fri.Addr(11, 1), 0}
			wantStatus := []rowmap.Status{rowmap.Moved, rowmap.Moved, rowmap.Dropped, rowmap.Moved, rowmap.Moved, rowmap.OutOfRange}
			out, st := make([]fri.RowAddr, 6), make([]rowmap.Status, 6)
			if err := p.Forward(t.Context(), addrs, out, st); err != nil {
				t.Fatal(err)
			}
			for i := range addrs {
				if st[i] != wantStatus[i] || (st[i] == rowmap.Moved && out[i] != want[i]) {
					t.Errorf("%v -> %v %v, want %v %v", addrs[i], out[i], st[i], want[i], wantStatus[i])
				}
			}
			for b, want := range [][]uint32{{0, 0}, {1, 1}, {2, 1}, {2, 2}} {
				row, err := p.GridRow(t.Context(), int64(b-1))
				if err != nil || row[0] != want[0] || row[1] != want[1] {
					t.Errorf("grid row %d = %v, %v; want %v", b-1, row, err, want)
				}
			}
		})
	}
	// Rendered anew they are the same bytes.
	for name, e := range map[string]rowmaptest.Encoding{"rm20": rowmaptest.Array, "rm21": rowmaptest.Zipped} {
		_, c := rowmaptest.Labels{Labels: []int32{0, 1, -1, 0, 1}, Destinations: 2, BlockRows: 2, Encoding: e}.Build()
		if got := c.All(); !bytes.Equal(got, files[name]) {
			t.Errorf("%s rendered anew:\n%x, want\n%x", name, got, files[name])
		}
	}
	for name := range files {
		b, err := os.ReadFile(filepath.Join(testdata.Dir(t, "spliced"), name+".lance"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b, files[name]) {
			t.Errorf("%s.lance of the test data differs from the golden bytes", name)
		}
	}
}

// realRecord is a record as the expectation of a dataset tells it.
type realRecord struct {
	Groups []struct {
		Old [][3]uint64 `json:"old"`
	} `json:"groups"`
	Sources      [][3]uint64 `json:"sources"`
	Destinations [][3]uint64 `json:"destinations"`
	Mapping      string      `json:"mapping"`
	MapID        string      `json:"map_id"`
	MapSize      uint64      `json:"map_size_bytes"`
	BaseID       *uint32     `json:"base_id"`
}

// records returns the records of the newest version of a dataset that has any.
func records(t *testing.T, name string) []realRecord {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testdata.Dir(t, "tagged"), strings.TrimPrefix(name, "tagged/")+".expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		Versions []struct {
			IndicesRaw []struct {
				FRI *struct {
					Records []realRecord `json:"records"`
				} `json:"fri"`
			} `json:"indices_raw"`
		} `json:"versions"`
	}
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatal(err)
	}
	var out []realRecord
	for _, v := range e.Versions {
		for _, x := range v.IndicesRaw {
			if x.FRI != nil {
				out = x.FRI.Records
			}
		}
	}
	return out
}

func digests(list [][3]uint64) []fri.Digest {
	var out []fri.Digest
	for _, d := range list {
		out = append(out, fri.Digest{ID: d[0], PhysicalRows: d[1], DeletedRows: d[2]})
	}
	return out
}

// TestPartitionReal translates every known address of the real tables that goes through partitions only, and compares
// with what scans of the rows say.
func TestPartitionReal(t *testing.T) {
	total := 0
	for _, name := range testdata.Names(t, "tagged") {
		t.Run(name, func(t *testing.T) {
			consumer := map[fri.FragID]*rowmap.Partition{} // nil: consumed by something else
			opened := 0
			for i, r := range records(t, name) {
				for _, g := range r.Groups {
					for _, d := range g.Old {
						consumer[fri.FragID(d[0])] = nil
					}
				}
				tr := &fri.Transition{Record: i + 1, Kind: fri.StablePartition, Sources: digests(r.Sources), Destinations: digests(r.Destinations),
					Partition: &fri.Partition{MapID: r.MapID, SizeBytes: r.MapSize}}
				var p *rowmap.Partition
				if r.Mapping == "stable_partition" {
					dir := testdata.Dataset(t, name)
					if r.BaseID != nil {
						dir = testdata.Dataset(t, "tagged/clone_source")
					}
					b, err := os.ReadFile(filepath.Join(dir, "_fri", r.MapID, "stable_partition.lance"))
					if err != nil {
						t.Fatal(err)
					}
					if p, err = openBytes(tr, b); err != nil {
						t.Fatal(err)
					}
					opened++
					checkInverseOfForward(t, p)
				}
				for _, d := range tr.Sources {
					consumer[d.Frag()] = p
				}
			}
			if opened == 0 {
				return
			}
			for r := range testdata.Expected(t, name) {
				got, dropped, partly, hops := fri.RowAddr(r.Old), false, false, 0
				for !dropped {
					p, ok := consumer[got.Frag()]
					if !ok {
						break
					}
					if partly = p == nil; partly {
						break
					}
					var out [1]fri.RowAddr
					var st [1]rowmap.Status
					if err := p.Forward(t.Context(), []fri.RowAddr{got}, out[:], st[:]); err != nil {
						t.Fatal(err)
					}
					got, dropped = out[0], st[0] == rowmap.Dropped
					hops++
				}
				if partly || hops == 0 {
					continue
				}
				total++
				if dropped != (r.Last == nil) || (!dropped && uint64(got) != *r.Last) {
					t.Fatalf("%v -> %v (dropped %v), want %v", fri.RowAddr(r.Old), got, dropped, r.Last)
				}
			}
		})
	}
	if total < 10000 {
		t.Errorf("only %d addresses were compared", total)
	}
}

// checkInverseOfForward checks that Inverse undoes ForwardRun on every source row.
func checkInverseOfForward(t *testing.T, p *rowmap.Partition) {
	t.Helper()
	ctx := t.Context()
	for s, d := range p.Sources() {
		out, st := make([]fri.RowAddr, d.PhysicalRows), make([]rowmap.Status, d.PhysicalRows)
		if err := p.ForwardRun(ctx, s, 0, out, st); err != nil {
			t.Fatal(err)
		}
		var old, moved []fri.RowAddr
		for i, a := range out {
			if st[i] == rowmap.Moved {
				old, moved = append(old, fri.Addr(d.Frag(), uint32(i))), append(moved, a)
			}
		}
		back, st := make([]fri.RowAddr, len(moved)), make([]rowmap.Status, len(moved))
		if err := p.Inverse(ctx, moved, back, st); err != nil {
			t.Fatal(err)
		}
		for i := range back {
			if back[i] != old[i] || st[i] != rowmap.Moved {
				t.Fatalf("Inverse(%v) = %v %v, want %v", moved[i], back[i], st[i], old[i])
			}
		}
	}
}
