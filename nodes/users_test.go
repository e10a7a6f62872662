package nodes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/pb"
)

func TestR01OrphanedCoverage(t *testing.T) {
	tr := openTree(t, "legacy/deleted_fragment", nil)
	d := indexOfType(t, tr, "BTREE")
	if len(d.Segments) != 1 || len(d.Segments[0].Orphaned) != 1 {
		t.Fatalf("orphaned: %+v", d.Segments)
	}
	if f := d.Segments[0].Orphaned[0]; !slices.Contains(d.Segments[0].Stored, f) || slices.Contains(d.Segments[0].Covered, f) {
		t.Errorf("orphan %d, stored %v, covered %v", f, d.Segments[0].Stored, d.Segments[0].Covered)
	}
	if !slices.ContainsFunc(d.Warnings, func(w string) bool { return strings.Contains(w, "orphaned") && strings.Contains(w, "lance") }) {
		t.Errorf("warnings (R37: with the writer) %q", d.Warnings)
	}
}

func TestR09UnknownIndexTypes(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0), entry("odd", "/lance.table.WonderIndexDetails", 1, 0), entry("old", "", 2, 0))
	tr := m.tree(nil)
	odd := decode[indexDoc](t, tr, "latest/indices/odd/index.json")
	if odd.Domain != "unknown" || odd.Type != "WonderIndexDetails" || len(odd.Lance) == 0 {
		t.Errorf("unknown type: %+v", odd)
	}
	if old := decode[indexDoc](t, tr, "latest/indices/old/index.json"); old.Type != "" || old.Domain != "row_address" {
		t.Errorf("no details: %+v", old)
	}
}

// TestR10R30R40RowIDDomain is the matrix of docs/FORMAT.md, "Index details": what an index stores on a table with stable
// row ids.
func TestR10R30R40RowIDDomain(t *testing.T) {
	for _, c := range []struct {
		details string
		version int32
		stable  string
	}{
		{"lance.table.BTreeIndexDetails", 0, "row_id"}, {"lance.table.BTreeIndexDetails", 1, "row_address"},
		{"lance.table.BitmapIndexDetails", 0, "row_id"}, {"lance.table.BitmapIndexDetails", 1, "row_address"},
		{"lance.table.LabelListIndexDetails", 1, "row_id"}, {"lance.table.LabelListIndexDetails", 2, "row_address"},
		{"lance.table.NGramIndexDetails", 0, "row_id"}, {"lance.table.NGramIndexDetails", 1, "row_address"},
		{"lance.table.ZoneMapIndexDetails", 0, "row_address"}, {"lance.index.pb.BloomFilterIndexDetails", 0, "row_address"},
		{"lance.index.pb.RTreeIndexDetails", 0, "row_id"}, {"lance.index.pb.RTreeIndexDetails", 1, "row_address"},
		{"lance.table.InvertedIndexDetails", 3, "row_id"}, {"lance.index.pb.VectorIndexDetails", 2, "row_id"},
		{"lance.index.pb.FMIndexDetails", 10, "row_address"}, {"lance.index.pb.MinHashLshIndexDetails", 0, "row_id"},
		{"lance.index.pb.JsonIndexDetails", 0, "unknown"}, {"lance.table.WonderIndexDetails", 0, "unknown"},
	} {
		m := makeTable(t)
		ix := entry("i", "/"+c.details, 1, 0)
		ix.IndexVersion = proto.Int32(c.version)
		m.version(1, fragments(0), ix)
		m.version(2, func(p *pb.Manifest) {
			fragments(0)(p)
			p.ReaderFeatureFlags, p.WriterFeatureFlags = proto.Uint64(2), proto.Uint64(2)
		}, ix)
		tr := m.tree(nil)
		d := decode[struct {
			Domain string
			Reason string `json:"domain_reason"`
		}](t, tr, "versions/2/indices/i/index.json")
		if d.Domain != c.stable || d.Reason == "" {
			t.Errorf("%s %d with stable row ids: %q (%s), want %q", c.details, c.version, d.Domain, d.Reason, c.stable)
		}
		want := "row_address"
		if strings.Contains(c.details, "Wonder") {
			want = "unknown"
		}
		if d := decode[indexDoc](t, tr, "versions/1/indices/i/index.json"); d.Domain != want {
			t.Errorf("%s %d without: %q, want %q", c.details, c.version, d.Domain, want)
		}
	}
}

func TestR13NeededButGone(t *testing.T) {
	type changes struct {
		FRI struct {
			Gone []struct {
				Needed []struct{ Name string } `json:"needed_by"`
			} `json:"needed_but_gone"`
			Out []any `json:"records_out"`
		}
	}
	c := decode[changes](t, openTree(t, "legacy/fri_dropped", nil), "latest/changes.json")
	if len(c.FRI.Out) != 1 || len(c.FRI.Gone) != 1 || c.FRI.Gone[0].Needed[0].Name != "btree_id" {
		t.Errorf("dropped entry: %+v", c)
	}
	// A trim that Lance made takes only what no index needs.
	tr := openTree(t, "tagged/drained", nil)
	out := 0
	for _, v := range names(t, tr, "versions") {
		c := decode[changes](t, tr, "versions/"+v+"/changes.json")
		out += len(c.FRI.Out)
		if len(c.FRI.Gone) > 0 {
			t.Errorf("version %s: %+v", v, c.FRI.Gone)
		}
	}
	if out == 0 {
		t.Error("no record was trimmed in tagged/drained")
	}
}

func TestR19R21SourceSlices(t *testing.T) {
	for _, name := range []string{"legacy/multi", "tagged/fanout", "tagged/labels"} {
		tr := openTree(t, name, nil)
		for _, n := range names(t, tr, "latest/fri/transitions") {
			d := decode[struct{ Sources []digestDoc }](t, tr, "latest/fri/transitions/"+n+"/transition.json")
			csv := string(cat(t, tr, "latest/fri/transitions/"+n+"/mapping.csv"))
			end := int64(strings.IndexByte(csv, '\n') + 1)
			for _, s := range d.Sources {
				if s.CSVOffset == nil || *s.CSVOffset != end {
					t.Fatalf("%s %s: source %d begins at %v, want %d", name, n, s.Fragment, s.CSVOffset, end)
				}
				end += *s.CSVBytes
				slice := csv[*s.CSVOffset:end]
				if lines := strings.Count(slice, "\n"); uint64(lines) != s.PhysicalRows || (lines > 0 && !strings.Contains(slice, fmt.Sprintf(",%d,", s.Fragment))) {
					t.Fatalf("%s %s: source %d has %d lines of %d rows", name, n, s.Fragment, lines, s.PhysicalRows)
				}
			}
			if end != int64(len(csv)) {
				t.Errorf("%s %s: the slices end at %d of %d", name, n, end, len(csv))
			}
		}
	}
}

func TestR28FlagsByName(t *testing.T) {
	m := makeTable(t)
	m.version(1, func(p *pb.Manifest) {
		fragments(0)(p)
		p.ReaderFeatureFlags, p.WriterFeatureFlags = proto.Uint64(1<<10|1<<40), proto.Uint64(8)
	}, reuse(1, []byte{0x0a, 0}))
	tr := m.tree(nil)
	d := decode[struct {
		Reader []struct {
			Bit  int
			Name *string
			Note string
		} `json:"reader_flags"`
		Refused  *struct{ Message string } `json:"translation_refused"`
		Findings []string                  `json:"flag_findings"`
	}](t, tr, "latest/version.json")
	if len(d.Reader) != 2 || *d.Reader[0].Name != "fragment_reuse_index" || d.Reader[1].Name != nil || d.Reader[1].Bit != 40 || d.Reader[0].Note == "" {
		t.Errorf("flags: %+v", d.Reader)
	}
	if d.Refused == nil || !strings.Contains(d.Refused.Message, "40") || len(d.Findings) == 0 {
		t.Errorf("refused: %+v, findings %q", d.Refused, d.Findings)
	}
	// Manifest facts stay; what translates is left out, explained, and gives its errno.
	if got := names(t, tr, "latest/fri/scan"); !slices.Equal(got, []string{"ERROR.json"}) {
		t.Errorf("fri/scan lists %v", got)
	}
	mustFail(t, tr, "latest/fri/scan/composed.csv", "unsupported")
	if _, _, err := tr.Translator(t.Context(), nil); err == nil {
		t.Error("a translator was made")
	}
}

func TestR29TaggedHistoryWithStableRowIDs(t *testing.T) {
	m := makeTable(t)
	m.version(1, func(p *pb.Manifest) {
		fragments(0)(p)
		p.ReaderFeatureFlags, p.WriterFeatureFlags = proto.Uint64(2|1<<10), proto.Uint64(2|1<<10)
	}, reuse(1, []byte{0x0a, 0}))
	d := decode[versionDoc](t, m.tree(nil), "latest/version.json")
	if !slices.ContainsFunc(d.Advice, func(a string) bool { return strings.Contains(a, "stable row ids") }) {
		t.Errorf("advice %q", d.Advice)
	}
}

func TestR31R36R42EveryEntryIsListed(t *testing.T) {
	m := makeTable(t)
	bare := entry("", "", 3)
	bare.Fields = nil
	m.version(1, fragments(0, 1), entry("a", btreeType, 1, 0), entry("a", btreeType, 1, 0), entry("a", btreeType, 2, 1),
		entry("a/b", btreeType, 1, 0), bare, entry("__lance_mem_wal", "/lance.table.MemWalIndexDetails", 4))
	tr := m.tree(nil)
	if got := names(t, tr, "latest/indices"); !slices.Equal(got, []string{"%", "__lance_mem_wal", "a", "a%2Fb"}) {
		t.Errorf("indices: %v", got)
	}
	one, two := "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"
	if got := names(t, tr, "latest/indices/a"); !slices.Equal(got, []string{one, two, one + "~2", "index.json"}) &&
		!slices.Equal(got, []string{one, one + "~2", two, "index.json"}) {
		t.Errorf("segments: %v", got)
	}
	d := decode[indexDoc](t, tr, "latest/indices/a/index.json")
	if len(d.Segments) != 3 || !d.Segments[0].Duplicate || !d.Segments[1].Duplicate || d.Segments[2].Duplicate || !slices.Equal(d.Twice, []uint64{0}) {
		t.Errorf("duplicates (R15: fragments covered twice %v): %+v", d.Twice, d.Segments)
	}
	if s := decode[struct{ Entry struct{ Ordinal int } }](t, tr, "latest/indices/a/"+one+"~2/segment.json"); s.Entry.Ordinal != 1 {
		t.Errorf("ordinal %d, want 1", s.Entry.Ordinal)
	}
}

func TestR32LookAlike(t *testing.T) {
	tr := openTree(t, "legacy/lookalike", nil)
	if h := decode[historyDoc](t, tr, "latest/fri/history.json"); h.Present || len(h.Errors) > 0 || len(h.Warnings) == 0 {
		t.Errorf("history: %+v", h)
	}
	d := decode[versionDoc](t, tr, "latest/version.json")
	if !slices.ContainsFunc(d.Advice, func(a string) bool { return strings.Contains(a, "__lance_frag_reuse") }) {
		t.Errorf("advice %q", d.Advice)
	}
	if ix := decode[indexDoc](t, tr, "latest/indices/__lance_frag_reuse/index.json"); ix.System || ix.Type != "BTREE" {
		t.Errorf("look-alike: %+v", ix)
	}
}

func TestR53R54R55DeferredOrEager(t *testing.T) {
	for name, want := range map[string][]string{
		"legacy/eager_mix":  {"deferred_v0", "eager"},
		"legacy/basic":      {"deferred_v0"},
		"legacy/old_1_0":    {"eager", "eager"},
		"legacy/no_record":  {"none_recorded"},
		"tagged/stable2":    {"deferred_tagged"},
		"legacy/stable_ids": {"eager"},
	} {
		tr := openTree(t, name, nil)
		e := readExpected(t, name)
		var got []string
		for _, v := range e.Versions {
			c := decode[struct{ Operation, Remap string }](t, tr, fmt.Sprintf("versions/%d/changes.json", v.Version))
			if c.Operation == "Rewrite" {
				got = append(got, c.Remap)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestR63FMAndHNSWFacts(t *testing.T) {
	tr := openTree(t, "legacy/all_types", nil)
	d := indexOfType(t, tr, "FM")
	if len(d.Lance) == 0 || !d.Lance[0].Wrong || !strings.Contains(d.Lance[0].Text, "miss") {
		t.Errorf("FM: %+v", d.Lance)
	}
	d = indexOfType(t, tr, "VECTOR")
	if !slices.ContainsFunc(d.Lance, func(f struct {
		Wrong bool
		Text  string
	}) bool {
		return f.Wrong && strings.Contains(f.Text, "HNSW")
	}) {
		t.Errorf("vector: %+v", d.Lance)
	}
}
