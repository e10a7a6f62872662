package nodes

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestPinnedTreesAreNotPolled: what a selector has chosen stays, and no look at the store is made for it.
func TestPinnedTreesAreNotPolled(t *testing.T) {
	for name, pin := range map[string]func(*Config){
		"version": func(c *Config) { two := uint64(2); c.Version = &two },
		"tag":     func(c *Config) { c.Tag = "two" },
		"branch":  func(c *Config) { c.Branch = "main" },
		"as of":   func(c *Config) { c.AsOf = time.Unix(1_700_000_000+2*60, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			m := makeTable(t)
			m.version(1, fragments(0))
			m.version(2, fragments(0))
			m.file("_refs/tags/two.json", `{"version":2,"manifestSize":1}`)
			o := m.observed(pin)
			names(t, o.tr, "tags")
			o.c.Reset()
			m.version(3, fragments(0))
			m.file("_refs/tags/three.json", `{"version":3,"manifestSize":1}`)
			o.tr.Watch(t.Context()) // returns at once
			for range 3 {
				o.clk.advance(time.Hour)
				o.tr.pollOnce(t.Context())
				if err := o.tr.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := names(t, o.tr, "versions"); !slices.Equal(got, []string{"2"}) || newestOf(t, o.tr) != "2" {
					t.Errorf("versions %v, latest %s", got, newestOf(t, o.tr))
				}
				names(t, o.tr, "")
				catJSON(t, o.tr, ".frifs/status.json")
				figuresIn(t, o.tr)
			}
			for call, n := range o.c.Calls() {
				if call.Method == "List" || call.Method == "ListFirst" || call.Method == "Stat" {
					t.Errorf("%d requests: %s %s", n, call.Method, call.Name)
				}
			}
			// Not even when what is shown turns out to be gone.
			m.remove(2)
			o.tr.loads.forget(func(string) bool { return true })
			o.c.Reset()
			mustFail(t, o.tr, "versions/2/"+strconv.Itoa(7), "not_found")
			if n := o.listings(); n != 0 {
				t.Errorf("%d listings", n)
			}
		})
	}
}
