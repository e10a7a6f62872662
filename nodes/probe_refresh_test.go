package nodes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/store/storetest"
)

// TestACleanedUpVersion disappears from listings; what is open goes on as far as its objects are there, and the reason is
// noted.
func TestACleanedUpVersion(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	m.version(2, fragments(0))
	o := m.observed(func(c *Config) {
		ds, err := dataset.Open(t.Context(), c.Dataset.Store(), dataset.Options{CacheBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		c.Dataset = ds
	})
	d := mustDir(t, o.tr, "versions/1")
	f, err := d.Lookup(t.Context(), "manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	m.remove(1)
	o.clk.advance(time.Minute)
	if got := names(t, o.tr, "versions"); !slices.Equal(got, []string{"2"}) {
		t.Errorf("versions %v", got)
	}
	mustFail(t, o.tr, "versions/1", "not_found")
	// Nothing of the manifest is cached any more: as for a node that the kernel held for long.
	o.tr.loads.forget(func(string) bool { return true })
	_, err = f.(File).Open(t.Context())
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("opening a file of it: %v", err)
	}
	if len(o.errs) == 0 {
		t.Fatal("nothing is noted")
	}
	last := o.errs[len(o.errs)-1]
	if last.Path != "versions/1/manifest.json" || !strings.Contains(last.Message, "version 1 is not retained any more") {
		t.Errorf("noted %+v", last)
	}
}

// TestLooksUnderLoad: polls, refreshes and accesses at once, while versions come and go.
func TestLooksUnderLoad(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	o := m.observed(func(c *Config) { c.Now = time.Now; c.PollInterval = time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { o.tr.Watch(ctx) })
	for range 4 {
		wg.Go(func() {
			last := uint64(0)
			for ctx.Err() == nil {
				v, err := o.tr.view(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if v.latest() == nil {
					t.Error("there is no version")
					return
				}
				now := *v.latest()
				if now < last {
					t.Errorf("latest went back from %d to %d", last, now)
				}
				last = now
			}
		})
	}
	wg.Go(func() {
		if err := o.tr.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for v := uint64(2); v < 60; v++ {
		m.version(v, fragments(0))
		if v > 10 {
			m.remove(v - 10)
		}
	}
	deadline := time.Now().Add(5 * time.Second)
	for newestOf(t, o.tr) != "59" {
		if time.Now().After(deadline) {
			t.Fatal("the newest version does not appear")
		}
	}
	cancel()
	wg.Wait()
	next := uint64(1)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.told {
		if *c.Was != next {
			t.Fatalf("a change begins at %d, the one before ended at %d", *c.Was, next)
		}
		next = *c.Now
	}
	if next != 59 {
		t.Errorf("the changes end at %d", next)
	}
}

// TestRefsAreWatched: tags and branches are served as known too; what came, went or moved is told.
func TestRefsAreWatched(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	m.version(2, fragments(0))
	tag := func(name string, v int) {
		t.Helper()
		dir := filepath.Join(m.dir, "_refs", "tags")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".json"), fmt.Appendf(nil, `{"version":%d,"manifestSize":%d}`, v, v*1000), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tag("a", 1)
	tag("b", 1)
	o := m.observed(nil)
	o.tr.watching.poll(true)
	names(t, o.tr, "tags")
	o.c.Reset()
	for range 20 {
		names(t, o.tr, "tags")
	}
	if n := o.c.Calls()[storetest.Call{Method: "List", Name: "_refs/tags"}]; n != 0 {
		t.Errorf("%d listings of tags within the interval", n)
	}
	tag("a", 2)
	tag("c%2Fd", 2)
	if err := os.Remove(filepath.Join(m.dir, "_refs", "tags", "b.json")); err != nil {
		t.Fatal(err)
	}
	o.clk.advance(defaultPollInterval)
	o.poll()
	if got := names(t, o.tr, "tags"); !slices.Equal(got, []string{"a", "c%2Fd"}) {
		t.Errorf("tags %v", got)
	}
	n, err := ResolveNoFollow(t.Context(), o.tr.Root(), "tags/a")
	if err != nil {
		t.Fatal(err)
	}
	if target, err := n.(Link).Target(t.Context()); err != nil || target != "../versions/2" {
		t.Errorf("tags/a leads to %q, %v", target, err)
	}
	want := []Name{{"", "dataset.json"}, {"tags", "a"}, {"tags", "c%2Fd"}, {"tags", "b"}}
	if len(o.told) != 1 || !slices.Equal(o.told[0].Names(), want) {
		t.Errorf("told %+v", o.told)
	}
}

// TestTablesAreWatched: tables of a database are served as known, and what came or went is told.
func TestTablesAreWatched(t *testing.T) {
	root := t.TempDir()
	table := func(name string) *made {
		t.Helper()
		m := &made{t, filepath.Join(root, name+".lance")}
		if err := os.MkdirAll(filepath.Join(m.dir, "_versions"), 0o755); err != nil {
			t.Fatal(err)
		}
		m.version(1, fragments(0))
		return m
	}
	a := table("a")
	table("b")
	st, err := store.NewLocal(root, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := dataset.OpenDatabase(t.Context(), st, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var clk clock
	clk.advance(time.Hour)
	var mu sync.Mutex
	var told []Change
	tr, err := New(t.Context(), Config{Database: db, Now: clk.now, OnChange: func(c Change) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, c)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	tr.watching.poll(true)
	poll := func() {
		clk.advance(defaultPollInterval)
		for _, p := range tr.pollOnce(t.Context()) {
			<-p.done
		}
	}
	if got := names(t, tr, "tables"); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("tables %v", got)
	}
	names(t, tr, "tables/a/versions")
	table("c")
	if err := os.RemoveAll(filepath.Join(root, "b.lance")); err != nil {
		t.Fatal(err)
	}
	a.version(2, fragments(0))
	poll()
	if got := names(t, tr, "tables"); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("tables %v", got)
	}
	if got := names(t, tr, "tables/a/versions"); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("versions of a: %v", got)
	}
	var all []string
	for _, c := range told {
		for _, n := range c.Names() {
			all = append(all, joinPath(n.Dir, n.Name))
		}
	}
	slices.Sort(all)
	want := []string{"dataset.json", "tables/a/dataset.json", "tables/a/latest", "tables/a/versions/.", "tables/a/versions/2", "tables/b", "tables/c"}
	if !slices.Equal(all, want) {
		t.Errorf("told %q, want %q", all, want)
	}
	// A table that nobody uses any more is not looked after; when it is used again it is up to date.
	for range coldAfter + 1 {
		poll()
	}
	a.version(3, fragments(0))
	poll()
	if n := len(tr.watching.list()); n != 1 {
		t.Errorf("%d parts of the tree are looked after, want the tables alone", n)
	}
	if got := names(t, tr, "tables/a/versions"); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("versions of a after a pause: %v", got)
	}
}
