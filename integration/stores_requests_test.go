package integration

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/integration/stores/proxy"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
)

// asked is what a proxy saw, by kind (GET, HEAD, LIST) and by the part of the table.
func asked(p *proxy.Proxy) map[string]int {
	out := map[string]int{}
	for _, r := range p.Requests() {
		method, rest, _ := strings.Cut(r, " ")
		path, query, _ := strings.Cut(rest, "?")
		if raw, err := url.PathUnescape(path); err == nil {
			path = raw
		}
		kind, part := method, "root"
		if strings.Contains(query, "delimiter=") {
			kind, part = "LIST", "dir"
		}
		for _, dir := range []string{"_versions", "_transactions", "_deletions", "_indices", "_fri", "_refs", "data"} {
			if strings.Contains(path, "/"+dir+"/") {
				part = dir
			}
		}
		out[kind+" "+part]++
	}
	return out
}

// outsideScan walks like walkAll, but for scan/, where the store is asked about each file.
func outsideScan(path string) bool { return !strings.Contains(path, "/scan") }

// TestRequestsByKind counts what reading a table costs in an object store: one request for each small manifest, none of
// the kind that only asks for a size, and nothing for what was read already.
func TestRequestsByKind(t *testing.T) {
	o := startS3(t)
	for _, name := range []string{"tagged/coverage", "legacy/basic"} {
		dir := testdata.Dataset(t, name)
		o.upload(t, dir, name+".lance")
		p := behind(t, o, nil)
		uri := o.uri(t, p.URL, name+".lance")
		layer := store.NewLayer(store.Config{})
		tree, err := openTree(t, uri, store.Options{Layer: layer})
		if err != nil {
			t.Fatal(err)
		}
		if got := asked(p); !maps.Equal(got, map[string]int{"LIST dir": 2}) {
			t.Errorf("%s: opening the tree asks for %v", name, got)
		}
		versions, err := filepath.Glob(filepath.Join(dir, "_versions", "*.manifest"))
		if err != nil || len(versions) == 0 {
			t.Fatalf("%d versions, %v", len(versions), err)
		}
		deletions, err := filepath.Glob(filepath.Join(dir, "_deletions", "*"))
		if err != nil || len(deletions) == 0 {
			t.Fatalf("%d deletion files, %v", len(deletions), err)
		}
		p.SetPlan(nil)
		walkWhere(t, tree, "", outsideScan)
		got := asked(p)
		for kind, n := range got {
			// Of deletion files the manifest does not tell the size, which stat of remapped.lance has to.
			if strings.HasPrefix(kind, "HEAD ") && kind != "HEAD _deletions" {
				t.Errorf("%s: %d × %s: sizes come with the bytes", name, n, kind)
			}
		}
		if n := got["GET _versions"]; n != len(versions) {
			t.Errorf("%s: %d reads of %d small manifests", name, n, len(versions))
		}
		t.Logf("%s: %v; %+v", name, got, layer.Stats())

		// All of composed.csv needs each deletion file once for each version, with one request.
		var composed []string
		for path := range localTree(t, dir) {
			if strings.HasSuffix(path, "/fri/scan/composed.csv") {
				composed = append(composed, path[1:])
			}
		}
		fresh, err := openTree(t, uri, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			p.SetPlan(nil)
			for _, path := range composed {
				if _, err := readPath(t, fresh, path); err != nil {
					t.Fatal(err)
				}
			}
			got = asked(p)
			if n := got["GET _deletions"]; i == 0 && (n > len(composed)*len(deletions) || got["HEAD _deletions"] != 0) {
				t.Errorf("%s: %d of composed.csv: %v for %d deletion files", name, len(composed), got, len(deletions))
			}
			if i == 1 && len(got) != 0 {
				t.Errorf("%s: composed.csv again: %v", name, p.Requests())
			}
		}
	}
}

// TestWarmStartAsksAlmostNothing reads a table, and again in a new process with the same cache on disk.
func TestWarmStartAsksAlmostNothing(t *testing.T) {
	eachServer(t, func(t *testing.T, o *objects) {
		dir := testdata.Dataset(t, "legacy/basic")
		o.upload(t, dir, "t.lance")
		p := behind(t, o, nil)
		uri := o.uri(t, p.URL, "t.lance")
		cache := t.TempDir()
		want := localTree(t, dir)
		var cold, warm map[string]int
		var coldBytes, warmBytes int64
		for i := range 2 {
			disk, err := store.OpenDiskCache(cache, store.MinDiskCache)
			if err != nil {
				t.Fatal(err)
			}
			p.SetPlan(nil)
			tree, err := openTree(t, uri, store.Options{Layer: store.NewLayer(store.Config{Disk: disk})})
			if err != nil {
				t.Fatal(err)
			}
			shown, _, _ := strings.Cut(uri, "?")
			got := walkWhere(t, tree, shown, outsideScan)
			for path, w := range got {
				if strings.HasSuffix(path, "/") {
					continue // its names are fewer
				}
				if w != want[path] {
					t.Errorf("%s: %v, want %v", path, w, want[path])
				}
			}
			if i == 0 {
				cold, coldBytes = asked(p), p.Bytes()
				continue
			}
			warm, warmBytes = asked(p), p.Bytes()
		}
		for _, part := range []string{"_versions", "_transactions", "_refs"} {
			if n := warm["GET "+part] + warm["HEAD "+part]; n > 0 && part != "_transactions" {
				t.Errorf("%d requests for %s with a warm cache", n, part)
			}
		}
		// Listings come in full; of contents there is one byte for each opened file at most. GCS is asked for attributes
		// first: these are larger than the small files of this table.
		most := coldBytes / 2
		if o.name == "fake-gcs-server" {
			most = coldBytes * 9 / 10
		}
		if warmBytes > most {
			t.Errorf("%d bytes came with a warm cache, %d without", warmBytes, coldBytes)
		}
		t.Logf("cold %v, %d bytes; warm %v, %d bytes", cold, coldBytes, warm, warmBytes)
	})
}

// hugeManifest writes a table of one version with many fragments, as dir.
func hugeManifest(t testing.TB, dir string, frags, columns int) (size int64) {
	t.Helper()
	ids := make([]int32, columns)
	m := &pb.Manifest{Version: proto.Uint64(1)}
	for i := range ids {
		ids[i] = int32(i)
		m.Fields = append(m.Fields, &pb.Field{Name: proto.String(fmt.Sprint("c", i)), Id: proto.Int32(int32(i)), ParentId: proto.Int32(-1), LogicalType: proto.String("int32")})
	}
	body, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(frags) {
		one, err := proto.Marshal(&pb.DataFragment{Id: proto.Uint64(i), PhysicalRows: proto.Uint64(1000), Files: []*pb.DataFile{{
			Path: proto.String(fmt.Sprintf("%024b%026x.lance", i, i*i)), Fields: ids, ColumnIndices: ids,
			FileMajorVersion: proto.Uint32(2), FileMinorVersion: proto.Uint32(1), FileSizeBytes: proto.Uint64(1000 + i)}}})
		if err != nil {
			t.Fatal(err)
		}
		body = protowire.AppendBytes(protowire.AppendTag(body, 2, protowire.BytesType), one)
	}
	file := protowire.AppendFixed32(nil, uint32(len(body)))
	file = append(file, body...)
	file = protowire.AppendFixed64(file, 0)
	file = append(file, 0, 0, 2, 0, 'L', 'A', 'N', 'C')
	if err := os.MkdirAll(filepath.Join(dir, "_versions"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "_versions", "1.manifest"), file, 0o644); err != nil {
		t.Fatal(err)
	}
	return int64(len(file))
}

// TestHugeManifestFromAStore opens a manifest of 200,000 fragments × 20 columns: two requests, at most three times its
// size of memory, and, over the limit, an error for its version alone.
func TestHugeManifestFromAStore(t *testing.T) {
	o := startS3(t)
	dir := t.TempDir()
	size := hugeManifest(t, dir, 200_000, 20)
	o.upload(t, dir, "t.lance")
	p := behind(t, o, nil)
	uri := o.uri(t, p.URL, "t.lance")
	st, err := store.OpenURI(t.Context(), uri, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ds, err := dataset.Open(t.Context(), st, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ds.Versions(t.Context())
	if err != nil || len(l.Versions) != 1 {
		t.Fatalf("%v, %v", l, err)
	}
	p.SetPlan(nil)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m, err := ds.Manifest(t.Context(), l.Versions[0])
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := int64(after.TotalAlloc - before.TotalAlloc); n > 3*size {
		t.Errorf("reading %d bytes allocated %d", size, n)
	}
	if got := asked(p); !maps.Equal(got, map[string]int{"GET _versions": 2}) {
		t.Errorf("asked for %v: %v", got, p.Requests())
	}
	if rows, ok := m.Rows(); rows != 200_000_000 || !ok {
		t.Errorf("%d rows, %t", rows, ok)
	}
	r := command(t, "", exe, "cat", "--max-manifest-bytes", "1MiB", uri, "versions/1/version.json")
	if r.code != 1 || !strings.Contains(r.stderr, "too_large") && !strings.Contains(r.stderr, "limit") {
		t.Errorf("over the limit: exit %d, %s", r.code, r.stderr)
	}
	if out := frifs(t, "ls", "--max-manifest-bytes", "1MiB", uri, "versions"); strings.TrimSpace(out) != "1" {
		t.Errorf("ls versions: %q", out)
	}
}

// TestMemoryIsOneBound reads a table larger than the budget from an object store, with eight readers.
func TestMemoryIsOneBound(t *testing.T) {
	o := startS3(t)
	dir := testdata.Dataset(t, "legacy/external")
	o.upload(t, dir, "t.lance")
	uri := o.uri(t, o.target, "t.lance")
	m := mount(t, uri, "--memory", "16MiB")
	sh(t, m.dir, `find versions -type f -not -path '*/remapped.lance/*' -print0 | xargs -0 -n 16 -P 8 cat >/dev/null`)
	status := sh(t, m.dir, `cat .frifs/status.json`)
	limit := sh(t, m.dir, `awk '$1 == "frifs_memory_limit_bytes" {printf "%d", $2}' .frifs/metrics`)
	used := sh(t, m.dir, `awk '$1 == "frifs_memory_used_bytes" {printf "%d", $2}' .frifs/metrics`)
	if limit != "16777216" || len(used) == 0 || len(used) > 8 || used > limit && len(used) == len(limit) || used == "0" {
		t.Errorf("memory: %s of %s bytes are used", used, limit)
	}
	for _, part := range []string{`"store_blocks"`, `"requests_under_way"`, `"dataset"`, `"manifests"`, `"documents"`, `"blocks"`, `"limit_bytes": 16777216`} {
		if !strings.Contains(status, part) {
			t.Errorf("status.json does not tell of %s", part)
		}
	}
	m.stop()
}
