package translate

import (
	"context"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fri"
	"github.com/frifs/frifs/internal/fritest"
	"github.com/frifs/frifs/rowmap"
)

func outcomes(t *testing.T, tr *Translator, addrs ...fri.RowAddr) []Outcome {
	t.Helper()
	r := newResults(len(addrs))
	if err := tr.Translate(context.Background(), addrs, r); err != nil {
		t.Fatal(err)
	}
	return r.Outcome
}

func TestWithoutHistory(t *testing.T) {
	t.Parallel()
	live := Snapshot{3: {Rows: 10, Deleted: roaring.BitmapOf(4)}, 4: {}}
	addrs := []fri.RowAddr{fri.Addr(3, 0), fri.Addr(3, 4), fri.Addr(3, 10), fri.Addr(4, 1<<31), fri.Addr(9, 0)}
	broken := fri.Broken(2, 1, fault.New("test", "", fault.Unsupported, "index_version 2"))
	for _, c := range []struct {
		name string
		h    *fri.History
		dead Outcome
	}{{"none", nil, Dangling}, {"broken", broken, Unresolved}} {
		want := []Outcome{Same, DeletedNow, OutOfRange, Same, c.dead}
		tr := New(c.h, live, nil, Options{})
		for i, o := range outcomes(t, tr, addrs...) {
			if o != want[i] {
				t.Errorf("history %s: %v is %v, want %v", c.name, addrs[i], o, want[i])
			}
		}
		if s := tr.Sources(); s != nil {
			t.Errorf("history %s has sources %v", c.name, s)
		}
		p, err := tr.Push(context.Background(), 9, 0, 5)
		if err != nil || p.Rows[c.dead] != 5 || len(p.Ranges) != 0 {
			t.Errorf("history %s: Push gives %+v, %v", c.name, p, err)
		}
		r := newResults(2)
		if err := tr.Inverse(context.Background(), []fri.RowAddr{fri.Addr(3, 4), fri.Addr(9, 0)}, r); err != nil ||
			r.Outcome[0] != DeletedNow || r.New[0] != fri.Addr(3, 4) || r.Outcome[1] != c.dead {
			t.Errorf("history %s: Inverse gives %v %v, %v", c.name, r.New, r.Outcome, err)
		}
	}
}

// failing is a Live whose deletions cannot be read.
type failing struct {
	Snapshot
	kind fault.Kind
}

func (f failing) HasDeletions(fri.FragID) bool { return true }

func (f failing) Deletions(context.Context, fri.FragID) (*roaring.Bitmap, error) {
	return nil, fault.New("test", "", f.kind, "no deletion file")
}

// corruptMapping fails on data, not when it is opened.
type corruptMapping struct{ rowmap.Mapping }

func (corruptMapping) Forward(context.Context, []fri.RowAddr, []fri.RowAddr, []rowmap.Status) error {
	return fault.New("test", "", fault.Corrupt, "labels disagree with counts")
}

func (corruptMapping) ForwardRun(context.Context, int, uint64, []fri.RowAddr, []rowmap.Status) error {
	return fault.New("test", "", fault.Corrupt, "labels disagree with counts")
}

// TestErrors: what may pass fails the call, all else makes the addresses that need it unresolved.
func TestErrors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := taggedHistory(t, compaction([]uint64{0, 1}, []uint64{2}))
	live := Snapshot{2: {Rows: 20}, 3: {Rows: 5}}
	addrs := []fri.RowAddr{fri.Addr(0, 1), fri.Addr(3, 1), fri.Addr(0, 99)}
	maps := func(kind fault.Kind) Maps {
		return func(context.Context, *fri.Transition) (rowmap.Mapping, error) {
			return nil, fault.New("test", "", kind, "no row map")
		}
	}
	corrupt := func(context.Context, *fri.Transition) (rowmap.Mapping, error) { return corruptMapping{}, nil }
	for _, c := range []struct {
		name   string
		live   Live
		maps   Maps
		strict bool
		err    fault.Kind
		want   [3]Outcome
	}{
		{"row map gone", live, maps(fault.NotFound), true, 0, [3]Outcome{Unresolved, Same, OutOfRange}},
		{"row map corrupt", live, maps(fault.Corrupt), false, 0, [3]Outcome{Unresolved, Same, OutOfRange}},
		{"store down", live, maps(fault.Unavailable), false, fault.Unavailable, [3]Outcome{}},
		{"too slow", live, maps(fault.TimedOut), false, fault.TimedOut, [3]Outcome{}},
		{"corrupt labels", live, corrupt, false, 0, [3]Outcome{Unresolved, Same, OutOfRange}},
		{"corrupt labels, strict", live, corrupt, true, fault.Corrupt, [3]Outcome{}},
		{"deletions corrupt", failing{live, fault.Corrupt}, nil, false, 0, [3]Outcome{Unresolved, Unresolved, OutOfRange}},
		{"deletions unavailable", failing{live, fault.Unavailable}, nil, false, fault.Unavailable, [3]Outcome{}},
	} {
		tr := New(h, c.live, c.maps, Options{})
		r := newResults(3)
		r.Strict = c.strict
		err := tr.Translate(ctx, addrs, r)
		if c.err != 0 {
			if !fault.Is(err, c.err) {
				t.Errorf("%s: error %v, want kind %v", c.name, err, c.err)
			}
			continue
		}
		if err != nil || [3]Outcome(r.Outcome) != c.want {
			t.Errorf("%s: %v, %v; want %v", c.name, r.Outcome, err, c.want)
		}
		run := newResults(2)
		if err := tr.TranslateRun(ctx, fri.Addr(0, 0), 2, run); err != nil || run.Outcome[1] != c.want[0] {
			t.Errorf("%s: as a run %v, %v", c.name, run.Outcome, err)
		}
	}
}

func TestRefusedCalls(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	tr := New(nil, Snapshot{}, nil, Options{})
	gone, cancel := context.WithCancel(ctx)
	cancel()
	one := []fri.RowAddr{1}
	for _, c := range []struct {
		name string
		err  error
		kind fault.Kind
	}{
		{"no room", tr.Translate(ctx, one, &Results{}), fault.Invalid},
		{"no room for a run", tr.TranslateRun(ctx, 0, 5, newResults(4)), fault.Invalid},
		{"past the last offset", tr.TranslateRun(ctx, fri.Addr(1, 1<<32-1), 2, newResults(2)), fault.Invalid},
		{"last of another length", tr.Inverse(ctx, one, &Results{New: one, Outcome: make([]Outcome, 1), Last: make([]fri.RowAddr, 2)}), fault.Invalid},
		{"cancelled", tr.Translate(gone, one, newResults(1)), fault.Cancelled},
		{"cancelled run", tr.TranslateRun(gone, 1, 1, newResults(1)), fault.Cancelled},
		{"cancelled inverse", tr.Inverse(gone, one, newResults(1)), fault.Cancelled},
	} {
		if !fault.Is(c.err, c.kind) {
			t.Errorf("%s: error %v, want kind %v", c.name, c.err, c.kind)
		}
	}
}

// TestSources: ascending, once each, with the manifest's row count where there is one.
func TestSources(t *testing.T) {
	t.Parallel()
	fold, sp := compaction([]uint64{7, 3}, []uint64{9}), fritest.Record{
		Sources: []fri.Digest{{ID: 9, PhysicalRows: 20}}, Destinations: []fri.Digest{{ID: 11, PhysicalRows: 20}},
		MapID: "0f8fad5b-d9cb-469f-a165-70867728950e", MapSize: 1,
	}
	tr := New(taggedHistory(t, fold, sp), Snapshot{3: {Rows: 12}, 11: {Rows: 20}}, nil, Options{})
	want := []Source{{3, 12, true, true}, {7, 10, false, false}, {9, 20, false, false}}
	got := tr.Sources()
	if len(got) != len(want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("source %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

// TestConcurrentUse has many callers of one translator whose deletions do not fit its budget.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		w := newWorld(seed, false)
		tr := New(w.h, w, w.open, Options{DeletionBytes: 100})
		addrs := w.addresses()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				r := newResults(len(addrs))
				if err := tr.Translate(context.Background(), addrs, r); err != nil {
					t.Error(err)
				}
				for i, a := range addrs {
					if o, last := w.reference(a); r.Outcome[i] != o || r.Last[i] != last {
						t.Errorf("seed %d: %v is %v %v, want %v %v", seed, a, r.Outcome[i], r.Last[i], o, last)
						return
					}
				}
				if err := tr.Inverse(context.Background(), addrs, r); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
