package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/frifs/frifs/internal/pb"
)

// TestLargeManifest reads manifest.json and files.json of many fragments in pieces: they are never held as a whole.
func TestLargeManifest(t *testing.T) {
	m := makeTable(t)
	const n = 6000
	m.version(1, func(p *pb.Manifest) {
		for i := range uint64(n) {
			p.Fragments = append(p.Fragments, &pb.DataFragment{Id: proto.Uint64(i), PhysicalRows: proto.Uint64(100), Files: []*pb.DataFile{
				{Path: proto.String(fmt.Sprintf("file-%d.lance", i)), Fields: []int32{0}, FileSizeBytes: proto.Uint64(1000 + i)}}})
		}
	})
	tr := m.tree(nil)
	for _, path := range []string{"latest/manifest.json", "latest/files.json", "latest/changes.json"} {
		node, err := Resolve(t.Context(), tr.Root(), path)
		if err != nil {
			t.Fatal(err)
		}
		a, err := node.Attr(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h, err := node.(File).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var whole []byte
		for p := make([]byte, 131_072); ; {
			k, err := h.ReadAt(t.Context(), p, int64(len(whole)))
			if err != nil {
				t.Fatal(err)
			}
			if whole = append(whole, p[:k]...); k < len(p) {
				break
			}
		}
		if int64(len(whole)) != a.Size || !json.Valid(whole) {
			t.Fatalf("%s: size %d, %d bytes read, valid %v", path, a.Size, len(whole), json.Valid(whole))
		}
		if path == "latest/manifest.json" && a.Size < 2*keepBytes {
			t.Fatalf("%s is too small for the test: %d bytes", path, a.Size)
		}
		if k := bytes.Count(whole, []byte("\"path\": \"file-")) + bytes.Count(whole, []byte("\"path\": \"data/file-")); path != "latest/changes.json" && k != n {
			t.Errorf("%s names %d files, want %d", path, k, n)
		}
		rng := rand.New(rand.NewPCG(3, 4))
		for range 20 {
			off := rng.Int64N(a.Size)
			p := make([]byte, rng.IntN(5000))
			if k, err := h.ReadAt(t.Context(), p, off); err != nil || !bytes.Equal(p[:k], whole[off:min(off+int64(len(p)), a.Size)]) {
				t.Fatalf("%s: read of %d at %d differs (%v)", path, len(p), off, err)
			}
		}
	}
}

// TestParallelReaders has many readers of the same files, through handles of their own and a shared one.
func TestParallelReaders(t *testing.T) {
	tr := openTree(t, "tagged/chain", nil)
	paths := []string{"latest/fri/history.json", "latest/fri/transitions/0002/mapping.csv", "latest/fri/transitions/0002/scan/inverse.csv",
		"latest/fri/scan/composed.csv", "latest/manifest.json", "latest/fri/transitions/0003/mapping.arrow", "latest/fri/status.json"}
	var wg sync.WaitGroup
	for _, path := range paths {
		want := cat(t, openTree(t, "tagged/chain", nil), path)
		node, err := Resolve(t.Context(), tr.Root(), path)
		if err != nil {
			t.Fatal(err)
		}
		shared, err := node.(File).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				h := shared
				if i%2 == 0 {
					var err error
					if h, err = node.(File).Open(context.Background()); err != nil {
						t.Error(err)
						return
					}
				}
				rng := rand.New(rand.NewPCG(uint64(i), 9))
				for range 15 {
					off := rng.Int64N(int64(len(want)))
					p := make([]byte, rng.IntN(2000))
					k, err := h.ReadAt(context.Background(), p, off)
					if err != nil || !bytes.Equal(p[:k], want[off:min(off+int64(len(p)), int64(len(want)))]) {
						t.Errorf("%s: read of %d at %d differs (%v)", path, len(p), off, err)
						return
					}
				}
			}()
		}
	}
	wg.Wait()
}
