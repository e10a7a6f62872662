package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/frifs/frifs/integration/stores/proxy"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
	"github.com/frifs/frifs/nodes"
)

// hundredVersions uploads a table of 100 versions to a server: one of the test data, whose newest manifest is repeated.
func hundredVersions(b *testing.B, o *objects) {
	b.Helper()
	dir := testdata.Dataset(b, "legacy/chain")
	o.upload(b, dir, "t.lance")
	entries, err := os.ReadDir(filepath.Join(dir, "_versions"))
	if err != nil {
		b.Fatal(err)
	}
	latest := 0
	for _, e := range entries {
		var n uint64
		if _, err := fmt.Sscanf(e.Name(), "%d.manifest", &n); err == nil {
			latest = max(latest, int(^uint64(0)-n))
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "_versions", fmt.Sprintf("%020d.manifest", ^uint64(0)-uint64(latest))))
	if err != nil {
		b.Fatal(err)
	}
	bucket := o.bucket(b)
	for n := latest + 1; n <= 100; n++ {
		if err := put(b.Context(), bucket, fmt.Sprintf("t.lance/_versions/%020d.manifest", ^uint64(0)-uint64(n)), data); err != nil {
			b.Fatal(err)
		}
	}
}

// list walks a tree as `ls -lR` does, without scan/ and remapped files.
func list(ctx context.Context, d nodes.Dir) (n int, err error) {
	entries, err := d.Entries(ctx)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	for _, e := range entries {
		if e.Name == "scan" || e.Name == "remapped" || e.Name == "remapped.lance" {
			continue
		}
		node, err := d.Lookup(ctx, e.Name)
		if err != nil {
			continue
		}
		below := 0
		if dir, ok := node.(nodes.Dir); ok {
			if below, err = list(ctx, dir); err != nil {
				return n, err
			}
		} else if _, err := node.Attr(ctx); err != nil {
			return n, err
		}
		mu.Lock()
		n += 1 + below
		mu.Unlock()
	}
	return n, nil
}

// BenchmarkStoreWalk lists 100 versions in S3 with 20 ms latency, cold and warm.
func BenchmarkStoreWalk(b *testing.B) {
	o := startS3(b)
	hundredVersions(b, o)
	p := behind(b, o, nil)
	uri := o.uri(b, p.URL, "t.lance")
	for b.Loop() {
		p.SetPlan(proxy.Latency(20 * time.Millisecond))
		tree, err := openTree(b, uri, store.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for _, what := range []string{"cold", "warm"} {
			before, begin := len(p.Requests()), time.Now()
			n, err := list(b.Context(), tree.Root())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(time.Since(begin).Milliseconds()), what+"-ms")
			b.ReportMetric(float64(len(p.Requests())-before), what+"-requests")
			b.ReportMetric(float64(n), "entries")
		}
		b.ReportMetric(float64(p.Bytes())/1e6, "MB")
	}
}

// BenchmarkStoreMount mounts a table of 100 versions in S3 with 20 ms latency, to the first ls.
func BenchmarkStoreMount(b *testing.B) {
	needFUSE(b)
	o := startS3(b)
	hundredVersions(b, o)
	p := behind(b, o, nil)
	uri := o.uri(b, p.URL, "t.lance")
	for b.Loop() {
		p.SetPlan(proxy.Latency(20 * time.Millisecond))
		m := mount(b, uri)
		sh(b, m.dir, `ls versions | wc -l | grep -qx 100`)
		b.ReportMetric(float64(len(p.Requests())), "requests")
		m.stop()
	}
}

// BenchmarkStoreRead reads the largest file of a table through the layer, in order, with 20 ms latency.
func BenchmarkStoreRead(b *testing.B) {
	o := startS3(b)
	bucket := o.bucket(b)
	const size = 64 << 20
	if err := put(b.Context(), bucket, "big", []byte(strings.Repeat("0123456789abcdef", size/16))); err != nil {
		b.Fatal(err)
	}
	p := behind(b, o, proxy.Latency(20*time.Millisecond))
	b.SetBytes(size)
	for b.Loop() {
		p.SetPlan(proxy.Latency(20 * time.Millisecond))
		st, err := store.OpenURI(b.Context(), o.uri(b, p.URL, ""), store.Options{})
		if err != nil {
			b.Fatal(err)
		}
		r, err := st.Open(b.Context(), "big")
		if err != nil {
			b.Fatal(err)
		}
		buf := make([]byte, 128<<10)
		for off := int64(0); off < size; off += int64(len(buf)) {
			if _, err := r.ReadAt(buf, off); err != nil {
				b.Fatal(err)
			}
		}
		r.Close()
		b.ReportMetric(float64(len(p.Requests())), "requests")
	}
}
