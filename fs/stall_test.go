package fs

import (
	"bytes"
	"strings"
	"testing"
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
#	0x4dbedc	github.com/frifs/frifs/fs.(*mark).run+0x1c	/src/stall.go:4

1 @ 0x442931 0x47cd1d
# labels: {"frifs-worker":"77"}
#	0x480b24	example.write+0x4			/src/write.go:2
#	0x4dbedc	github.com/frifs/frifs/fs.(*mark).run+0x1c	/src/stall.go:4
`

func TestStackOfAWorker(t *testing.T) {
	for mark, want := range map[string]string{
		"7":  "goroutine of worker 7:\nsyscall.Syscall6+0x164\n\t/go/src/syscall/asm.s:1\nexample.read+0x4\n\t/src/read.go:2\ngithub.com/frifs/frifs/fs.(*mark).run+0x1c\n\t/src/stall.go:4",
		"77": "goroutine of worker 77:\nexample.write+0x4\n\t/src/write.go:2\ngithub.com/frifs/frifs/fs.(*mark).run+0x1c\n\t/src/stall.go:4",
		"1":  "none: the work has ended meanwhile",
	} {
		if got := stackOf(bytes.NewBufferString(goroutines), mark); got != want {
			t.Errorf("worker %s:\n%s\nwant\n%s", mark, got, want)
		}
	}
}

// TestEachWorkerHasItsMark finds the stacks of workers that wait at different places, while others come and go.
func TestEachWorkerHasItsMark(t *testing.T) {
	var m marks
	end := make(chan struct{})
	a, b := m.get(), m.get()
	started := make(chan struct{}, 2)
	go a.run(func() { waitHere(started, end) })
	go b.run(func() { waitThere(started, end) })
	<-started
	<-started
	defer close(end)
	for range 100 {
		k := m.get()
		if k == a || k == b {
			t.Fatal("a mark was given to two workers")
		}
		done := make(chan struct{})
		go k.run(func() { close(done) })
		<-done
		m.put(k)
	}
	for k, want := range map[*mark]string{a: "fs.waitHere", b: "fs.waitThere"} {
		if got := k.stack(); !strings.Contains(got, want) || strings.Count(got, "fs.wait") != 1 {
			t.Errorf("want the stack with %s:\n%s", want, got)
		}
	}
}

//go:noinline
func waitHere(started chan<- struct{}, end <-chan struct{}) { started <- struct{}{}; <-end }

//go:noinline
func waitThere(started chan<- struct{}, end <-chan struct{}) { started <- struct{}{}; <-end }
