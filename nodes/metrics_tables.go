package nodes

import (
	"container/list"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// maxMeasured is how many tables of a database have figures of their own: those that were looked into last. It bounds
// the series, and what is read for them.
const maxMeasured = 64

// tablesInUse are the tables of a database that somebody has looked into, for metrics: no table is opened for figures.
type tablesInUse struct {
	mu    sync.Mutex // protects what follows
	order *list.List // of *tableInUse, the last one used first
	index map[string]*list.Element
}

type tableInUse struct {
	name string // in the tree
	tree *Tree
}

// use notes that somebody looked into a table.
func (u *tablesInUse) use(name string, t *Tree) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.index == nil {
		u.order, u.index = list.New(), map[string]*list.Element{}
	}
	if e, ok := u.index[name]; ok {
		e.Value.(*tableInUse).tree = t
		u.order.MoveToFront(e)
		return
	}
	u.index[name] = u.order.PushFront(&tableInUse{name, t})
	if u.order.Len() > maxMeasured {
		last := u.order.Back()
		u.order.Remove(last)
		delete(u.index, last.Value.(*tableInUse).name)
	}
}

// tables are those that are still in the database, by name.
func (u *tablesInUse) tables(known *tableNames) []tableInUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	var out []tableInUse
	for name, e := range u.index {
		if known == nil {
			continue
		}
		if _, ok := known.byName[name]; ok {
			out = append(out, *e.Value.(*tableInUse))
		}
	}
	slices.SortFunc(out, func(a, b tableInUse) int { return strings.Compare(a.name, b.name) })
	return out
}

// measureTables has the tables in use measured, and goes on looking for new versions of them.
func (t *Tree) measureTables(ctx context.Context) {
	var all []<-chan struct{}
	for _, u := range t.inUse.tables(t.tables.known()) {
		u.tree.versions.keep()
		if running := u.tree.figures.begin(u.tree); running != nil {
			all = append(all, running)
		}
	}
	awaitAll(ctx, all)
}

// collectTables gives the figures of a database: how many tables there are, and those of the tables in use.
func (t *Tree) collectTables(out chan<- prometheus.Metric) {
	known := t.tables.known()
	if known == nil {
		return
	}
	label, now := []string{"table"}, t.now()
	tables := t.inUse.tables(known)
	say := func(name, help string, v float64) {
		out <- metric(prometheus.NewDesc(name, help, nil, nil), prometheus.GaugeValue, v)
	}
	say("frifs_tables", "Tables of the database.", float64(len(known.Tables)))
	say("frifs_tables_measured", "Tables that have figures here: those that were looked into last, up to a limit.", float64(len(tables)))
	for _, u := range tables {
		name := []string{u.name}
		u.tree.collectVersions(out, label, name)
		u.tree.figures.known().collect(now, out, label, name)
		a := u.tree.versions.ages()
		out <- metric(tableDesc("probe_success_age_seconds", "Seconds since the last look for new versions of the table that succeeded.", label...),
			prometheus.GaugeValue, max(0, now.Sub(a.seen).Seconds()), name...)
	}
}
