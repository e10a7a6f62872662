package fri_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/frifs/frifs/fri"
)

// unhex decodes hex with any white space in it.
func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// The golden bytes V1 to V11: V5 and V11 are real output of Lance 14.0.2, the others were computed.
const (
	v1 = `0200000000000000 01000000 3a30000001000000 0000 0200 10000000 0000 0200 0300 02000000 3a30000001000000 0000 0000 10000000 0000`
	v2 = `0100000000000000 03000000 3b300000 01 0000 0900 0100 0000 0900`
	v3 = `3a300000 01000000 0000 0100 10000000 0000 0500`
	v4 = `3b300000 01 0000 0300 0100 0000 0300`

	v6 = `02000000000000000a0000003a3000000100000000000500100000000000010003000400060007000b0000003a3000000100000000000300100000000000010002000300`
	// v6run is the same set with fragment 11 as a run.
	v6run = `02000000000000000a0000003a3000000100000000000500100000000000010003000400060007000b0000003b3000000100000300010000000300`

	v7 = `0a5f08071a5b0a4402000000000000000a0000003a3000000100000000000500100000000000010003000400060007000b0000003a30000001000000
000003001000000000000100020003001206080a100818021204080b10041a0508c801100a`
	v8 = `0a262f6c616e63652e7461626c652e467261676d656e745265757365496e64657844657461696c7312630a610a5f08071a5b0a4402000000000000000a
0000003a3000000100000000000500100000000000010003000400060007000b0000003a30000001000000000003001000000000000100020003001206
080a100818021204080b10041a0508c801100a`
	v8external = `12110a0d64657461696c732e62696e70621861`
	v9         = `125d0a06080a100818020a04080b1004120508c801100a1a460a4402000000000000000a0000003a300000010000000000050010000000000001000300
0400060007000b0000003a3000000100000000000300100000000000010002000300`
	v10 = `12450a060803100318010a04080410021204080a10021204080b100222290a2430663866616435622d643963622d343639662d613136352d373038
363737323839353065109c03`
	v5 = `0a8b010a120a106af3347fa8214baab61fe126189a42981201001a0669645f69647820012a0f3b300000010000030001000000030032200a1e2f6c616e
63652e7461626c652e4254726565496e64657844657461696c73380040ff968ed5a23452140a0f706167655f646174612e6c616e636510fc0952160a11
706167655f6c6f6f6b75702e6c616e636510bd050a84020a120a10c5a5d86ef90444bba139c61742ce3c801a125f5f6c616e63655f667261675f7265757365
20042a123a300000010000000000000010000000040032ba010a262f6c616e63652e7461626c652e467261676d656e745265757365496e646578446574
61696c73128f010a8c010a890108041a84010a600400000000000000000000003b300000010000070002000000010004000500010000003b3000000100
00080002000000060008000100020000003b300000010000080002000000040006000300030000003b30000001000009000100000009001204100a1802
12060801100a180112060802100a180112040803100a1a04080410243800408c978ed5a234`
	v11 = `0ad1020a120a10cea0737ce61041dfa70d6eb1b76cbce21a125f5f6c616e63655f667261675f726575736520092a163a300000010000000000020010
0000000400050006003283020a262f6c616e63652e7461626c652e467261676d656e745265757365496e64657844657461696c7312d8010ad5011286
010a04100a18020a060801100a18010a060802100a18010a040803100a1204080410241a620a600400000000000000000000003b3000000100000700
02000000010004000500010000003b300000010000080002000000060008000100020000003b30000001000008000200000004000600030003000000
3b3000000100000900010000000900124a0a060804102418020a040805100a12040806102c1a340a320200000000000000040000003b300000010000
210002000000020005001e00050000003b3000000100000900010000000900380140cbc8e0d5a234`
)

// vectors are the contents among them, and seeds of the fuzz targets.
var vectors = []struct {
	name    string
	version int
	content string
}{{"V7", 0, v7}, {"V7 lifted", 1, v7}, {"V9", 1, v9}, {"V10", 1, v10}}

// TestVectorBitmaps reads the golden bitmaps and writes the same bytes again.
func TestVectorBitmaps(t *testing.T) {
	for name, v := range map[string]struct {
		hex  string
		want rows
	}{
		"V1": {v1, rows{1: {0, 2, 3}, 2: {0}}}, "V2": {v2, rows{3: span(0, 10)}},
		"V6": {v6, rows{10: {0, 1, 3, 4, 6, 7}, 11: span(0, 4)}}, "V6 run": {v6run, rows{10: {0, 1, 3, 4, 6, 7}, 11: span(0, 4)}},
	} {
		raw := unhex(t, v.hex)
		var old []fri.Digest
		n := uint64(0)
		for f, offs := range v.want {
			old = append(old, fri.Digest{ID: uint64(f), PhysicalRows: 10})
			n += uint64(len(offs))
		}
		h := open(t, 0, version(1, group(raw, old, []fri.Digest{{ID: 99, PhysicalRows: n}})))
		tr := h.Transitions[0]
		if !tr.Usable() {
			t.Fatalf("%s: %s", name, dump(h))
		}
		got := loadAll(t, tr.Survivors)
		for f, offs := range v.want {
			if !slices.Equal(got[f], offs) {
				t.Errorf("%s: fragment %d: got %v, want %v", name, f, got[f], offs)
			}
		}
		bm := roaring64.New()
		for f, offs := range got {
			for _, o := range offs {
				bm.Add(uint64(fri.Addr(f, o)))
			}
		}
		if name == "V2" {
			bm.RunOptimize()
		}
		var buf bytes.Buffer
		if _, err := bm.WriteTo(&buf); err != nil {
			t.Fatal(err)
		}
		if name != "V6 run" && !bytes.Equal(buf.Bytes(), raw) {
			t.Errorf("%s: written again: got %x, want %x", name, buf.Bytes(), raw)
		}
	}
	for name, v := range map[string]struct {
		hex  string
		want []uint32
	}{"V3": {v3, []uint32{0, 5}}, "V4": {v4, []uint32{0, 1, 2, 3}}} {
		bm := roaring.New()
		if _, err := bm.ReadFrom(bytes.NewReader(unhex(t, v.hex))); err != nil || !slices.Equal(bm.ToArray(), v.want) {
			t.Errorf("%s: got %v, %v; want %v", name, bm.ToArray(), err, v.want)
		}
	}
}

// TestVectorContents opens the golden contents, whole, in every form of envelope, and builds the same bytes again.
func TestVectorContents(t *testing.T) {
	sources := []fri.Digest{{ID: 10, PhysicalRows: 8, DeletedRows: 2}, {ID: 11, PhysicalRows: 4}}
	dests := []fri.Digest{{ID: 200, PhysicalRows: 10}}
	rebuilt := map[string][]byte{
		"V7": version(7, group(unhex(t, v6), sources, dests)),
		"V9": transition(source(10, 8, 2), source(11, 4, 0), dest(200, 10), ordered(unhex(t, v6))),
		"V10": transition(source(3, 3, 1), source(4, 2, 0), dest(10, 2), dest(11, 2),
			partition("0f8fad5b-d9cb-469f-a165-70867728950e", 412)),
	}
	for _, v := range vectors {
		raw := unhex(t, v.content)
		if want, ok := rebuilt[v.name]; ok && !bytes.Equal(raw, want) {
			t.Errorf("%s: built again: got %x, want %x", v.name, want, raw)
		}
		h := open(t, int32(v.version), raw)
		tr := h.Transitions[0]
		if len(h.Errors)+len(h.Warnings) > 0 || !tr.Usable() || h.Size != int64(len(raw)) {
			t.Fatalf("%s: %s", v.name, dump(h))
		}
		if v.name == "V10" {
			p := tr.Partition
			if tr.Kind != fri.StablePartition || p.MapID != "0f8fad5b-d9cb-469f-a165-70867728950e" || p.SizeBytes != 412 || p.BaseID != nil {
				t.Errorf("%s: %v %+v", v.name, tr.Kind, p)
			}
			continue
		}
		if !slices.Equal(tr.Sources, sources) || !slices.Equal(tr.Destinations, dests) || tr.Survivors.Total() != 10 {
			t.Errorf("%s: %s", v.name, dump(h))
		}
		if in, moved, dropped, ok := tr.Rows(); !ok || in != 12 || moved != 10 || dropped != 2 {
			t.Errorf("%s: rows %d, %d, %d, %v", v.name, in, moved, dropped, ok)
		}
		if l := tr.Legacy; (l != nil) != (v.name[1] == '7') || l != nil && (l.DatasetVersion != 7 || l.Version != 1 || l.Group != 1) {
			t.Errorf("%s: legacy %+v", v.name, l)
		}
	}
}

// TestVectorEntries goes the whole way from index entries as Lance writes them.
func TestVectorEntries(t *testing.T) {
	inline := readEntry(t, lenField(6, unhex(t, v8)))
	if r := fri.IsEntry(fri.EntryName, inline.typeURL, true, nil); r.Class != fri.IsFRI || r.Warning != "" {
		t.Errorf("V8: %+v", r)
	}
	c, err := fri.ParseDetails(inline.value)
	if err != nil || !bytes.Equal(c.Inline, unhex(t, v7)) {
		t.Errorf("V8: got %x, %v; want V7", c.Inline, err)
	}
	c, err = fri.ParseDetails(unhex(t, v8external))
	if err != nil || c.Inline != nil || *c.External != (fri.External{Path: "details.binpb", Size: 97}) {
		t.Errorf("V8 external: got %+v, %v", c, err)
	}

	var entries []entry
	for _, v := range []string{v5, v11} {
		section := unhex(t, v)
		eachField(t, section, func(_ protowire.Number, _ uint64, b []byte) { entries = append(entries, readEntry(t, b)) })
	}
	var got []string
	for _, e := range entries {
		if r := fri.IsEntry(e.name, e.typeURL, e.hasDetails, e.fields); r.Class != fri.IsFRI {
			continue
		}
		c, err := fri.ParseDetails(e.value)
		if err != nil {
			t.Fatal(err)
		}
		h := open(t, e.indexVersion, c.Inline)
		for _, tr := range h.Transitions {
			s := fmt.Sprintf("%s %v -> %v:", describe(tr), tr.Sources, tr.Destinations)
			set := loadAll(t, tr.Survivors)
			for _, f := range tr.Survivors.Keys() {
				s += fmt.Sprintf(" %d:%d", f, len(set[f]))
			}
			got = append(got, s)
		}
	}
	want := []string{
		"1 legacy ordered_compaction [{0 10 2} {1 10 1} {2 10 1} {3 10 0}] -> [{4 36 0}]: 0:8 1:9 2:9 3:10",
		"1 tagged ordered_compaction [{0 10 2} {1 10 1} {2 10 1} {3 10 0}] -> [{4 36 0}]: 0:8 1:9 2:9 3:10",
		"2 tagged ordered_compaction [{4 36 2} {5 10 0}] -> [{6 44 0}]: 4:34 5:10",
	}
	if !slices.Equal(got, want) {
		t.Errorf("V5, V11:\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}
