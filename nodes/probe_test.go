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
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/store/storetest"
)

// observed is a made table behind a store that counts, its tree, and what the tree told.
type observed struct {
	*made
	c    *storetest.Counting
	tr   *Tree
	clk  *clock
	mu   sync.Mutex // protects what follows
	told []Change
	errs []ErrorRecord
}

func (m *made) observed(change func(*Config)) *observed {
	m.t.Helper()
	st, err := store.OpenURI(m.t.Context(), m.dir, store.Options{})
	if err != nil {
		m.t.Fatal(err)
	}
	o := &observed{made: m, c: storetest.New(st, 0), clk: &clock{}}
	o.c.HideLocal = true // as a plain listing store
	o.clk.advance(time.Hour)
	o.tr = openStore(m.t, o.c, "", func(c *Config) {
		c.Now = o.clk.now
		c.OnChange = func(ch Change) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.told = append(o.told, ch)
		}
		c.OnError = func(r ErrorRecord) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.errs = append(o.errs, r)
		}
		if change != nil {
			change(c)
		}
	})
	return o
}

// remove removes a version, as a clean-up does.
func (m *made) remove(v uint64) {
	m.t.Helper()
	if err := os.Remove(filepath.Join(m.dir, "_versions", fmt.Sprint(v)+".manifest")); err != nil {
		m.t.Fatal(err)
	}
}

// poll lets one tick pass and waits for the looks that it begins.
func (o *observed) poll() (looks int) {
	ps := o.tr.pollOnce(o.t.Context())
	for _, p := range ps {
		<-p.done
	}
	return len(ps)
}

func (o *observed) listings() int {
	return o.c.Calls()[storetest.Call{Method: "List", Name: "_versions"}]
}

// TestViewIsServedAsKnown: between two looks no access asks the store for versions.
func TestViewIsServedAsKnown(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	o := m.observed(nil)
	o.c.Reset()
	for range 50 {
		names(t, o.tr, "")
		names(t, o.tr, "versions")
		newestOf(t, o.tr)
		mustFail(t, o.tr, "versions/7", "not_found")
		o.clk.advance(defaultPollInterval/50 - time.Millisecond)
	}
	if n := o.listings(); n != 0 {
		t.Errorf("%d listings within the interval, want none", n)
	}
	o.clk.advance(time.Second)
	for range 20 {
		names(t, o.tr, "versions")
	}
	if n := o.listings(); n != 1 {
		t.Errorf("%d listings after the interval, want 1", n)
	}
}

// TestPolling: a tree that is polled finds what changed, tells it, and is never asked to wait.
func TestPolling(t *testing.T) {
	m := makeTable(t)
	for _, v := range []uint64{1, 2, 3} {
		m.version(v, fragments(0))
	}
	o := m.observed(nil)
	o.tr.watching.poll(true)
	number := func(v *uint64) uint64 {
		if v == nil {
			return 0
		}
		return *v
	}
	for _, tt := range []struct {
		name   string
		change func()
		want   Change
		names  []string
	}{
		{"nothing", func() {}, Change{}, nil},
		{"a new version", func() { m.version(4, fragments(0)) }, Change{Added: []uint64{4}}, []string{"latest", "dataset.json", "versions/.", "versions/4"}},
		{"a clean-up", func() { m.remove(1); m.remove(2) }, Change{Removed: []uint64{1, 2}},
			[]string{"latest", "dataset.json", "versions/.", "versions/*/changes.json", "versions/*/fri/status.json", "versions/1", "versions/2"}},
		{"a number comes back", func() { m.remove(4); m.write(4, []byte("other")) }, Change{Replaced: []uint64{4}},
			[]string{"latest", "dataset.json", "versions/.", "versions/*/changes.json", "versions/*/fri/status.json", "versions/4"}},
		{"all at once", func() { m.remove(3); m.version(6, fragments(0)); m.version(2, fragments(1)) }, Change{Added: []uint64{2, 6}, Removed: []uint64{3}},
			[]string{"latest", "dataset.json", "versions/.", "versions/*/changes.json", "versions/*/fri/status.json", "versions/2", "versions/6", "versions/3"}},
		{"all are gone", func() { m.remove(2); m.remove(4); m.remove(6) }, Change{Removed: []uint64{2, 4, 6}},
			[]string{"latest", "dataset.json", "versions/.", "versions/*/changes.json", "versions/*/fri/status.json", "versions/2", "versions/4", "versions/6"}},
		{"they begin anew", func() { m.version(1, fragments(0)) }, Change{Added: []uint64{1}}, []string{"latest", "dataset.json", "versions/.", "versions/1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := names(t, o.tr, "versions")
			tt.change()
			o.told = nil
			o.clk.advance(defaultPollInterval)
			o.c.Reset()
			if got := names(t, o.tr, "versions"); !slices.Equal(got, before) || o.listings() != 0 {
				t.Errorf("an access looked by itself: %v, %d listings", got, o.listings())
			}
			if n := o.poll(); n != 1 || o.listings() != 1 {
				t.Errorf("%d looks, %d listings; want one", n, o.listings())
			}
			if tt.names == nil {
				if len(o.told) != 0 {
					t.Errorf("told %+v", o.told)
				}
				return
			}
			if len(o.told) != 1 {
				t.Fatalf("told %+v", o.told)
			}
			got := o.told[0]
			if !slices.Equal(got.Added, tt.want.Added) || !slices.Equal(got.Removed, tt.want.Removed) || !slices.Equal(got.Replaced, tt.want.Replaced) {
				t.Errorf("told %+v, want %+v", got, tt.want)
			}
			var told []string
			for _, n := range got.Names() {
				told = append(told, joinPath(n.Dir, n.Name))
			}
			if !slices.Equal(told, tt.names) {
				t.Errorf("names %q, want %q", told, tt.names)
			}
			if now := names(t, o.tr, "versions"); len(now) > 0 && newestOf(t, o.tr) != fmt.Sprint(number(got.Now)) {
				t.Errorf("latest is %s, told was %d", newestOf(t, o.tr), number(got.Now))
			}
		})
	}
}

// TestPollBacksOff: while the store cannot be asked, it is asked more and more seldom, what was known is served, and the
// failure is noted once.
func TestPollBacksOff(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	o := m.observed(nil)
	o.tr.watching.poll(true)
	o.c.Fail("List", "_versions", fault.New("test", "", fault.Denied, "no"))
	var at []int
	for i := range 64 {
		o.clk.advance(defaultPollInterval)
		if o.poll() > 0 {
			at = append(at, i)
		}
		if got := newestOf(t, o.tr); got != "1" {
			t.Fatalf("latest is %s", got)
		}
	}
	if want := []int{0, 2, 6, 12, 18, 24, 30, 36, 42, 48, 54, 60}; !slices.Equal(at, want) {
		t.Errorf("looks at ticks %v, want %v", at, want)
	}
	if len(o.errs) != 1 || o.errs[0].Path != "versions" || o.errs[0].Kind != fault.Denied {
		t.Errorf("noted %+v", o.errs)
	}
	s := catJSON(t, o.tr, ".frifs/status.json")
	why, _ := s["probe_error"].(map[string]any)
	if s["probes_failed"] != 12.0 || s["probes_failed_in_a_row"] != 12.0 || s["last_probe_age_seconds"] != 30.0 || s["versions_age_seconds"] != 640.0 ||
		s["stale_since"] != s["versions_listed_at"] || s["stale_since"] == nil || why["kind"] != "denied" {
		t.Errorf("status: %v", s)
	}
	o.c.Fail("List", "_versions", nil)
	m.version(2, fragments(0))
	for o.clk.advance(defaultPollInterval); o.poll() == 0; o.clk.advance(defaultPollInterval) {
	}
	if got := newestOf(t, o.tr); got != "2" {
		t.Errorf("latest is %s after the failure", got)
	}
	o.clk.advance(defaultPollInterval)
	if o.poll() != 1 {
		t.Error("after a success the next tick does not look")
	}
	s = catJSON(t, o.tr, ".frifs/status.json")
	if s["probes_failed_in_a_row"] != 0.0 || s["last_change_age_seconds"] == nil || s["stale_since"] != nil || s["probe_error"] != nil {
		t.Errorf("status: %v", s)
	}
}

// TestNobodyWaitsForAHangingStore: in a tree that is polled, a look that hangs holds nobody up.
func TestNobodyWaitsForAHangingStore(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	o := m.observed(nil)
	o.tr.watching.poll(true)
	o.c.Delay = time.Minute
	o.clk.advance(time.Hour)
	ps := o.tr.pollOnce(t.Context())
	if len(ps) != 1 {
		t.Fatalf("%d looks", len(ps))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := o.tr.view(ctx); err != nil {
		t.Errorf("an access beside it: %v", err)
	}
	select {
	case <-ps[0].done:
		t.Error("the look ended")
	default:
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	o := m.observed(nil)
	ctx, cancel := context.WithCancel(t.Context())
	ticks, done := make(chan time.Time), make(chan struct{})
	go func() { o.tr.poll(ctx, ticks); close(done) }()
	m.version(2, fragments(0))
	o.clk.advance(time.Minute)
	ticks <- time.Now()
	deadline := time.Now().Add(5 * time.Second)
	for newestOf(t, o.tr) != "2" {
		if time.Now().After(deadline) {
			t.Fatal("the new version does not appear")
		}
	}
	cancel()
	<-done
	if o.tr.watching.use(o.tr.versions) {
		t.Error("the tree still counts as polled")
	}
}

// TestRefreshFile: looking .frifs/refresh up looks at the store, with a look that begins afterwards.
func TestRefreshFile(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	o := m.observed(nil)
	o.tr.watching.poll(true)
	if got := names(t, o.tr, ".frifs"); slices.Contains(got, "refresh") {
		t.Errorf("it is listed: %v", got)
	}
	m.version(2, fragments(0))
	o.clk.advance(2 * time.Second)
	n, err := Resolve(t.Context(), o.tr.Root(), ".frifs/refresh")
	if err != nil {
		t.Fatal(err)
	}
	if tr, ok := n.(Transient); !ok || !tr.Transient() {
		t.Error("the kernel would keep it")
	}
	if got := newestOf(t, o.tr); got != "2" {
		t.Errorf("latest is %s after a refresh", got)
	}
	o.clk.advance(2 * time.Second)
	if r := catJSON(t, o.tr, ".frifs/refresh"); r["latest_version"] != 2.0 || r["before"] != 2.0 || r["changed"] != false || r["error"] != nil {
		t.Errorf("nothing has changed: %v", r)
	}
	m.remove(1)
	m.version(3, fragments(0))
	o.clk.advance(2 * time.Second)
	if r := catJSON(t, o.tr, ".frifs/refresh"); r["latest_version"] != 3.0 || r["before"] != 2.0 || r["changed"] != true {
		t.Errorf("a new version: %v", r)
	}
	o.c.Fail("List", "_versions", fault.New("test", "", fault.Unavailable, "down"))
	o.clk.advance(2 * time.Second)
	r := catJSON(t, o.tr, ".frifs/refresh")
	if r["latest_version"] != 3.0 || r["error"] == nil {
		t.Errorf("while the store is down: %v", r)
	}
}

// TestAnAnswerIsForOneAsker: who asks just after another has read his answer gets one of his own.
func TestAnAnswerIsForOneAsker(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	o := m.observed(func(c *Config) { c.Now = time.Now })
	for v := 1.0; v < 3; v++ {
		if r := catJSON(t, o.tr, ".frifs/refresh"); r["latest_version"] != v {
			t.Errorf("latest is %v after a refresh, want %v", r["latest_version"], v)
		}
		m.version(uint64(v)+1, fragments(0))
	}
}

// TestAskingIsBounded: however many ask, looks that are asked for are a second apart, and each who asks gets one that
// began after he did.
func TestAskingIsBounded(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	o := m.observed(func(c *Config) { c.Now = time.Now })
	o.tr.watching.poll(true)
	begin := time.Now()
	for round := range uint64(3) {
		m.version(round+2, fragments(0))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if err := o.tr.Refresh(t.Context()); err != nil {
					t.Error(err)
				}
				if got := newestOf(t, o.tr); got != fmt.Sprint(round+2) {
					t.Errorf("latest is %s after a refresh, want %d", got, round+2)
				}
			})
		}
		wg.Wait()
		if took := time.Since(begin); took > 1500*time.Millisecond {
			break // a slow machine: the bound below still holds
		}
		time.Sleep(askShare) // the next round asks anew
	}
	if n, most := o.listings(), 2+int(time.Since(begin)/askPause)+1; n > most {
		t.Errorf("%d listings in %v", n, time.Since(begin))
	}
}

// TestANumberThatComesBack is another object: its directory, its files and their content.
func TestANumberThatComesBack(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	m.version(2, fragments(0))
	o := m.observed(nil)
	ino := func(path string) uint64 {
		t.Helper()
		n, err := Resolve(t.Context(), o.tr.Root(), path)
		if err != nil {
			t.Fatal(err)
		}
		return n.Ino()
	}
	paths := []string{"versions/2", "versions/2/version.json", "versions/2/fragments.csv", "versions/2/fri"}
	before := map[string]uint64{}
	for _, p := range paths {
		before[p] = ino(p)
	}
	one := ino("versions/1/fragments.csv")
	old, err := Resolve(t.Context(), o.tr.Root(), "versions/2/fragments.csv")
	if err != nil {
		t.Fatal(err)
	}
	h, err := old.(File).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	attr, err := old.Attr(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.remove(2)
	m.version(2, fragments(0, 1, 2))
	o.clk.advance(time.Minute)
	for _, p := range paths {
		if ino(p) == before[p] {
			t.Errorf("%s has the inode that it had", p)
		}
	}
	if ino("versions/1/fragments.csv") != one {
		t.Error("a file of another version has a new inode")
	}
	if got := string(cat(t, o.tr, "versions/2/fragments.csv")); strings.Count(got, "\n") != 4 {
		t.Errorf("fragments.csv: %q", got)
	}
	b := make([]byte, attr.Size+10)
	if n, err := h.ReadAt(t.Context(), b, 0); err != nil || int64(n) != attr.Size || strings.Count(string(b[:n]), "\n") != 2 {
		t.Errorf("the open file gives %q, %v", b[:n], err)
	}
}
