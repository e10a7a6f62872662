package nodes

import (
	"context"
	"math"
	"strconv"
)

// frifsDir is .frifs/: how the mount is doing. Its files are live.
func (t *Tree) frifsDir() *dir {
	files := map[string]func(context.Context) ([]byte, error){
		"errors.jsonl": t.errorsJSONL,
		"metrics":      t.metrics,
		"status.json":  t.statusJSON,
	}
	return &dir{
		base:     base{ino: t.inode(".frifs", ".frifs"), path: ".frifs", mtime: t.start},
		volatile: true,
		list: func(ctx context.Context) (*listing, error) {
			out := &listing{}
			for name := range files {
				out.add(name, t.live.name(".frifs/"+name))
			}
			f, err := t.orphansFile(ctx)
			if err != nil {
				return nil, t.failed("list", ".frifs", err)
			}
			out.add(orphansName, f)
			return out, nil
		},
		find: func(ctx context.Context, name string) (Node, error) {
			if name == "refresh" {
				return t.refreshFile(ctx)
			}
			if name == orphansName {
				return t.orphansFile(ctx)
			}
			render, ok := files[name]
			if !ok {
				return nil, notFound(".frifs", name)
			}
			f, err := t.live.file(ctx, ".frifs/"+name, render)
			if err != nil {
				return nil, err
			}
			return f, nil
		},
	}
}

func (t *Tree) errorsJSONL(context.Context) ([]byte, error) {
	recs, _ := t.ring.all()
	var b []byte
	for _, r := range recs {
		b = appendErrorLine(b, r)
	}
	return b, nil
}

// namedCache is one cache of the tree, for display.
type namedCache struct {
	name string
	CacheStats
}

func (t *Tree) caches() []namedCache {
	blocks, records := t.blocks.Stats(), t.records.Stats()
	return []namedCache{
		{"manifests", t.loads.stats()},
		{"histories", t.hists.stats()},
		{"records", CacheStats{Entries: records.Records, Bytes: records.Bytes, Hits: nonNegative(records.Hits), Misses: nonNegative(records.Misses)}},
		{"mappings", t.maps.stats()},
		{"blocks", CacheStats{Entries: blocks.Entries, Bytes: blocks.Used, Limit: blocks.Budget, Misses: nonNegative(blocks.Loads)}},
		{"files", t.files.stats()},
		{"documents", t.docs.stats()},
		{"remapped", t.remaps.stats()},
		{"reserialised", t.made.stats()},
	}
}

func nonNegative(v int64) uint64 { return uint64(max(v, 0)) }

func (t *Tree) gauges() []Gauge {
	_, errs := t.ring.all()
	pending, done := t.jobs.pending()
	gs := []Gauge{
		{"frifs_uptime_seconds", "Seconds since the tree was made.", t.now().Sub(t.start).Seconds()},
		{"frifs_errors_total", "Failures of files that were listed.", float64(errs)},
		{"frifs_jobs_pending", "Background jobs that are not finished.", float64(len(pending))},
		{"frifs_jobs_done_total", "Background jobs that have finished.", float64(done)},
	}
	if b := t.cfg.Budget; b != nil {
		gs = append(gs, Gauge{"frifs_memory_limit_bytes", "Bound on what all caches of the process keep, with requests under way.", float64(b.Limit())},
			Gauge{"frifs_memory_used_bytes", "What they keep.", float64(b.Used())})
	}
	if t.cfg.Gauges != nil {
		gs = append(gs, t.cfg.Gauges()...)
	}
	return gs
}

func formatFloat(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// statusJSON is .frifs/status.json.
func (t *Tree) statusJSON(ctx context.Context) ([]byte, error) {
	now := t.now()
	pending, done := t.jobs.pending()
	_, errs := t.ring.all()
	gauges := t.gauges()
	caches := t.caches()
	looks := t.looks()
	j := newJSONDoc()
	j.Members(func(e *enc) {
		e.K("uri").Str(t.cfg.URI)
		e.K("release").OptStr(t.cfg.Release)
		e.K("started_at").Time(t.start)
		e.K("now").Time(now)
		e.K("uptime_seconds").Int(int64(now.Sub(t.start).Seconds()))
		e.K("versions_listed_at").Time(looks.seen)
		e.K("versions_age_seconds").Int(int64(now.Sub(looks.seen).Seconds()))
		e.looks(looks, t.cfg.PollInterval, now)
		e.K("pinned_version").OptUint(t.pin)
		e.K("op_timeout").Str(t.cfg.OpTimeout.String())
		e.K("errors_total").Uint(errs)
		e.K("jobs_done").Uint(done)
		e.memory(t.cfg.Budget)
	})
	j.ArrayOf("jobs", len(pending), func(e *enc, i int) {
		e.Obj(func() {
			e.K("path").Str(pending[i].Path)
			e.K("since").Time(pending[i].Since)
			e.K("running").Bool(pending[i].Running)
		})
	})
	j.ArrayOf("caches", len(caches), func(e *enc, i int) {
		c := caches[i]
		e.Obj(func() {
			e.K("name").Str(c.name)
			e.K("entries").Int(int64(c.Entries))
			e.K("bytes").Int(c.Bytes)
			e.K("limit_bytes")
			if c.Limit == 0 {
				e.Null()
			} else {
				e.Int(c.Limit)
			}
			e.K("hits").Uint(c.Hits)
			e.K("misses").Uint(c.Misses)
		})
	})
	j.ArrayOf("counters", len(gauges), func(e *enc, i int) {
		e.Obj(func() {
			e.K("name").Str(gauges[i].Name)
			e.K("help").Str(gauges[i].Help)
			e.K("value")
			e.b = append(e.b, formatFloat(gauges[i].Value)...)
		})
	})
	return jsonBytes(ctx, j.Done())
}
