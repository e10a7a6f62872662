package indexfile

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/lancefile"
)

// Fact is one thing that a segment's files say of its layout.
type Fact struct {
	Key, Value string
}

// factBytes bounds a value that is taken over from a file.
const factBytes = 200

// Describe tells what is particular about the segment's layout, in a fixed order, from its smallest files: of a vector
// index its kind, metric and quantiser; of full text the format, partitions and positions; of a B-tree the batch size
// and the form. Nil where there is nothing to say. Errors are those of opening the files.
func (s *Segment) Describe(ctx context.Context) ([]Fact, error) {
	if s.layout == nil {
		return nil, nil
	}
	var facts []Fact
	var err error
	switch s.kind() {
	case "VECTOR":
		facts, err = s.describeVector(ctx)
	case "INVERTED":
		facts, err = s.describeFTS(ctx)
	case "BTREE":
		facts, err = s.describeBTree(ctx)
	case "RTREE":
		facts, err = s.describeFile(ctx, "page_data.lance", "num_items", "num_pages", "page_size")
	case "MINHASH_LSH":
		facts, err = s.describeFile(ctx, "bands.lance", "minhash_lsh_num_docs", "minhash_lsh_page_rows")
	case "ZONEMAP":
		facts, err = s.describeFile(ctx, "zonemap.lance", "rows_per_zone")
	case "BLOOMFILTER":
		facts, err = s.describeFile(ctx, "bloomfilter.lance", "bloomfilter_item", "bloomfilter_probability")
	}
	return facts, fault.Wrap("indexfile.Describe", s.kind(), err)
}

// describeFile takes values over from a file's schema metadata.
func (s *Segment) describeFile(ctx context.Context, path string, keys ...string) ([]Fact, error) {
	var facts []Fact
	err := s.withFile(ctx, path, func(f *lancefile.File) error {
		facts = metadataFacts(f, keys...)
		return nil
	})
	return facts, err
}

// withFile opens the container of a file for a moment.
func (s *Segment) withFile(ctx context.Context, path string, do func(f *lancefile.File) error) error {
	r, err := s.OpenRaw(ctx, path)
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := lancefile.Open(ctx, r, r.Size())
	if err != nil {
		return fault.Wrap("indexfile.Open", path, err)
	}
	return fault.Wrap("indexfile.Open", path, do(f))
}

// metadataFacts takes over the values of keys that are there and not too long.
func metadataFacts(f *lancefile.File, keys ...string) []Fact {
	var facts []Fact
	for _, k := range keys {
		if v, ok := f.Metadata(k); ok && len(v) <= factBytes {
			facts = append(facts, Fact{k, string(v)})
		}
	}
	return facts
}

func countFact(key string, n int) Fact { return Fact{key, strconv.Itoa(n)} }

func boolFact(key string, b bool) Fact { return Fact{key, strconv.FormatBool(b)} }

// describeBTree tells which of its three forms the index has.
func (s *Segment) describeBTree(ctx context.Context) ([]Fact, error) {
	parts := 0
	lookup := ""
	for _, f := range s.Files {
		switch {
		case f.Path == "page_lookup.lance":
			lookup = f.Path
		case matches("part_*_page_lookup.lance", f.Path) && lookup == "":
			lookup = f.Path
		case matches("part_*_page_data.lance", f.Path):
			parts++
		}
	}
	switch {
	case parts == 0:
		facts := []Fact{{"form", "one file of pages"}}
		more, err := s.describeFile(ctx, "page_lookup.lance", "batch_size")
		return append(facts, more...), err
	case lookup == "page_lookup.lance":
		facts := []Fact{{"form", "range partitioned"}, countFact("partitions", parts)}
		more, err := s.describeFile(ctx, lookup, "batch_size", "page_num_per_range_partition")
		return append(facts, more...), err
	}
	facts := []Fact{{"form", "standalone part"}, countFact("partitions", parts)}
	if lookup == "" {
		return facts, nil
	}
	more, err := s.describeFile(ctx, lookup, "batch_size")
	return append(facts, more...), err
}

// describeVector tells kind, metric and quantiser of a vector index.
func (s *Segment) describeVector(ctx context.Context) ([]Fact, error) {
	if len(s.layout.rules) == 1 {
		r, err := s.OpenRaw(ctx, "index.idx")
		if err != nil {
			return nil, err
		}
		defer r.Close()
		b, err := openLegacyVectors(ctx, r)
		if err != nil {
			return nil, err
		}
		return []Fact{{"kind", "IVF_PQ"}, {"format", "legacy (0.1)"}, {"num_bits", strconv.FormatUint(b.bits, 10)},
			{"num_sub_vectors", strconv.FormatUint(b.subVectors, 10)}}, nil
	}
	var facts []Fact
	err := s.withFile(ctx, "index.idx", func(f *lancefile.File) error {
		if v, ok := f.Metadata("lance:index"); ok {
			var x struct {
				Type   string
				Metric string `json:"distance_type"`
			}
			if json.Unmarshal(v, &x) == nil && len(x.Type)+len(x.Metric) <= factBytes {
				facts = append(facts, Fact{"kind", x.Type}, Fact{"metric", x.Metric})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = s.withFile(ctx, "auxiliary.idx", func(f *lancefile.File) error {
		facts = append(facts, storageFacts(f)...)
		return nil
	})
	return facts, err
}

// storageFacts tells the quantiser of a vector storage file, from JSON in a JSON list; what does not parse says nothing.
func storageFacts(f *lancefile.File) []Fact {
	v, _ := f.Metadata("storage_metadata")
	var texts []string
	if json.Unmarshal(v, &texts) != nil || len(texts) == 0 {
		return nil
	}
	var x map[string]json.RawMessage
	if json.Unmarshal([]byte(texts[0]), &x) != nil {
		return nil
	}
	var facts []Fact
	for _, k := range []struct{ json, key string }{
		{"nbits", "num_bits"}, {"num_bits", "num_bits"}, {"num_sub_vectors", "num_sub_vectors"},
		{"dimension", "dimension"}, {"dim", "dimension"}, {"code_dim", "code_dimension"}, {"rotation_type", "rotation"},
	} {
		if raw, ok := x[k.json]; ok && len(raw) <= factBytes {
			text := string(raw)
			_ = json.Unmarshal(raw, &text) // a number stays as it is written
			facts = append(facts, Fact{k.key, text})
		}
	}
	return facts
}
