package indexfile

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/pb"
)

// idsFile makes a file of version 2.2 with one or more u64 columns without nulls, in pages of the given rows.
func idsFile(pageRows int, metadata map[string]string, columns map[string][]uint64, order ...string) lancetest.File {
	f := lancetest.File{Major: 2, Minor: 2, Metadata: metadata}
	for _, name := range order {
		values := columns[name]
		f.Rows = uint64(len(values))
		c := lancetest.Column{Name: name, Type: "uint64"}
		for len(values) > 0 {
			n := min(len(values), pageRows)
			var b []byte
			for _, v := range values[:n] {
				b = binary.LittleEndian.AppendUint64(b, v)
			}
			c.Pages = append(c.Pages, zippedPage(n, lancetest.Bytes(b)))
			values = values[n:]
		}
		f.Columns = append(f.Columns, c)
	}
	return f
}

func zippedPage(rows int, b lancetest.Buffer) lancetest.Page {
	bits := uint32(64)
	return lancetest.Page{Rows: uint64(rows), Buffers: []lancetest.Buffer{b}, Encoding: &pb.PageLayout{Layout: &pb.PageLayout_FullZipLayout{FullZipLayout: &pb.PageLayout_FullZip{
		BitsPerValue: &bits, NumItems: uint32(rows), NumVisibleItems: uint32(rows), ValueCompression: lancetest.Flat(64),
		Layers: []pb.RepDefLayer{pb.RepDefLayer_REPDEF_ALL_VALID_ITEM},
	}}}}
}

// oneColumn makes a file of one column.
func oneColumn(name string, metadata map[string]string, values ...uint64) []byte {
	return idsFile(3, metadata, map[string][]uint64{name: values}, name).Build().All()
}

// mixed is a list of addresses of which shifted moves some, keeps some, masks some and drops the rest.
func mixed(n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = uint64(i%5)<<32 | uint64(7*i)
	}
	return out
}

func TestFormsOfTypes(t *testing.T) {
	ids := mixed(10)
	lookup := oneColumn("page_idx", map[string]string{"batch_size": "4096"}, 0)
	for _, c := range []struct {
		name, typ, path string
		file            []byte
		others          []string
	}{
		{"BTREE, one file", "BTREE", "page_data.lance", oneColumn("ids", nil, ids...), []string{"page_lookup.lance"}},
		{"BTREE, range partitioned", "BTREE", "part_7_page_data.lance", oneColumn("ids", nil, ids...), []string{"page_lookup.lance", "part_0_page_data.lance"}},
		{"BTREE, standalone part", "BTREE", "part_18446744073709551615_page_data.lance", oneColumn("ids", nil, ids...), []string{"part_18446744073709551615_page_lookup.lance"}},
		{"MINHASH_LSH", "MINHASH_LSH", "signatures.lance", oneColumn("_rowid", nil, ids...), []string{"bands.lance"}},
		{"MINHASH_LSH, named as documented", "MINHASH_LSH", "signatures.lance", oneColumn("_rowaddr", nil, ids...), []string{"bands.lance"}},
		{"VECTOR", "VECTOR", "auxiliary.idx", oneColumn("_rowid", nil, ids...), []string{"index.idx"}},
		{"INVERTED, legacy", "INVERTED", "docs.lance", oneColumn("_rowid", nil, ids...), []string{"tokens.lance", "invert.lance"}},
		{"INVERTED, documents of list elements", "INVERTED", "part_3_docs.lance",
			idsFile(4, nil, map[string][]uint64{"_rowid": ids, "_doc_index_0": mixed(10)}, "_doc_index_0", "_rowid").Build().All(), []string{"metadata.lance"}},
		{"no rows", "BTREE", "page_data.lance", oneColumn("ids", nil), []string{"page_lookup.lance"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string][]byte{c.path: c.file}
			for _, o := range c.others {
				files[o] = lookup
			}
			s := memSegment(c.typ, files)
			want := ids
			if c.name == "no rows" {
				want = nil
			}
			checkShifted(t, s, c.path, want)
			for _, o := range c.others {
				if how, err := s.How(o); o != "invert.lance" && how != Verbatim && !strings.Contains(o, "page_data") || err != nil {
					t.Errorf("%s: %v, %v", o, how, err)
				}
			}
		})
	}
}

func TestRTreeInnerNodesStay(t *testing.T) {
	ids := mixed(12)
	for _, leaves := range []string{"0", "1", "5", "11", "12"} {
		file := idsFile(5, map[string]string{"num_items": leaves}, map[string][]uint64{"id": ids}, "id").Build().All()
		s := memSegment("RTREE", map[string][]byte{"page_data.lance": file})
		f, err := s.Open(t.Context(), "page_data.lance")
		noError(t, err)
		_, addrs := storedAddresses(t, f)
		c, err := f.Remap(t.Context(), shifted{}, Options{})
		noError(t, err)
		// The made file says num_items too; read as a B-tree's, all its rows show.
		data := oneColumn("ids", nil)
		again := memSegment("BTREE", map[string][]byte{"page_data.lance": data})
		again.layout.rules[0].columns = []string{"id"}
		got := addressesOf(t, again, "page_data.lance", c)
		if len(got) != len(ids) {
			t.Fatalf("%d rows", len(got))
		}
		for i, x := range ids {
			want := x
			if i < len(addrs) {
				want = shiftedWant(i, x)
			}
			if got[i] != want {
				t.Errorf("%s leaves, row %d: %x, want %x", leaves, i, got[i], want)
			}
		}
	}
}

func TestFlatFilesRefuse(t *testing.T) {
	good := oneColumn("ids", nil, mixed(10)...)
	for _, c := range []struct {
		name, typ, path string
		b               []byte
		kind            fault.Kind
		want            string
	}{
		{"no such column", "BTREE", "page_data.lance", oneColumn("id", nil, 1), fault.Corrupt, `"ids"`},
		{"another type", "BTREE", "page_data.lance", func() []byte {
			f := idsFile(3, nil, map[string][]uint64{"ids": {1}}, "ids")
			f.Columns[0].Type = "int64"
			return f.Build().All()
		}(), fault.Corrupt, "int64"},
		{"leaves not counted", "RTREE", "page_data.lance", oneColumn("id", nil, 1), fault.Corrupt, "num_items"},
		{"more leaves than rows", "RTREE", "page_data.lance", oneColumn("id", map[string]string{"num_items": "2"}, 1), fault.Corrupt, "num_items"},
		{"a negative count", "RTREE", "page_data.lance", oneColumn("id", map[string]string{"num_items": "-1"}, 1), fault.Corrupt, "num_items"},
		{"cut short", "BTREE", "page_data.lance", good[:len(good)-1], fault.Corrupt, "magic"},
		{"rows that are not there", "BTREE", "page_data.lance", func() []byte {
			f := idsFile(3, nil, map[string][]uint64{"ids": {1, 2}}, "ids")
			f.Rows = 1 << 60
			return f.Build().All()
		}(), fault.Corrupt, "rows"},
		{"the format of before version 2", "BTREE", "page_data.lance", legacyFile(nil, nil, nil, 8, 4, true), fault.Unsupported, "0.1"},
		{"graph file without storage", "VECTOR", "index.idx", oneColumn("x", nil), fault.Unsupported, "auxiliary.idx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := memSegment(c.typ, map[string][]byte{c.path: c.b}).Open(t.Context(), c.path)
			if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) {
				t.Errorf("%v", err)
			}
		})
	}
}
