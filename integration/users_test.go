package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/testdata"
)

// The tests of this file are named after the entries of a collection of user reports (R01, R02, …) about compaction,
// indices and the reuse index. Each does what its user would have done with frifs at hand.

// table is a dataset in a folder, as the commands see it.
type table struct {
	t     testing.TB
	dir   string
	flags []string
}

func tableOf(t testing.TB, name string) table {
	t.Helper()
	return table{t, testdata.Dataset(t, name), rebase(t, name)}
}

// cat returns a file of the tree; it has to be readable.
func (x table) cat(path string) string {
	x.t.Helper()
	return frifs(x.t, append([]string{"cat", x.dir, path}, x.flags...)...)
}

// json returns a decoded file of the tree.
func (x table) json(path string) value {
	x.t.Helper()
	d := json.NewDecoder(strings.NewReader(x.cat(path)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		x.t.Fatalf("%s: %v", path, err)
	}
	return value{x.t, path, v}
}

// ls returns the names in a directory of the tree.
func (x table) ls(path string) []string {
	x.t.Helper()
	return strings.Fields(frifs(x.t, append([]string{"ls", x.dir, path}, x.flags...)...))
}

// translate asks for addresses given as "fragment:offset".
func (x table) translate(flags []string, addrs ...string) []answer {
	x.t.Helper()
	args := slices.Concat([]string{"translate", x.dir}, x.flags, flags, addrs)
	var got []answer
	for line := range strings.Lines(frifs(x.t, args...)) {
		c := strings.Split(strings.TrimSpace(line), ",")
		if c[0] == "row_addr" {
			continue
		}
		got = append(got, answer{c[1], c[2]})
	}
	if len(got) != len(addrs) {
		x.t.Fatalf("%d answers for %d addresses", len(got), len(addrs))
	}
	return got
}

// value is a part of a decoded JSON file.
type value struct {
	t    testing.TB
	path string
	v    any
}

// at goes to a member of an object (string) or of an array (int).
func (v value) at(keys ...any) value {
	v.t.Helper()
	for _, k := range keys {
		v.path = fmt.Sprint(v.path, "/", k)
		switch k := k.(type) {
		case string:
			m, ok := v.v.(map[string]any)
			if !ok {
				v.t.Fatalf("%s: not in an object: %v", v.path, v.v)
			}
			if v.v, ok = m[k]; !ok {
				v.t.Fatalf("%s: no such key; there are %v", v.path, slices.Sorted(maps.Keys(m)))
			}
		case int:
			a, ok := v.v.([]any)
			if !ok || k >= len(a) {
				v.t.Fatalf("%s: no such element in %v", v.path, v.v)
			}
			v.v = a[k]
		}
	}
	return v
}

func (v value) list() (l []value) {
	v.t.Helper()
	a, ok := v.v.([]any)
	if !ok {
		v.t.Fatalf("%s: not an array: %v", v.path, v.v)
	}
	for i := range a {
		l = append(l, v.at(i))
	}
	return l
}

func (v value) String() string {
	b, err := json.Marshal(v.v)
	if err != nil {
		v.t.Fatal(err)
	}
	return strings.Trim(string(b), `"`)
}

// is fails unless the value reads like that.
func (v value) is(want any) {
	v.t.Helper()
	if got := v.String(); got != fmt.Sprint(want) {
		v.t.Errorf("%s: got %s, want %v", v.path, got, want)
	}
}

// has fails unless the value's text has that part.
func (v value) has(part string) {
	v.t.Helper()
	if !strings.Contains(v.String(), part) {
		v.t.Errorf("%s: %s does not name %s", v.path, v, part)
	}
}

func addr(fragment, offset uint64) string { return strconv.FormatUint(fragment<<32|offset, 10) }

func TestR01_DanglingEntriesOfADeletedFragment(t *testing.T) {
	x := tableOf(t, "legacy/deleted_fragment")
	n := 0
	for r := range testdata.Expected(t, "legacy/deleted_fragment") {
		if r.Detail != "dangling" {
			continue
		}
		if n++; n <= 5 {
			if got := x.translate(nil, fmt.Sprint(r.Old)); got[0] != (answer{"dangling", ""}) {
				t.Errorf("%d: %v", r.Old, got)
			}
		}
	}
	if n == 0 {
		t.Fatal("the dataset has no such row")
	}
	for _, name := range x.ls("latest/indices") {
		if name != "__lance_frag_reuse" && len(x.json("latest/indices/"+name+"/index.json").at("segments", 0, "orphaned_fragments").list()) == 0 {
			t.Errorf("%s: coverage of a fragment that is gone is not shown", name)
		}
	}
}

func TestR02_StraddlingGroup(t *testing.T) {
	for _, name := range []string{"spliced/c_str0", "spliced/c_str1"} {
		x := tableOf(t, name)
		ix := x.json("latest/indices/id_idx/index.json")
		if len(ix.at("segments", 0, "straddles").list()) == 0 || len(ix.at("warnings").list()) == 0 {
			t.Errorf("%s: the straddle is not named: %s", name, ix)
		}
		if got := x.translate(nil, "0:0", "3:9"); got[0] != moved(4, 0) || got[1] != moved(4, 35) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestR07_ThreeOutcomesKeptApart(t *testing.T) {
	got := tableOf(t, "spliced/s_v0").translate(nil, "0:0", "0:2", "77:0", "4:0", "4:36", "0:10")
	want := []answer{moved(4, 0), {"dropped", ""}, {"dangling", ""}, {"same", addr(4, 0)}, {"out_of_range", ""}, {"out_of_range", ""}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestR08_EmptySurvivorBitmap(t *testing.T) {
	x := tableOf(t, "spliced/s_empty")
	h := x.json("latest/fri/history.json")
	h.at("errors").has("survivors")
	h.at("transitions", 0, "kind").is("invalid")
	h.at("transitions", 0, "error").has("4.0.0-beta.6") // the writers that are known for it
	if got := x.translate(nil, "0:0", "4:0"); got[0].outcome != "unresolved" || got[1].outcome != "same" {
		t.Errorf("%v", got)
	}
}

func TestR10_R30_R40_RowIDsAreNeverTranslated(t *testing.T) {
	x := tableOf(t, "legacy/stable_ids")
	domains := map[string]string{}
	for _, ix := range x.json("latest/version.json").at("indices").list() {
		domains[ix.at("type").String()] = ix.at("domain").String()
	}
	for typ, want := range map[string]string{"BTREE": "row_address", "BITMAP": "row_id", "INVERTED": "row_id", "IVF_PQ": "row_id", "ZONEMAP": "row_address"} {
		if got, ok := domains[typ]; ok && got != want {
			t.Errorf("%s holds %s, want %s", typ, got, want)
		}
	}
	if domains["BTREE"] == "" || domains["BITMAP"] == "" {
		t.Errorf("domains: %v", domains)
	}
	tableOf(t, "legacy/multi").json("latest/version.json").at("indices", 1, "domain").is("row_address")
}

func TestR12_UntouchedFragmentsStay(t *testing.T) {
	x := tableOf(t, "legacy/multi")
	sources := map[string]bool{}
	for _, tr := range x.json("latest/fri/history.json").at("transitions").list() {
		for _, s := range tr.at("sources").list() {
			sources[s.at("fragment").String()] = true
		}
	}
	untouched := ""
	s := bufio.NewScanner(strings.NewReader(x.cat("latest/fragments.csv")))
	s.Scan()
	for s.Scan() {
		if f, _, _ := strings.Cut(s.Text(), ","); !sources[f] && tableOf(t, "legacy/multi").translate([]string{"--version", "2"}, f+":0")[0].outcome == "same" {
			untouched = f
		}
	}
	if untouched == "" {
		t.Fatal("every fragment was rewritten")
	}
	if got := x.translate(nil, untouched+":0"); got[0].outcome != "same" {
		t.Errorf("%v", got)
	}
}

func TestR13_RecordsThatDisappearedAlthoughNeeded(t *testing.T) {
	c := tableOf(t, "legacy/fri_dropped").json("latest/changes.json")
	c.at("fri", "records_out", 0, "sources").is("[0,1,2,3]")
	c.at("fri", "needed_but_gone", 0, "needed_by", 0, "name").is("btree_id")
}

func TestR16_R22_NeededByCoverage(t *testing.T) {
	// In "coverage" an index over some of the sources stands beside one over all of them; in "trimmed" a chain was cut.
	for _, name := range []string{"tagged/coverage", "tagged/trimmed", "legacy/chain", "tagged/chain"} {
		s := tableOf(t, name).json("latest/fri/status.json")
		n := 0
		for _, tr := range s.at("transitions").list() {
			for _, by := range tr.at("needed_by").list() {
				if by.at("index").String() == "__lance_frag_reuse" {
					t.Errorf("%s: the reuse index needs itself (R18)", name)
				}
				n++
			}
		}
		if n == 0 {
			t.Errorf("%s: no record is needed by anyone", name)
		}
	}
}

func TestR24_OneGraph(t *testing.T) {
	h := tableOf(t, "tagged/chain").json("latest/fri/history.json")
	produced, consumed := map[string]string{}, map[string]string{}
	for _, tr := range h.at("transitions").list() {
		seq := tr.at("seq").String()
		for _, s := range tr.at("sources").list() {
			s.at("consumed_by").is(seq)
			consumed[s.at("fragment").String()] = seq
			if p := s.at("produced_by").String(); p != "null" && p >= seq {
				t.Errorf("record %s consumes what record %s makes later", seq, p)
			}
		}
		for _, d := range tr.at("destinations").list() {
			d.at("produced_by").is(seq)
			produced[d.at("fragment").String()] = seq
		}
	}
	if produced["6"] == "" || consumed["6"] == "" || produced["6"] >= consumed["6"] {
		t.Errorf("fragment 6: produced by %s, consumed by %s", produced["6"], consumed["6"])
	}
	dup := tableOf(t, "spliced/s_dup").json("latest/fri/history.json")
	dup.at("errors").has("record")
}

func TestR28_FlagsByNumberAndName(t *testing.T) {
	dir := testdata.Copy(t, "legacy/basic")
	edit(t, dir, 5, func(m *pb.Manifest, _ *pb.IndexSection) {
		m.ReaderFeatureFlags = proto.Uint64(m.GetReaderFeatureFlags() | 1<<20 | 1<<10)
	})
	x := table{t, dir, nil}
	v := x.json("latest/version.json")
	var names []string
	for _, f := range v.at("reader_flags").list() {
		names = append(names, f.at("bit").String()+"="+f.at("name").String())
	}
	if want := []string{"10=fragment_reuse_index", "20=null"}; !slices.Equal(names[len(names)-2:], want) {
		t.Errorf("flags %v, want %v at the end", names, want)
	}
	v.at("flag_findings").has("1024") // in one word only
	v.at("translation_refused").has("1048576")
	x.json("latest/manifest.json")
	if rows := strings.Count(x.cat("latest/fragments.csv"), "\n"); rows < 2 {
		t.Error("the fragments are not shown")
	}
	if r := command(t, "", exe, "translate", dir, "0:0"); r.code != 1 || !strings.Contains(r.stderr, "1048576") {
		t.Errorf("translate: exit %d, %q", r.code, r.stderr)
	}
}

func TestR29_TaggedHistoryOnStableRowIDs(t *testing.T) {
	dir := testdata.Copy(t, "spliced/s_v1")
	v := latestVersion(t, dir)
	edit(t, dir, v, func(m *pb.Manifest, _ *pb.IndexSection) {
		m.ReaderFeatureFlags = proto.Uint64(m.GetReaderFeatureFlags() | 2)
		m.WriterFeatureFlags = proto.Uint64(m.GetWriterFeatureFlags() | 2)
	})
	table{t, dir, nil}.json("latest/version.json").at("advice").has("a tagged history on a table with stable row ids is invalid")
}

func TestR31_R36_R42_EveryEntryIsListed(t *testing.T) {
	dir := testdata.Copy(t, "legacy/basic")
	edit(t, dir, 5, func(_ *pb.Manifest, ix *pb.IndexSection) {
		for _, e := range ix.Indices {
			if e.GetName() != "__lance_frag_reuse" {
				ix.Indices = append(ix.Indices, e, &pb.IndexMetadata{
					Uuid: &pb.UUID{Uuid: []byte("0123456789abcdef")}, Name: proto.String("odd"), IndexVersion: proto.Int32(99),
					IndexDetails: &pb.Any{TypeUrl: proto.String("/lance.table.QuantumIndexDetails")},
				})
				break
			}
		}
	})
	x := table{t, dir, nil}
	if names := x.ls("latest/indices"); len(names) != 3 {
		t.Fatalf("indices %v", names)
	}
	x.json("latest/indices/odd/index.json").at("type").has("Quantum")
	for _, name := range x.ls("latest/indices") {
		ix := x.json("latest/indices/" + name + "/index.json")
		if name == "__lance_frag_reuse" {
			ix.at("fields").is("[]")
		} else if name != "odd" {
			var uuids []string
			for _, e := range x.ls("latest/indices/" + name) {
				if e != "index.json" {
					uuids = append(uuids, e)
					x.json("latest/indices/" + name + "/" + e + "/segment.json")
				}
			}
			if len(uuids) != 2 || uuids[1] != uuids[0]+"~2" {
				t.Errorf("segments of %s: %v", name, uuids)
			}
		}
	}
}

func TestR32_LookAlikeAndTwoEntries(t *testing.T) {
	x := tableOf(t, "legacy/lookalike")
	x.json("latest/fri/history.json").at("present").is("false")
	x.json("latest/indices/__lance_frag_reuse/index.json").at("type").is("BTREE")
	x.json("latest/version.json").at("advice").has("__lance_frag_reuse")
	two := tableOf(t, "spliced/c_two")
	two.json("latest/fri/history.json").at("errors").has("two FRI entries")
	if got := two.translate(nil, "0:0", "4:0"); got[0].outcome != "unresolved" || got[1].outcome != "same" {
		t.Errorf("%v", got)
	}
}

// A clone whose history is stored outside, in the table it was cloned from.
