package nodes

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/store/storetest"
	"github.com/frifs/frifs/internal/testdata"
)

// countingTree is a tree over a store that counts calls and, like an object store, is not local.
func countingTree(t testing.TB, name string, delay time.Duration) (*Tree, *storetest.Counting) {
	t.Helper()
	st, err := store.OpenURI(context.Background(), testdata.Dataset(t, name), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := storetest.New(st, delay)
	c.HideLocal = true
	return openStore(t, c, name, nil), c
}

// crawl does what ls -R (stat false) or ls -lR (stat true) do to the tree, leaving out what skip names. It returns how
// many directories and files it met.
func crawl(t testing.TB, root Dir, stat bool, skip func(path string) bool) (dirs, files int) {
	t.Helper()
	ctx := context.Background()
	var walk func(path string, d Dir)
	walk = func(path string, d Dir) {
		dirs++
		es, err := d.Entries(ctx)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		for _, e := range es {
			p := strings.TrimPrefix(path+"/"+e.Name, "/")
			if skip(p) {
				continue
			}
			if e.Type != TypeDir && (!stat || e.Attr != nil) {
				files++
				continue
			}
			n, err := d.Lookup(ctx, e.Name)
			if err != nil {
				t.Errorf("%s: %v", p, err)
				continue
			}
			if sub, ok := n.(Dir); ok {
				walk(p, sub)
				continue
			}
			files++
			if _, err := n.Attr(ctx); err != nil {
				t.Errorf("%s: %v", p, err)
			}
		}
	}
	walk("", root)
	return dirs, files
}

// kinds counts the calls by what they were made for.
func kinds(c *storetest.Counting) map[string]int {
	out := map[string]int{}
	for call, n := range c.Calls() {
		top, _, _ := strings.Cut(call.Name, "/")
		if call.Method == "List" && top == "_versions" {
			top = "list"
		}
		out[top] += n
	}
	return out
}

func nothing(string) bool { return false }

// costly is where sizes may cost more than the manifest and the history: below scan/, and remapped files.
func costly(path string) bool {
	return path == "scan" || strings.Contains(path, "/scan") || strings.HasSuffix(path, "/remapped") || strings.HasSuffix(path, "/"+lanceName)
}

// TestListingIsCheap (the crawler's bounds of docs/DESIGN.md, "Bars"): a listing of all names over about a hundred
// versions reads no rows, labels or index payloads, and asks for each manifest and each history a bounded number of
// times; so does a listing with sizes outside scan/, remapped/ and remapped.lance.
func TestListingIsCheap(t *testing.T) {
	for _, c := range []struct {
		name string
		maps int // row maps that ls -lR may open: each once
	}{{"legacy/chain", 0}, {"tagged/chain", 1}, {"legacy/external", 0}, {"tagged/trimmed", 3}} {
		for _, stat := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/stat=%v", c.name, stat), func(t *testing.T) {
				t.Parallel()
				tr, st := countingTree(t, c.name, 0)
				skip := nothing
				if stat {
					skip = costly
				}
				dirs, files := crawl(t, tr.Root(), stat, skip)
				versions := len(names(t, tr, "versions"))
				if dirs < 3*versions || files < 5*versions {
					t.Fatalf("only %d directories and %d files met in %d versions", dirs, files, versions)
				}
				k := kinds(st)
				if got := k["_versions"]; got > 2*versions {
					t.Errorf("%d requests for %d manifests: %v", got, versions, st.Calls())
				}
				if got := k["data"] + k["_deletions"]; got > 0 {
					t.Errorf("%d requests for data and deletion files", got)
				}
				// segment.json looks into the tail of each index file, once for all versions that have it.
				tails := 0
				for call, n := range st.Calls() {
					payload := strings.HasPrefix(call.Name, "_indices/") && !strings.HasSuffix(call.Name, "/details.binpb") && call.Method != "List"
					if payload && (!stat || n > 6) {
						t.Errorf("index file read: %v, %d times", call, n)
					}
					if payload {
						tails += n
					}
				}
				if got := k["_indices"] - tails; got > 2*versions {
					t.Errorf("%d requests for %d histories", got, versions)
				}
				if got := k["_fri"]; !stat && got > 0 {
					t.Errorf("%d requests for row maps by names alone", got)
				}
			})
		}
	}
}

// TestRootListingReadsNoManifest checks that ls of the root and of versions/ asks for the names of the versions only.
func TestRootListingReadsNoManifest(t *testing.T) {
	tr, st := countingTree(t, "legacy/many_versions", 0)
	before := len(st.Calls())
	es, err := mustDir(t, tr, "versions").Entries(context.Background())
	if err != nil || len(es) != 1500 {
		t.Fatalf("%d versions, %v", len(es), err)
	}
	if es[0].Name != "1" || es[1].Name != "10" || es[1499].Name != "999" {
		t.Errorf("order: %s, %s ... %s", es[0].Name, es[1].Name, es[1499].Name)
	}
	for _, e := range es {
		if e.Attr == nil || e.Attr.Mtime.IsZero() {
			t.Fatalf("%s has no attributes", e.Name)
		}
	}
	if _, err := tr.Root().Entries(context.Background()); err != nil {
		t.Fatal(err)
	}
	for call := range st.Calls() {
		if call.Method != "List" && call.Method != "ListFirst" && call.Name != "_latest.manifest" {
			t.Errorf("%v", call)
		}
	}
	if after := len(st.Calls()); after != before {
		t.Errorf("%d kinds of calls, %d before the listing", after, before)
	}
}
