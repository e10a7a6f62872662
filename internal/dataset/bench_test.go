package dataset

import (
	"fmt"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/pb"
)

// BenchmarkVersions lists a local directory of 20,000 manifests (docs/DESIGN.md, "Bars": at most 50 ms).
func BenchmarkVersions(b *testing.B) {
	dir := b.TempDir()
	for v := range uint64(20000) {
		write(b, filepath.Join(dir, "_versions", v2Name(v+1)), nil)
	}
	d := openLocal(b, dir, Options{})
	for b.Loop() {
		if refs := versions(b, d); len(refs) != 20000 {
			b.Fatal(len(refs))
		}
	}
}

// BenchmarkManifest reads and decodes manifests of several sizes, uncached.
func BenchmarkManifest(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprintf("%d-fragments", n), func(b *testing.B) {
			file := build(manifestParts{manifest: &pb.Manifest{Version: proto.Uint64(1), Fragments: fragments(n)}, indices: sectionOf(entry("a", "", nil))})
			d, _, ref := memDataset(b, file, Options{CacheBytes: -1}, nil)
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := d.Manifest(b.Context(), ref); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
