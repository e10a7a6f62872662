package indexfile

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/lancefile"
)

// memSink is where a cell writer puts its bytes.
type memSink struct{ b []byte }

func (m *memSink) Append(p []byte) error { m.b = append(m.b, p...); return nil }
func (m *memSink) Size() int64           { return int64(len(m.b)) }
func (m *memSink) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(m.b).ReadAt(p, off)
}

// withDeleted makes the metadata.lance of a real full-text index say that documents of some fragments are stale.
func withDeleted(t *testing.T, s *Segment, cell []byte) []byte {
	t.Helper()
	var out []byte
	noError(t, s.withFile(t.Context(), ftsMetadata, func(f *lancefile.File) error {
		column, _, err := f.Column(deletedFragments)
		noError(t, err)
		w, err := lancefile.NewCellWriter(t.Context(), f, column, &memSink{}, lancefile.CellOptions{})
		noError(t, err)
		noError(t, w.Append(cell, false))
		pages, err := w.Finish()
		noError(t, err)
		z, err := lancefile.Synthesise(t.Context(), f, lancefile.Edit{Cells: []lancefile.CellPages{pages}})
		noError(t, err)
		out = wholeOf(t, synthesised{z})
		return nil
	}))
	return out
}

func TestDeletedFragmentsOfFullText(t *testing.T) {
	for _, name := range []string{"legacy/all_types", "legacy/all_types_v20", "legacy/all_types_v22"} {
		t.Run(name, func(t *testing.T) {
			w := openWorld(t, name, 0)
			ix := w.m.IndicesNamed("inverted_txt_fts")[0]
			s := w.segment(ix)
			path := ""
			for _, f := range s.Files {
				if matches("part_*_docs.lance", f.Path) {
					path = f.Path
				}
			}
			// An empty list masks nothing.
			f, err := s.Open(t.Context(), path)
			noError(t, err)
			r := w.resolver(ix)
			if f.Resolver(r) != r {
				t.Error("the resolver is wrapped although no fragment is deleted")
			}
			deleted, err := roaring.BitmapOf(1, 3, 99).ToBytes()
			noError(t, err)
			meta := withDeleted(t, s, deleted)
			stale := *s
			stale.fts = &ftsFacts{}
			open := s.OpenRaw
			stale.OpenRaw = func(ctx context.Context, p string) (Reader, error) {
				if p == ftsMetadata {
					return inMemory(meta), nil
				}
				return open(ctx, p)
			}
			g, err := stale.Open(t.Context(), path)
			noError(t, err)
			_, addrs := storedAddresses(t, g)
			want := wantRemapped(t, r, 0, addrs)
			masked := 0
			for i, a := range addrs {
				if f := a.Frag(); f == 1 || f == 3 {
					want[i] = Placeholder(uint64(i))
					masked++
				}
			}
			c, err := g.Remap(t.Context(), r, Options{})
			noError(t, err)
			if _, got := storedAddresses(t, reopen(t, s, path, c)); !slices.Equal(got, want) || masked == 0 {
				t.Errorf("%d documents masked:\n got %v\nwant %v", masked, head(got), head(want))
			}
			a := answersFor(t, g.Resolver(r), addrs)
			for i := range addrs {
				if f := addrs[i].Frag(); (f == 1 || f == 3) && a.Keep(i) {
					t.Fatalf("document %d of stale fragment %d is kept", i, f)
				}
			}
			// A list that cannot be read costs the documents, whose stale fragments are then not known.
			stale.fts = &ftsFacts{}
			meta = withDeleted(t, s, deleted[:len(deleted)-1])
			if _, err := stale.Open(t.Context(), path); !fault.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), deletedFragments) {
				t.Errorf("a broken list: %v", err)
			}
		})
	}
}
