package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// How a file came to be where it is.
const (
	doneCopied = iota
	doneShared // its blocks are shared with the dataset's file
	doneLinked // a hard link of the dataset's file
	doneBefore // by an earlier run
	doneWays
)

// exportReport counts what was done, shows it on a terminal, and names what failed. It is safe for concurrent use.
type exportReport struct {
	out   io.Writer
	start time.Time
	bar   *progressbar.ProgressBar // nil: no terminal

	mu     sync.Mutex
	files  [doneWays]int
	bytes  int64 // of files that are done
	moved  int64 // bytes written by this run
	links  int
	errs   int
	known  int64 // bytes that are known to be needed
	noted  map[string]bool
	closed bool
}

const exportBarPause = 100 * time.Millisecond

func (r *exportReport) begin(stderr io.Writer) {
	r.out, r.start, r.noted = stderr, time.Now(), map[string]bool{}
	if isTerminal(stderr) {
		r.bar = progressbar.NewOptions64(1, progressbar.OptionSetWriter(stderr), progressbar.OptionSetDescription("exporting"),
			progressbar.OptionShowBytes(true), progressbar.OptionUseIECUnits(true), progressbar.OptionShowTotalBytes(true),
			progressbar.OptionSetWidth(progressWidth), progressbar.OptionThrottle(exportBarPause), progressbar.OptionClearOnFinish())
	}
}

// expect adds bytes that are now known to be needed.
func (r *exportReport) expect(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known += n
	if r.bar != nil {
		r.bar.ChangeMax64(r.known + 1) // never full before the end
	}
}

// progress adds bytes that are where they belong; written says whether by this run.
func (r *exportReport) progress(n int64, written bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if written {
		r.moved += n
	}
	if r.bar != nil {
		_ = r.bar.Add64(n) // a bar that cannot be drawn is no reason to stop
	}
}

func (r *exportReport) file(way int, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[way]++
	r.bytes += size
}

func (r *exportReport) linked() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.links++
}

// fail names something of the tree that could not be exported.
func (r *exportReport) fail(path string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs++
	r.say(fmt.Sprintf("%s: %s", orRoot(path), plainBelow(path, err)))
}

// note says something once.
func (r *exportReport) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.noted[text] {
		r.noted[text] = true
		r.say(text)
	}
}

// say prints a line where the bar is; mu is held.
func (r *exportReport) say(text string) {
	if r.bar != nil {
		_ = r.bar.Clear() // see progress
	}
	fmt.Fprintf(r.out, "frifs: %s\n", text)
}

func (r *exportReport) failed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errs
}

// end removes the bar.
func (r *exportReport) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bar != nil && !r.closed {
		_ = r.bar.Finish() // see progress
	}
	r.closed = true
}

// line is the summary.
func (r *exportReport) line(dest, path string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := 0
	var ways []string
	for way, what := range []string{"copied", "sharing blocks", "hard-linked", "there before"} {
		if n := r.files[way]; n > 0 {
			all += n
			ways = append(ways, fmt.Sprintf("%d %s", n, what))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "exported %s (%s)", countWord(all, "file"), sizeText(r.bytes))
	if r.links > 0 {
		fmt.Fprintf(&b, " and %s", countWord(r.links, "link"))
	}
	took := time.Since(r.start)
	fmt.Fprintf(&b, " of %s to %s in %s", orRoot(path), dest, shortTime(took))
	if len(ways) > 0 {
		b.WriteString(": " + strings.Join(ways, ", "))
	}
	if r.errs > 0 {
		fmt.Fprintf(&b, "; %d failed", r.errs)
	}
	return b.String()
}
