package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
	"github.com/frifs/frifs/nodes"
)

// openTree opens the tree of a dataset of the test data.
func openTree(t testing.TB, name string) *nodes.Tree {
	t.Helper()
	st, err := store.OpenURI(t.Context(), testdata.Dataset(t, name), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ds, err := dataset.Open(t.Context(), st, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := nodes.New(t.Context(), nodes.Config{Dataset: ds})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tree.Close)
	return tree
}

// crawl visits every directory that the listings of a server lead to, below dir.
func (s *server) crawl(dir string, visit func(path string, e jsonEntry)) {
	s.t.Helper()
	r := s.ask("GET", dir+"?format=json", "")
	if r.status != 200 {
		s.t.Fatalf("%s: %d %s", dir, r.status, r.body)
	}
	for _, e := range readListing(s.t, r.body).Entries {
		path := dir + strings.TrimPrefix(e.Href, "./")
		visit(path, e)
		if e.Type == "directory" {
			s.crawl(path, visit)
		}
	}
}

// Every file that the listings lead to has the bytes that the tree has, whole and in pieces, and HEAD and WebDAV say the
// same of it.
func TestSameAsTheTree(t *testing.T) {
	for _, name := range []string{"tagged/chain", "legacy/basic"} {
		t.Run(name, func(t *testing.T) {
			tree := openTree(t, name)
			fsys, rng := nodes.FS(tree.Root()), rand.New(rand.NewPCG(1, 2))
			s := startServer(t, tree.Root(), Options{})
			newest := s.ask("GET", "/latest", "").head.Get("Location")
			files := 0
			check := func(path string, e jsonEntry) {
				if e.Type != "file" {
					return
				}
				files++
				inTree := strings.TrimPrefix(path, "/")
				want, err := fs.ReadFile(fsys, inTree)
				r := s.ask("GET", path, "")
				if (err != nil) != (r.status != 200) {
					t.Fatalf("%s: %d %.100q; the tree says %v", path, r.status, r.body, err)
				}
				if err != nil {
					return
				}
				if strings.HasPrefix(path, "/.frifs/") || path == "/dataset.json" {
					return // live: it may have changed
				}
				if !bytes.Equal(want, []byte(r.body)) || r.head.Get("Content-Length") != fmt.Sprint(len(want)) {
					t.Fatalf("%s: %d bytes, the tree has %d", path, len(r.body), len(want))
				}
				tag, head := r.head.Get("ETag"), s.ask("HEAD", path, "")
				if head.head.Get("ETag") != tag || head.head.Get("Content-Length") != fmt.Sprint(len(want)) || e.Size != nil && *e.Size != int64(len(want)) {
					t.Errorf("%s: HEAD says %v, the listing %v", path, head.head, e.Size)
				}
				if r := s.ask("GET", path, "", "If-None-Match", tag); r.status != 304 {
					t.Errorf("%s: asked again: %d", path, r.status)
				}
				if len(want) > 0 {
					from := rng.IntN(len(want))
					to := from + rng.IntN(len(want)-from)
					r := s.ask("GET", path, "", "Range", fmt.Sprintf("bytes=%d-%d", from, to), "If-Range", tag)
					if r.status != 206 || r.body != string(want[from:to+1]) {
						t.Errorf("%s: bytes %d to %d: %d, %d bytes", path, from, to, r.status, len(r.body))
					}
				}
				m := readMultistatus(t, s.ask("PROPFIND", path, "", "Depth", "0").body)
				if l := m.Responses[0].Propstats[0].Prop.Length; l != nil && *l != fmt.Sprint(len(want)) || *m.Responses[0].Propstats[0].Prop.Tag != tag {
					t.Errorf("%s: PROPFIND says %+v", path, m)
				}
			}
			s.crawl(newest, check)
			s.crawl("/.frifs/", check)
			if files < 30 {
				t.Errorf("only %d files", files)
			}
		})
	}
}

// The tag of a file is the same when the tree is opened again, and differs where the file does.
func TestTagsStayOverRestarts(t *testing.T) {
	const path = "/latest/fri/history.json"
	first := startServer(t, openTree(t, "tagged/chain").Root(), Options{}).ask("HEAD", path, "").head.Get("ETag")
	again := startServer(t, openTree(t, "tagged/chain").Root(), Options{}).ask("HEAD", path, "").head.Get("ETag")
	other := startServer(t, openTree(t, "legacy/basic").Root(), Options{}).ask("HEAD", path, "").head.Get("ETag")
	if first == "" || again != first || other == first {
		t.Errorf("%s, again %s; of another table %s", first, again, other)
	}
}

// Walking all pages, and PROPFIND of all directories, starts no C2 work.
func TestLookingStartsNoJobs(t *testing.T) {
	tree := openTree(t, "tagged/chain")
	s := startServer(t, tree.Root(), Options{})
	dirs := 0
	newest := s.ask("GET", "/latest", "").head.Get("Location")
	look := func(path string, e jsonEntry) {
		if e.Type == "directory" {
			dirs++
			if r := s.ask("PROPFIND", path, "", "Depth", "1"); r.status != 207 {
				t.Errorf("%s: %d", path, r.status)
			}
			s.ask("GET", path, "")
		}
	}
	for _, path := range []string{newest, "/.frifs/", "/versions/", "/"} {
		look(path, jsonEntry{Type: "directory"})
	}
	s.crawl(newest, look)
	var st struct {
		Done int   `json:"jobs_done"`
		Jobs []any `json:"jobs"`
	}
	b, err := fs.ReadFile(nodes.FS(tree.Root()), ".frifs/status.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &st); err != nil {
		t.Fatal(err)
	}
	if dirs < 20 || st.Jobs == nil || len(st.Jobs) != 0 || st.Done != 0 {
		t.Errorf("%d directories; jobs %+v", dirs, st)
	}
	// The test sees a job where there is one.
	s.ask("GET", "/latest/fri/scan/composed.json", "")
	if b, err = fs.ReadFile(nodes.FS(tree.Root()), ".frifs/metrics"); err != nil || !strings.Contains(string(b), "frifs_jobs_done_total") {
		t.Errorf("no figure of jobs: %v", err)
	}
}
