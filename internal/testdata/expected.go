package testdata

import (
	"bufio"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Row is what is known of one physical address of a dataset: where its row is in the last version. The knowledge comes
// from scans of the rows, not from a fragment reuse index.
type Row struct {
	Old     uint64  // row address
	Outcome string  // same, moved or dropped
	New     *uint64 // address of the live row; nil if the row is deleted
	Detail  string  // live, deleted_before, deleted_after or dangling (testdata/README.md)
	Last    *uint64 // last address of a walk through a complete history; nil if there is none

	of *expectation
}

// expectation is what the rules of Want need to know of a row's dataset.
type expectation struct {
	kept        map[uint32]bool // source fragments of the records that the last version holds; nil if not known
	none        bool            // the last version holds no record
	unrecorded  map[uint64]bool // addresses that went through a rewrite without a record
	sampled     bool
	hash        string
	perFragment []FragmentHash
}

// Expected iterates over the known addresses of a dataset in ascending order of address: all of them, or a sample
// (Hashes says which). A dataset without an expectation fails the test: see HasExpected.
func Expected(tb testing.TB, name string) iter.Seq[Row] {
	tb.Helper()
	dir, base := split(tb, name)
	of := expectationOf(tb, dir, base)
	for _, suffix := range []string{".expected.csv", ".expected.sample.csv", ".expected.runs.csv"} {
		if path := filepath.Join(dir, base+suffix); exists(path) {
			return func(yield func(Row) bool) {
				if err := readRows(path, of, yield); err != nil {
					tb.Fatal(err)
				}
			}
		}
	}
	tb.Fatalf("no expectation for %q", name)
	return nil
}

// HasExpected reports whether there is an expectation for the dataset.
func HasExpected(tb testing.TB, name string) bool {
	tb.Helper()
	dir, base := split(tb, name)
	return exists(filepath.Join(dir, base+".expected.json"))
}

// FragmentHash covers the addresses of one fragment; see Hashes.
type FragmentHash struct {
	Fragment uint32
	Rows     uint64
	SHA256   string
}

// Hashes returns, for a dataset whose expectation is a sample, the SHA-256 (hexadecimal) over the last addresses of all
// its addresses (ascending; as u64, little-endian, 2^64-1 for none), and the same for each fragment. ok is false
// for the other datasets.
func Hashes(tb testing.TB, name string) (all string, fragments []FragmentHash, ok bool) {
	tb.Helper()
	dir, base := split(tb, name)
	e := expectationOf(tb, dir, base)
	return e.hash, e.perFragment, e.sampled
}

// Want returns the outcome that frifs has to give for a row's old address in the last version (docs/DESIGN.md,
// "Meaning"), and the new address where one has to be given.
//
// The expectation speaks of rows, frifs of what the last version's history records. They differ in these cases:
// a rewrite that left no record, or whose record was trimmed away, is invisible, so that the address ends in a
// fragment that is gone (dangling); a row with a deletion mark still has an address (deleted_now); a row that
// a compaction dropped is dropped only where that compaction's record is still kept.
func Want(r Row) (outcome string, addr *uint64) {
	switch {
	case r.of.unrecorded[r.Old]:
		return "dangling", nil
	case r.of.none && (r.Last == nil || *r.Last != r.Old || r.Detail == "dangling"):
		return "dangling", nil
	case r.of.none && r.Detail == "deleted_after":
		return "deleted_now", r.Last
	case r.of.none:
		return "same", r.Last
	case r.Detail == "deleted_after":
		return "deleted_now", r.Last
	case r.Detail == "dangling":
		return "dangling", nil
	case r.Outcome == "dropped" && r.of.kept != nil && !r.of.kept[uint32(r.Old>>32)]:
		return "dangling", nil
	case r.Outcome == "dropped":
		return "dropped", nil
	}
	return r.Outcome, r.New
}

// expectedJSON is the part of <name>.expected.json that is used here.
type expectedJSON struct {
	Table     string
	Versions  []json.RawMessage
	Addresses struct {
		EveryNth  int            `json:"csv_every_nth"`
		SHA256    string         `json:"sha256_last_row_addr_u64le"`
		Fragments []fragmentLine `json:"per_fragment"`
	}
}

// fragmentLine is [fragment, rows, hash].
type fragmentLine FragmentHash

func (f *fragmentLine) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&f.Fragment, &f.Rows, &f.SHA256})
}

// digest is [fragment, physical rows, deleted rows].
type digest struct{ fragment uint32 }

func (d *digest) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&d.fragment})
}

// recordJSON is one record of a history: a legacy version (groups) or a transition (sources).
type recordJSON struct {
	Groups  []struct{ Old []digest }
	Sources []digest
}

type versionJSON struct {
	IndicesRaw *[]struct {
		Name string
		FRI  struct{ Records []recordJSON }
	} `json:"indices_raw"`
}

func readJSON(tb testing.TB, path string) expectedJSON {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var e expectedJSON
	if err := json.Unmarshal(b, &e); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return e
}

func expectationOf(tb testing.TB, dir, base string) *expectation {
	tb.Helper()
	j := readJSON(tb, filepath.Join(dir, base+".expected.json"))
	of := &expectation{kept: map[uint32]bool{}, none: true, hash: j.Addresses.SHA256, sampled: j.Addresses.EveryNth > 0}
	for _, f := range j.Addresses.Fragments {
		of.perFragment = append(of.perFragment, FragmentHash(f))
	}
	// The index section is written down only where it changed: the last one holds for the last version.
	var last versionJSON
	for _, raw := range j.Versions {
		var v versionJSON
		if err := json.Unmarshal(raw, &v); err != nil {
			tb.Fatalf("%s: version: %v", base, err)
		}
		if v.IndicesRaw != nil {
			last = v
		}
	}
	if last.IndicesRaw != nil {
		for _, ix := range *last.IndicesRaw {
			if ix.Name == "__lance_frag_reuse" {
				of.keep(ix.FRI.Records)
			}
		}
	}
	of.unrecorded = unrecorded(tb, filepath.Join(dir, base+".oracle_diff.csv"))
	return of
}

func (e *expectation) keep(records []recordJSON) {
	for _, r := range records {
		e.none = false
		for _, d := range r.Sources {
			e.kept[d.fragment] = true
		}
		for _, g := range r.Groups {
			for _, d := range g.Old {
				e.kept[d.fragment] = true
			}
		}
	}
}

// unrecorded reads the first column of a list of addresses for which the official reader, too, has no answer.
func unrecorded(tb testing.TB, path string) map[uint64]bool {
	tb.Helper()
	if !exists(path) {
		return nil
	}
	of := map[uint64]bool{}
	err := readCSV(path, func(get func(string) string) (bool, error) {
		a, err := strconv.ParseUint(get("old_row_addr"), 10, 64)
		of[a] = true
		return true, err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return of
}

// readRows gives the rows of an expectation file; a line with a count stands for that many consecutive addresses.
func readRows(path string, of *expectation, yield func(Row) bool) error {
	return readCSV(path, func(get func(string) string) (bool, error) {
		old, err := strconv.ParseUint(get("old_row_addr"), 10, 64)
		if err != nil {
			return false, err
		}
		n := uint64(1)
		if s := get("count"); s != "" {
			if n, err = strconv.ParseUint(s, 10, 64); err != nil {
				return false, err
			}
		}
		start := Row{Old: old, Outcome: get("outcome"), Detail: get("detail"), of: of}
		if start.New, err = address(get("new_row_addr")); err != nil {
			return false, err
		}
		if start.Last, err = address(get("last_row_addr")); err != nil {
			return false, err
		}
		for i := range n {
			r := start
			r.Old += i
			r.New, r.Last = plus(start.New, i), plus(start.Last, i)
			if !yield(r) {
				return false, nil
			}
		}
		return true, nil
	})
}

func address(s string) (*uint64, error) {
	if s == "" {
		return nil, nil
	}
	a, err := strconv.ParseUint(s, 10, 64)
	return &a, err
}

func plus(a *uint64, n uint64) *uint64 {
	if a == nil || n == 0 {
		return a
	}
	b := *a + n
	return &b
}

// readCSV calls line for each data line of a file without quotes; get returns a column by name, "" if there is none.
func readCSV(path string, line func(get func(string) string) (more bool, err error)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	var header, fields []string
	get := func(name string) string {
		for i, h := range header {
			if h == name && i < len(fields) {
				return fields[i]
			}
		}
		return ""
	}
	for n := 1; s.Scan(); n++ {
		if n == 1 {
			header = strings.Split(s.Text(), ",")
			continue
		}
		fields = strings.Split(s.Text(), ",")
		more, err := line(get)
		if err != nil {
			return fmt.Errorf("%s: line %d: %w", path, n, err)
		}
		if !more {
			return nil
		}
	}
	return s.Err()
}
