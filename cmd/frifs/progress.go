package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progress is a bar on stderr for work of many steps. It shows only on a terminal, and only once the work has taken a
// second; done removes it.
type progress struct {
	out   io.Writer // nil: no bar
	what  string
	total int
	at    int
	next  time.Time // of the next redraw
	drawn bool
}

const (
	progressDelay = time.Second
	progressPause = 100 * time.Millisecond
	progressWidth = 30
)

func newProgress(stderr io.Writer, what string, total int) *progress {
	p := &progress{what: what, total: total, next: time.Now().Add(progressDelay)}
	if isTerminal(stderr) {
		p.out = stderr
	}
	return p
}

// step notes that one more step is done.
func (p *progress) step() { p.add(1) }

// add notes n more steps. Without a total only their number is shown.
func (p *progress) add(n int) {
	p.at += n
	if p.out == nil || time.Now().Before(p.next) {
		return
	}
	p.next = time.Now().Add(progressPause)
	p.drawn = true
	if p.total <= 0 {
		fmt.Fprintf(p.out, "\r%s: %d", p.what, p.at)
		return
	}
	full := progressWidth * p.at / p.total
	fmt.Fprintf(p.out, "\r%s [%s%s] %d/%d", p.what, strings.Repeat("#", full), strings.Repeat(" ", progressWidth-full), p.at, p.total)
}

func (p *progress) done() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0 && fi.Mode()&os.ModeDevice != 0 && f.Name() != os.DevNull
}
