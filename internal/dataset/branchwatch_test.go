package dataset

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store/storetest"
)

// TestWatchingBranchesCostsLittle counts the listings of looks at 50 branches: one per look, but for a new file, an error,
// and every relistAfter-th look, which finds a directory without a file.
func TestWatchingBranchesCostsLittle(t *testing.T) {
	files := map[string]string{}
	for i := range 50 {
		files[fmt.Sprintf("_refs/branches/b%02d.json", i)] = `{"parentVersion":1}`
		files[fmt.Sprintf("tree/b%02d/_versions/1.manifest", i)] = ""
	}
	d, c := refStore(t, files)
	w := d.WatchBranches()
	mem, ok := c.Store.(*storetest.Mem)
	if !ok {
		t.Fatalf("a store of type %T", c.Store)
	}
	look := func(full bool, want int, dear bool) {
		t.Helper()
		c.Reset()
		refs, err := w.Look(t.Context(), full)
		if n := c.Total("List"); err != nil || len(refs) != want || (n > 10) != dear || !dear && n != 1 {
			t.Errorf("%d branches with %d listings, %v; want %d, all directories %v", len(refs), n, err, want, dear)
		}
	}
	look(false, 50, true)
	look(false, 50, false)
	mem.Put("_refs/branches/more.json", []byte(`{"parentVersion":1}`))
	look(false, 51, true)
	look(false, 51, false)
	mem.Put("tree/half/_versions/1.manifest", nil)
	look(true, 52, true)
	mem.Delete("tree/half/_versions/1.manifest")
	for range relistAfter {
		look(false, 52, false)
	}
	look(false, 51, true)
	c.Fail("List", "_refs/branches", fault.New("test", "", fault.Unavailable, "%w", errors.New("no")))
	if _, err := w.Look(t.Context(), false); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v, want unavailable", err)
	}
	c.Fail("List", "_refs/branches", nil)
	look(false, 51, true)
	refs, err := d.Branches(t.Context())
	last, werr := w.Look(t.Context(), false)
	if err != nil || werr != nil || !slices.Equal(refs, last) {
		t.Errorf("%d branches, %v, %v, want those of Branches", len(last), err, werr)
	}
}
