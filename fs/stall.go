package fs

import (
	"bytes"
	"runtime"
	"strconv"
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

const (
	stackPause = time.Second // between two looks at all goroutines, which stop the process for a moment
	maxStacks  = 16 << 20    // bytes of stacks that are looked through
)

// stalled counts a stall and reports it with the stack of its worker.
func (r *runner) stalled(op string, where func() string, limit time.Duration, worker uint64) {
	r.stalls.Add(1)
	if r.onStall == nil {
		return
	}
	s := stall{op: op, path: where(), limit: limit, stack: "left out: another was taken less than a second before"}
	now, last := time.Now().UnixNano(), r.dumped.Load()
	if now-last >= int64(stackPause) && r.dumped.CompareAndSwap(last, now) {
		s.stack = stackOf(worker)
	}
	r.onStall(s)
}

// goroutineID is the number of the running goroutine, as stacks show it.
func goroutineID() uint64 {
	var buf [64]byte
	return headID(buf[:runtime.Stack(buf[:], false)])
}

// headID reads the number in "goroutine 17 [running]:"; 0 where it is something else.
func headID(head []byte) uint64 {
	head, ok := bytes.CutPrefix(head, []byte("goroutine "))
	if !ok {
		return 0
	}
	num, _, _ := bytes.Cut(head, []byte(" "))
	id, err := strconv.ParseUint(string(num), 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// stackOf returns the stack of a goroutine.
func stackOf(id uint64) string {
	for size := 64 << 10; size <= maxStacks; size *= 4 {
		buf := make([]byte, size)
		n := runtime.Stack(buf, true)
		for _, g := range bytes.Split(buf[:n], []byte("\n\n")) {
			if headID(g) == id {
				if n < size || !bytes.HasSuffix(buf[:n], g) {
					return string(g)
				}
			}
		}
		if n < size {
			return "none: the work has ended meanwhile"
		}
	}
	return "not found among too many goroutines"
}
