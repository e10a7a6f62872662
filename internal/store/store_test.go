package store_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/store/storetest"
)

// tree is what every store of the conformance tests holds.
var tree = map[string]string{
	"a":           "first",
	"a.b":         "sorts between a and a/",
	"dir/one":     "0123456789",
	"dir/two":     "",
	"dir/sub/x":   "deep",
	"dir/ä 表%2F?": "odd name",
	"tree/exp/y":  "branch",
}

func plant(tb testing.TB, dir string) {
	tb.Helper()
	for name, data := range tree {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(data), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
}

func local(tb testing.TB, dir string, opt store.Options) store.Store {
	tb.Helper()
	st, err := store.OpenURI(context.Background(), dir, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return st
}

func TestLocalConforms(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir)
	conforms(t, local(t, dir, store.Options{}), true)
	conforms(t, local(t, dir, store.Options{FollowOutside: true}), true)
}

func TestTestStoresConform(t *testing.T) {
	objects := map[string][]byte{}
	for name, data := range tree {
		objects[name] = []byte(data)
	}
	mem := storetest.NewMem(objects)
	conforms(t, mem, false)
	conforms(t, storetest.New(mem, 0), false)
}

// conforms checks what package store promises of any store. dirs says whether directories can be stat-ed.
func conforms(t *testing.T, st store.Store, dirs bool) {
	t.Helper()
	ctx := t.Context()
	for dir, want := range map[string]string{
		"":         "a a.b dir/ tree/",
		"dir":      "dir/one dir/sub/ dir/two dir/ä 表%2F?",
		"dir/sub":  "dir/sub/x",
		"tree/exp": "tree/exp/y",
	} {
		list, err := st.List(ctx, dir)
		if err != nil {
			t.Fatalf("List(%q): %v", dir, err)
		}
		var names []string
		for _, o := range list {
			name := o.Name
			if o.Dir {
				name += "/"
			} else if o.Size != int64(len(tree[o.Name])) || o.Modified.IsZero() {
				t.Errorf("List(%q): %s has size %d, modified %v", dir, o.Name, o.Size, o.Modified)
			}
			names = append(names, name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("List(%q) = %q, want %q", dir, got, want)
		}
	}
	if list, err := st.Sub("dir").Sub("sub").List(ctx, ""); err != nil || len(list) != 1 || list[0].Name != "x" {
		t.Errorf("Sub: List = %v, %v", list, err)
	}
	o, err := st.Stat(ctx, "dir/one")
	if err != nil || o.Name != "dir/one" || o.Size != 10 || o.Dir {
		t.Errorf("Stat = %+v, %v", o, err)
	}
	if list, err := st.List(ctx, "dir"); err != nil || !list[0].SameContent(o) {
		t.Errorf("List and Stat disagree on the content of %+v and %+v (%v)", list[0], o, err)
	}
	for _, missing := range []string{"no", "dir/no", "a/b", "no/no", "dir/sub/x/y"} {
		if _, err := st.Stat(ctx, missing); !fault.Is(err, fault.NotFound) {
			t.Errorf("Stat(%q): %v, want not_found", missing, err)
		}
		if _, err := st.Open(ctx, missing); !fault.Is(err, fault.NotFound) {
			t.Errorf("Open(%q): %v, want not_found", missing, err)
		}
		if _, err := st.ReadRange(ctx, missing, 0, 1); !fault.Is(err, fault.NotFound) {
			t.Errorf("ReadRange(%q): %v, want not_found", missing, err)
		}
		if _, err := st.List(ctx, missing); !fault.Is(err, fault.NotFound) {
			t.Errorf("List(%q): %v, want not_found", missing, err)
		}
	}
	if _, err := st.Stat(ctx, "dir"); dirs == fault.Is(err, fault.NotFound) {
		t.Errorf("Stat of a directory: %v", err)
	}
	for _, bad := range []string{"..", "../a", "dir/../a", "/a", "dir//one", "./a", "dir/", "a\x00b", "."} {
		if _, err := st.Stat(ctx, bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("Stat(%q): %v, want invalid", bad, err)
		}
		if _, err := st.Sub(bad).ReadRange(ctx, "a", 0, 1); !fault.Is(err, fault.Invalid) {
			t.Errorf("Sub(%q): %v, want invalid", bad, err)
		}
	}
	ranges(t, st)
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := st.ReadRange(done, "a", 0, 1); !fault.Is(err, fault.Cancelled) {
		t.Errorf("cancelled ReadRange: %v", err)
	}
	if _, err := st.List(done, ""); !fault.Is(err, fault.Cancelled) {
		t.Errorf("cancelled List: %v", err)
	}
}

// ranges compares reads at random places with slices of the content.
func ranges(t *testing.T, st store.Store) {
	t.Helper()
	const content = "0123456789"
	ctx := t.Context()
	r, err := st.Open(ctx, "dir/one")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Size() != 10 || r.Stat().Name != "dir/one" {
		t.Errorf("reader of %d bytes of %+v", r.Size(), r.Stat())
	}
	rapid.Check(t, func(t *rapid.T) {
		off := rapid.Int64Range(0, 13).Draw(t, "off")
		n := rapid.Int64Range(-13, 13).Draw(t, "n")
		want := content[min(off, 10):min(max(off+n, off), 10)]
		if n < 0 {
			want = content[max(0, 10+n):]
		}
		got, err := st.ReadRange(ctx, "dir/one", off, n)
		if err != nil || string(got) != want {
			t.Fatalf("ReadRange(%d, %d) = %q, %v, want %q", off, n, got, err, want)
		}
		if n < 0 {
			return
		}
		p := make([]byte, n)
		k, err := store.ReadAt(ctx, r, p, off)
		want = content[min(off, 10):min(off+n, 10)]
		if string(p[:k]) != want || (k < len(p)) != errors.Is(err, io.EOF) && off < 10 {
			t.Fatalf("ReadAt(%d, %d) = %q, %v, want %q", off, n, p[:k], err, want)
		}
	})
	if _, err := r.ReadAt(make([]byte, 1), -1); !fault.Is(err, fault.Invalid) {
		t.Errorf("ReadAt(-1): %v, want invalid", err)
	}
	if b, err := st.ReadRange(ctx, "dir/two", 0, -5); err != nil || len(b) != 0 {
		t.Errorf("suffix of an empty file: %q, %v", b, err)
	}
}

func TestLinksStayInsideTheRoot(t *testing.T) {
	ctx := t.Context()
	outside := t.TempDir()
	plant(t, outside)
	root := filepath.Join(t.TempDir(), "root")
	plant(t, root)
	for link, target := range map[string]string{
		"in":        "dir/one",
		"in-abs":    filepath.Join(root, "dir", "one"),
		"dir/up":    "../a",
		"in-dir":    "dir",
		"out":       filepath.Join(outside, "a"),
		"out-dir":   outside,
		"out-rel":   "../../" + filepath.Base(filepath.Dir(outside)) + "/x",
		"broken":    "nowhere",
		"loop":      "loop",
		"dir/chain": "../out",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name    string
		allowed bool
		kind    fault.Kind // 0: readable
	}{
		{"in", false, 0}, {"in-abs", false, 0}, {"dir/up", false, 0}, {"in-dir/one", false, 0},
		{"out", false, fault.Denied}, {"out-dir/a", false, fault.Denied}, {"out-dir/dir/one", false, fault.Denied},
		{"dir/chain", false, fault.Denied}, {"broken", false, fault.NotFound},
		{"out", true, 0}, {"out-dir/a", true, 0}, {"dir/chain", true, 0}, {"broken", true, fault.NotFound},
	}
	for _, tt := range tests {
		st := local(t, root, store.Options{FollowOutside: tt.allowed})
		_, err := st.Open(ctx, tt.name)
		_, serr := st.Stat(ctx, tt.name)
		_, rerr := st.ReadRange(ctx, tt.name, 0, 3)
		for _, err := range []error{err, serr, rerr} {
			if tt.kind == 0 && err != nil || tt.kind != 0 && !fault.Is(err, tt.kind) {
				t.Errorf("%s, outside allowed %t: %v, want kind %v", tt.name, tt.allowed, err, tt.kind)
			}
		}
	}
	st := local(t, root, store.Options{})
	if _, err := st.Open(ctx, "loop"); err == nil {
		t.Error("a loop of links was opened")
	}
	if _, err := st.List(ctx, "out-dir"); !fault.Is(err, fault.Denied) {
		t.Errorf("List through a link to the outside: %v", err)
	}
	list, err := st.List(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		if o.Name == "in-dir" != o.Dir && strings.HasPrefix(o.Name, "in") {
			t.Errorf("link %q listed as directory: %t", o.Name, o.Dir)
		}
		if o.Name == "in" && o.Size != 10 {
			t.Errorf("link to a file of 10 bytes listed with %d", o.Size)
		}
		if o.Name == "out-dir" && o.Dir {
			t.Error("a link to the outside was followed by List")
		}
	}
	// The limit stays the first root, also for a store below it.
	if b, err := st.Sub("dir").ReadRange(ctx, "up", 0, 5); err != nil || string(b) != "first" {
		t.Errorf("Sub: a link that stays in the first root: %q, %v", b, err)
	}
	// The root itself may be a link.
	if err := os.Symlink(root, filepath.Join(outside, "rootlink")); err != nil {
		t.Fatal(err)
	}
	if b, err := local(t, filepath.Join(outside, "rootlink"), store.Options{}).ReadRange(ctx, "in-abs", 0, 2); err != nil || string(b) != "01" {
		t.Errorf("root through a link: %q, %v", b, err)
	}
}

func TestSpecialFilesNeitherBlockNorRead(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	st := local(t, dir, store.Options{})
	for _, name := range []string{"pipe", "dir", ""} {
		if _, err := st.Open(t.Context(), name); !fault.Is(err, fault.Invalid) {
			t.Errorf("Open(%q): %v, want invalid", name, err)
		}
	}
	if _, err := st.List(t.Context(), "pipe"); !fault.Is(err, fault.NotFound) {
		t.Errorf("List of a pipe: %v, want not_found", err)
	}
}

// users.md R52: a file that vanishes or is replaced while it is open.
func TestR52OpenFilesNoticeWhatHappensToThem(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	plant(t, dir)
	st := local(t, dir, store.Options{})
	path := filepath.Join(dir, "dir", "one")
	r, err := st.Open(ctx, "dir/one")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := store.Recheck(ctx, st, r.Stat()); err != nil {
		t.Errorf("Recheck of an unchanged file: %v", err)
	}
	next := filepath.Join(dir, "next")
	if err := os.WriteFile(next, []byte("abcdefghij"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(next, time.Time{}, r.Stat().Modified.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	if err := store.Recheck(ctx, st, r.Stat()); !fault.Is(err, fault.Stale) {
		t.Errorf("Recheck of a replaced file: %v, want stale", err)
	}
	p := make([]byte, 10)
	if _, err := r.ReadAt(p, 0); err != nil || string(p) != "0123456789" {
		t.Errorf("an open descriptor gave %q, %v, want the old bytes", p, err)
	}
	if b, err := st.ReadRange(ctx, "dir/one", 0, 99); err != nil || string(b) != "abcdefghij" {
		t.Errorf("a new read gave %q, %v, want the new bytes", b, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := store.Recheck(ctx, st, r.Stat()); !fault.Is(err, fault.Stale) {
		t.Errorf("Recheck of a removed file: %v, want stale", err)
	}
	if _, err := st.Open(ctx, "dir/one"); !fault.Is(err, fault.NotFound) {
		t.Errorf("Open of a removed file: %v, want not_found", err)
	}
}

func TestTruncatedUnderTheReaderIsStale(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir)
	r, err := local(t, dir, store.Options{}).Open(t.Context(), "dir/one")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.Truncate(filepath.Join(dir, "dir", "one"), 4); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 10)
	if n, err := r.ReadAt(p, 0); n != 4 || !fault.Is(err, fault.Stale) {
		t.Errorf("ReadAt = %d, %v, want 4 bytes and stale", n, err)
	}
}

func TestReadStopsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "big"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "big"), 1<<25); err != nil {
		t.Fatal(err)
	}
	r, err := local(t, dir, store.Options{}).Open(t.Context(), "big")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := store.ReadAt(ctx, r, make([]byte, 1<<25), 0); n != 0 || !fault.Is(err, fault.Cancelled) {
		t.Errorf("ReadAt = %d, %v, want 0 bytes and cancelled", n, err)
	}
}

func TestIdentity(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	base := store.Object{Name: "n", Size: 7, Modified: at}
	tests := []struct {
		name         string
		o            store.Object
		sameIdentity bool
		sameContent  bool
	}{
		{"itself", base, true, true},
		{"other size", store.Object{Name: "n", Size: 8, Modified: at}, false, false},
		{"other time", store.Object{Name: "n", Size: 7, Modified: at.Add(time.Nanosecond)}, false, false},
		{"time rounded to seconds", store.Object{Name: "n", Size: 7, Modified: at.Truncate(time.Second)}, false, true},
		{"other zone", store.Object{Name: "n", Size: 7, Modified: at.In(time.FixedZone("x", 3600))}, true, true},
		{"other name", store.Object{Name: "m", Size: 7, Modified: at}, false, true},
		{"e-tag on one side", store.Object{Name: "n", Size: 7, Modified: at, ETag: "x"}, false, true},
		{"directory", store.Object{Name: "n", Size: 7, Modified: at, Dir: true}, true, false},
	}
	for _, tt := range tests {
		if got := base.Identity() == tt.o.Identity(); got != tt.sameIdentity {
			t.Errorf("%s: same identity %t, want %t", tt.name, got, tt.sameIdentity)
		}
		if got := base.SameContent(tt.o); got != tt.sameContent {
			t.Errorf("%s: same content %t, want %t", tt.name, got, tt.sameContent)
		}
	}
	a, b := store.Object{Name: "n", ETag: "1"}, store.Object{Name: "n", ETag: "2"}
	if a.Identity() == b.Identity() || a.SameContent(b) {
		t.Error("two e-tags mean two contents")
	}
}

func TestOpenURIRefusesWhatItCannotOpen(t *testing.T) {
	for uri, kind := range map[string]fault.Kind{
		"":                             fault.Invalid,
		"nosuch://user:secret@host/p":  fault.Unsupported,
		"s3://bucket:secret@%zz/hello": fault.Invalid,
	} {
		_, err := store.OpenURI(t.Context(), uri, store.Options{})
		if !fault.Is(err, kind) {
			t.Errorf("OpenURI(%q): %v, want %v", uri, err, kind)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("OpenURI(%q) shows a credential: %v", uri, err)
		}
	}
}

func TestRelativePathBecomesAbsolute(t *testing.T) {
	t.Chdir(t.TempDir())
	plant(t, "ds")
	st := local(t, "ds", store.Options{})
	dir, ok := st.Local()
	if !ok || !filepath.IsAbs(dir) || st.URI() != dir {
		t.Errorf("Local = %q, %t, URI = %q", dir, ok, st.URI())
	}
	if dir, _ := st.Sub("dir/sub").Local(); filepath.Base(dir) != "sub" {
		t.Errorf("Sub: Local = %q", dir)
	}
}

func TestCountingCountsDelaysAndFails(t *testing.T) {
	ctx := t.Context()
	c := storetest.New(storetest.NewMem(map[string][]byte{"d/x": []byte("abc")}), 0)
	if _, err := c.Sub("d").ReadRange(ctx, "x", 0, 2); err != nil {
		t.Fatal(err)
	}
	r, err := c.Open(ctx, "d/x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadAt(make([]byte, 3), 0); err != nil {
		t.Fatal(err)
	}
	want := map[storetest.Call]int{{Method: "ReadRange", Name: "d/x"}: 1, {Method: "Open", Name: "d/x"}: 1, {Method: "ReadAt", Name: "d/x"}: 1}
	got := c.Calls()
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%v counted %d times, want %d", k, got[k], n)
		}
	}
	if c.Total("") != 3 || c.Total("Open") != 1 || c.Bytes() != 5 {
		t.Errorf("total %d, bytes %d", c.Total(""), c.Bytes())
	}
	broken := fault.New("test", "d/x", fault.Unavailable, "injected")
	c.Fail("Stat", "d/x", broken)
	if _, err := c.Sub("d").Stat(ctx, "x"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("injected fault: %v", err)
	}
	if _, err := c.ReadRange(ctx, "d/x", 0, 1); err != nil {
		t.Errorf("another method failed too: %v", err)
	}
	c.Fail("Stat", "d/x", nil)
	if _, err := c.Stat(ctx, "d/x"); err != nil {
		t.Errorf("after the fault: %v", err)
	}
	slow := storetest.New(c, time.Hour)
	brief, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := slow.Stat(brief, "d/x"); !fault.Is(err, fault.TimedOut) {
		t.Errorf("a delayed call whose context ends: %v", err)
	}
}
