package fs

import (
	"bytes"
	"context"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"
)

const goroutines = `goroutine profile: total 4
2 @ 0x442931 0x47cd1d
#	0x480b24	time.Sleep+0x164	/go/src/runtime/time.go:363

1 @ 0x442931 0x47cd1d
# labels: {"frifs-worker":"7"}
#	0x480b24	time.Sleep+0x164			/go/src/runtime/time.go:363
#	0x4dbedc	example.helperOfWorker7+0x1c	/src/helper.go:4

1 @ 0x442931 0x47cd1d
# labels: {"frifs-worker":"7", "zone":"x"}
#	0x480b24	syscall.Syscall6+0x164			/go/src/syscall/asm.s:1
#	0x480b24	example.read+0x4			/src/read.go:2
#	0x4dbedc	github.com/frifs/frifs/fs.(*worker).run+0x1c	/src/stall.go:4

1 @ 0x442931 0x47cd1d
# labels: {"frifs-worker":"77"}
#	0x480b24	example.write+0x4			/src/write.go:2
#	0x4dbedc	github.com/frifs/frifs/fs.(*worker).run+0x1c	/src/stall.go:4
`

func TestStackOfAWorker(t *testing.T) {
	for mark, want := range map[string]string{
		"7":  "goroutine of worker 7:\nsyscall.Syscall6+0x164\n\t/go/src/syscall/asm.s:1\nexample.read+0x4\n\t/src/read.go:2\ngithub.com/frifs/frifs/fs.(*worker).run+0x1c\n\t/src/stall.go:4",
		"77": "goroutine of worker 77:\nexample.write+0x4\n\t/src/write.go:2\ngithub.com/frifs/frifs/fs.(*worker).run+0x1c\n\t/src/stall.go:4",
		"1":  "none: the work has ended meanwhile",
	} {
		if got := stackOf(bytes.NewBufferString(goroutines), mark); got != want {
			t.Errorf("worker %s:\n%s\nwant\n%s", mark, got, want)
		}
	}
}

// TestWorkersDoOneJobAtATime finds the stacks of workers that wait at different places, while others come and go, and has
// all of them return at the end.
func TestWorkersDoOneJobAtATime(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var ws workers
	end := make(chan struct{})
	started := make(chan struct{}, 2)
	var left sync.WaitGroup
	start := func(job func()) *worker {
		left.Add(1)
		return ws.start(ctx, func(w *worker) { job(); ws.finish(w); left.Done() })
	}
	a := start(func() { waitHere(started, end) })
	b := start(func() { waitThere(started, end) })
	<-started
	<-started
	for range 100 {
		if w := start(func() {}); w == a || w == b {
			t.Fatal("a worker was given another job meanwhile")
		}
	}
	for w, want := range map[*worker]string{a: "fs.waitHere", b: "fs.waitThere"} {
		if got := w.stack(); !strings.Contains(got, want) || strings.Count(got, "fs.wait") != 1 {
			t.Errorf("want the stack with %s:\n%s", want, got)
		}
	}
	close(end)
	left.Wait()
	for range 10 * maxIdle {
		start(func() { runtime.Gosched() })
	}
	left.Wait()
	ws.mu.Lock()
	if n := len(ws.idle); n == 0 || n > maxIdle {
		t.Errorf("%d workers wait, want some and at most %d", n, maxIdle)
	}
	ws.mu.Unlock()
	cancel()
	deadline := time.Now().Add(30 * time.Second)
	for running := true; running; {
		var all bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
			t.Fatal(err)
		}
		if running = strings.Contains(all.String(), ".(*worker).run+"); running && time.Now().After(deadline) {
			t.Fatalf("workers remain:\n%s", &all)
		}
	}
}

//go:noinline
func waitHere(started chan<- struct{}, end <-chan struct{}) { started <- struct{}{}; <-end }

//go:noinline
func waitThere(started chan<- struct{}, end <-chan struct{}) { started <- struct{}{}; <-end }
