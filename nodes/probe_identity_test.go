package nodes

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

// inodes walks the tree below a path and returns the inode of each name in it.
func (o *observed) inodes(dir string) map[string]uint64 {
	o.t.Helper()
	out := map[string]uint64{}
	var walk func(Dir, string)
	walk = func(d Dir, path string) {
		es, err := d.Entries(o.t.Context())
		if err != nil {
			o.t.Fatalf("%s: %v", path, err)
		}
		for _, e := range es {
			p := joinPath(path, e.Name)
			n, err := d.Lookup(o.t.Context(), e.Name)
			if err != nil {
				o.t.Fatalf("%s: %v", p, err)
			}
			if n.Ino() != e.Ino {
				o.t.Errorf("%s is listed as %d and found as %d", p, e.Ino, n.Ino())
			}
			out[p] = n.Ino()
			if sub, ok := n.(Dir); ok {
				walk(sub, p)
			}
		}
	}
	walk(mustDir(o.t, o.tr, dir), dir)
	return out
}

// TestVersionsThatStayKeepTheirInodes: a clean-up of older versions, and one that comes, change nothing of the others but
// the files that tell of older versions. Nodes that are held see them change too.
func TestVersionsThatStayKeepTheirInodes(t *testing.T) {
	m := makeTable(t)
	for v := uint64(1); v <= 20; v++ {
		m.version(v, fragments(v))
	}
	o := m.observed(nil)
	held := mustDir(t, o.tr, "versions/4")
	before := o.inodes("versions")
	m.remove(1)
	m.remove(2)
	m.version(21, fragments(21))
	o.clk.advance(time.Minute)
	after := o.inodes("versions")
	for path, ino := range before {
		rest, _ := strings.CutPrefix(path, "versions/")
		number, file, _ := strings.Cut(rest, "/")
		now, there := after[path]
		var v int
		if _, err := fmt.Sscan(number, &v); err != nil {
			t.Fatal(err)
		}
		switch {
		case v <= 2:
			if there {
				t.Errorf("%s is still there", path)
			}
		case file == "changes.json" && v <= 11: // looked at one of those that are gone
			if now == ino {
				t.Errorf("%s has the inode that it had", path)
			}
		case now != ino:
			t.Errorf("%s has another inode", path)
		}
	}
	n, err := held.Lookup(t.Context(), "changes.json")
	if err != nil || n.Ino() != after["versions/4/changes.json"] {
		t.Errorf("a node that was held finds %v, %v", n, err)
	}
	if got := catJSON(t, o.tr, "versions/3/changes.json"); got["previous"] != nil {
		t.Errorf("version 3 is compared with %v", got["previous"])
	}
}

// TestWhatIsGoneIsLookedFor: a version that turns out to be gone, or another one, has the tree look at once, so that the
// failure can say why and the next access finds what is there now.
func TestWhatIsGoneIsLookedFor(t *testing.T) {
	m := makeTable(t)
	for v := uint64(1); v <= 3; v++ {
		m.version(v, fragments(0))
	}
	o := m.observed(nil)
	o.tr.watching.poll(true)
	mustDir(t, o.tr, "versions")
	m.remove(1)
	mustFail(t, o.tr, "versions/1/version.json", "not_found")
	if got := names(t, o.tr, "versions"); !slices.Equal(got, []string{"2", "3"}) {
		t.Errorf("versions %v", got)
	}
	if len(o.told) != 1 || !slices.Equal(o.told[0].Removed, []uint64{1}) {
		t.Errorf("told %+v", o.told)
	}
	if o.c.Reset(); len(names(t, o.tr, "versions")) != 2 || o.listings() != 0 {
		t.Error("the next access looks again")
	}
}

// TestAManifestThatIsReplaced while its version is known by another: no node ever gives bytes of both.
func TestAManifestThatIsReplaced(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	m.version(2, fragments(5))
	st, err := store.NewLocal(m.dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var clk clock
	clk.advance(time.Hour)
	tr := openStore(t, st, "", func(c *Config) { c.Now = clk.now })
	tr.watching.poll(true)
	old, err := Resolve(t.Context(), tr.Root(), "versions/2")
	if err != nil {
		t.Fatal(err)
	}
	// Of the same size, at another time: a table that was dropped and made anew looks like that.
	m.version(2, fragments(7))
	when := time.Now().Add(time.Second)
	if err := os.Chtimes(filepath.Join(m.dir, "_versions", "2.manifest"), when, when); err != nil {
		t.Fatal(err)
	}
	if _, err := old.(Dir).Lookup(t.Context(), "fragments.csv"); !fault.Is(err, fault.Stale) {
		t.Errorf("the old node gives %v, want stale", err)
	}
	now, err := Resolve(t.Context(), tr.Root(), "versions/2")
	if err != nil {
		t.Fatal(err)
	}
	if now.Ino() == old.Ino() {
		t.Error("another manifest has the same inode")
	}
	if got := string(cat(t, tr, "versions/2/fragments.csv")); !strings.Contains(got, "\n7,") {
		t.Errorf("fragments.csv: %s", got)
	}
}

// TestClockThatIsSetBack: looks go on, and no file of an earlier time is shown again.
func TestClockThatIsSetBack(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	o := m.observed(nil)
	o.tr.watching.poll(true)
	first := catJSON(t, o.tr, ".frifs/status.json")
	o.clk.advance(100 * time.Second)
	o.poll()
	if err := o.tr.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := catJSON(t, o.tr, ".frifs/status.json"); s["now"] == first["now"] {
		t.Error("the status is an old one")
	}
	m.version(2, fragments(0))
	o.clk.advance(-90 * time.Second)
	if o.poll() != 1 {
		t.Error("no look after the clock was set back")
	}
	if got := newestOf(t, o.tr); got != "2" {
		t.Errorf("latest is %s", got)
	}
	m.version(3, fragments(0))
	o.clk.advance(-5 * time.Second)
	if err := o.tr.Refresh(t.Context()); err != nil || newestOf(t, o.tr) != "3" {
		t.Errorf("after a refresh latest is %s, %v", newestOf(t, o.tr), err)
	}
}

// TestDetachedVersionsAreTold: those that come and go are told by name, and their directory with the first and the last.
func TestDetachedVersionsAreTold(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	o := m.observed(nil)
	const name = "d9223372036854775815.manifest" // the top bit marks a detached version
	b, err := os.ReadFile(filepath.Join(m.dir, "_versions", "1.manifest"))
	if err != nil {
		t.Fatal(err)
	}
	m.file("_versions/"+name, string(b))
	o.clk.advance(time.Minute)
	names(t, o.tr, "versions")
	if len(o.told) != 1 {
		t.Fatalf("told %+v", o.told)
	}
	got := o.told[0].Names()
	for _, want := range []Name{{"", "detached"}, {"detached", "9223372036854775815"}} {
		if !slices.Contains(got, want) {
			t.Errorf("%v is not told: %v", want, got)
		}
	}
}

// TestNothingOfACleanedUpVersionStaysOpen: what a clean-up removes is not kept on the disk by a cache.
func TestNothingOfACleanedUpVersionStaysOpen(t *testing.T) {
	tr, _ := countingTree(t, "legacy/basic", 0)
	newest := tr.versions.known()
	files := 0
	for _, r := range newest.refs {
		dir := fmt.Sprintf("versions/%d/indices", r.Version)
		err := fs.WalkDir(FS(tr.Root()), dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.Contains(p, "/remapped/") {
				files++
				cat(t, tr, p)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	open := func() int { return tr.remaps.stats().Entries + tr.made.stats().Entries }
	if open() == 0 || files == 0 {
		t.Fatalf("%d files, %d open", files, open())
	}
	l := *newest.listing
	l.Versions = l.Versions[len(l.Versions)-1:]
	was := open()
	tr.versions.freeze(tr.newView(&l))
	tr.forgetGone()
	left := 0
	count := func(h *held) bool {
		if h.of.gone() {
			left++
		}
		return false
	}
	tr.remaps.forgetValues(count)
	tr.made.forgetValues(count)
	if left > 0 || open() >= was {
		t.Errorf("%d files are open after a clean-up, %d of versions that are gone; before it were %d", open(), left, was)
	}
}
