package indexfile

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/lancefile/lancetest"
	"github.com/frifs/frifs/internal/pb"
)

// plainEntry is an index entry without details.
func plainEntry() *dataset.Index { return &dataset.Index{PB: &pb.IndexMetadata{}} }

func TestTypesOfEntriesWithoutDetails(t *testing.T) {
	m := &dataset.Manifest{PB: &pb.Manifest{}}
	for _, c := range []struct {
		want  string
		files []string
		how   map[string]How
	}{
		{"VECTOR", []string{"index.idx"}, map[string]How{"index.idx": InPlace}},
		{"VECTOR", []string{"index.idx", "auxiliary.idx"}, map[string]How{"index.idx": Verbatim, "auxiliary.idx": Flat}},
		{"BTREE", []string{"page_lookup.lance", "page_data.lance"}, map[string]How{"page_data.lance": Flat, "page_lookup.lance": Verbatim}},
		{"BITMAP", []string{"bitmap_page_lookup.lance"}, map[string]How{"bitmap_page_lookup.lance": Reserialised}},
		{"NGRAM", []string{"ngram_postings.lance"}, map[string]How{"ngram_postings.lance": Reserialised}},
		{"INVERTED", []string{"metadata.lance", "part_4_docs.lance"}, map[string]How{"part_4_docs.lance": Flat}},
		{"INVERTED", []string{"tokens.lance", "docs.lance", "invert.lance"}, map[string]How{"invert.lance": Reserialised}},
		{"", []string{"page_data.lance", "nulls.lance"}, nil},
		{"", []string{"metadata.lance"}, nil},
		{"", nil, nil},
	} {
		t.Run(c.want+" "+strings.Join(c.files, " "), func(t *testing.T) {
			var files []StoredFile
			for _, f := range c.files {
				files = append(files, StoredFile{Path: f})
			}
			s := NewSegment(m, plainEntry(), files, nil)
			if s.Type != c.want || s.Inferred != (c.want != "") {
				t.Errorf("type %q, inferred %v", s.Type, s.Inferred)
			}
			for path, want := range c.how {
				if how, err := s.How(path); how != want || err != nil {
					t.Errorf("%s: %v, %v", path, how, err)
				}
			}
			if c.want == "" {
				if how, err := s.How("page_data.lance"); how != HowUnknown || err == nil {
					t.Errorf("%v, %v", how, err)
				}
			}
		})
	}
}

func TestIndexVersionsThatLanceDoesNotRead(t *testing.T) {
	m := &dataset.Manifest{PB: &pb.Manifest{}}
	for _, c := range []struct {
		typ     string
		version int32
		tooNew  bool
	}{{"BTREE", 1, false}, {"BTREE", 2, true}, {"BITMAP", 1, true}, {"LABEL_LIST", 2, true}, {"FM", 10, false}, {"VECTOR", 2, false}, {"QUANTUM", 9, false}} {
		ix := &dataset.Index{Type: c.typ, PB: &pb.IndexMetadata{IndexVersion: &c.version}}
		if s := NewSegment(m, ix, nil, nil); s.TooNew() != c.tooNew {
			t.Errorf("%s %d: too new %v", c.typ, c.version, !c.tooNew)
		}
	}
}

func TestDescribe(t *testing.T) {
	w := openWorld(t, "legacy/all_types", 0)
	for name, want := range map[string][]Fact{
		"btree_id":            {{"form", "one file of pages"}, {"batch_size", "4096"}},
		"json_j":              {{"form", "one file of pages"}, {"batch_size", "4096"}},
		"ivf_pq_vec_pq":       {{"kind", "IVF_PQ"}, {"metric", "l2"}, {"num_bits", "8"}, {"num_sub_vectors", "4"}, {"dimension", "8"}},
		"ivf_hnsw_sq_vec_hsq": {{"kind", "IVF_HNSW_SQ"}, {"metric", "l2"}, {"num_bits", "8"}, {"dimension", "8"}},
		"ivf_flat_uv":         {{"kind", "IVF_FLAT"}, {"metric", "hamming"}, {"dimension", "8"}},
		"ivf_rq_vec_rq":       {{"kind", "IVF_RQ"}, {"metric", "l2"}, {"num_bits", "5"}, {"code_dimension", "8"}, {"rotation", "fast"}},
		"rtree_pt":            {{"num_items", "466"}},
		"bitmap_cat":          nil,
	} {
		got, err := w.segment(w.m.IndicesNamed(name)[0]).Describe(t.Context())
		if err != nil || len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	got, err := w.segment(w.m.IndicesNamed("inverted_txt_fts")[0]).Describe(t.Context())
	if err != nil || !slices.Contains(got, Fact{"format_version", "2"}) || !slices.Contains(got, Fact{"partitions", "1"}) || !slices.Contains(got, Fact{"with_position", "true"}) {
		t.Errorf("full text: %v, %v", got, err)
	}
	parts := memSegment("BTREE", map[string][]byte{
		"page_lookup.lance":      oneColumn("page_idx", map[string]string{"batch_size": "64", "page_num_per_range_partition": "[[0,1],[1,2]]"}, 1),
		"part_0_page_data.lance": nil, "part_1_page_data.lance": nil,
	})
	got, err = parts.Describe(t.Context())
	if err != nil || !slices.Equal(got, []Fact{{"form", "range partitioned"}, {"partitions", "2"}, {"batch_size", "64"}, {"page_num_per_range_partition", "[[0,1],[1,2]]"}}) {
		t.Errorf("range partitioned: %v, %v", got, err)
	}
}

// FuzzOpenFile changes real files of each flat type, and the one list that others depend on.
func FuzzOpenFile(f *testing.F) {
	kinds := []struct{ typ, path string }{
		{"BTREE", "page_data.lance"}, {"VECTOR", "auxiliary.idx"}, {"INVERTED", "part_0_docs.lance"},
		{"MINHASH_LSH", "signatures.lance"}, {"RTREE", "page_data.lance"},
	}
	columns := []string{"ids", "_rowid", "_rowid", "_rowid", "id"}
	for i := range kinds {
		f.Add(uint8(i), oneColumn(columns[i], map[string]string{"num_items": "7"}, mixed(10)...))
		wide := idsFile(1000, map[string]string{"num_items": "40"}, map[string][]uint64{columns[i]: mixed(50), "x": mixed(50)}, "x", columns[i])
		wide.Globals = append(wide.Globals, lancetest.Bytes([]byte("more")))
		f.Add(uint8(i), wide.Build().All())
	}
	w := openWorld(f, "legacy/v20", 0)
	for _, ix := range w.m.IndicesNamed("btree_id") {
		s := w.segment(ix)
		r, err := s.OpenRaw(context.Background(), "page_data.lance")
		noError(f, err)
		b := make([]byte, r.Size())
		_, err = r.ReadAt(b, 0)
		noError(f, err)
		f.Add(uint8(0), b)
		_ = r.Close()
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		k := kinds[int(kind)%len(kinds)]
		files := map[string][]byte{k.path: b}
		if k.typ == "INVERTED" {
			files[ftsMetadata] = oneColumn("x", nil)
		}
		openAnything(t, k.typ, k.path, files)
	})
}
