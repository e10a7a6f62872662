package nodes

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
)

// TestTheLastViewOutlivesTheListing checks that a tree whose versions cannot be listed for a while shows what it
// showed before, says so, and goes on afterwards.
func TestTheLastViewOutlivesTheListing(t *testing.T) {
	two := uint64(2)
	for name, pin := range map[string]*uint64{"all versions": nil, "one version": &two} {
		t.Run(name, func(t *testing.T) {
			m := makeTable(t)
			m.version(1, fragments(0))
			m.version(2, fragments(0))
			var clk clock
			clk.advance(time.Hour)
			var told []ErrorRecord
			tr := m.tree(func(c *Config) {
				c.Now, c.Version = clk.now, pin
				c.OnError = func(r ErrorRecord) { told = append(told, r) }
			})
			root, versions := names(t, tr, ""), names(t, tr, "versions")
			dir := filepath.Join(m.dir, "_versions")
			if err := os.Rename(dir, dir+".away"); err != nil {
				t.Fatal(err)
			}
			clk.advance(90 * time.Second)
			if got := names(t, tr, ""); !slices.Equal(got, root) {
				t.Errorf("the root lists %v, before it was %v", got, root)
			}
			if got := names(t, tr, "versions"); !slices.Equal(got, versions) {
				t.Errorf("versions are %v, before they were %v", got, versions)
			}
			if got := newestOf(t, tr); got != "2" {
				t.Errorf("latest is %s", got)
			}
			if pin != nil {
				if len(told) != 0 { // nothing is looked at
					t.Errorf("noted: %+v", told)
				}
			} else if len(told) == 0 || told[0].Path != "versions" || told[0].Kind != fault.NotFound {
				t.Errorf("noted: %+v", told)
			}
			if s := catJSON(t, tr, ".frifs/status.json"); s["versions_age_seconds"] != 90.0 {
				t.Errorf("age of the view: %v", s["versions_age_seconds"])
			}
			if err := os.Rename(dir+".away", dir); err != nil {
				t.Fatal(err)
			}
			m.version(3, fragments(0))
			clk.advance(2 * time.Second)
			want := "3"
			if pin != nil {
				want = "2"
			}
			if got := newestOf(t, tr); got != want {
				t.Errorf("latest is %s after that, want %s", got, want)
			}
		})
	}
}
