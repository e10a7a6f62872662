package nodes

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/store"
)

// manyVersions is a listing of n versions.
func manyVersions(n int) *dataset.Listing {
	l := &dataset.Listing{}
	for i := range n {
		v := uint64(i + 1)
		name := fmt.Sprintf("%020d.manifest", ^v)
		l.Versions = append(l.Versions, dataset.VersionRef{Version: v, Name: name, Scheme: dataset.V2,
			Object: store.Object{Name: "_versions/" + name, Size: 5000, Modified: time.Unix(1_700_000_000+int64(i), 0)}})
	}
	return l
}

// BenchmarkList20000Versions is what ls of versions/ costs here, the store's own listing aside: first with a new
// listing, then with the one at hand.
func BenchmarkList20000Versions(b *testing.B) {
	tr := openTree(b, "legacy/basic", nil)
	l := manyVersions(20_000)
	d := tr.versionsDir(tr.newView(l))
	b.Run("new", func(b *testing.B) {
		for b.Loop() {
			d.entriesOf(tr.newView(l))
		}
	})
	v := tr.newView(l)
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			d.entriesOf(v)
		}
	})
}

// BenchmarkManifestJSON is the rendering of manifest.json, per byte.
func BenchmarkManifestJSON(b *testing.B) {
	tr := openTree(b, "legacy/chain", nil)
	n, err := tr.version(context.Background(), nil)
	if err != nil {
		b.Fatal(err)
	}
	d, err := n.manifestJSON(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	r, err := d.render(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(r.size)
	for b.Loop() {
		if _, err := d.render(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
