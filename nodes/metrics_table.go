package nodes

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/frifs/frifs/internal/dataset"
	"github.com/frifs/frifs/translate"
)

const (
	// figuresWait is how long who asks for figures waits for those of new versions. After that the figures of the
	// versions before are given, and say so.
	figuresWait = 500 * time.Millisecond
	// figuresAtOnce is how many tables are measured at a time.
	figuresAtOnce = 4
	// retryFigures is after what time a version is measured again of which not all could be found out.
	retryFigures = 30 * time.Second
	// maxIndexSeries bounds the indices of one table that have figures of their own.
	maxIndexSeries = 64
)

// figures are what alerts want to know of a table, by its newest version (docs/DESIGN.md, "Tree", fri/status.json).
type figures struct {
	ref       dataset.VersionRef
	err       error // why there is nothing more
	broken    bool  // the history cannot be used: nothing is known of what is pending
	pending   int   // as status.json counts
	oldest    time.Time
	dated     bool // oldest is known, or nothing is pending
	unindexed map[string]uint64
	since     map[string]*since // when pending records came, by record
	partial   bool              // dating ended early: worth another try
}

// figuresOf works out the figures of a version. before tells when records came that are known already.
func (n version) figuresOf(ctx context.Context, before map[string]*since) (*figures, error) {
	f := &figures{ref: n.v.refs[n.i], unindexed: map[string]uint64{}, since: map[string]*since{}}
	l, h, err := n.loadHistory(ctx)
	if lasting(err) {
		f.err = err
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	for _, li := range l.logical {
		if systemEntry(li.segments[0].ix) {
			continue
		}
		if rows := factsOf(l, h, li).rows; rows != nil {
			name := li.dir
			if len(f.unindexed) >= maxIndexSeries {
				name = ""
			}
			f.unindexed[name] += *rows
		}
	}
	if f.broken = h.h.Broken != nil; f.broken {
		return f, nil
	}
	needs := translate.NeededBy(h.h, l.liveSet(), l.segments(true))
	ages := make([]*since, len(h.h.Transitions))
	d := newDater(n)
	for i, t := range h.h.Transitions {
		if needs[i].Trimmable() {
			continue
		}
		key := recordKey(t)
		if ages[i] = before[key]; ages[i] == nil && !f.partial {
			// What cannot be read of older versions leaves the other figures as they are.
			ages[i], err = d.find(ctx, t)
			f.partial = err != nil || ages[i] == nil
		}
		if ages[i] != nil {
			f.since[key] = ages[i]
		}
	}
	var oldest int
	f.pending, oldest = pendingOf(h.h, needs, ages)
	if f.dated = oldest < 0; !f.dated && ages[oldest] != nil {
		f.oldest, f.dated = ages[oldest].time, !ages[oldest].time.IsZero()
	}
	return f, nil
}

// tableFigures keeps the figures of the newest version that was looked at. The store is asked in the background: who
// asks for figures never waits for long.
type tableFigures struct {
	mu      sync.Mutex // protects what follows
	key     string     // of the version that last is about
	last    *figures   // nil = none yet
	running chan struct{}
	tried   string    // version that could not be looked at as a whole
	again   time.Time // when it may be tried again
}

// begin has the newest version measured, unless it is known or was tried a moment ago. It returns what is closed when
// that is done, nil where there is nothing to wait for.
func (c *tableFigures) begin(t *Tree) <-chan struct{} {
	v := t.versions.known()
	if v == nil || v.hi == v.lo {
		return nil
	}
	n := version{t: t, v: v, i: v.hi - 1}
	key := n.key()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.key == key || c.tried == key && t.now().Before(c.again) {
		return nil
	}
	if c.running == nil {
		c.running = make(chan struct{})
		go c.work(n, key, c.before(v))
	}
	return c.running
}

// before is when records came, as the figures before know. A table that was made anew has other records, even if they
// look alike.
func (c *tableFigures) before(v *view) map[string]*since {
	if c.last == nil {
		return nil
	}
	i, ok := v.find(c.last.ref.Version)
	if ok && !sameRef(v.refs[i], c.last.ref) || *v.latest() < c.last.ref.Version {
		return nil
	}
	return c.last.since
}

// known are the newest figures there are.
func (c *tableFigures) known() *figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

func (c *tableFigures) work(n version, key string, before map[string]*since) {
	n.t.measuring <- struct{}{}
	defer func() { <-n.t.measuring }()
	ctx, cancel := context.WithTimeout(context.Background(), n.t.cfg.OpTimeout/2)
	defer cancel()
	f, _, err := guarded(ctx, func(ctx context.Context) (*figures, int64, error) {
		f, err := n.figuresOf(ctx, before)
		return f, 0, err
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.tried, c.again = key, n.t.now().Add(failureMemory)
	case f.partial:
		c.last, c.tried, c.again = f, key, n.t.now().Add(retryFigures)
	default:
		c.key, c.last = key, f
	}
	close(c.running)
	c.running = nil
}

// awaitAll waits until all are closed, figuresWait at most.
func awaitAll(ctx context.Context, all []<-chan struct{}) {
	timer := time.NewTimer(figuresWait)
	defer timer.Stop()
	for _, done := range all {
		select {
		case <-done:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// tableDesc describes one figure of a table; those of a database have the name of the table as a label.
func tableDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("frifs_table_"+name, help, labels, nil)
}

// collect gives the figures as metrics, with the labels of the table: none, or its name. What is not known is left out.
func (f *figures) collect(now time.Time, out chan<- prometheus.Metric, names, values []string) {
	gauge := func(name, help string, v float64) {
		out <- metric(tableDesc(name, help, names...), prometheus.GaugeValue, v, values...)
	}
	if f == nil {
		return
	}
	gauge("measured_version", "Version that the other figures of the table are about; older than the latest while that is being looked at.", float64(f.ref.Version))
	gauge("readable", "1 if manifest and history of that version could be read, else 0.", oneIf(f.err == nil && !f.broken))
	if f.err != nil {
		return
	}
	unindexed := tableDesc("unindexed_rows", "Rows of fragments that no segment of the index covers; an empty name stands for all further indices.", append(slices.Clip(names), "index")...)
	for name, rows := range f.unindexed {
		out <- metric(unindexed, prometheus.GaugeValue, float64(rows), append(slices.Clip(values), name)...)
	}
	if f.broken {
		return
	}
	gauge("pending_transitions", "Recorded rewrites that an index still needs, as fri/status.json counts them.", float64(f.pending))
	due := f.pending >= dueTransitions
	if f.dated {
		age := time.Duration(0)
		if !f.oldest.IsZero() {
			age = max(0, now.Sub(f.oldest))
		}
		gauge("oldest_pending_seconds", "Age of the oldest pending rewrite at least; 0 where none is pending.", age.Seconds())
		due = due || age >= dueAge
	}
	gauge("compaction_due", "1 if the pending rewrites have reached the count or the age at which they are to be caught up with.", oneIf(due))
}

// collectVersions gives what is known of a table's versions.
func (t *Tree) collectVersions(out chan<- prometheus.Metric, names, values []string) {
	v := t.versions.known()
	if v == nil {
		return
	}
	if latest := v.latest(); latest != nil {
		out <- metric(tableDesc("latest_version", "Version that latest leads to.", names...), prometheus.GaugeValue, float64(*latest), values...)
	}
	out <- metric(tableDesc("versions", "Versions that are shown.", names...), prometheus.GaugeValue, float64(v.hi-v.lo), values...)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// collectLooks gives how the looks for new versions, or tables, are going.
func (t *Tree) collectLooks(out chan<- prometheus.Metric) {
	a, now := t.looks(), t.now()
	if a.looks == 0 {
		return
	}
	say := func(kind prometheus.ValueType, name, help string, v float64) {
		out <- metric(prometheus.NewDesc(name, help, nil, nil), kind, v)
	}
	say(prometheus.CounterValue, "frifs_probes_total", "Looks for new versions.", float64(a.looks))
	say(prometheus.CounterValue, "frifs_probes_failed_total", "Looks for new versions that failed.", float64(a.failed))
	say(prometheus.GaugeValue, "frifs_probes_failed_in_a_row", "Looks for new versions that failed since one succeeded; what is shown is as old as that one.", float64(a.failures))
	say(prometheus.CounterValue, "frifs_probe_changes_total", "Looks that found something new.", float64(a.changes))
	say(prometheus.GaugeValue, "frifs_probe_age_seconds", "Seconds since the last look.", max(0, now.Sub(a.began).Seconds()))
	say(prometheus.GaugeValue, "frifs_probe_success_age_seconds", "Seconds since the last look that succeeded.", max(0, now.Sub(a.seen).Seconds()))
}
