package nodes

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/metrics"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/pb"
)

// liveHeap is what the last garbage collection left, in bytes.
func liveHeap() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// A version whose manifest lists very many fragments is shown within three times the size of the manifest, and the
// bounded caches beside it: whatever is listed or read of it.
func TestBigVersionMemory(t *testing.T) {
	const frags, columns = 30_000, 20
	ids := make([]int32, columns)
	for i := range ids {
		ids[i] = int32(i)
	}
	m := makeTable(t)
	change := func(p *pb.Manifest) {
		for i := range uint64(frags) {
			p.Fragments = append(p.Fragments, &pb.DataFragment{Id: proto.Uint64(i), PhysicalRows: proto.Uint64(1 << 20), Files: []*pb.DataFile{{
				Path: proto.String(fmt.Sprintf("%024b%026x.lance", i, i*i)), Fields: ids, ColumnIndices: ids,
				FileMajorVersion: proto.Uint32(2), FileMinorVersion: proto.Uint32(1), FileSizeBytes: proto.Uint64(1e9 + i)}}})
		}
	}
	m.version(1, change, entry("id_idx", btreeType, 1, 0, 1))
	m.version(2, func(p *pb.Manifest) {
		change(p)
		p.Fragments[5].PhysicalRows = proto.Uint64(7)
	}, entry("id_idx", btreeType, 1, 0, 1))
	tr := m.tree(nil)
	runtime.GC()
	base := liveHeap()
	var size int64
	// What two versions hold, and the tree's bounded caches of rendered text and listings.
	check := func(path string, manifests int64) {
		t.Helper()
		if n := liveHeap() - base; n > 3*manifests*size+(12<<20) {
			t.Errorf("%s: %d bytes are live for %d manifests of %d bytes", path, n, manifests, size)
		}
	}
	for _, c := range []struct {
		path      string
		manifests int64
		want      string // in the text
	}{
		{"versions/2/version.json", 1, `"fragments": 30000`},
		{"versions/2/fri/history.json", 1, `"present": false`},
		{"versions/2/fragments.csv", 1, "\n29999,1048576,0,1048576,1,1000029999\n"},
		{"versions/2/manifest.json", 1, `"file_size_bytes": 1000029999`},
		{"versions/2/files.json", 1, `"recorded_bytes": 1000029999`},
		{"versions/2/changes.json", 2, `"fragment": 5`},
	} {
		node, err := Resolve(t.Context(), tr.Root(), c.path)
		if err != nil {
			t.Fatal(err)
		}
		a, err := node.Attr(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if size == 0 {
			n, err := tr.version(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			size = n.v.refs[n.i].Object.Size
		}
		h, err := node.(File).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var off int64
		found := false
		p := make([]byte, 1<<20)
		for keep := 0; ; {
			k, err := h.ReadAt(t.Context(), p[keep:], off)
			if err != nil {
				t.Fatal(err)
			}
			off += int64(k)
			found = found || bytes.Contains(p[:keep+k], []byte(c.want))
			if k < len(p)-keep {
				break
			}
			check(c.path, c.manifests)
			keep = copy(p, p[len(p)-100:])
		}
		_ = h.Close()
		if off != a.Size || !found {
			t.Errorf("%s: %d bytes of %d, %q found: %v", c.path, off, a.Size, c.want, found)
		}
		runtime.GC()
		check(c.path, c.manifests)
	}
	// The remapped dataset: its manifest, as large as the stored one, and the list of its files.
	for _, dir := range []string{"versions/2", "versions/2/indices/id_idx", "versions/2/remapped.lance", "versions/2/remapped.lance/data"} {
		node, err := Resolve(t.Context(), tr.Root(), dir)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := node.(Dir).Entries(t.Context())
		if err != nil || dir == "versions/2/remapped.lance/data" && len(entries) != frags || len(entries) == 0 {
			t.Fatalf("%s: %d entries, %v", dir, len(entries), err)
		}
		runtime.GC()
		check(dir, 3)
	}
}
