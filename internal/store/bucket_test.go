package store_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
)

func TestMemBucketConforms(t *testing.T) {
	b := memblob.OpenBucket(nil)
	defer b.Close()
	for name, data := range tree {
		if err := b.WriteAll(t.Context(), "pre/fix/"+name, []byte(data), nil); err != nil {
			t.Fatal(err)
		}
	}
	st := store.NewBlob(b, "mem://test", store.Options{}).Sub("pre/fix")
	if st.URI() != "mem://test/pre/fix" {
		t.Errorf("URI %q", st.URI())
	}
	conforms(t, st, false)

	r, err := st.Open(t.Context(), "dir/one")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.WriteAll(t.Context(), "pre/fix/dir/one", []byte("another"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadAt(make([]byte, 3), 0); !fault.Is(err, fault.Stale) {
		t.Errorf("read of a replaced object: %v, want stale", err)
	}
	if err := store.Recheck(t.Context(), st, r.Stat()); !fault.Is(err, fault.Stale) {
		t.Errorf("Recheck of a replaced object: %v, want stale", err)
	}
	if err := b.Delete(t.Context(), "pre/fix/dir/one"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadAt(make([]byte, 3), 0); !fault.Is(err, fault.Stale) {
		t.Errorf("read of a deleted object: %v, want stale", err)
	}
}

func TestFileURLConforms(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir)
	st := fileURL(t, dir, store.Options{})
	if _, ok := st.Local(); ok || !strings.HasPrefix(st.URI(), "file:///") {
		t.Errorf("a file URL is a bucket: URI %q", st.URI())
	}
	conforms(t, st, false)
}

func fileURL(tb testing.TB, dir string, opt store.Options) store.Store {
	tb.Helper()
	st, err := store.OpenURI(context.Background(), "file://"+dir, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return st
}

func TestFileURLKeepsLinksInside(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	plant(t, outside)
	plant(t, root)
	if err := os.Symlink(filepath.Join(outside, "a"), filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	if _, err := fileURL(t, root, store.Options{}).ReadRange(t.Context(), "out", 0, 1); !fault.Is(err, fault.Denied) {
		t.Errorf("a link to the outside: %v, want denied", err)
	}
	if b, err := fileURL(t, root, store.Options{FollowOutside: true}).ReadRange(t.Context(), "out", 0, 1); err != nil || string(b) != "f" {
		t.Errorf("a link to the outside, allowed: %q, %v", b, err)
	}
}

func TestOpenURIOfBuckets(t *testing.T) {
	for uri, kind := range map[string]fault.Kind{
		"file:///no/such/dir": fault.NotFound,
		"file://host/dir":     fault.Invalid,
		"mem://a/../b":        fault.Invalid,
	} {
		if _, err := store.OpenURI(t.Context(), uri, store.Options{}); !fault.Is(err, kind) {
			t.Errorf("OpenURI(%q): %v, want %v", uri, err, kind)
		}
	}
	st, err := store.OpenURI(t.Context(), "mem://some/prefix", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.List(t.Context(), ""); !fault.Is(err, fault.NotFound) || st.URI() != "mem://some/prefix" {
		t.Errorf("an empty memory bucket: %v, URI %q", err, st.URI())
	}
}
