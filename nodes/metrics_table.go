package nodes

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/frifs/frifs/translate"
)

// figuresWait is how long who asks for figures waits for those of a new version. After that the figures of the version
// before are given, and say so.
const figuresWait = 500 * time.Millisecond

// figures are what alerts want to know of a table, by its newest version (docs/DESIGN.md, "Tree", fri/status.json).
type figures struct {
	version   uint64
	err       error // why there is nothing more
	broken    bool  // the history cannot be used: nothing is known of what is pending
	pending   int   // as status.json counts
	oldest    time.Time
	dated     bool // oldest is known, or nothing is pending
	unindexed map[string]uint64
	since     map[string]*since // when records came, by record
}

// figuresOf works out the figures of a version. before tells when records came that are known already.
func (n version) figuresOf(ctx context.Context, before map[string]*since) (*figures, error) {
	f := &figures{version: n.number(), unindexed: map[string]uint64{}, since: map[string]*since{}}
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
			f.unindexed[li.dir] = *rows
		}
	}
	if f.broken = h.h.Broken != nil; f.broken {
		return f, nil
	}
	ages := make([]*since, len(h.h.Transitions))
	d := newDater(n)
	for i, t := range h.h.Transitions {
		key := recordKey(t)
		if ages[i] = before[key]; ages[i] == nil {
			if ages[i], err = d.find(ctx, t); err != nil {
				return nil, err
			}
		}
		if ages[i] != nil {
			f.since[key] = ages[i]
		}
	}
	var oldest int
	f.pending, oldest = pendingOf(h.h, translate.NeededBy(h.h, l.liveSet(), l.segments(true)), ages)
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
	tried   string    // version that could not be looked at
	failed  time.Time // when
}

// get returns the newest figures there are.
func (c *tableFigures) get(ctx context.Context, t *Tree) *figures {
	v := t.versions.known()
	if v == nil || v.hi == v.lo {
		return nil
	}
	n := version{t: t, v: v, i: v.hi - 1}
	key := n.chainKey()
	c.mu.Lock()
	last := c.last
	if c.key == key || c.tried == key && t.now().Sub(c.failed) < failureMemory {
		c.mu.Unlock()
		return last
	}
	if c.running == nil {
		c.running = make(chan struct{})
		go c.work(context.WithoutCancel(ctx), n, key, last)
	}
	running := c.running
	c.mu.Unlock()
	timer := time.NewTimer(figuresWait)
	defer timer.Stop()
	select {
	case <-running:
	case <-timer.C:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

func (c *tableFigures) work(ctx context.Context, n version, key string, last *figures) {
	ctx, cancel := context.WithTimeout(ctx, n.t.cfg.OpTimeout/2)
	defer cancel()
	f, _, err := guarded(ctx, func(ctx context.Context) (*figures, int64, error) {
		var before map[string]*since
		if last != nil {
			before = last.since
		}
		f, err := n.figuresOf(ctx, before)
		return f, 0, err
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.key, c.last = key, f
	} else {
		c.tried, c.failed = key, n.t.now()
	}
	close(c.running)
	c.running = nil
}

// collect gives the figures as metrics. What is not known is left out.
func (f *figures) collect(now time.Time, out chan<- prometheus.Metric) {
	gauge := func(name, help string, v float64) {
		out <- metric(prometheus.NewDesc("frifs_table_"+name, help, nil, nil), prometheus.GaugeValue, v)
	}
	if f == nil {
		return
	}
	gauge("measured_version", "Version that the other figures of the table are about; older than the latest while that is being looked at.", float64(f.version))
	gauge("readable", "1 if manifest and history of that version could be read, else 0.", oneIf(f.err == nil && !f.broken))
	if f.err != nil {
		return
	}
	unindexed := prometheus.NewDesc("frifs_table_unindexed_rows", "Rows of fragments that no segment of the index covers.", []string{"index"}, nil)
	for name, rows := range f.unindexed {
		out <- metric(unindexed, prometheus.GaugeValue, float64(rows), name)
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

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// collectLooks gives how the looks for new versions are going.
func (t *Tree) collectLooks(out chan<- prometheus.Metric) {
	v := t.versions.known()
	if v == nil {
		return
	}
	a, now := t.looks(), t.now()
	say := func(kind prometheus.ValueType, name, help string, v float64) {
		out <- metric(prometheus.NewDesc(name, help, nil, nil), kind, v)
	}
	if latest := v.latest(); latest != nil {
		say(prometheus.GaugeValue, "frifs_table_latest_version", "Version that latest leads to.", float64(*latest))
	}
	if t.db == nil {
		say(prometheus.GaugeValue, "frifs_table_versions", "Versions that are shown.", float64(v.hi-v.lo))
	}
	say(prometheus.CounterValue, "frifs_probes_total", "Looks for new versions.", float64(a.looks))
	say(prometheus.CounterValue, "frifs_probes_failed_total", "Looks for new versions that failed.", float64(a.failed))
	say(prometheus.CounterValue, "frifs_probe_changes_total", "Looks that found something new.", float64(a.changes))
	say(prometheus.GaugeValue, "frifs_probe_age_seconds", "Seconds since the last look.", max(0, now.Sub(a.began).Seconds()))
	say(prometheus.GaugeValue, "frifs_probe_success_age_seconds", "Seconds since the last look that succeeded.", max(0, now.Sub(a.seen).Seconds()))
}
