package nodes

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/indexfile"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/testdata"
	"github.com/frifs/frifs/translate"
)

// typeDir gives the directory of the first segment of an index type, in the latest version.
func typeDir(t testing.TB, tr *Tree, typ string) string {
	t.Helper()
	d := indexOfType(t, tr, typ)
	return "latest/indices/" + d.Name + "/" + d.Segments[0].Directory
}

// storedPath is where a file of the tree's stored/ lies below a dataset.
func storedPath(root, dir, file string) string {
	return filepath.Join(root, "_indices", filepath.Base(dir), file)
}

func TestRemappedNames(t *testing.T) {
	tr := openTree(t, "legacy/all_types", nil)
	for _, dirs := range segmentDirs(t, tr) {
		for _, dir := range dirs {
			if got, want := names(t, tr, dir+"/remapped"), names(t, tr, dir+"/stored"); !slices.Equal(got, want) {
				t.Errorf("%s: remapped/ lists %v, stored/ %v", dir, got, want)
			}
			if got := names(t, tr, dir); !slices.Equal(got, []string{"remapped", "scan", "segment.json", "stored"}) {
				t.Errorf("%s lists %v", dir, got)
			}
		}
	}
}

// TestListingRemappedOpensNothing (docs/DESIGN.md, "Cost classes"): names alone say what is there.
func TestListingRemappedOpensNothing(t *testing.T) {
	tr, st := countingTree(t, "legacy/all_types", 0)
	for _, dirs := range segmentDirs(t, tr) {
		for _, dir := range dirs {
			if len(names(t, tr, dir+"/remapped")) == 0 || len(names(t, tr, dir+"/scan")) != 2 {
				t.Errorf("%s is empty", dir)
			}
		}
	}
	for call := range st.Calls() {
		if strings.HasPrefix(call.Name, "_indices/") {
			t.Errorf("%v", call)
		}
	}
}

// TestSizesOfFlatFilesTranslateNothing: stat of every remapped file but the re-serialised ones asks for no address, and
// one of the latter for all of its own.
func TestSizesOfFlatFilesTranslateNothing(t *testing.T) {
	tr := openTree(t, "legacy/all_types", nil)
	asked := &counting{}
	tr.resolve = asked.wrap
	for _, typ := range []string{"BTREE", "VECTOR", "INVERTED", "FM", "BITMAP"} {
		dir := typeDir(t, tr, typ)
		for _, f := range names(t, tr, dir+"/remapped") {
			if _, err := mustFile(t, tr, dir+"/remapped/"+f).Attr(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if n := asked.calls(); (n > 0) != (typ == "BITMAP") {
			t.Errorf("%s: %d calls", typ, n)
		}
	}
}

// counting counts how often addresses are asked for.
type counting struct {
	indexfile.Resolver
	mu sync.Mutex // protects n
	n  *int
}

func (c *counting) wrap(r indexfile.Resolver) indexfile.Resolver {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = new(int)
	}
	return &counted{r, c}
}

func (c *counting) calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		return 0
	}
	return *c.n
}

type counted struct {
	indexfile.Resolver
	c *counting
}

func (r *counted) Resolve(ctx context.Context, addrs []fri.RowAddr, a *indexfile.Answers) error {
	r.c.mu.Lock()
	*r.c.n++
	r.c.mu.Unlock()
	return r.Resolver.Resolve(ctx, addrs, a)
}

func mustFile(t testing.TB, tr *Tree, path string) File {
	t.Helper()
	n, err := Resolve(t.Context(), tr.Root(), path)
	if err != nil {
		t.Fatal(err)
	}
	return n.(File)
}

// untranslated answers that every row is where it was.
type untranslated struct{ indexfile.Resolver }

func (untranslated) Resolve(_ context.Context, addrs []fri.RowAddr, a *indexfile.Answers) error {
	copy(a.New, addrs)
	for i := range addrs {
		a.Outcome[i], a.Covered[i] = translate.Same, true
	}
	return nil
}

// TestTheCheckCanFail switches translation off: the files are others then, those of each way of making them.
func TestTheCheckCanFail(t *testing.T) {
	right, wrong := openTree(t, "legacy/all_types", nil), openTree(t, "legacy/all_types", nil)
	wrong.resolve = func(r indexfile.Resolver) indexfile.Resolver { return untranslated{r} }
	for _, typ := range []string{"BTREE", "VECTOR", "INVERTED", "FM", "BITMAP", "LABEL_LIST", "NGRAM"} {
		dir := typeDir(t, right, typ)
		differ := false
		for _, f := range names(t, right, dir+"/remapped") {
			differ = differ || !bytes.Equal(cat(t, right, dir+"/remapped/"+f), cat(t, wrong, dir+"/remapped/"+f))
		}
		if !differ {
			t.Errorf("%s: translated or not, the files are the same", typ)
		}
	}
}

// TestRemappedElsewhere: the same content under another path of the tree, as a copy needs it.
func TestRemappedElsewhere(t *testing.T) {
	tr := openTree(t, "legacy/all_types", nil)
	for _, r := range remapTests(t, tr, newestOf(t, tr)) {
		for _, f := range r.sc.files {
			here := mustFile(t, tr, r.dir+"/remapped/"+f.path)
			there, err := r.sc.at.remappedFile(t.Context(), "elsewhere/"+r.sc.s.ix.UUID+"/"+f.path, f.storedFile, 0o644)
			if err != nil {
				t.Fatal(err)
			}
			a, err := here.Attr(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			b, err := there.Attr(t.Context())
			if err != nil || a.Size != b.Size || b.Perm != 0o644 || a.Perm != 0o444 || a.Ino == b.Ino || here.Class() != there.Class() {
				t.Errorf("%s: %+v here, %+v there (%v)", f.path, a, b, err)
			}
			if !bytes.Equal(readFile(t, here), readFile(t, there)) {
				t.Errorf("%s: other bytes there", f.path)
			}
		}
	}
}

func readFile(t testing.TB, f File) []byte {
	t.Helper()
	a, err := f.Attr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h, err := f.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	b := make([]byte, a.Size+1)
	n, err := h.ReadAt(t.Context(), b, 0)
	if err != nil || int64(n) != a.Size {
		t.Fatalf("%d of %d bytes, %v", n, a.Size, err)
	}
	return b[:n]
}

func TestRowIDsStay(t *testing.T) {
	tr := openTree(t, "legacy/stable_ids", nil)
	ids, addresses := 0, 0
	for _, ix := range names(t, tr, "latest/indices") {
		for _, s := range names(t, tr, "latest/indices/"+ix) {
			if s == "index.json" {
				continue
			}
			dir := "latest/indices/" + ix + "/" + s
			d := decode[segmentDoc](t, tr, dir+"/segment.json")
			if !d.Remapped.Served || d.Remapped.Why == "" {
				t.Errorf("%s: %+v", dir, d)
			}
			if d.Domain == "row_address" {
				addresses++
				continue
			}
			ids++
			if got := names(t, tr, dir); slices.Contains(got, "scan") || !slices.Contains(got, "remapped") {
				t.Errorf("%s of row ids lists %v", dir, got)
			}
			for _, f := range names(t, tr, dir+"/stored") {
				if !bytes.Equal(cat(t, tr, dir+"/stored/"+f), cat(t, tr, dir+"/remapped/"+f)) {
					t.Errorf("%s/%s was changed", dir, f)
				}
			}
		}
	}
	if ids == 0 || addresses == 0 {
		t.Errorf("%d indices of row ids, %d of addresses", ids, addresses)
	}
}

// segmentDoc is what the tests read of segment.json.
type segmentDoc struct {
	Domain   string
	Layout   struct{ Type string }
	Remapped struct {
		Served bool
		Why    string
	}
	Files []struct {
		Path, How string
		Bytes     int64
		Rows      *uint64
		Columns   []struct{ Name, Type string }
		Addresses []string
		Error     *struct{ Kind string }
	}
}

// TestNoRemappedFiles: what cannot be translated is left out, with the reason in ERROR.json and segment.json.
func TestNoRemappedFiles(t *testing.T) {
	unknownFlag := func(p *pb.Manifest) {
		fragments(0)(p)
		p.ReaderFeatureFlags, p.WriterFeatureFlags = proto.Uint64(1<<40), proto.Uint64(1<<40)
	}
	for _, c := range []struct {
		name, details, says string
		change              func(*pb.Manifest)
	}{
		{"unknown type", "/lance.table.WonderIndexDetails", "Wonder", fragments(0)},
		{"unknown flag", btreeType, "40", unknownFlag},
		{"files of no known type", "", "no details", fragments(0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := makeTable(t)
			ix := entry("i", c.details, 1, 0)
			ix.Files = []*pb.IndexFile{{Path: proto.String("a.bin"), SizeBytes: proto.Uint64(5)}}
			m.version(1, c.change, ix)
			tr := m.tree(nil)
			const dir = "latest/indices/i/00000000-0000-0000-0000-000000000001"
			if got := names(t, tr, dir); !slices.Equal(got, []string{"ERROR.json", "segment.json", "stored"}) {
				t.Errorf("listed: %v", got)
			}
			mustFail(t, tr, dir+"/remapped", "unsupported")
			mustFail(t, tr, dir+"/scan", "unsupported")
			if text := string(cat(t, tr, dir+"/ERROR.json")); !strings.Contains(text, c.says) || !strings.Contains(text, `"remapped"`) {
				t.Errorf("ERROR.json: %s", text)
			}
			if d := decode[segmentDoc](t, tr, dir+"/segment.json"); d.Remapped.Served || !strings.Contains(d.Remapped.Why, c.says) || len(d.Files) != 1 {
				t.Errorf("segment.json: %+v", d)
			}
		})
	}
}

// TestOneBadFile: a damaged file costs that file only, and is named wherever it counts.
func TestOneBadFile(t *testing.T) {
	root := testdata.Copy(t, "legacy/all_types")
	tr := openDir(t, root, nil)
	dir := typeDir(t, tr, "BTREE")
	if err := os.Truncate(storedPath(root, dir, "page_data.lance"), 200); err != nil {
		t.Fatal(err)
	}
	mustFail(t, tr, dir+"/remapped/page_data.lance", "corrupt")
	mustFail(t, tr, dir+"/scan/addresses.csv", "corrupt")
	if b := cat(t, tr, dir+"/remapped/page_lookup.lance"); !bytes.Equal(b, cat(t, tr, dir+"/stored/page_lookup.lance")) {
		t.Error("the sibling differs")
	}
	d := decode[segmentDoc](t, tr, dir+"/segment.json")
	for _, f := range d.Files {
		if bad := f.Path == "page_data.lance"; (f.Error != nil) != bad || (f.Rows == nil) != bad || f.Bytes == 0 {
			t.Errorf("segment.json: %+v", f)
		}
	}
	s := decode[summaryDoc](t, tr, dir+"/scan/summary.json")
	if s.Complete || s.NeedsFRI != nil || len(s.Files) != 2 || s.Files[0].Error == nil || s.Files[1].Error != nil {
		t.Errorf("summary.json: %+v", s)
	}
	noted := string(cat(t, tr, ".frifs/errors.jsonl"))
	if !strings.Contains(noted, "remapped/page_data.lance") || !strings.Contains(noted, "scan/addresses.csv") {
		t.Errorf("errors.jsonl: %s", noted)
	}
	if other := typeDir(t, tr, "BITMAP"); len(cat(t, tr, other+"/remapped/bitmap_page_lookup.lance")) == 0 {
		t.Error("another index is gone")
	}
}

// TestReplacedStoredFile: a file that is made from another stored file than before is another file.
func TestReplacedStoredFile(t *testing.T) {
	for _, typ := range []string{"BTREE", "BITMAP"} {
		t.Run(typ, func(t *testing.T) {
			root := testdata.Copy(t, "legacy/all_types")
			tr := openDir(t, root, nil)
			dir := typeDir(t, tr, typ)
			file := "page_data.lance"
			if typ == "BITMAP" {
				file = "bitmap_page_lookup.lance"
			}
			node := mustFile(t, tr, dir+"/remapped/"+file)
			want := readFile(t, node)
			csv := mustFile(t, tr, dir+"/scan/addresses.csv")
			readFile(t, csv)
			at := time.Now().Add(-time.Hour)
			if err := os.Chtimes(storedPath(root, dir, file), at, at); err != nil {
				t.Fatal(err)
			}
			if _, err := node.Open(t.Context()); !fault.Is(err, fault.Stale) {
				t.Errorf("open: %v, want a stale file", err)
			}
			again := mustFile(t, tr, dir+"/remapped/"+file)
			if again.Ino() == node.Ino() {
				t.Error("the inode is the old one")
			}
			if !bytes.Equal(readFile(t, again), want) {
				t.Error("other bytes")
			}
			if now := mustFile(t, tr, dir+"/scan/addresses.csv"); now.Ino() == csv.Ino() || len(readFile(t, now)) == 0 {
				t.Error("addresses.csv has the old inode")
			}
			if _, err := node.Open(t.Context()); !fault.Is(err, fault.Stale) {
				t.Errorf("the old node: %v, want a stale file", err)
			}
		})
	}
}

// gate is a Resolver that waits until it is opened.
type gate struct {
	indexfile.Resolver
	open chan struct{}
}

func (g gate) Resolve(ctx context.Context, addrs []fri.RowAddr, a *indexfile.Answers) error {
	select {
	case <-g.open:
		return g.Resolver.Resolve(ctx, addrs, a)
	case <-ctx.Done():
		return fault.Wrap("test", "", ctx.Err())
	}
}

// TestReserialisedByAJob: who asks gives up after the wait, while one job goes on for all; then the file is there.
func TestReserialisedByAJob(t *testing.T) {
	open := make(chan struct{})
	tr := openTree(t, "legacy/all_types", func(c *Config) { c.OpTimeout = time.Second })
	tr.resolve = func(r indexfile.Resolver) indexfile.Resolver { return gate{r, open} }
	path := typeDir(t, tr, "BITMAP") + "/remapped/bitmap_page_lookup.lance"
	f := mustFile(t, tr, path)
	if f.Class() != C2 {
		t.Errorf("class %v", f.Class())
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := f.Attr(t.Context()); !fault.Is(err, fault.TimedOut) {
				t.Errorf("stat: %v, want timed out", err)
			}
		})
	}
	wg.Wait()
	if jobs, _ := tr.jobs.pending(); len(jobs) != 1 || !strings.HasSuffix(jobs[0].Path, "bitmap_page_lookup.lance") {
		t.Errorf("jobs: %+v", jobs)
	}
	close(open)
	deadline := time.Now().Add(20 * time.Second)
	for {
		if _, err := f.Attr(t.Context()); err == nil {
			break
		} else if !fault.Is(err, fault.TimedOut) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(readFile(t, f), cat(t, openTree(t, "legacy/all_types", nil), path)) {
		t.Error("other bytes than without the wait")
	}
}

// TestRemappedFilesLeaveTheCache: with room for one file only, each is made again when it is opened again; a reader that
// has one open goes on. Nothing is left behind.
func TestRemappedFilesLeaveTheCache(t *testing.T) {
	spill := t.TempDir()
	tr := openTree(t, "legacy/all_types", func(c *Config) { c.Memory, c.CacheDir = 16, spill })
	var files []File
	var handles []Handle
	for _, typ := range []string{"BTREE", "BITMAP", "LABEL_LIST", "NGRAM", "VECTOR"} {
		dir := typeDir(t, tr, typ) + "/remapped/"
		for _, name := range names(t, tr, dir) {
			f := mustFile(t, tr, dir+name)
			h, err := f.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			files, handles = append(files, f), append(handles, h)
		}
	}
	for i, f := range files {
		want := readFile(t, f)
		got := make([]byte, len(want)+1)
		n, err := handles[i].ReadAt(t.Context(), got, 0)
		if err != nil || !bytes.Equal(got[:n], want) {
			t.Errorf("file %d: %d bytes through the old handle, want %d (%v)", i, n, len(want), err)
		}
		if err := handles[i].Close(); err != nil {
			t.Error(err)
		}
	}
	if n := tr.remaps.stats().Entries + tr.made.stats().Entries; n > 2 {
		t.Errorf("%d files are kept", n)
	}
	tr.Close()
	if left, err := os.ReadDir(spill); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestHeldIsClosedOnce(t *testing.T) {
	c := &closing{}
	h := &held{content: c}
	h.holders.Store(1)
	if !h.acquire() {
		t.Fatal("not held")
	}
	h.release()
	if c.n != 0 {
		t.Error("closed while it is held")
	}
	h.release()
	if c.n != 1 || h.acquire() {
		t.Errorf("closed %d times", c.n)
	}
}

type closing struct {
	indexfile.Content
	n int
}

func (c *closing) Close() error { c.n++; return nil }

func TestCSVNames(t *testing.T) {
	long := strings.Repeat("é%", 300)
	for in, want := range map[string]string{
		"page_data.lance": "page_data.lance", "a,b": "a%2Cb", `a"b`: "a%22b", "sub/x\ny": "sub/x%0Ay", "50%": "50%25",
	} {
		if got := csvName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for _, in := range []string{strings.Repeat("d/", 400) + "x", long + "/" + long + "/" + long} {
		got := csvName(in)
		if len(got) > 400 || strings.ContainsAny(got, ",\"\n") || !strings.Contains(got, "~") || got == csvName(in+"y") {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
}
