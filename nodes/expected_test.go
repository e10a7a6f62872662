package nodes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/testdata"
)

// expected is the part of an expectation file that the tree can be compared with.
type expected struct {
	Versions []struct {
		Version    uint64
		Reader     uint64 `json:"reader_flags"`
		Rows       *uint64
		Fragments  fragmentList
		Operation  string
		FRIRecords int        `json:"fri_records"`
		Indices    []rawIndex `json:"indices_raw"`
	}
	Indices []struct {
		Name     string
		Segments []struct {
			UUID         string
			FragmentIDs  []uint64 `json:"fragment_ids"`
			ReaderCovers []uint64 `json:"reader_coverage"`
		}
	}
}

// fragmentList is [id, physical rows, deleted rows] per fragment; absent where the expectation only gives a summary.
type fragmentList [][3]uint64

func (f *fragmentList) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '[' {
		return nil
	}
	return json.Unmarshal(b, (*[][3]uint64)(f))
}

type rawIndex struct {
	UUID, Name     string
	DatasetVersion uint64 `json:"dataset_version"`
	IndexVersion   *int64 `json:"index_version"`
	StoredBitmap   []uint64
}

func readExpected(t *testing.T, name string) *expected {
	t.Helper()
	family, base, _ := strings.Cut(name, "/")
	b, err := os.ReadFile(filepath.Join(testdata.Dir(t, family), base+".expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e expected
	if err := json.Unmarshal(b, &e); err != nil && !strings.Contains(err.Error(), "expected.Indices") {
		t.Fatal(err) // the indices of a table that Lance cannot list are an error message
	}
	return &e
}

// versionDoc is what the tests read of version.json.
type versionDoc struct {
	Operation string
	Rows      *uint64
	Fragments int
	Advice    []string
	FRI       struct {
		Present bool
		Tagged  bool
	}
	Reader []struct{ Value uint64 } `json:"reader_flags"`
}

// historyDoc is what the tests read of history.json.
type historyDoc struct {
	Present, Tagged  bool
	IndexVersion     *int `json:"index_version"`
	Warnings, Errors []struct {
		Record  *int
		Message string
	}
	Transitions []struct {
		Seq, Record  int
		ID           string
		Form, Kind   string
		Legacy       *struct{ Version int }
		Sources      []digestDoc
		Destinations []digestDoc
		Error        *string
		RowMap       *struct {
			Path string
			Base *int `json:"base_id"`
		} `json:"row_map"`
	}
}

type digestDoc struct {
	Fragment     uint64
	PhysicalRows uint64 `json:"physical_rows"`
	Live         bool   `json:"live_in_manifest"`
	ProducedBy   *int   `json:"produced_by"`
	ConsumedBy   *int   `json:"consumed_by"`
	CSVOffset    *int64 `json:"csv_offset"`
	CSVBytes     *int64 `json:"csv_bytes"`
}

// indexDoc is what the tests read of index.json.
type indexDoc struct {
	Name, Type, Domain string
	System             bool
	Warnings           []string
	Lance              []struct {
		Wrong bool
		Text  string
	}
	Segments []struct {
		UUID, Directory string
		Duplicate       bool
		Stored          []uint64 `json:"stored_fragments"`
		Covered         []uint64 `json:"covered_fragments"`
		Orphaned        []uint64 `json:"orphaned_fragments"`
		Straddles       []struct {
			Seq                int
			Covered, Uncovered []uint64
		}
	}
	Twice        []uint64 `json:"covered_twice"`
	Unindexed    []uint64 `json:"unindexed_fragments"`
	UnindexedRow *uint64  `json:"unindexed_rows"`
}

func decode[T any](t testing.TB, tr *Tree, path string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(cat(t, tr, path), &v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v
}

// records counts the records of a history as the expectation does: a legacy Version once.
func (h historyDoc) records() int {
	seen := map[string]bool{}
	for _, t := range h.Transitions {
		if t.Legacy != nil {
			seen[fmt.Sprint("v", t.Legacy.Version)] = true
		} else {
			seen[fmt.Sprint("t", t.Record)] = true
		}
	}
	return len(seen)
}

func TestVersionsAsExpected(t *testing.T) {
	for _, family := range []string{"legacy", "tagged"} {
		for _, name := range testdata.Names(t, family) {
			if !testdata.HasExpected(t, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				e := readExpected(t, name)
				tr := openTree(t, name, nil)
				for i, v := range e.Versions {
					if last := i == len(e.Versions)-1; !last && i%4 != 0 {
						continue
					}
					dir := fmt.Sprintf("versions/%d/", v.Version)
					got := decode[versionDoc](t, tr, dir+"version.json")
					if got.Operation != v.Operation && v.Operation != "" {
						t.Errorf("version %d: operation %q, want %q", v.Version, got.Operation, v.Operation)
					}
					if v.Rows != nil && (got.Rows == nil || *got.Rows != *v.Rows) {
						t.Errorf("version %d: rows %v, want %d", v.Version, got.Rows, *v.Rows)
					}
					flags := uint64(0)
					for _, f := range got.Reader {
						flags |= f.Value
					}
					if flags != v.Reader {
						t.Errorf("version %d: reader flags %d, want %d", v.Version, flags, v.Reader)
					}
					var want strings.Builder
					for _, f := range v.Fragments {
						fmt.Fprintf(&want, "%d,%d,%d,%d\n", f[0], f[1], f[2], f[1]-f[2])
					}
					if got := firstColumns(string(cat(t, tr, dir+"fragments.csv")), 4); v.Fragments != nil && got != want.String() {
						t.Errorf("version %d: fragments\n%s, want\n%s", v.Version, got, want.String())
					}
					h := decode[historyDoc](t, tr, dir+"fri/history.json")
					if h.records() != v.FRIRecords {
						t.Errorf("version %d: %d records, want %d", v.Version, h.records(), v.FRIRecords)
					}
					if v.Indices != nil {
						compareRaw(t, tr, dir, v.Indices)
					}
				}
			})
		}
	}
}

// firstColumns keeps the first n columns of a CSV, without its header.
func firstColumns(csv string, n int) string {
	var b strings.Builder
	for i, line := range strings.SplitAfter(csv, "\n") {
		if cols := strings.Split(strings.TrimSuffix(line, "\n"), ","); i > 0 && len(cols) >= n {
			b.WriteString(strings.Join(cols[:n], ",") + "\n")
		}
	}
	return b.String()
}

func compareRaw(t *testing.T, tr *Tree, dir string, want []rawIndex) {
	t.Helper()
	m := decode[struct{ Indices []rawIndex }](t, tr, dir+"manifest.json")
	var got []rawIndex
	for _, ix := range m.Indices {
		got = append(got, rawIndex{UUID: ix.UUID, Name: ix.Name, DatasetVersion: ix.DatasetVersion, IndexVersion: ix.IndexVersion})
	}
	for i := range want {
		want[i].StoredBitmap = nil
	}
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("%s: index entries\n%+v, want\n%+v", dir, got, want)
	}
}

// TestCoverageAsLanceLists (R18, R26, R27) compares derived coverage with what Lance's own reader lets each segment
// answer.
func TestCoverageAsLanceLists(t *testing.T) {
	for _, family := range []string{"legacy", "tagged"} {
		for _, name := range testdata.Names(t, family) {
			if !testdata.HasExpected(t, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				e := readExpected(t, name)
				tr := openTree(t, name, nil)
				live := map[uint64]bool{}
				for _, f := range e.Versions[len(e.Versions)-1].Fragments {
					live[f[0]] = true
				}
				got := map[string]indexDoc{}
				es, err := mustDir(t, tr, "latest/indices").Entries(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, en := range es {
					d := decode[indexDoc](t, tr, "latest/indices/"+en.Name+"/index.json")
					got[d.Name] = d
				}
				for _, ix := range e.Indices {
					d, ok := got[ix.Name]
					if !ok {
						t.Errorf("index %q is not listed", ix.Name)
						continue
					}
					for _, s := range ix.Segments {
						if len(live) > 0 { // Lance lists dead fragments too
							s.FragmentIDs = slices.DeleteFunc(s.FragmentIDs, func(f uint64) bool { return !live[f] })
						}
						for _, seg := range d.Segments {
							if seg.UUID == s.UUID && !d.System && !slices.Equal(seg.Covered, s.FragmentIDs) {
								t.Errorf("index %q segment %s covers %v, Lance says %v (stored %v)", ix.Name, s.UUID, seg.Covered, s.FragmentIDs, seg.Stored)
							}
						}
					}
				}
			})
		}
	}
}

func mustDir(t testing.TB, tr *Tree, path string) Dir {
	t.Helper()
	n, err := Resolve(t.Context(), tr.Root(), path)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := n.(Dir)
	if !ok {
		t.Fatalf("%s is no directory", path)
	}
	return d
}
