package nodes

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/pb"
)

// secret is what no file of a hostile table may show.
const secret = "root:SECRET"

// hostile is a table that leads to a directory beside its parent by everything that a manifest, a ref or a link can name.
type hostile struct {
	*made
	out string // the directory with the secrets
}

func makeHostile(t testing.TB) *hostile {
	t.Helper()
	top := t.TempDir()
	h := &hostile{&made{t, filepath.Join(top, "home", "t.lance")}, filepath.Join(top, "out")}
	o := &made{t, h.out}
	for _, name := range []string{
		"shadow", "x.lance", "data/x.lance", "data/x/0.blob", "x/0.blob", "_blobs/0.blob", "_deletions/3-1-9.bin", "_deletions/3-1-9.arrow",
		indexDir(1) + "/page_data.lance", strings.TrimPrefix(indexDir(1), "_indices/") + "/page_data.lance", indexDir(0xF1) + "/details.binpb",
		"_fri/map/stable_partition.lance", "_transactions/t.txn", "_versions/9.manifest", "_refs/tags/x.json", "tree/b/_versions/1.manifest",
	} {
		o.file(name, secret)
	}
	if err := os.MkdirAll(filepath.Join(h.dir, "_versions"), 0o755); err != nil {
		t.Fatal(err)
	}
	h.file("data/here.lance", "here")
	return h
}

// link makes a symbolic link in the table.
func (h *hostile) link(name, target string) {
	h.t.Helper()
	p := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Symlink(target, p); err != nil {
		h.t.Fatal(err)
	}
}

// escapes are ways to write the path of a file outside.
func (h *hostile) escapes(rel string) []string {
	up := "../../../out/" + rel
	return []string{
		up, "../" + up, "x/../../" + up, "/../" + up, filepath.Join(h.out, rel), "file://" + filepath.Join(h.out, rel), "//" + filepath.Join(h.out, rel),
		"..%2F..%2F..%2Fout%2F" + rel, `..\..\..\out\` + rel, "./" + up, up + "/", "here.lance/../" + up, "\x00" + up,
	}
}

// bases are base paths that lead outside, from id 1 on.
func (h *hostile) bases() (paths []*pb.BasePath) {
	for _, p := range []string{
		h.out, "file://" + h.out, filepath.Dir(h.dir) + "/../out", h.dir + "/../../out", "file://" + filepath.Dir(h.dir) + "/%2e%2e/out",
		filepath.Dir(h.dir) + "/link", h.dir + "/inner-link", h.dir + "/inner-link/../out", h.out + "/", "/" + h.out, "FILE://" + h.out, "file://localhost" + h.out,
		"out", "../../out", "", "/", filepath.Dir(filepath.Dir(h.dir)),
	} {
		for _, root := range []bool{true, false} {
			id := uint32(len(paths) + 1)
			paths = append(paths, &pb.BasePath{Id: proto.Uint32(id), IsDatasetRoot: proto.Bool(root), Path: proto.String(p)})
		}
	}
	return paths
}

// partitionOf is a tagged history of one stable partition with this map id and base.
func partitionOf(mapID string, base *uint32) *pb.IndexMetadata {
	number := func(b []byte, field protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
	}
	message := func(b []byte, field protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
	}
	part := number(message(nil, 1, []byte(mapID)), 2, uint64(len(secret)))
	if base != nil {
		part = number(part, 3, uint64(*base))
	}
	record := message(nil, 1, number(number(nil, 1, 1), 2, 10))
	record = message(record, 2, number(number(nil, 1, 3), 2, 10))
	record = message(record, 4, part)
	return reuse(1, message(nil, 1, message(nil, 2, record)))
}

// contentOf reads a file of the tree.
func contentOf(ctx context.Context, f File) ([]byte, error) {
	a, err := f.Attr(ctx)
	if err != nil {
		return nil, err
	}
	h, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = h.Close() }()
	b := make([]byte, a.Size)
	n, err := h.ReadAt(ctx, b, 0)
	return b[:n], err
}

// TestAHostileTableShowsNothingElse reads every file of tables that lead outside by data files, overlays, deletion files,
// index files, the details and row maps of the history, blobs, transactions, bases, refs and links.
func TestAHostileTableShowsNothingElse(t *testing.T) {
	h := makeHostile(t)
	v := uint64(0)
	next := func(change func(*pb.Manifest), indices ...*pb.IndexMetadata) {
		v++
		h.version(v, func(m *pb.Manifest) {
			m.BasePaths = h.bases()
			if change != nil {
				change(m)
			}
		}, indices...)
	}
	dataFile := func(path string, base *uint32) *pb.DataFile {
		return &pb.DataFile{Path: proto.String(path), FileSizeBytes: proto.Uint64(uint64(len(secret))), BaseId: base, Fields: []int32{0},
			FileMajorVersion: proto.Uint32(2), FileMinorVersion: proto.Uint32(1)}
	}
	withFile := func(f *pb.DataFile) func(*pb.Manifest) {
		return func(m *pb.Manifest) {
			m.Fields[0].Metadata = map[string][]byte{"ARROW:extension:name": []byte("lance.blob.v2")}
			m.ReaderFeatureFlags = proto.Uint64(dataset.FlagManagedBlobs)
			m.Fragments = []*pb.DataFragment{{Id: proto.Uint64(3), PhysicalRows: proto.Uint64(10), Files: []*pb.DataFile{f},
				Overlays:     []*pb.DataOverlayFile{{DataFile: f}},
				DeletionFile: &pb.DeletionFile{FileType: proto.Int32(1), ReadVersion: proto.Uint64(1), Id: proto.Uint64(9), NumDeletedRows: proto.Uint64(1), BaseId: f.BaseId}}}
		}
	}
	withIndex := func(file string, base *uint32) []*pb.IndexMetadata {
		ix := entry("i", btreeType, 1, 3)
		ix.BaseId, ix.Files = base, []*pb.IndexFile{{Path: proto.String(file), SizeBytes: proto.Uint64(uint64(len(secret)))}}
		unlisted := entry("u", btreeType, 1, 3)
		unlisted.BaseId = base
		return []*pb.IndexMetadata{ix, unlisted}
	}
	external := func(path string, base *uint32) *pb.IndexMetadata {
		file := protowire.AppendTag(nil, 1, protowire.BytesType)
		file = protowire.AppendString(file, path)
		file = protowire.AppendTag(file, 3, protowire.VarintType)
		file = protowire.AppendVarint(file, uint64(len(secret)))
		value := protowire.AppendTag(nil, 2, protowire.BytesType)
		ix := reuse(0, protowire.AppendBytes(value, file))
		ix.BaseId = base
		return ix
	}
	for _, p := range h.escapes("x.lance") {
		next(withFile(dataFile(p, nil)))
	}
	for _, p := range h.escapes("shadow") {
		next(func(m *pb.Manifest) { m.TransactionFile = proto.String(p) }, append(withIndex(p, nil), external(p, nil))...)
		next(nil, partitionOf(p, nil))
	}
	for _, b := range h.bases() {
		next(withFile(dataFile("x.lance", b.Id)), append(withIndex("page_data.lance", b.Id), external("details.binpb", b.Id))...)
		next(nil, partitionOf("map", b.Id))
	}
	// Nothing is where it is recorded: it is looked for under all of these bases.
	next(withFile(dataFile("x.lance", nil)), append(withIndex("page_data.lance", nil), external("details.binpb", nil))...)
	next(nil, partitionOf("map", nil))
	h.link("../link", "../out")
	h.link("inner-link", "../../out")
	// Links in the place of files and directories.
	next(withFile(dataFile("link.lance", nil)), append(withIndex("page_data.lance", nil), external("details.binpb", nil))...)
	next(func(m *pb.Manifest) { m.TransactionFile = proto.String("t.txn") })
	for name, target := range map[string]string{
		"data/link.lance": "x.lance", "data/link": "data/x", "_blobs": "_blobs", "_transactions": "_transactions", "_deletions": "_deletions", "_fri": "_fri",
		"_indices": "_indices", "_versions/900.manifest": "shadow", "_versions/901.manifest": "_versions/9.manifest", "_versions/d9223372036854775809.manifest": "shadow",
		"_refs/tags/link.json": "shadow", "_refs/branches/link.json": "shadow", "_refs/branches/dir": "_refs/tags", "tree/linked": ".", "tree/b": "tree/b", "_latest.manifest": "shadow",
	} {
		h.link(name, filepath.Join(h.out, target))
	}
	for i, p := range h.escapes("tree/b") {
		name := string(rune('a' + i))
		branch, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		h.file("_refs/tags/"+name+".json", `{"version":1,"branch":`+string(branch)+`}`)
		if !strings.ContainsAny(p, "\x00") {
			h.file("_refs/branches/"+strings.NewReplacer("%", "%25", "/", "%2F").Replace(p)+".json", `{"parentVersion":1}`)
		}
	}
	db := filepath.Dir(h.dir)
	if err := os.Symlink("../out", filepath.Join(db, "linked.lance")); err != nil {
		t.Fatal(err)
	}
	root := openDatabase(t, mustStore(t, db)).Root()
	files, denied := 0, 0
	err := fs.WalkDir(FS(root), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // what cannot be shown shows nothing
		}
		n, err := ResolveNoFollow(t.Context(), root, path)
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		f, ok := n.(File)
		if !ok {
			return nil
		}
		files++
		b, err := contentOf(t.Context(), f)
		if err != nil && strings.Contains(err.Error(), "--allow-base") {
			denied++
		}
		for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret)))} {
			if strings.Contains(string(b), form) || err != nil && strings.Contains(err.Error(), form) {
				t.Errorf("%s shows the secret: %v", path, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if files < 1000 || denied < 30 {
		t.Errorf("%d files, %d of them denied", files, denied)
	}
	// The secrets are where these files lead: admitted, one is read.
	ds, err := dataset.Open(t.Context(), mustStore(t, h.dir), dataset.Options{AllowBase: []string{h.out}})
	if err != nil {
		t.Fatal(err)
	}
	admitted, err := New(t.Context(), Config{Dataset: ds})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admitted.Close)
	first := fmt.Sprint(len(h.escapes("")) + 2*len(h.escapes("")) + 1)
	for _, p := range []string{"remapped.lance/data/x.lance", "indices/i/00000000-0000-0000-0000-000000000001/stored/page_data.lance"} {
		if got := string(cat(t, admitted, "versions/"+first+"/"+p)); got != secret {
			t.Errorf("%s with --allow-base holds %q", p, got)
		}
	}
}
