package fs

import (
	"bufio"
	"bytes"
	"context"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// stall is a request whose work did not notice that its time was over. The request has been answered with
// fault.TimedOut; the work goes on until it returns by itself.
type stall struct {
	op    string
	path  string
	limit time.Duration
	stack string // of the goroutine that does the work
}

// stackPause is the time between two looks at all goroutines, which stop the process for a moment.
const stackPause = time.Second

// stalled counts a stall and reports it with the stack of its worker.
func (r *runner) stalled(op string, where func() string, limit time.Duration, worker *mark) {
	r.stalls.Add(1)
	if r.onStall == nil {
		return
	}
	s := stall{op: op, path: where(), limit: limit, stack: "left out: another was taken less than a second before"}
	now, last := time.Now().UnixNano(), r.dumped.Load()
	if now-last >= int64(stackPause) && r.dumped.CompareAndSwap(last, now) {
		s.stack = worker.stack()
	}
	r.onStall(s)
}

// markLabel is the profiler's label that tells workers apart.
const markLabel = "frifs-worker"

// mark tells one worker at a time from all other goroutines, so that its stack can be found when it is wanted. Setting it
// costs next to nothing: workers come by the thousand, and hardly one of them stalls.
type mark struct {
	value  string
	labels context.Context
}

// marks are the marks that no worker has.
type marks struct {
	free sync.Pool
	last atomic.Int64
}

func (m *marks) get() *mark {
	if k, ok := m.free.Get().(*mark); ok {
		return k
	}
	k := &mark{value: strconv.FormatInt(m.last.Add(1), 10)}
	k.labels = pprof.WithLabels(context.Background(), pprof.Labels(markLabel, k.value))
	return k
}

// put takes the mark of a worker that is at its end. Goroutines that it has started keep the label.
func (m *marks) put(k *mark) { m.free.Put(k) }

// run is the first function of each worker.
func (k *mark) run(work func()) {
	pprof.SetGoroutineLabels(k.labels)
	work()
}

// stack returns the stack of the worker, the innermost function first.
func (k *mark) stack() string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return "not found: " + err.Error()
	}
	return stackOf(&all, k.value)
}

// stackOf finds the worker with a mark in a profile of goroutines, as package pprof writes it in text: for each stack a
// line of numbers, then "# labels: {...}" where there are any, then "#", address, function and place of each call. It
// gives the calls in the form of other stacks.
func stackOf(profile *bytes.Buffer, mark string) string {
	const first = ".(*mark).run+"
	want := "# labels: {" + strconv.Quote(markLabel) + ":" + strconv.Quote(mark)
	var calls []string
	marked, worker := false, false
	lines := bufio.NewScanner(profile)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, want+"}"), strings.HasPrefix(line, want+","):
			marked = true
		case strings.HasPrefix(line, "#\t") && marked:
			fields := strings.Split(line, "\t")
			if len(fields) < 4 {
				continue
			}
			function := strings.TrimRight(fields[2], " ")
			calls = append(calls, function+"\n\t"+strings.TrimSpace(strings.Join(fields[3:], " ")))
			worker = worker || strings.Contains(function, first)
		case !strings.HasPrefix(line, "#"):
			if worker {
				return workerStack(mark, calls)
			}
			calls, marked = nil, false
		}
	}
	if worker {
		return workerStack(mark, calls)
	}
	return "none: the work has ended meanwhile"
}

func workerStack(mark string, calls []string) string {
	return "goroutine of worker " + mark + ":\n" + strings.Join(calls, "\n")
}
