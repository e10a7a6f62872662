package nodes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/internal/pb"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/store/storetest"
	"github.com/frifs/frifs/internal/testdata"
)

// database makes many tables with two versions each, behind a store that counts.
func database(t *testing.T, tables int) (*Tree, *storetest.Counting, *clock) {
	t.Helper()
	root := t.TempDir()
	for i := range tables {
		m := &made{t, filepath.Join(root, fmt.Sprintf("t%04d.lance", i))}
		if err := os.MkdirAll(filepath.Join(m.dir, "_versions"), 0o755); err != nil {
			t.Fatal(err)
		}
		m.version(1, fragments(0))
		m.version(2, fragments(0, 1), entry("by_id", btreeType, 1, 0))
	}
	st, err := store.NewLocal(root, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := storetest.New(st, 0)
	c.HideLocal = true
	db, err := dataset.OpenDatabase(t.Context(), c, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	clk := &clock{}
	clk.advance(time.Hour)
	tr, err := New(t.Context(), Config{Database: db, Now: clk.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	tr.watching.poll(true)
	return tr, c, clk
}

// TestMetricsOfADatabase: tables that nobody looked into cost nothing and have no figures; those in use have their own,
// up to a limit.
func TestMetricsOfADatabase(t *testing.T) {
	const tables = maxMeasured + 20
	tr, c, clk := database(t, tables)
	names(t, tr, "tables")
	c.Reset()
	got := figuresIn(t, tr)
	if n := c.Total(""); n != 0 || got["frifs_tables"] != tables || got["frifs_tables_measured"] != 0 {
		t.Errorf("before anybody looks: %d requests, %v tables, %v measured", n, got["frifs_tables"], got["frifs_tables_measured"])
	}
	names(t, tr, "tables/t0003/versions")
	got = eventuallyFigures(t, tr, "frifs_table_measured_version{t0003}", 2)
	for name, want := range map[string]float64{
		"frifs_table_latest_version{t0003}": 2, "frifs_table_versions{t0003}": 2, "frifs_table_readable{t0003}": 1,
		"frifs_table_pending_transitions{t0003}": 0, "frifs_table_unindexed_rows{by_id,t0003}": 10, "frifs_tables_measured": 1,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s: %v (%v), want %v", name, v, ok, want)
		}
	}
	c.Reset()
	for range 20 {
		figuresIn(t, tr)
		clk.advance(time.Second)
	}
	if n := c.Total(""); n != 0 {
		t.Errorf("%d requests for figures that are known", n)
	}
	for i := range tables {
		names(t, tr, fmt.Sprintf("tables/t%04d/versions", i))
	}
	got = eventuallyFigures(t, tr, fmt.Sprintf("frifs_table_measured_version{t%04d}", tables-1), 2)
	series := 0
	for name := range got {
		if strings.HasPrefix(name, "frifs_table_latest_version{") {
			series++
		}
	}
	if series != maxMeasured || got["frifs_tables_measured"] != maxMeasured {
		t.Errorf("%d tables have figures, %v are said to; want %d", series, got["frifs_tables_measured"], maxMeasured)
	}
	// While figures are asked for, the tables that have some are looked after.
	last := &made{t, strings.TrimPrefix(tr.cfg.URI, "file://") + fmt.Sprintf("/t%04d.lance", tables-1)}
	for range 2 * coldAfter {
		clk.advance(defaultPollInterval)
		for _, p := range tr.pollOnce(t.Context()) {
			<-p.done
		}
		figuresIn(t, tr)
	}
	last.version(3, fragments(0, 1))
	clk.advance(defaultPollInterval)
	for _, p := range tr.pollOnce(t.Context()) {
		<-p.done
	}
	eventuallyFigures(t, tr, fmt.Sprintf("frifs_table_measured_version{t%04d}", tables-1), 3)
}

// eventuallyFigures renders metrics until one has a value: what is not known is found out in the background.
func eventuallyFigures(t *testing.T, tr *Tree, name string, want float64) map[string]float64 {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		got := figuresIn(t, tr)
		if v, ok := got[name]; ok && v == want {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is %v, want %v", name, got[name], want)
		}
	}
}

// TestManyIndicesAreSummedUp: the number of series is bounded.
func TestManyIndicesAreSummedUp(t *testing.T) {
	m := makeTable(t)
	var ixs []*pb.IndexMetadata
	for i := range maxIndexSeries + 5 {
		ixs = append(ixs, entry(fmt.Sprintf("x%03d", i), btreeType, byte(i+1), 0))
	}
	m.version(1, fragments(0, 1), ixs...)
	got := figuresIn(t, m.observed(nil).tr)
	series := 0
	for name := range got {
		if strings.HasPrefix(name, "frifs_table_unindexed_rows") {
			series++
		}
	}
	if series != maxIndexSeries+1 || got["frifs_table_unindexed_rows{}"] != 50 {
		t.Errorf("%d series, %v rows of the others", series, got["frifs_table_unindexed_rows{}"])
	}
}

// TestABadGaugeCostsNoOther: a figure that cannot be given is left out and noted.
func TestABadGaugeCostsNoOther(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	o := m.observed(func(c *Config) {
		c.Gauges = func() []Gauge {
			return []Gauge{{"frifs_uptime_seconds", "Another help.", 1}, {"frifs_good", "One that is.", 7}}
		}
	})
	got := figuresIn(t, o.tr)
	if got["frifs_good"] != 7 || got["frifs_table_measured_version"] != 1 {
		t.Errorf("%v", got)
	}
	if len(o.errs) != 1 || o.errs[0].Path != ".frifs/metrics" {
		t.Errorf("noted %+v", o.errs)
	}
}

// TestFiguresWithoutOlderVersions: what cannot be read of older versions costs only what follows from them.
func TestFiguresWithoutOlderVersions(t *testing.T) {
	st, err := store.OpenURI(t.Context(), testdata.Dataset(t, "tagged/chain"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := storetest.New(st, 0)
	c.HideLocal = true
	tr := openStore(t, c, "tagged/chain", nil)
	v := tr.versions.known()
	for _, r := range v.refs[:v.hi-1] {
		c.Fail("", r.Path(), fault.New("test", r.Path(), fault.Unavailable, "down"))
	}
	got := figuresIn(t, tr)
	if got["frifs_table_readable"] != 1 || got["frifs_table_pending_transitions"] == 0 {
		t.Errorf("%v", got)
	}
	if !tr.figures.known().partial {
		t.Error("everything was found out without the older versions")
	}
	c.Reset()
	for range 10 {
		figuresIn(t, tr)
	}
	if n := c.Total(""); n != 0 {
		t.Errorf("%d requests to try again at once", n)
	}
}
