package lancefile

import (
	"errors"
	"testing"
)

// ask gets an index of n bytes, and tells whether it had to be loaded.
func ask[V any](t *testing.T, c *pageCache, page, n int) bool {
	t.Helper()
	loaded := false
	v, err := cached(c, page, func() (*V, int, error) {
		loaded = true
		return new(V), n, nil
	})
	if err != nil || v == nil {
		t.Fatal(v, err)
	}
	return loaded
}

func TestPageCache(t *testing.T) {
	var c pageCache
	const pages, each = 200, 8 << 10
	for round := range 3 {
		for page := range pages {
			if got := ask[chunkTable](t, &c, page, each); got != (round == 0) {
				t.Fatalf("round %d: page %d loaded: %v", round, page, got)
			}
		}
	}
	// Two indexes of one page do not push each other out.
	if !ask[rowSet](t, &c, 7, each) || ask[chunkTable](t, &c, 7, each) || ask[rowSet](t, &c, 7, each) {
		t.Error("indexes of one page are mixed up")
	}
	_, err := cached(&c, 1000, func() (*chunkTable, int, error) { return nil, 0, errors.New("away") })
	if err == nil || !ask[chunkTable](t, &c, 1000, each) {
		t.Errorf("a failure was kept: %v", err)
	}
	// A page that is asked for all the time stays, what is asked for once goes, and the bound holds.
	for page := 2000; page < 4000; page++ {
		ask[chunkTable](t, &c, page, each)
		if ask[chunkTable](t, &c, 0, each) {
			t.Fatalf("page 0 was dropped for page %d", page)
		}
		if c.bytes > pageCacheBytes || len(c.order) != len(c.pages) {
			t.Fatalf("%d bytes in %d pages, %d in order", c.bytes, len(c.pages), len(c.order))
		}
	}
	if !ask[chunkTable](t, &c, 2000, each) {
		t.Error("page 2000 is still there")
	}
	// One that is larger than the bound is kept alone.
	if !ask[chunkTable](t, &c, 5000, pageCacheBytes) || ask[chunkTable](t, &c, 5000, pageCacheBytes) || len(c.pages) != 1 {
		t.Errorf("%d pages beside a large one", len(c.pages))
	}
}
