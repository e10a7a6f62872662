package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/frifs/frifs/nodes"
)

func benchmark(b *testing.B, root nodes.Dir, method, path string, size int64) {
	s := httptest.NewServer(New(root, Options{}))
	defer s.Close()
	b.SetBytes(size)
	for b.Loop() {
		req, err := http.NewRequestWithContext(b.Context(), method, s.URL+path, nil)
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Depth", "1")
		res, err := s.Client().Do(req)
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode >= 300 || size > 0 && n != size {
			b.Fatal(res.StatusCode, n, err)
		}
	}
}

// BenchmarkFile reads 64 MiB that the tree has in memory, over loopback.
func BenchmarkFile(b *testing.B) {
	const size = 64 << 20
	benchmark(b, dirOf(map[string]nodes.Node{"f": text(strings.Repeat("x", size))}), "GET", "/f", size)
}

// BenchmarkSmallFile asks for a file of a kilobyte, on a connection that stays open.
func BenchmarkSmallFile(b *testing.B) {
	benchmark(b, dirOf(map[string]nodes.Node{"f": text(strings.Repeat("x", 1024))}), "GET", "/f", 1024)
}

// BenchmarkDirectory lists 20,000 directories, as a page, as JSON, and to WebDAV.
func BenchmarkDirectory(b *testing.B) {
	names := map[string]nodes.Node{}
	for i := range 20_000 {
		names[fmt.Sprint(i)] = dirOf(nil)
	}
	root := dirOf(names)
	b.Run("html", func(b *testing.B) { benchmark(b, root, "GET", "/", 0) })
	b.Run("json", func(b *testing.B) { benchmark(b, root, "GET", "/?format=json", 0) })
	b.Run("webdav", func(b *testing.B) { benchmark(b, root, "PROPFIND", "/", 0) })
}
