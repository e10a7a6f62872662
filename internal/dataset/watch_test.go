package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/store/storetest"
)

func v2Path(v uint64) string { return "_versions/" + v2Name(v) }

// watched is a store that counts, with a watch of the dataset in it that has looked once.
func watched(t *testing.T, m *storetest.Mem) (*storetest.Counting, *Watch) {
	t.Helper()
	c := storetest.New(m, 0)
	d, err := Open(t.Context(), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := d.Watch(time.Now)
	look(t, w, false)
	c.Reset()
	return c, w
}

func look(t *testing.T, w *Watch, full bool) *Listing {
	t.Helper()
	l, err := w.Look(t.Context(), full)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func span(from, to uint64) (out []uint64) {
	for v := from; v <= to; v++ {
		out = append(out, v)
	}
	return out
}

// TestWatchCosts states what a look costs on each kind of store, and that it finds what it must find.
func TestWatchCosts(t *testing.T) {
	calls := func(list, first, stat, read int) map[string]int {
		return map[string]int{"List": list, "ListFirst": first, "Stat": stat, "ReadRange": read}
	}
	for _, tt := range []struct {
		name      string
		versions  uint64
		v1        bool
		unordered bool
		change    func(m *storetest.Mem)
		cost      map[string]int // of the look after the change
		want      []uint64
	}{
		{name: "short: a listing", versions: 5, cost: calls(1, 0, 0, 0), want: span(1, 5)},
		{name: "ordered: the first names and the oldest", versions: 150, cost: calls(0, 1, 1, 0), want: span(1, 150)},
		{name: "ordered: a new version", versions: 150, change: func(m *storetest.Mem) { m.Put(v2Path(151), nil) },
			cost: calls(0, 1, 1, 0), want: span(1, 151)},
		{name: "ordered: a new version and staged names", versions: 150, change: func(m *storetest.Mem) {
			m.Put(v2Path(151), nil)
			m.Put(v2Path(152)+"-5a2097ce-3586-4e75-8a10-760a300f4de7", nil)
		}, cost: calls(0, 1, 1, 0), want: span(1, 151)},
		{name: "ordered: more new versions than are asked for", versions: 150, change: func(m *storetest.Mem) {
			for v := uint64(151); v < 200; v++ {
				m.Put(v2Path(v), nil)
			}
		}, cost: calls(1, 1, 0, 0), want: span(1, 199)},
		{name: "ordered: the oldest is cleaned up", versions: 150, change: func(m *storetest.Mem) { m.Delete(v2Path(1)) },
			cost: calls(1, 1, 1, 0), want: span(2, 150)},
		{name: "ordered: the newest is another file", versions: 150, change: func(m *storetest.Mem) { m.Put(v2Path(150), []byte("x")) },
			cost: calls(1, 1, 0, 0), want: span(1, 150)},
		{name: "ordered, old names: a listing", versions: 150, v1: true, cost: calls(1, 0, 0, 0), want: span(1, 150)},
		{name: "ordered: an old name comes", versions: 150, change: func(m *storetest.Mem) { m.Put("_versions/151.manifest", nil) },
			cost: calls(1, 1, 0, 0), want: span(1, 151)},
		{name: "ordered: an old name comes that sorts last", versions: 150, change: func(m *storetest.Mem) { m.Put("_versions/200.manifest", nil) },
			cost: calls(0, 1, 1, 0), want: span(1, 150)}, // found by the listing that comes after relistAfter looks
		{name: "unordered: hint, next, newest, oldest", versions: 150, unordered: true, cost: calls(0, 0, 3, 1), want: span(1, 150)},
		{name: "unordered: the next is there", versions: 150, unordered: true, change: func(m *storetest.Mem) { m.Put(v2Path(151), nil) },
			cost: calls(1, 0, 1, 1), want: span(1, 151)},
		{name: "unordered, old names", versions: 150, unordered: true, v1: true, change: func(m *storetest.Mem) { m.Put("_versions/151.manifest", nil) },
			cost: calls(1, 0, 1, 1), want: span(1, 151)},
		{name: "unordered: the hint knows more", versions: 150, unordered: true, change: func(m *storetest.Mem) {
			m.Put(v2Path(153), nil)
			m.Put("_versions/latest_version_hint.json", []byte(`{"version":153}`))
		}, cost: calls(1, 0, 0, 1), want: append(span(1, 150), 153)},
		{name: "unordered: a hint that is none", versions: 150, unordered: true, change: func(m *storetest.Mem) {
			m.Put("_versions/latest_version_hint.json", []byte(`{"version":-1}`))
		}, cost: calls(0, 0, 3, 1), want: span(1, 150)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := storetest.NewMem(nil)
			m.Unordered = tt.unordered
			for v := uint64(1); v <= tt.versions; v++ {
				name := v2Path(v)
				if tt.v1 {
					name = fmt.Sprintf("_versions/%d.manifest", v)
				}
				m.Put(name, nil)
			}
			c, w := watched(t, m)
			before := w.last
			if tt.change != nil {
				tt.change(m)
			}
			l := look(t, w, false)
			if got := numbers(l); !slices.Equal(got, tt.want) {
				t.Errorf("versions %v, want %v", got, tt.want)
			}
			for method, want := range tt.cost {
				if got := c.Total(method); got != want {
					t.Errorf("%d calls of %s, want %d (%v)", got, method, want, c.Calls())
				}
			}
			if tt.change == nil && l != before {
				t.Error("nothing has changed, but the listing is another one")
			}
			// In the long run nothing is missed.
			for range relistAfter + 1 {
				l = look(t, w, false)
			}
			fresh, err := w.d.Versions(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !l.same(fresh) {
				t.Errorf("after %d looks: %+v, want %+v", relistAfter+1, l, fresh)
			}
		})
	}
}

// TestWatchLocal: two stats where nothing changes; what a directory's coarse clock could hide takes a listing.
func TestWatchLocal(t *testing.T) {
	dir := t.TempDir()
	versions := filepath.Join(dir, "_versions")
	if err := os.Mkdir(versions, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(v uint64, data string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, v2Path(v)), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(1, "")
	write(2, "")
	st, err := store.NewLocal(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := storetest.New(st, 0)
	d, err := Open(t.Context(), c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ahead := time.Duration(0)
	w := d.Watch(func() time.Time { return time.Now().Add(ahead) })
	look(t, w, false)
	expect := func(what string, lists, stats int, want ...uint64) {
		t.Helper()
		c.Reset()
		if got := numbers(look(t, w, false)); !slices.Equal(got, want) {
			t.Errorf("%s: versions %v, want %v", what, got, want)
		}
		if c.Total("List") != lists || c.Total("Stat") != stats {
			t.Errorf("%s: %v, want %d listings and %d stats", what, c.Calls(), lists, stats)
		}
	}
	expect("changed just now", 1, 2, 1, 2)
	ahead = time.Minute
	expect("the listing was too close to the change", 1, 2, 1, 2)
	expect("quiet", 0, 2, 1, 2)
	write(3, "")
	expect("a new version", 1, 2, 1, 2, 3)
	expect("quiet again", 0, 2, 1, 2, 3)
	write(3, "other content, the same name: the directory does not change")
	expect("replaced in place", 1, 3, 1, 2, 3)
	if err := os.Remove(filepath.Join(dir, v2Path(1))); err != nil {
		t.Fatal(err)
	}
	expect("cleaned up", 1, 2, 2, 3)
	for range relistAfter {
		expect("quiet for long", 0, 2, 2, 3)
	}
	expect("a listing now and then", 1, 1, 2, 3)
}

func TestWatchFailures(t *testing.T) {
	m := storetest.NewMem(nil)
	for v := uint64(1); v <= 150; v++ {
		m.Put(v2Path(v), nil)
	}
	c, w := watched(t, m)
	down := fault.New("test", "", fault.Unavailable, "down")
	c.Fail("ListFirst", "_versions", down)
	if _, err := w.Look(t.Context(), false); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("while the store is down: %v", err)
	}
	c.Fail("ListFirst", "_versions", nil)
	c.Reset()
	if l := look(t, w, false); len(l.Versions) != 150 || c.Total("List") != 1 {
		t.Errorf("after a failure: %d versions, %v", len(l.Versions), c.Calls())
	}
	c.Fail("Stat", v2Path(1), down)
	if _, err := w.Look(t.Context(), false); !fault.Is(err, fault.Unavailable) {
		t.Errorf("the oldest cannot be asked for: %v", err)
	}
	c.Fail("List", "_versions", down)
	if _, err := w.Look(t.Context(), true); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a full look: %v", err)
	}
}

// TestWatchDoesNotChangeWhatItGave: a listing stays as it was when a later one goes on from it.
func TestWatchDoesNotChangeWhatItGave(t *testing.T) {
	m := storetest.NewMem(nil)
	for v := uint64(1); v <= 150; v++ {
		m.Put(v2Path(v), nil)
	}
	_, w := watched(t, m)
	first := look(t, w, false)
	m.Put(v2Path(151), nil)
	second := look(t, w, false)
	m.Put(v2Path(152), nil)
	third := look(t, w, false)
	for i, l := range []*Listing{first, second, third} {
		if want := span(1, 150+uint64(i)); !slices.Equal(numbers(l), want) || l.V2 != len(want) {
			t.Errorf("listing %d has %d versions, %d names", i, len(l.Versions), l.V2)
		}
	}
}
