package indexfile

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
	"github.com/frifs/frifs/rowmap"
	"github.com/frifs/frifs/translate"
)

// world is one version of a test dataset, with all that resolving the addresses of its segments needs.
type world struct {
	tb     testing.TB
	name   string
	ds     *dataset.Dataset
	m      *dataset.Manifest
	h      *fri.History // nil without an FRI entry
	live   translate.Live
	covers []translate.Coverage
}

// openWorld opens a version of a dataset ("legacy/basic"); 0 is the latest.
func openWorld(tb testing.TB, name string, number uint64) *world {
	tb.Helper()
	return openWorldAt(tb, testdata.Dataset(tb, name), name, number)
}

// openWorldAt opens a dataset in a folder; name says which base paths to replace, if any.
func openWorldAt(tb testing.TB, dir, name string, number uint64) *world {
	tb.Helper()
	ctx := context.Background()
	st, err := store.NewLocal(dir, store.Options{})
	noError(tb, err)
	var opt dataset.Options
	for _, r := range testdata.Rebase(tb, name) {
		from, to, _ := strings.Cut(r, "=")
		opt.Rebase = append(opt.Rebase, dataset.Rebase{Old: from, New: to})
	}
	w := &world{tb: tb, name: name}
	w.ds, err = dataset.Open(ctx, st, opt)
	noError(tb, err)
	list, err := w.ds.Versions(ctx)
	noError(tb, err)
	ref := list.Versions[len(list.Versions)-1]
	if number != 0 {
		var ok bool
		if ref, ok = list.Find(number); !ok {
			tb.Fatalf("%s has no version %d", name, number)
		}
	}
	w.m, err = w.ds.Manifest(ctx, ref)
	noError(tb, err)
	w.live = liveOf{w.ds, w.m}
	w.openHistory(ctx)
	segments := make([]translate.Segment, len(w.m.Indices))
	for i, ix := range w.m.Indices {
		segments[i] = translate.Segment{Name: ix.Name, UUID: ix.UUID, System: System(ix), Usable: true}
		if ix.Bitmap != nil {
			segments[i].State, segments[i].Bitmap = translate.BitmapPresent, ix.Bitmap
		}
	}
	live := roaring.New()
	for f := range w.m.Live() {
		live.Add(uint32(f))
	}
	w.covers = translate.Cover(w.h, live, segments)
	return w
}

func noError(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func (w *world) openHistory(ctx context.Context) {
	for _, ix := range w.m.Indices {
		d := ix.PB.GetIndexDetails()
		if fri.IsEntry(ix.PB.GetName(), d.GetTypeUrl(), d != nil, ix.PB.GetFields()).Class != fri.IsFRI {
			continue
		}
		content, err := fri.ParseDetails(d.GetValue())
		noError(w.tb, err)
		opt := fri.Options{IndexVersion: ix.PB.GetIndexVersion(), FlagReader: true, FlagWriter: true}
		b := content.Inline
		if e := content.External; e != nil {
			loc, err := w.ds.IndexFile(ctx, w.m, ix, e.Path)
			noError(w.tb, err)
			b, err = loc.Store.ReadRange(ctx, loc.Path, int64(e.Offset), int64(e.Size))
			noError(w.tb, err)
		}
		w.h, err = fri.Open(ctx, bytes.NewReader(b), opt)
		noError(w.tb, err)
	}
}

// translator makes a translator into the version.
func (w *world) translator() *translate.Translator {
	return translate.New(w.h, w.live, w.mapping, translate.Options{})
}

func (w *world) mapping(ctx context.Context, t *fri.Transition) (rowmap.Mapping, error) {
	if t.Err != nil {
		return nil, t.Err
	}
	if t.Kind != fri.StablePartition {
		return rowmap.NewOrdered(t, rowmap.Options{})
	}
	loc, err := w.ds.RowMap(ctx, w.m, t.Partition.MapID, t.Partition.BaseID)
	if err != nil {
		return nil, err
	}
	r, err := loc.Store.Open(ctx, loc.Path)
	if err != nil {
		return nil, err
	}
	w.tb.Cleanup(func() { _ = r.Close() })
	return rowmap.OpenPartition(ctx, t, r, rowmap.Options{})
}

// resolver is the resolver of an index entry.
func (w *world) resolver(ix *dataset.Index) Resolver {
	return NewResolver(w.translator(), w.live, w.covers[ix.Ordinal].Live)
}

// segment makes the segment of an index entry, from the files in its directory.
func (w *world) segment(ix *dataset.Index) *Segment {
	w.tb.Helper()
	ctx := context.Background()
	dir, err := w.ds.IndexDir(ctx, w.m, ix)
	noError(w.tb, err)
	root, ok := dir.Store.Local()
	if !ok {
		w.tb.Fatal("the dataset is not local")
	}
	files := storedFiles(w.tb, filepath.Join(root, dir.Path))
	return NewSegment(w.m, ix, files, func(ctx context.Context, path string) (Reader, error) {
		return dir.Store.Open(ctx, dir.Path+"/"+path)
	})
}

// storedFiles lists the files below a folder.
func storedFiles(tb testing.TB, dir string) []StoredFile {
	tb.Helper()
	var files []StoredFile
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		rel, _ := filepath.Rel(dir, p)
		files = append(files, StoredFile{filepath.ToSlash(rel), st.Size()})
		return err
	})
	noError(tb, err)
	return files
}

// liveOf is the live state of a version.
type liveOf struct {
	ds *dataset.Dataset
	m  *dataset.Manifest
}

func (l liveOf) Rows(f fri.FragID) (rows uint64, known, live bool) {
	fr, ok := l.m.Live()[f]
	if !ok || fr.PhysicalRows == nil {
		return 0, false, ok
	}
	return *fr.PhysicalRows, true, true
}

func (l liveOf) Deletions(ctx context.Context, f fri.FragID) (*roaring.Bitmap, error) {
	fr, ok := l.m.Live()[f]
	if !ok {
		return nil, fault.New("test", "", fault.Invalid, "fragment %d is not live", f)
	}
	return l.ds.Deletions(ctx, l.m, fr)
}

// inMemoryFile is a stored file in memory.
type inMemoryFile struct{ *bytes.Reader }

func inMemory(b []byte) inMemoryFile { return inMemoryFile{bytes.NewReader(b)} }

func (m inMemoryFile) ReadAtContext(_ context.Context, p []byte, off int64) (int, error) {
	return m.ReadAt(p, off)
}

func (m inMemoryFile) Close() error { return nil }

// memSegment makes a segment of the type in memory, which stores addresses.
func memSegment(typ string, files map[string][]byte) *Segment {
	s := &Segment{Type: typ, Domain: DomainAddress, OpenRaw: func(_ context.Context, path string) (Reader, error) {
		b, ok := files[path]
		if !ok {
			return nil, fault.New("test", path, fault.NotFound, "no such file")
		}
		return inMemory(b), nil
	}}
	for name, b := range files {
		s.Files = append(s.Files, StoredFile{name, int64(len(b))})
	}
	s.setLayout(func(name string) bool { _, ok := files[name]; return ok })
	return s
}

// contentReader is a Content as a stored file.
type contentReader struct{ c Content }

func (r contentReader) ReadAt(p []byte, off int64) (int, error) {
	return r.ReadAtContext(context.Background(), p, off)
}

func (r contentReader) ReadAtContext(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := r.c.ReadAt(ctx, p, off)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (r contentReader) Size() int64  { return r.c.Size() }
func (r contentReader) Close() error { return nil }

// wholeOf reads a Content from its start to its end.
func wholeOf(tb testing.TB, c Content) []byte {
	tb.Helper()
	b := make([]byte, c.Size())
	n, err := c.ReadAt(context.Background(), b, 0)
	if err != nil || int64(n) != c.Size() {
		tb.Fatalf("%d of %d bytes: %v", n, c.Size(), err)
	}
	return b
}

// storedAddresses lists the stored addresses of a file, a few at a time.
func storedAddresses(tb testing.TB, f *File) (rows []uint64, addrs []fri.RowAddr) {
	tb.Helper()
	c, err := f.Scan(context.Background(), Position{})
	noError(tb, err)
	if c == nil {
		return nil, nil
	}
	for {
		var b Batch
		if err := c.Next(context.Background(), &b, 1000); err != nil {
			tb.Fatalf("%s: %v", f.Path, err)
		}
		if len(b.Addrs) == 0 {
			return rows, addrs
		}
		rows, addrs = append(rows, b.Rows...), append(addrs, b.Addrs...)
	}
}

// answersFor answers for addresses in one call.
func answersFor(tb testing.TB, r Resolver, addrs []fri.RowAddr) *Answers {
	tb.Helper()
	var a Answers
	a.Grow(len(addrs))
	noError(tb, r.Resolve(context.Background(), addrs, &a))
	return &a
}

// expectedContents reads what official Lance found in the index files of a dataset: by uuid, then by "<file>:<column>".
func expectedContents(tb testing.TB, name string) map[string]map[string]content {
	tb.Helper()
	if !testdata.HasExpected(tb, name) {
		return nil
	}
	family, base, _ := strings.Cut(name, "/")
	b, err := os.ReadFile(filepath.Join(testdata.Dir(tb, family), base+".expected.json"))
	noError(tb, err)
	var doc struct {
		Indices json.RawMessage
	}
	noError(tb, json.Unmarshal(b, &doc))
	var indices []struct {
		Segments []struct {
			UUID     string
			Contents map[string]json.RawMessage
		}
	}
	if json.Unmarshal(doc.Indices, &indices) != nil {
		return nil // of a table that Lance cannot list there is an error message
	}
	out := map[string]map[string]content{}
	for _, ix := range indices {
		for _, s := range ix.Segments {
			for where, raw := range s.Contents {
				var c content
				if json.Unmarshal(raw, &c) != nil {
					continue // "unread": Lance's Python reader could not get at it
				}
				if out[s.UUID] == nil {
					out[s.UUID] = map[string]content{}
				}
				out[s.UUID][where] = c
			}
		}
	}
	return out
}

// content describes the addresses of one column.
type content struct {
	Entries     *uint64
	Keys        *uint64
	PerFragment [][2]uint64 `json:"per_fragment"`
	First, Last []uint64
	SHA256      string `json:"sha256_u64le"`
}
