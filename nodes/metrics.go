package nodes

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/frifs/frifs/fault"
)

// cacheMetrics are the figures that every cache has, labelled by its name.
var cacheMetrics = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(CacheStats) float64
}{
	{cacheDesc("bytes", "Estimated bytes held."), prometheus.GaugeValue, func(s CacheStats) float64 { return float64(s.Bytes) }},
	{cacheDesc("entries", "Entries held."), prometheus.GaugeValue, func(s CacheStats) float64 { return float64(s.Entries) }},
	{cacheDesc("hits_total", "Answers from the cache."), prometheus.CounterValue, func(s CacheStats) float64 { return float64(s.Hits) }},
	{cacheDesc("misses_total", "Loads."), prometheus.CounterValue, func(s CacheStats) float64 { return float64(s.Misses) }},
}

func cacheDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("frifs_cache_"+name, help, []string{"cache"}, nil)
}

// collector gives the figures of a tree to Prometheus. It describes nothing beforehand: which figures there are is up
// to Config.Gauges too.
type collector struct{ t *Tree }

// Describe implements prometheus.Collector; sending nothing makes the collector an unchecked one.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	for _, g := range c.t.gauges() {
		kind := prometheus.GaugeValue
		if strings.HasSuffix(g.Name, "_total") {
			kind = prometheus.CounterValue
		}
		out <- metric(prometheus.NewDesc(g.Name, g.Help, nil, nil), kind, g.Value)
	}
	c.t.collectLooks(out)
	if c.t.db == nil {
		c.t.collectVersions(out, nil, nil)
		c.t.figures.known().collect(c.t.now(), out, nil, nil)
	} else {
		c.t.collectTables(out)
	}
	for _, m := range cacheMetrics {
		for _, s := range c.t.caches() {
			out <- metric(m.desc, m.kind, m.value(s.CacheStats), s.name)
		}
	}
}

// metric makes a metric; one that Prometheus refuses (a name that is none) becomes the error of the gathering.
func metric(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) prometheus.Metric {
	m, err := prometheus.NewConstMetric(d, kind, v, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(d, err)
	}
	return m
}

// metrics is .frifs/metrics in the Prometheus text format. It needs nothing from the store: what is not known yet is
// looked for in the background, and is in a later answer. A figure that cannot be given costs no other.
func (t *Tree) metrics(ctx context.Context) ([]byte, error) {
	const op = "nodes.Metrics"
	if t.db == nil {
		if running := t.figures.begin(t); running != nil {
			awaitAll(ctx, []<-chan struct{}{running})
		}
	} else {
		t.measureTables(ctx)
	}
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(collector{t}); err != nil {
		return nil, fault.New(op, ".frifs/metrics", fault.Unknown, "%w", err)
	}
	families, gathered := r.Gather()
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			gathered = errors.Join(gathered, err)
		}
	}
	if gathered != nil {
		_ = t.failed("render", ".frifs/metrics", fault.New(op, "", fault.Unknown, "some figures are left out: %w", gathered))
	}
	return b.Bytes(), nil
}
