package nodes

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/frifs/frifs/fault"
)

// maxResults bounds how many sizes found by jobs are remembered.
const maxResults = 100_000

// jobs finds sizes that need a pass over rows (C2). Jobs are keyed by content, so that all who ask share one; a bounded
// number runs at a time; who waits gives up after wait (fault.TimedOut) while the job goes on
// (docs/DESIGN.md, "Cost classes").
type jobs struct {
	ctx   context.Context // ends all jobs
	slots chan struct{}
	wait  time.Duration
	now   func() time.Time

	mu   sync.Mutex // protects what follows
	all  map[string]*job
	done uint64
}

type job struct {
	path     string
	since    time.Time
	started  bool
	finished chan struct{} // closed when the fields below are final
	ended    time.Time
	size     int64
	err      error
}

func newJobs(ctx context.Context, workers int, wait time.Duration, now func() time.Time) *jobs {
	return &jobs{ctx: ctx, slots: make(chan struct{}, workers), wait: wait, now: now, all: map[string]*job{}}
}

// treeJobs are the jobs of a mount, as one of its trees sees them: with paths from the root of that tree.
type treeJobs struct {
	*jobs
	path string // of the tree
}

func (js *treeJobs) size(ctx context.Context, key, path string, find func(context.Context) (int64, error)) (int64, error) {
	return js.jobs.size(ctx, key, js.path+path, find)
}

// size returns what find finds, now or earlier, for key. path is for display and messages.
func (js *jobs) size(ctx context.Context, key, path string, find func(context.Context) (int64, error)) (int64, error) {
	j := js.join(key, path, find)
	timer := time.NewTimer(js.wait)
	defer timer.Stop()
	select {
	case <-j.finished:
		return j.size, j.err
	case <-ctx.Done():
		return 0, fault.Wrap("nodes.job", path, ctx.Err())
	case <-timer.C:
		return 0, fault.New("nodes.job", path, fault.TimedOut,
			"the size is not known after %v; the job goes on (see .frifs/status.json), ask again later", js.wait)
	}
}

// known returns the size found for key if there is one.
func (js *jobs) known(key string) (int64, bool) {
	js.mu.Lock()
	j := js.all[key]
	js.mu.Unlock()
	if j == nil {
		return 0, false
	}
	select {
	case <-j.finished:
		return j.size, j.err == nil
	default:
		return 0, false
	}
}

func (js *jobs) join(key, path string, find func(context.Context) (int64, error)) *job {
	js.mu.Lock()
	defer js.mu.Unlock()
	if j := js.all[key]; j != nil {
		select {
		case <-j.finished:
			if j.err == nil || lasting(j.err) || js.now().Sub(j.ended) < failureMemory {
				return j
			}
		default:
			return j
		}
	}
	if len(js.all) >= maxResults {
		js.forget()
	}
	j := &job{path: path, since: js.now(), finished: make(chan struct{})}
	js.all[key] = j
	go js.run(j, find)
	return j
}

// forgetOne drops the result of a finished job.
func (js *jobs) forgetOne(key string) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if j := js.all[key]; j != nil {
		select {
		case <-j.finished:
			delete(js.all, key)
		default:
		}
	}
}

// forget drops all finished jobs. The caller holds js.mu.
func (js *jobs) forget() {
	for k, j := range js.all {
		select {
		case <-j.finished:
			delete(js.all, k)
		default:
		}
	}
}

func (js *jobs) run(j *job, find func(context.Context) (int64, error)) {
	var size int64
	var err error
	select {
	case js.slots <- struct{}{}:
		js.mu.Lock()
		j.started = true
		js.mu.Unlock()
		size, _, err = guarded(js.ctx, func(ctx context.Context) (int64, int64, error) {
			n, err := find(ctx)
			return n, 0, err
		})
		<-js.slots
	case <-js.ctx.Done():
		err = fault.Wrap("nodes.job", j.path, js.ctx.Err())
	}
	js.mu.Lock()
	j.size, j.err, j.ended = size, err, js.now()
	js.done++
	close(j.finished)
	js.mu.Unlock()
}

// JobStatus is one job that is not finished.
type JobStatus struct {
	Path    string
	Since   time.Time
	Running bool // false: waiting for a free slot
}

// pending returns the unfinished jobs, oldest first, and how many have finished.
func (js *jobs) pending() ([]JobStatus, uint64) {
	js.mu.Lock()
	defer js.mu.Unlock()
	var out []JobStatus
	for _, j := range js.all {
		select {
		case <-j.finished:
		default:
			out = append(out, JobStatus{Path: j.path, Since: j.since, Running: j.started})
		}
	}
	sort.Slice(out, func(a, b int) bool {
		if !out[a].Since.Equal(out[b].Since) {
			return out[a].Since.Before(out[b].Since)
		}
		return out[a].Path < out[b].Path
	})
	return out, js.done
}
