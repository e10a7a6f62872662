package fs

import (
	"bufio"
	"bytes"
	"runtime/pprof"
	"strconv"
	"strings"
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
func (r *runner) stalled(op string, where func() string, limit time.Duration, w *worker) {
	r.stalls.Add(1)
	if r.onStall == nil {
		return
	}
	s := stall{op: op, path: where(), limit: limit, stack: "left out: another was taken less than a second before"}
	now, last := time.Now().UnixNano(), r.dumped.Load()
	if now-last >= int64(stackPause) && r.dumped.CompareAndSwap(last, now) {
		s.stack = w.stack()
	}
	r.onStall(s)
}

// stack returns the stack of the worker, the innermost function first.
func (w *worker) stack() string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return "not found: " + err.Error()
	}
	return stackOf(&all, w.mark)
}

// stackOf finds the worker with a mark in a profile of goroutines, as package pprof writes it in text: for each stack a
// line of numbers, then "# labels: {...}" where there are any, then "#", address, function and place of each call. It
// gives the calls in the form of other stacks.
func stackOf(profile *bytes.Buffer, mark string) string {
	const first = ".(*worker).run+"
	want := "# labels: {" + strconv.Quote(workerLabel) + ":" + strconv.Quote(mark)
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
