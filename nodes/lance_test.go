package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/indexfile"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
)

// remappedManifest reads the manifest of the latest version's remapped.lance as a reader of a copy would.
func remappedManifest(t testing.TB, tr *Tree) *dataset.Manifest {
	t.Helper()
	ctx := context.Background()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "_versions"), 0o755); err != nil {
		t.Fatal(err)
	}
	f := FS(tr.Root())
	es, err := fs.ReadDir(f, "latest/remapped.lance/_versions")
	if err != nil || len(es) != 1 {
		t.Fatalf("%d manifests, %v", len(es), err)
	}
	b, err := fs.ReadFile(f, "latest/remapped.lance/_versions/"+es[0].Name())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "_versions", es[0].Name()), b, 0o644); err != nil {
		t.Fatal(err)
	}
	st, err := store.OpenURI(ctx, dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ds, err := dataset.Open(ctx, st, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ds.Versions(ctx)
	if err != nil || len(l.Versions) != 1 {
		t.Fatalf("versions %v, %v", l, err)
	}
	m, err := ds.Manifest(ctx, l.Versions[0])
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// latestLoaded is the stored manifest of the latest version.
func latestLoaded(t testing.TB, tr *Tree) *loaded {
	t.Helper()
	n, err := tr.version(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := n.load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// lookup finds a node below the latest remapped.lance.
func lookup(t testing.TB, tr *Tree, path string) Node {
	t.Helper()
	n, err := Resolve(context.Background(), tr.Root(), "latest/remapped.lance/"+path)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRemappedDatasets(t *testing.T) {
	for _, family := range []string{"legacy", "tagged", "spliced"} {
		for _, name := range testdata.Names(t, family) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tr := openTree(t, name, nil)
				checkRemappedDataset(t, tr)
			})
		}
	}
}

func checkRemappedDataset(t *testing.T, tr *Tree) {
	stored, m := latestLoaded(t, tr), remappedManifest(t, tr)
	if m.IndexErr != nil || len(m.Warnings) > len(stored.m.Warnings) {
		t.Fatalf("%v, warnings %v", m.IndexErr, m.Warnings)
	}
	if m.Version() != stored.m.Version() || m.PB.GetVersion() != m.Version() {
		t.Errorf("version %d of %d", m.Version(), stored.m.Version())
	}
	if f := (m.PB.GetReaderFeatureFlags() | m.PB.GetWriterFeatureFlags()) & (512 | 1024); f != 0 {
		t.Errorf("flags %d are left", f)
	}
	if len(m.Fragments()) != len(stored.m.Fragments()) || len(m.PB.GetBasePaths()) > 0 {
		t.Fatalf("%d fragments of %d, %d bases", len(m.Fragments()), len(stored.m.Fragments()), len(m.PB.GetBasePaths()))
	}
	names := map[string]bool{}
	for i, f := range m.Fragments() {
		if was := stored.m.Fragments()[i]; f.ID != was.ID || f.RecordedRows() != was.RecordedRows() {
			t.Errorf("fragment %d: %v, stored %v", i, f.Message(), was.Message())
		}
		for _, d := range f.Files() {
			a, err := lookup(t, tr, "data/"+d.GetPath()).Attr(context.Background())
			if err != nil || d.BaseId != nil || names[d.GetPath()] || a.Perm != 0o644 || d.GetFileSizeBytes() > 0 && a.Size != int64(d.GetFileSizeBytes()) {
				t.Errorf("data file %v: %+v, %v", d, a, err)
			}
			names[d.GetPath()] = true
		}
		if !f.HasDeletionFile() {
			continue
		}
		if name, err := dataset.DeletionFileName(f); err == nil {
			file, ok := lookup(t, tr, "_deletions/"+name).(File)
			if !ok {
				t.Fatalf("%s is no file", name)
			}
			h, err := file.Open(context.Background())
			if err != nil {
				t.Errorf("deletion file %s: %v", name, err)
				continue
			}
			h.Close()
		}
	}
	live := stored.liveSet()
	named := map[string]*roaring.Bitmap{} // by index name
	for _, ix := range m.Indices {
		checkRemappedIndex(t, tr, stored, m, ix, live)
		if named[ix.Name] == nil {
			named[ix.Name] = roaring.New()
		}
		if ix.Bitmap == nil {
			continue
		}
		if named[ix.Name].Intersects(ix.Bitmap) {
			t.Errorf("segments of %q overlap: %v", ix.Name, roaring.And(named[ix.Name], ix.Bitmap).ToArray())
		}
		named[ix.Name].Or(ix.Bitmap)
		if d, _ := indexfile.Domain(m, ix); stored.fri.present() && d == indexfile.DomainAddress && !named[ix.Name].Contains(0xFFFFFFFE) {
			t.Errorf("no segment of %q so far names the fragment of placeholders", ix.Name)
		}
	}
}

// checkRemappedIndex checks an entry: its files have their sizes, their addresses are of live fragments or placeholders,
// and, for types with an entry per row, no live row of a covered fragment is missing.
func checkRemappedIndex(t *testing.T, tr *Tree, stored *loaded, m *dataset.Manifest, ix *dataset.Index, live *roaring.Bitmap) {
	ctx := context.Background()
	if ix.UUIDErr != nil || ix.BitmapErr != nil || ix.System() || ix.PB.BaseId != nil {
		t.Fatalf("entry %v: %v %v", ix.PB, ix.UUIDErr, ix.BitmapErr)
	}
	dir := "latest/remapped.lance/_indices/" + ix.UUID
	es, err := fs.ReadDir(FS(tr.Root()), dir)
	if err != nil || len(es) == 0 {
		t.Fatalf("%d files in %s, %v", len(es), dir, err)
	}
	var files []indexfile.StoredFile
	recorded := map[string]int64{}
	for _, f := range ix.PB.GetFiles() {
		recorded[f.GetPath()] = int64(f.GetSizeBytes())
	}
	for _, e := range es {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if size, ok := recorded[e.Name()]; len(recorded) > 0 && (!ok || size != info.Size()) {
			t.Errorf("%s of %q: %d bytes, the manifest says %d", e.Name(), ix.Name, info.Size(), size)
		}
		files = append(files, indexfile.StoredFile{Path: e.Name(), Size: info.Size()})
	}
	domain, _ := indexfile.Domain(m, ix)
	if domain != indexfile.DomainAddress || ix.Bitmap == nil {
		return
	}
	if extra := roaring.AndNot(ix.Bitmap, live); stored.fri.present() && !extra.IsEmpty() && !slices.Equal(extra.ToArray(), []uint32{0xFFFFFFFE}) {
		t.Errorf("%q names %v, of which %v are not live", ix.Name, ix.Bitmap.ToArray(), extra.ToArray())
	}
	seg := indexfile.NewSegment(m, ix, files, func(ctx context.Context, path string) (indexfile.Reader, error) {
		f, _ := lookup(t, tr, "_indices/"+ix.UUID+"/"+path).(File)
		a, err := f.Attr(ctx)
		if err != nil {
			return nil, err
		}
		h, err := f.Open(ctx)
		return treeReader{h, a.Size}, err
	})
	found := map[fri.FragID]*roaring.Bitmap{}
	for _, f := range files {
		if how, err := seg.How(f.Path); err != nil || how == indexfile.Verbatim {
			continue
		}
		file, err := seg.Open(ctx, f.Path)
		if err != nil {
			t.Fatalf("%s of %q: %v", f.Path, ix.Name, err)
		}
		c, err := file.Scan(ctx, indexfile.Position{})
		for b := (indexfile.Batch{}); err == nil && c != nil; {
			if err = c.Next(ctx, &b, 1<<16); err != nil || len(b.Addrs) == 0 {
				break
			}
			for _, a := range b.Addrs {
				if found[a.Frag()] == nil {
					found[a.Frag()] = roaring.New()
				}
				found[a.Frag()].Add(a.Offset())
			}
		}
		if err != nil {
			t.Fatalf("%s of %q: %v", f.Path, ix.Name, err)
		}
		file.Close()
	}
	for f := range found {
		if stored.fri.present() && !live.Contains(uint32(f)) && f != indexfile.PlaceholderFragment {
			t.Errorf("%q holds addresses of fragment %d, which is not live", ix.Name, f)
		}
	}
	if ix.Type != "BTREE" && ix.Type != "BITMAP" {
		return // nulls, or lists without items, have no entry
	}
	for id, f := range stored.m.Live() {
		if !ix.Bitmap.Contains(uint32(id)) || f.PhysicalRows == nil {
			continue
		}
		gone, err := tr.ds.Deletions(ctx, stored.m, f)
		if err != nil {
			continue
		}
		want := roaring.New()
		want.AddRange(0, *f.PhysicalRows)
		if gone != nil {
			want.AndNot(gone)
		}
		if found[id] != nil {
			want.AndNot(found[id])
		}
		if !want.IsEmpty() {
			t.Errorf("%s %q covers fragment %d, but has no entry for %d of its rows (%d, ...)", ix.Type, ix.Name, id, want.GetCardinality(), want.Minimum())
		}
	}
}

// TestRemappedDatasetIsDeterministic compares two trees of two copies of a table: they have the same manifest.
func TestRemappedDatasetIsDeterministic(t *testing.T) {
	for _, name := range []string{"legacy/basic", "legacy/updated", "tagged/fanout", "tagged/stuck"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var first []byte
			for i, dir := range []string{testdata.Dataset(t, name), testdata.Copy(t, name)} {
				st, err := store.OpenURI(t.Context(), dir, store.Options{})
				if err != nil {
					t.Fatal(err)
				}
				tr := openStore(t, st, name, nil)
				b, err := fs.ReadFile(FS(tr.Root()), "latest/remapped.lance/_versions/"+names(t, tr, "latest/remapped.lance/_versions")[0])
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					first = b
				} else if !bytes.Equal(first, b) {
					t.Errorf("the manifests of two copies differ")
				}
			}
		})
	}
}

func TestRemappedDatasetLeavesOut(t *testing.T) {
	all := remappedManifest(t, openTree(t, "legacy/all_types", nil))
	old := remappedManifest(t, openTree(t, "legacy/all_types", func(c *Config) { c.ForReader = "2.0.1" }))
	some := remappedManifest(t, openTree(t, "legacy/all_types", func(c *Config) { c.OmitIndex = []string{"fts", "bitmap_cat"} }))
	same := remappedManifest(t, openTree(t, "legacy/all_types", func(c *Config) { c.ForReader = "14.0.2" }))
	uuids := map[string]bool{}
	for _, ix := range all.Indices {
		uuids[ix.UUID] = true
	}
	count := func(m *dataset.Manifest, match func(*dataset.Index) bool) (n int) {
		for _, ix := range m.Indices {
			if match(ix) {
				n++
			}
		}
		return n
	}
	isNew := func(ix *dataset.Index) bool {
		return slices.Contains([]string{"FM", "RTREE", "JSON", "MINHASH_LSH"}, ix.Type)
	}
	if n := count(all, isNew); n == 0 || count(old, isNew) != 0 || len(old.Indices) != len(all.Indices)-n {
		t.Errorf("for 2.0.1: %d of %d entries, %d too new", len(old.Indices), len(all.Indices), n)
	}
	omitted := func(ix *dataset.Index) bool { return ix.Type == "INVERTED" || ix.Name == "bitmap_cat" }
	if n := count(all, omitted); n < 2 || count(some, omitted) != 0 || len(some.Indices) != len(all.Indices)-n {
		t.Errorf("omitted: %d of %d entries, %d to leave out", len(some.Indices), len(all.Indices), n)
	}
	if len(same.Indices) != len(all.Indices) {
		t.Errorf("for 14.0.2: %d of %d entries", len(same.Indices), len(all.Indices))
	}
	for _, m := range []*dataset.Manifest{old, some, same} {
		for _, ix := range m.Indices {
			if uuids[ix.UUID] {
				t.Errorf("%q has the same uuid with and without options", ix.Name)
			}
		}
	}
	for _, bad := range []Config{{ForReader: "2.0"}, {ForReader: "x"}, {ForReader: "2.0.1.1"}, {ForReader: "02.0.1"}, {OmitIndex: []string{""}}} {
		bad.Dataset = openTree(t, "legacy/basic", nil).ds
		if _, err := New(t.Context(), bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q %q: %v", bad.ForReader, bad.OmitIndex, err)
		}
	}
}

// errorFiles reads which names an ERROR.json explains.
func errorFiles(t testing.TB, tr *Tree, path string) []string {
	t.Helper()
	b, err := fs.ReadFile(FS(tr.Root()), path)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Errors []struct{ File string }
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range doc.Errors {
		out = append(out, e.File)
	}
	return out
}

func TestRemappedDatasetRefused(t *testing.T) {
	m := makeTable(t)
	m.version(1, func(p *pb.Manifest) { p.ReaderFeatureFlags = proto.Uint64(1 << 20) })
	tr := m.tree(nil)
	if _, err := Resolve(t.Context(), tr.Root(), "latest/remapped.lance"); !fault.Is(err, fault.Unsupported) {
		t.Errorf("lookup: %v", err)
	}
	if got := errorFiles(t, tr, "latest/ERROR.json"); !slices.Contains(got, "remapped.lance") {
		t.Errorf("ERROR.json names %q", got)
	}
}

// TestRemappedDatasetOfOddEntries checks that entries which readers would stumble over are left out, each with a reason,
// and that the others stay.
func TestRemappedDatasetOfOddEntries(t *testing.T) {
	id := func(b byte) *pb.UUID { return &pb.UUID{Uuid: bytes.Repeat([]byte{b}, 16)} }
	details := func(name string) *pb.Any { return &pb.Any{TypeUrl: proto.String("/lance.table." + name)} }
	bitmap, err := roaring.BitmapOf(0).ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	m := makeTable(t)
	m.version(1, func(p *pb.Manifest) {
		p.Fragments = []*pb.DataFragment{
			{Id: proto.Uint64(0), PhysicalRows: proto.Uint64(3), Files: []*pb.DataFile{{Path: proto.String("../../x")}, {Path: proto.String("ok.lance"), FileSizeBytes: proto.Uint64(2)}}},
			{Id: proto.Uint64(0), PhysicalRows: proto.Uint64(3), DeletionFile: &pb.DeletionFile{FileType: proto.Int32(9)}},
		}
	},
		&pb.IndexMetadata{Uuid: id(1), Name: proto.String("good"), FragmentBitmap: bitmap, IndexDetails: details("NewIndexDetails"), Fields: []int32{0}},
		&pb.IndexMetadata{Uuid: id(1), Name: proto.String("good"), FragmentBitmap: bitmap, IndexDetails: details("NewIndexDetails"), Fields: []int32{0}},
		&pb.IndexMetadata{Uuid: id(8), Name: proto.String("good"), FragmentBitmap: bitmap, IndexDetails: details("BTreeIndexDetails"), Fields: []int32{0}},
		&pb.IndexMetadata{Uuid: id(9), Name: proto.String("fieldless"), FragmentBitmap: bitmap, IndexDetails: details("NewIndexDetails")},
		&pb.IndexMetadata{Uuid: id(10), Name: proto.String("no such field"), FragmentBitmap: bitmap, IndexDetails: details("NewIndexDetails"), Fields: []int32{77}},
		&pb.IndexMetadata{Uuid: id(11), Name: proto.String("negative"), FragmentBitmap: bitmap, IndexDetails: details("NewIndexDetails"), Fields: []int32{0}, IndexVersion: proto.Int32(-1)},
		&pb.IndexMetadata{Uuid: id(12), Name: proto.String("a\xff/b"), FragmentBitmap: bitmap, IndexDetails: details("NewIndexDetails"), Fields: []int32{0}},
		&pb.IndexMetadata{Uuid: id(2), Name: proto.String("no files"), FragmentBitmap: bitmap, IndexDetails: details("BTreeIndexDetails"), Fields: []int32{0}},
		&pb.IndexMetadata{Uuid: id(3), Name: proto.String("bad bitmap"), FragmentBitmap: []byte{1, 2}, IndexDetails: details("BTreeIndexDetails"), Fields: []int32{0}},
		&pb.IndexMetadata{Uuid: &pb.UUID{Uuid: []byte{4}}, Name: proto.String("bad uuid"), FragmentBitmap: bitmap, Fields: []int32{0}},
		&pb.IndexMetadata{Uuid: id(5), Name: proto.String("covering"), FragmentBitmap: bitmap, Fields: []int32{0}, CoveringFields: []int32{1}},
		&pb.IndexMetadata{Uuid: id(6), Name: proto.String(dataset.MemWalIndexName), IndexDetails: details("MemWalIndexDetails")},
		&pb.IndexMetadata{Uuid: id(7), Name: proto.String(dataset.ReuseIndexName), FragmentBitmap: bitmap, IndexDetails: details("BTreeIndexDetails"), Fields: []int32{0}},
	)
	dir := filepath.Join(m.dir, "_indices", "01010101-0101-0101-0101-010101010101")
	for _, f := range []string{filepath.Join(dir, "any"), filepath.Join(m.dir, "data", "ok.lance")} {
		if err := os.MkdirAll(filepath.Dir(f), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, []byte("ok"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tr := m.tree(nil)
	got := remappedManifest(t, tr)
	if len(got.Indices) != 1 || got.Indices[0].Name != "good" || !bytes.Equal(got.Indices[0].PB.GetFragmentBitmap(), bitmap) {
		t.Fatalf("entries %v", got.PB)
	}
	if b, err := fs.ReadFile(FS(tr.Root()), "latest/remapped.lance/_indices/"+got.Indices[0].UUID+"/any"); err != nil || string(b) != "ok" {
		t.Errorf("file of an index of unknown type: %q, %v", b, err)
	}
	errs := errorFiles(t, tr, "latest/ERROR.json")
	for _, want := range []string{"01010101-", "03030303-", "04", "05050505-", "06060606-", "07070707-", "08080808-", "09090909-", "0a0a0a0a-", "0b0b0b0b-", "0c0c0c0c-"} {
		if !slices.ContainsFunc(errs, func(s string) bool { return strings.Contains(s, "instead of "+want) }) {
			t.Errorf("ERROR.json does not name %s: %q", want, errs)
		}
	}
	if got := names(t, tr, "latest/remapped.lance/data"); !slices.Equal(got, []string{"base-invalid.lance", "ok.lance"}) {
		t.Errorf("data: %q", got)
	}
	if _, err := lookup(t, tr, "data/base-invalid.lance").Attr(t.Context()); err == nil {
		t.Errorf("a path that leads out of the dataset was followed")
	}
	// A data file that is replaced is not passed off as the old one.
	f := lookup(t, tr, "data/ok.lance").(File)
	h, err := f.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.Close()
	if err := os.WriteFile(filepath.Join(m.dir, "data", "ok.lance"), []byte("longer"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(t.Context()); !fault.Is(err, fault.Stale) {
		t.Errorf("a replaced data file opens: %v", err)
	}
}

// TestRemappedDatasetClaimsOnce checks that two segments of one name that cover the same fragments both give them up, and
// that a bitmap which names other live fragments than the files hold is not believed.
func TestRemappedDatasetClaimsOnce(t *testing.T) {
	claims := func(m *indexedTable, want ...[]uint32) {
		t.Helper()
		got := remappedManifest(t, m.tree(nil))
		if len(got.Indices) != len(want) {
			t.Fatalf("%d entries, want %d", len(got.Indices), len(want))
		}
		for i, w := range want {
			bm := got.Indices[i].Bitmap.Clone()
			bm.Remove(uint32(indexfile.PlaceholderFragment))
			if !slices.Equal(bm.ToArray(), w) {
				t.Errorf("entry %d claims %v, want %v", i, bm.ToArray(), w)
			}
		}
	}
	// A bitmap with a dead fragment, so that the entries are not taken as they are.
	m := indexTable(t)
	m.version(1, fragments(0, 1, 2, 3), m.entry(0, 1, 2, 3, 9))
	claims(m, []uint32{0, 1, 2, 3})
	other := entry("i", btreeType, 8, 2, 3, 9)
	if err := os.CopyFS(filepath.Join(m.dir0(), "_indices", "00000000-0000-0000-0000-000000000008"), os.DirFS(filepath.Join(m.dir0(), "_indices", "00000000-0000-0000-0000-000000000007"))); err != nil {
		t.Fatal(err)
	}
	m.version(2, fragments(0, 1, 2, 3), m.entry(0, 1, 2, 3, 9), other)
	claims(m, []uint32{0, 1}, []uint32{})
	// The files hold fragments 0 to 3, the bitmap says 3 and 4.
	m = indexTable(t)
	m.version(1, fragments(0, 1, 2, 3, 4), m.entry(3, 4, 9))
	claims(m, []uint32{3})
}
