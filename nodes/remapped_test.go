package nodes

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/indexfile"
	"github.com/frifs/frifs/internal/testdata"
	"github.com/frifs/frifs/translate"
)

// remapTest is one segment of a version of a test dataset.
type remapTest struct {
	t   testing.TB
	tr  *Tree
	sc  *segmentScan
	dir string // of the segment in the tree
}

// remapTests gives every segment of a version that has a remapped/ with translated addresses.
func remapTests(t testing.TB, tr *Tree, number string) []remapTest {
	t.Helper()
	ctx := context.Background()
	num, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	n, err := tr.version(ctx, &num)
	if err != nil {
		t.Fatal(err)
	}
	l, err := n.load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var out []remapTest
	for _, s := range n.addressSegments(ctx, l) {
		if s.err != nil {
			continue
		}
		sc, err := s.at.scan(ctx, s.at.key(""))
		if err != nil {
			t.Errorf("%s: %v", s.at.path(), err)
			continue
		}
		out = append(out, remapTest{t, tr, sc, "versions/" + number + "/indices/" + s.at.index + "/" + s.s.dir})
	}
	return out
}

// treeReader reads a file of the tree as if it were a stored one.
type treeReader struct {
	Handle
	size int64
}

func (r treeReader) Size() int64 { return r.size }

func (r treeReader) ReadAt(p []byte, off int64) (int, error) {
	return r.ReadAtContext(context.Background(), p, off)
}

func (r treeReader) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := r.Handle.ReadAt(ctx, p, off)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// openTreeFile opens a file of the tree for package indexfile.
func openTreeFile(ctx context.Context, tr *Tree, path string) (indexfile.Reader, error) {
	n, err := Resolve(ctx, tr.Root(), path)
	if err != nil {
		return nil, err
	}
	a, err := n.Attr(ctx)
	if err != nil {
		return nil, err
	}
	h, err := n.(File).Open(ctx)
	if err != nil {
		return nil, err
	}
	return treeReader{h, a.Size}, nil
}

// remapped is the segment as its remapped files show it.
func (r remapTest) remapped() *indexfile.Segment {
	seg := indexfile.NewSegment(r.sc.l.m, r.sc.s.ix, r.sc.seg.Files, func(ctx context.Context, path string) (indexfile.Reader, error) {
		return openTreeFile(ctx, r.tr, r.dir+"/remapped/"+path)
	})
	seg.Rows = r.sc.seg.Rows
	return seg
}

// stored is one address of an index file.
type storedAt struct {
	row  uint64
	addr fri.RowAddr
}

// mostAddresses is how many addresses of a file are compared: the first ones.
const mostAddresses = 100_000

// addressesOf lists the first addresses of a file, and tells the file's own number of rows.
func addressesOf(t testing.TB, seg *indexfile.Segment, path string) (out []storedAt, rows uint64) {
	t.Helper()
	ctx := context.Background()
	f, err := seg.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := f.Scan(ctx, indexfile.Position{})
	if err != nil {
		t.Fatal(err)
	}
	var b indexfile.Batch
	for c != nil && len(out) < mostAddresses {
		if err := c.Next(ctx, &b, min(1000, mostAddresses-len(out))); err != nil {
			t.Fatal(err)
		}
		if len(b.Addrs) == 0 {
			break
		}
		for i, a := range b.Addrs {
			out = append(out, storedAt{b.Rows[i], a})
		}
	}
	return out, f.Rows
}

// answer is what became of an address, by the translator and the derived coverage alone.
type answer struct {
	outcome translate.Outcome
	addr    fri.RowAddr
	covered bool
}

func (a answer) String() string {
	if a.outcome.HasAddress() {
		return fmt.Sprint(a.outcome, " ", uint64(a.addr))
	}
	return a.outcome.String()
}

func (a answer) kept() bool { return a.covered && a.outcome.HasAddress() }

// answers translates the addresses of a file.
func (r remapTest) answers(list []storedAt) []answer {
	r.t.Helper()
	tr, err := r.sc.at.n.translator(r.sc.l, r.sc.h)
	if err != nil {
		r.t.Fatal(err)
	}
	addrs := make([]fri.RowAddr, len(list))
	for i, s := range list {
		addrs[i] = s.addr
	}
	res := translate.Results{New: make([]fri.RowAddr, len(addrs)), Outcome: make([]translate.Outcome, len(addrs))}
	if err := tr.Translate(context.Background(), addrs, &res); err != nil {
		r.t.Fatal(err)
	}
	covered := r.sc.l.remapCoverage(r.sc.h.h)[r.sc.s.ix.Ordinal].Live
	out := make([]answer, len(list))
	for i, o := range res.Outcome {
		out[i] = answer{outcome: o}
		if o.HasAddress() {
			out[i].addr, out[i].covered = res.New[i], covered.Contains(uint32(res.New[i].Frag()))
		}
	}
	return out
}

// check compares a remapped file with the stored one, address by address.
func (r remapTest) check(f scannedFile, stored []storedAt, answers []answer) {
	t := r.t
	t.Helper()
	got, rows := addressesOf(t, r.remapped(), f.path)
	if _, want := addressesOf(t, r.sc.seg, f.path); rows != want {
		t.Errorf("%s %s: %d rows, the stored file has %d", r.dir, f.path, rows, want)
	}
	switch f.how {
	case indexfile.Flat, indexfile.InPlace:
		if len(got) != len(stored) {
			t.Fatalf("%s %s: %d addresses, stored %d", r.dir, f.path, len(got), len(stored))
		}
		for i, s := range stored {
			want := indexfile.Placeholder(s.row)
			if answers[i].kept() {
				want = answers[i].addr
			}
			if got[i].row != s.row || got[i].addr != want {
				t.Fatalf("%s %s: row %d: %v became %v in row %d, want %v (%v)", r.dir, f.path, s.row, s.addr, got[i].addr, got[i].row, want, answers[i])
			}
		}
	case indexfile.Reserialised:
		want := map[uint64][]fri.RowAddr{}
		for i, s := range stored {
			if answers[i].kept() {
				want[s.row] = append(want[s.row], answers[i].addr)
			}
		}
		have := map[uint64][]fri.RowAddr{}
		for _, s := range got {
			have[s.row] = append(have[s.row], s.addr)
		}
		for row, set := range want {
			slices.Sort(set)
			if !slices.Equal(have[row], slices.Compact(set)) {
				t.Fatalf("%s %s: row %d: %v, want %v", r.dir, f.path, row, have[row], set)
			}
		}
		if len(have) != len(want) {
			t.Errorf("%s %s: sets in rows %v, want %v", r.dir, f.path, slices.Sorted(maps.Keys(have)), slices.Sorted(maps.Keys(want)))
		}
	case indexfile.Zones:
		r.checkZones(f, got, stored, answers)
	case indexfile.HowUnknown, indexfile.Verbatim:
	}
}

// checkZones checks that no zone claims what its index does not answer for; package indexfile compares their rows.
func (r remapTest) checkZones(f scannedFile, got, stored []storedAt, answers []answer) {
	covered := r.sc.l.remapCoverage(r.sc.h.h)[r.sc.s.ix.Ordinal].Live
	zones := func(list []storedAt) (n int) {
		for _, s := range list {
			if s.row != indexfile.NoRow {
				n++
			}
		}
		return n
	}
	if zones(got) != zones(stored) {
		r.t.Errorf("%s %s: %d zones, stored %d", r.dir, f.path, zones(got), zones(stored))
	}
	for _, s := range got {
		if fr := s.addr.Frag(); fr != indexfile.PlaceholderFragment && !covered.Contains(uint32(fr)) {
			r.t.Errorf("%s %s: row %d: a zone of fragment %d, which is not covered", r.dir, f.path, s.row, fr)
		}
	}
	nulls := map[fri.RowAddr]bool{}
	for i, s := range stored {
		if s.row == indexfile.NoRow && answers[i].kept() {
			nulls[answers[i].addr] = true
		}
	}
	for _, s := range got {
		if s.row == indexfile.NoRow && !nulls[s.addr] {
			r.t.Errorf("%s %s: %v is no row with a null", r.dir, f.path, s.addr)
		}
	}
}

// appendLine appends a line of addresses.csv.
func (s storedAt) appendLine(b []byte, name string, a answer) []byte {
	b = append(append(b, name...), ',')
	if s.row != indexfile.NoRow {
		b = strconv.AppendUint(b, s.row, 10)
	}
	b = strconv.AppendUint(append(b, ','), uint64(s.addr), 10)
	b = append(append(append(b, ','), a.outcome.String()...), ',')
	if a.outcome.HasAddress() {
		b = strconv.AppendUint(b, uint64(a.addr), 10)
	}
	return append(strconv.AppendBool(append(b, ','), a.covered), '\n')
}

// truth is what is to be expected of each address, from scans of rows; nil where that is not known.
func truth(t testing.TB, name string) map[fri.RowAddr]string {
	if !testdata.HasExpected(t, name) {
		return nil
	}
	out := map[fri.RowAddr]string{}
	for row := range testdata.Expected(t, name) {
		outcome, to := testdata.Want(row)
		out[fri.RowAddr(row.Old)] = outcome
		if to != nil {
			out[fri.RowAddr(row.Old)] += fmt.Sprint(" ", *to)
		}
	}
	return out
}

// TestEveryRemappedAddress (R05, R06) checks, for all test datasets, that each address in each remapped file is the
// translation of the stored one, that no row is added, lost or moved, and that addresses.csv lists the same.
func TestEveryRemappedAddress(t *testing.T) {
	var seen [indexfile.Zones + 1]atomic.Int64 // addresses compared, by the way their file is made
	t.Run("all", func(t *testing.T) { everyRemappedAddress(t, seen[:]) })
	for how := indexfile.Flat; how <= indexfile.Zones; how++ {
		if n := seen[how].Load(); n < 100 {
			t.Errorf("only %d addresses in %v files", n, how)
		}
	}
}

func everyRemappedAddress(t *testing.T, seen []atomic.Int64) {
	for _, family := range []string{"legacy", "tagged", "spliced"} {
		for _, name := range testdata.Names(t, family) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tr := openTree(t, name, nil)
				var known map[fri.RowAddr]string
				if base := path.Base(name); base != "external" && base != "big" {
					known = truth(t, name)
				}
				all := names(t, tr, "versions")
				for _, r := range remapTests(t, tr, newestOf(t, tr)) {
					r.checkSegment(seen, known)
				}
				for _, r := range remapTests(t, tr, all[len(all)/2]) {
					r.checkSegment(seen, nil)
				}
			})
		}
	}
}

// checkSegment checks every file of the segment, and the list of its addresses.
func (r remapTest) checkSegment(seen []atomic.Int64, known map[fri.RowAddr]string) {
	t := r.t
	t.Helper()
	listed := 0
	lines := []byte("file,row,old_row_addr,outcome,new_row_addr,covered\n")
	for _, f := range r.sc.files {
		if !f.addresses() {
			if f.err != nil {
				t.Errorf("%s: %v", f.path, f.err)
			} else if !bytes.Equal(cat(t, r.tr, r.dir+"/stored/"+f.path), cat(t, r.tr, r.dir+"/remapped/"+f.path)) {
				t.Errorf("%s %s: remapped differs, and holds no addresses", r.dir, f.path)
			}
			continue
		}
		list, _ := addressesOf(t, r.sc.seg, f.path)
		answers := r.answers(list)
		r.check(f, list, answers)
		seen[f.how].Add(int64(len(list)))
		listed += len(list)
		for i, s := range list {
			lines = s.appendLine(lines, f.path, answers[i])
			if want, ok := known[s.addr]; ok && answers[i].String() != want {
				t.Errorf("%s %s: %v is %v, and really %s", r.dir, f.path, s.addr, answers[i], want)
			}
		}
	}
	if listed >= mostAddresses {
		return // its size alone takes a pass over millions of addresses; TestWalkEveryDataset makes it
	}
	if got := cat(t, r.tr, r.dir+"/scan/addresses.csv"); !bytes.Equal(got, lines) {
		t.Errorf("%s: addresses.csv has %d bytes, the list %d, or they differ", r.dir, len(got), len(lines))
	}
}
