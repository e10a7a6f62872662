package fs

import (
	"context"
	"runtime/pprof"
	"strconv"
	"sync"
)

// maxIdle bounds the workers that wait for work.
const maxIdle = 32

// workerLabel is the profiler's label that tells workers apart, so that the stack of one can be found when it is wanted.
const workerLabel = "frifs-worker"

// worker is a goroutine that does the work of one request after another: its stack has grown to what requests need, and
// its label is set once.
type worker struct {
	mark string      // value of its label
	jobs chan func() // room for one; closed where no other will come
	last bool        // set by its own goroutine: the job at hand is the last one
}

// workers are those of one mount. The zero value is ready.
type workers struct {
	begin sync.Once

	mu    sync.Mutex // protects what follows; held for moments only
	idle  []*worker  // the one that finished last is last, and is taken first
	made  int
	ended bool
}

// start has a worker do job, and returns it. Workers wait for more until ctx ends, which is the same for all calls. The
// job calls finish when it is done, and nothing that may wait or panic after it.
func (ws *workers) start(ctx context.Context, job func(*worker)) *worker {
	ws.begin.Do(func() { context.AfterFunc(ctx, ws.end) })
	var w *worker
	ws.mu.Lock()
	if n := len(ws.idle); n > 0 {
		w, ws.idle = ws.idle[n-1], ws.idle[:n-1]
		ws.mu.Unlock()
	} else {
		ws.made++
		w = &worker{mark: strconv.Itoa(ws.made), jobs: make(chan func(), 1)}
		ws.mu.Unlock()
		go w.run()
	}
	w.jobs <- func() { job(w) }
	return w
}

// finish notes that w, which calls it, may be given another job.
func (ws *workers) finish(w *worker) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.ended || len(ws.idle) >= maxIdle {
		w.last = true
		return
	}
	ws.idle = append(ws.idle, w)
}

// end has those that wait return. Those at work return when they have finished.
func (ws *workers) end() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.ended = true
	for _, w := range ws.idle {
		close(w.jobs)
	}
	ws.idle = nil
}

// run is the first function of a worker.
func (w *worker) run() {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(workerLabel, w.mark)))
	for job := range w.jobs {
		if job(); w.last {
			return
		}
	}
}
