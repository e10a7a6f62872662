package nodes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/frifs/frifs/fault"
)

// figuresIn renders the metrics of a tree as they are now, and reads them as Prometheus does: by name, or name{label,...}.
func figuresIn(t testing.TB, tr *Tree) map[string]float64 {
	t.Helper()
	text, err := tr.metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	out := map[string]float64{}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			key := name
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			if len(values) > 0 {
				key = fmt.Sprintf("%s{%s}", name, strings.Join(values, ","))
			}
			out[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return out
}

// TestTableMetrics compares the figures for alerts with the files of the tree that say the same.
func TestTableMetrics(t *testing.T) {
	for _, name := range []string{"legacy/basic", "legacy/multi", "legacy/external", "tagged/chain", "tagged/stable2", "tagged/fanout", "spliced/s_empty"} {
		t.Run(name, func(t *testing.T) {
			var clk clock
			clk.advance(time.Duration(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()))
			tr := openTree(t, name, func(c *Config) { c.Now = clk.now })
			got := figuresIn(t, tr)
			latest, err := strconv.ParseFloat(newestOf(t, tr), 64)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]float64{
				"frifs_table_latest_version": latest, "frifs_table_measured_version": latest, "frifs_table_readable": 1,
				"frifs_probes_total": 1, "frifs_probes_failed_total": 0, "frifs_probe_age_seconds": 0,
			}
			s := decode[struct {
				Pending    *float64
				DueByCount bool       `json:"due_by_count"`
				DueAt      *time.Time `json:"due_at"`
				Oldest     *struct {
					Since *struct{ Time *time.Time }
				} `json:"oldest_pending"`
				Error json.RawMessage
			}](t, tr, "latest/fri/status.json")
			if s.Pending == nil {
				want["frifs_table_readable"] = 0
			} else {
				want["frifs_table_pending_transitions"] = *s.Pending
				due := s.DueByCount || s.DueAt != nil && !clk.now().Before(*s.DueAt)
				want["frifs_table_compaction_due"] = oneIf(due)
				switch {
				case s.Oldest == nil:
					want["frifs_table_oldest_pending_seconds"] = 0
				case s.Oldest.Since != nil && s.Oldest.Since.Time != nil:
					want["frifs_table_oldest_pending_seconds"] = clk.now().Sub(*s.Oldest.Since.Time).Seconds()
				}
			}
			indices := 0
			if n, err := Resolve(t.Context(), tr.Root(), "latest/indices"); err == nil {
				es, err := n.(Dir).Entries(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range es {
					x := catJSON(t, tr, "latest/indices/"+e.Name+"/index.json")
					if rows, ok := x["unindexed_rows"].(float64); ok && x["system"] == false {
						want["frifs_table_unindexed_rows{"+e.Name+"}"] = rows
						indices++
					}
				}
			}
			for k, v := range want {
				if g, ok := got[k]; !ok || g != v {
					t.Errorf("%s: got %v (%v), want %v", k, g, ok, v)
				}
			}
			for k := range got {
				if _, ok := want[k]; !ok && strings.HasPrefix(k, "frifs_table_") && k != "frifs_table_versions" {
					t.Errorf("unexpected: %s", k)
				}
			}
			if indices == 0 && name != "spliced/s_empty" {
				t.Error("no index was looked at")
			}
		})
	}
}

// TestTableMetricsNeverWait: a store that hangs holds no scrape up; the figures of before are given, and say so.
func TestTableMetricsNeverWait(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	o := m.observed(nil)
	o.tr.watching.poll(true)
	if got := figuresIn(t, o.tr); got["frifs_table_measured_version"] != 1 {
		t.Fatalf("%v", got)
	}
	o.c.Reset()
	for range 10 {
		figuresIn(t, o.tr)
	}
	if n := o.c.Total(""); n != 0 {
		t.Errorf("%d requests for figures that are known", n)
	}
	m.version(2, fragments(0))
	o.clk.advance(time.Minute)
	o.poll()
	o.c.Delay = time.Minute
	begin := time.Now()
	got := figuresIn(t, o.tr)
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("a scrape took %v", took)
	}
	if got["frifs_table_latest_version"] != 2 || got["frifs_table_measured_version"] != 1 {
		t.Errorf("latest %v, measured %v", got["frifs_table_latest_version"], got["frifs_table_measured_version"])
	}
}

func TestTableMetricsOfADamagedTable(t *testing.T) {
	m := makeTable(t)
	m.version(1, fragments(0))
	m.write(2, []byte("no manifest"))
	o := m.observed(nil)
	got := figuresIn(t, o.tr)
	if got["frifs_table_readable"] != 0 || got["frifs_table_latest_version"] != 2 {
		t.Errorf("%v", got)
	}
	if _, ok := got["frifs_table_pending_transitions"]; ok {
		t.Error("what is pending is not known")
	}
	m.write(3, nil)
	o.c.Fail("ReadRange", "_versions/3.manifest", fault.New("test", "", fault.Unavailable, "down"))
	o.clk.advance(time.Minute)
	o.c.Reset()
	for range 5 {
		if got := figuresIn(t, o.tr); got["frifs_table_measured_version"] != 2 {
			t.Errorf("%v", got)
		}
	}
	if empty := figuresIn(t, makeTable(t).observed(nil).tr); len(empty) == 0 {
		t.Error("an empty table has no metrics at all")
	}
}
