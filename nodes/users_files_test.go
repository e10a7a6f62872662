package nodes

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/indexfile"
	"github.com/frifs/frifs/internal/lancefile"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
)

// summaryDoc is what the tests read of a segment's scan/summary.json.
type summaryDoc struct {
	Complete     bool
	NeedsFRI     *bool `json:"needs_fri"`
	Entries      uint64
	Outcomes     map[string]uint64
	Kept, Masked *uint64
	Placeholders *uint64
	LeftOut      *uint64 `json:"left_out"`
	Check        *struct {
		Agree        bool
		OnlyInFiles  []uint64 `json:"only_in_files"`
		OnlyInBitmap []uint64 `json:"only_in_stored_bitmap"`
	} `json:"bitmap_check"`
	Whole     []struct{ Fragment, Sets uint64 } `json:"whole_fragments_unresolved"`
	Fragments []struct {
		Fragment, Entries uint64
		Live, Needs       bool
	}
	Files []struct {
		Path, How string
		Entries   uint64
		Error     *struct{ Kind string }
	}
}

// segmentDirs gives the directories of the segments of the latest version that store rows, by index.
func segmentDirs(t testing.TB, tr *Tree) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, ix := range names(t, tr, "latest/indices") {
		for _, s := range names(t, tr, "latest/indices/"+ix) {
			if dir := "latest/indices/" + ix + "/" + s; s != "index.json" && slices.Contains(names(t, tr, dir), "scan") {
				out[ix] = append(out[ix], dir)
			}
		}
	}
	return out
}

// segmentOf gives the directory of the only segment of an index.
func segmentOf(t testing.TB, tr *Tree, index string) string {
	t.Helper()
	dirs := segmentDirs(t, tr)[index]
	if len(dirs) != 1 {
		t.Fatalf("index %s has the segments %v, want one", index, dirs)
	}
	return dirs[0]
}

// remappedRows lists the addresses of a remapped file of the latest version, by row.
func remappedRows(t testing.TB, tr *Tree, dir, path string) map[uint64]string {
	t.Helper()
	for _, r := range remapTests(t, tr, newestOf(t, tr)) {
		if strings.TrimPrefix(r.dir, "versions/"+newestOf(t, tr)+"/") != strings.TrimPrefix(dir, "latest/") {
			continue
		}
		list, _ := addressesOf(t, r.remapped(), path)
		out := map[uint64]string{}
		for _, s := range list {
			out[s.row] = s.addr.String()
		}
		return out
	}
	t.Fatalf("no segment %s", dir)
	return nil
}

// readColumns reads every column of a Lance file in the tree.
func readColumns(t testing.TB, tr *Tree, path string) map[string]*lancefile.Array {
	t.Helper()
	r, err := openTreeFile(t.Context(), tr, path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := lancefile.Open(t.Context(), r, r.Size())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	out := map[string]*lancefile.Array{}
	for _, l := range f.Leaves() {
		name, _, _ := strings.Cut(l.Path, ".")
		v, err := lancefile.OpenValues(t.Context(), f, name)
		if err != nil {
			t.Fatalf("%s: column %q: %v", path, name, err)
		}
		if out[name], err = v.Read(t.Context(), 0, v.Rows()); err != nil {
			t.Fatalf("%s: column %q: %v", path, name, err)
		}
	}
	return out
}

func number(t testing.TB, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// openDir makes the tree of a dataset in a folder.
func openDir(t testing.TB, dir string, change func(*Config)) *Tree {
	t.Helper()
	st, err := store.OpenURI(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return openStore(t, st, "", change)
}

// csvRows reads addresses.csv by row.
func csvRows(t testing.TB, tr *Tree, dir string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for i, line := range strings.Split(strings.TrimSuffix(string(cat(t, tr, dir+"/scan/addresses.csv")), "\n"), "\n") {
		if f := strings.Split(line, ","); i > 0 {
			out[f[1]] = f
		}
	}
	return out
}

// TestR01DanglingEntries: entries of a fragment that was wholly deleted dangle, are counted, and have a placeholder.
func TestR01DanglingEntries(t *testing.T) {
	tr := openTree(t, "legacy/deleted_fragment", nil)
	dir := segmentOf(t, tr, "btree_id")
	s := decode[summaryDoc](t, tr, dir+"/scan/summary.json")
	if s.Outcomes["dangling"] != 117 || s.Entries != 689 || s.Outcomes["same"] != 0 {
		t.Errorf("summary: %+v", s)
	}
	rows := remappedRows(t, tr, dir, "page_data.lance")
	dangling := 0
	for row, f := range csvRows(t, tr, dir) {
		if f[3] != "dangling" {
			continue
		}
		dangling++
		if want := "4294967294:" + row; f[4] != "" || f[5] != "false" || rows[number(t, row)] != want {
			t.Errorf("row %s: %v, remapped to %s, want %s", row, f, rows[number(t, row)], want)
		}
	}
	if dangling != 117 || len(rows) != 689 {
		t.Errorf("%d dangling lines, %d rows", dangling, len(rows))
	}
}

// TestR02StraddlingGroup: of a group that is covered in part the rows need a scan; nothing of it is served.
func TestR02StraddlingGroup(t *testing.T) {
	for _, name := range []string{"spliced/c_str0", "spliced/c_str1"} {
		tr := openTree(t, name, nil)
		dir := segmentOf(t, tr, "id_idx")
		s := decode[summaryDoc](t, tr, dir+"/scan/summary.json")
		if s.Outcomes["moved"] == 0 || *s.Masked != s.Outcomes["moved"] || *s.Kept != 0 || *s.Placeholders != s.Entries {
			t.Errorf("%s: %+v", name, s)
		}
		for row, a := range remappedRows(t, tr, dir, "page_data.lance") {
			if !strings.HasPrefix(a, "4294967294:") {
				t.Errorf("%s: row %d is served as %s", name, row, a)
			}
		}
	}
}

// TestR03ZonesAreTranslated: a zone through an ordered compaction stays a zone, in the new fragment.
func TestR03ZonesAreTranslated(t *testing.T) {
	tr := openTree(t, "legacy/all_types", nil)
	ix := indexOfType(t, tr, "ZONEMAP")
	dir := "latest/indices/" + ix.Name + "/" + ix.Segments[0].Directory
	seen := 0
	for row, a := range remappedRows(t, tr, dir, "zonemap.lance") {
		if row != indexfile.NoRow {
			if seen++; !strings.HasPrefix(a, "4:") {
				t.Errorf("zone %d starts at %s, want one of fragment 4", row, a)
			}
		}
	}
	if s := decode[summaryDoc](t, tr, dir+"/scan/summary.json"); seen == 0 || s.Kept != nil || s.Placeholders != nil || s.NeedsFRI == nil || !*s.NeedsFRI {
		t.Errorf("%d zones, summary %+v", seen, s)
	}
}

// TestR04R11AddressesAndBitmapOutOfStep: the stored bitmap names the new fragment, the files hold the old addresses; and
// the reverse. The addresses decide.
func TestR04R11AddressesAndBitmapOutOfStep(t *testing.T) {
	tr := openTree(t, "legacy/deleted_fragment", nil)
	dir := segmentOf(t, tr, "btree_id")
	s := decode[summaryDoc](t, tr, dir+"/scan/summary.json")
	if c := s.Check; c == nil || c.Agree || !slices.Equal(c.OnlyInFiles, []uint64{0, 1, 3, 4, 5}) || !slices.Equal(c.OnlyInBitmap, []uint64{6}) {
		t.Errorf("swapped bitmap over old addresses: %+v", s.Check)
	}
	if s.NeedsFRI == nil || !*s.NeedsFRI || *s.Kept == 0 || *s.Masked != 0 {
		t.Errorf("summary: %+v", s)
	}
	// The files hold addresses of live fragments, the bitmap names one that is gone.
	m := indexTable(t)
	m.version(1, fragments(0, 1, 2, 3), m.entry(9))
	s = decode[summaryDoc](t, m.tree(nil), m.dir+"/scan/summary.json")
	if c := s.Check; c.Agree || len(c.OnlyInFiles) != 4 || !slices.Equal(c.OnlyInBitmap, []uint64{9}) || *s.NeedsFRI || *s.Kept != 0 || *s.Masked != s.Entries {
		t.Errorf("reverse: %+v, %+v", s, s.Check)
	}
}

// TestR05R06RowsStayPaired: in files with a row per address everything but the addresses is as it was stored, and no row
// leaves, whatever was dropped.
func TestR05R06RowsStayPaired(t *testing.T) {
	tr := openTree(t, "legacy/all_types", nil)
	dropped := 0
	for _, typ := range []string{"VECTOR", "INVERTED"} {
		for _, ix := range names(t, tr, "latest/indices") {
			d := decode[indexDoc](t, tr, "latest/indices/"+ix+"/index.json")
			if d.Type != typ {
				continue
			}
			dir := "latest/indices/" + ix + "/" + d.Segments[0].Directory
			s := decode[summaryDoc](t, tr, dir+"/scan/summary.json")
			dropped += int(s.Outcomes["dropped"])
			for _, f := range s.Files {
				stored, now := readColumns(t, tr, dir+"/stored/"+f.Path), readColumns(t, tr, dir+"/remapped/"+f.Path)
				if len(stored) == 0 {
					t.Fatalf("%s %s has no columns", ix, f.Path)
				}
				for name, b := range stored {
					if same := reflect.DeepEqual(b, now[name]); same == (name == "_rowid") {
						t.Errorf("%s %s: column %q is the same: %t", ix, f.Path, name, same)
					}
				}
			}
		}
	}
	if dropped == 0 {
		t.Error("no dropped row in any vector or full-text index")
	}
}

// TestR14R39StaleIndex: dangling and masked counts tell an index that returns dead addresses from one that does not.
func TestR14R39StaleIndex(t *testing.T) {
	for name, want := range map[string]bool{"legacy/fri_dropped": true, "legacy/deleted_fragment": true, "legacy/basic": false, "tagged/drained": false} {
		tr := openTree(t, name, nil)
		stale := false
		for _, dirs := range segmentDirs(t, tr) {
			for _, dir := range dirs {
				s := decode[summaryDoc](t, tr, dir+"/scan/summary.json")
				stale = stale || s.Outcomes["dangling"] > 0 || *s.Masked > 0
			}
		}
		if stale != want {
			t.Errorf("%s: stale entries %t, want %t", name, stale, want)
		}
	}
}

// TestR38MaskedEntries: the bitmap names fragment 1, the file holds rows of 0 to 3; all are live.
func TestR38MaskedEntries(t *testing.T) {
	m := indexTable(t)
	m.version(1, fragments(0, 1, 2, 3), m.entry(1))
	tr := m.tree(nil)
	s := decode[summaryDoc](t, tr, m.dir+"/scan/summary.json")
	if s.Outcomes["same"] != s.Entries || *s.Kept+*s.Masked != s.Entries || *s.Kept == 0 || *s.Masked <= *s.Kept || *s.Placeholders != *s.Masked {
		t.Errorf("summary: %+v", s)
	}
	rows := remappedRows(t, tr, m.dir, "page_data.lance")
	for row, f := range csvRows(t, tr, m.dir) {
		live := strings.HasPrefix(rows[number(t, row)], "1:")
		if (f[5] == "true") != live || live == strings.HasPrefix(rows[number(t, row)], "4294967294:") {
			t.Errorf("row %s: %v, served as %s", row, f, rows[number(t, row)])
		}
	}
}

// TestNeededByAddresses: which records the addresses need, against the history of a chain.
func TestNeededByAddresses(t *testing.T) {
	type doc struct {
		Complete    bool
		Segments    []struct{ Scanned bool }
		Transitions []struct {
			Needed   *bool
			NeededBy []struct {
				Index, UUID string
				Entries     uint64
				Fragments   []uint64
			} `json:"needed_by"`
			KeptFor []int `json:"kept_for"`
			Unclear []any
		}
	}
	d := decode[doc](t, openTree(t, "tagged/chain", nil), "latest/fri/scan/needed.json")
	if !d.Complete || len(d.Segments) != 5 || len(d.Transitions) != 5 {
		t.Fatalf("%+v", d)
	}
	kept := 0
	for i, x := range d.Transitions {
		if x.Needed == nil || !*x.Needed || len(x.Unclear) > 0 {
			t.Errorf("transition %d: %+v", i+1, x)
		}
		kept += len(x.KeptFor)
	}
	if by := d.Transitions[0].NeededBy; len(by) != 2 || by[0].Entries != 368 || !slices.Equal(by[0].Fragments, []uint64{0, 1}) || kept == 0 {
		t.Errorf("transition 1: %+v, %d kept for others", by, kept)
	}
	// After the indices were rewritten nothing needs the record of the compaction before.
	d = decode[doc](t, openTree(t, "legacy/remapped", nil), "latest/fri/scan/needed.json")
	if n := d.Transitions[0].Needed; n == nil || *n {
		t.Errorf("legacy/remapped: %+v", d.Transitions[0])
	}
	// A segment that cannot be scanned makes it unclear.
	dir := testdata.Copy(t, "legacy/remapped")
	files, err := filepath.Glob(filepath.Join(dir, "_indices", "*", "page_data.lance"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		if err := os.Truncate(f, 100); err != nil {
			t.Fatal(err)
		}
	}
	d = decode[doc](t, openDir(t, dir, nil), "latest/fri/scan/needed.json")
	if x := d.Transitions[0]; d.Complete || x.Needed != nil || len(x.Unclear) == 0 {
		t.Errorf("a damaged file: %+v", d)
	}
}

// indexedTable is a made-up table with the files of a real B-tree over fragments 0 to 3 of ten rows.
type indexedTable struct {
	*made
	uuid [16]byte
	dir  string // of the segment in the tree
}

func indexTable(t testing.TB) *indexedTable {
	t.Helper()
	m := makeTable(t)
	src := testdata.Dataset(t, "spliced/s_v0")
	files, err := filepath.Glob(filepath.Join(src, "_indices", "*", "page_data.lance"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	out := &indexedTable{made: m}
	out.uuid[15] = 7
	const name = "00000000-0000-0000-0000-000000000007"
	if err := os.CopyFS(filepath.Join(m.dir, "_indices", name), os.DirFS(filepath.Dir(files[0]))); err != nil {
		t.Fatal(err)
	}
	out.dir = "latest/indices/i/" + name
	return out
}

// dir0 is the directory of the dataset.
func (m *indexedTable) dir0() string { return m.made.dir }

// entry is the index entry, with a bitmap.
func (m *indexedTable) entry(bitmap ...uint32) *pb.IndexMetadata {
	return entry("i", btreeType, m.uuid[15], bitmap...)
}
