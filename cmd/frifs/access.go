package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fs"
)

// accessLine is one read of a file as the kernel asked for it.
type accessLine struct {
	Time    time.Time `json:"time"`
	Path    string    `json:"path"`
	Offset  int64     `json:"offset"`
	Asked   int       `json:"asked"` // bytes
	Given   int       `json:"given"`
	Micros  int64     `json:"microseconds"`
	Outcome string    `json:"outcome"` // "ok", or the kind of the error
}

// accessLog writes a line of JSON for each read. Reads never wait for it: lines that cannot be written fast enough are
// counted in a line {"dropped": N}.
type accessLog struct {
	out    *asyncWriter
	reopen func() // the file anew, after it was moved away
	close  func()
}

func openAccessLog(name string, stderr io.Writer) (*accessLog, error) {
	out, reopen, closeFile := stderr, func() {}, func() {}
	if name != "-" {
		abs, err := filepath.Abs(name)
		f := &logFile{name: abs}
		if err == nil {
			err = f.open()
		}
		if err != nil {
			return nil, fault.New("frifs", name, fault.KindOf(err), "the access log cannot be opened: %w", err)
		}
		out, closeFile = f, f.close
		reopen = func() { _ = f.open() } // where it cannot be, the old one is written to
	}
	w := newAsyncWriter(out, accessQueue, func(n int64) string { return fmt.Sprintf("{\"dropped\": %d}\n", n) })
	return &accessLog{out: w, reopen: reopen, close: func() {
		w.close()
		closeFile()
	}}, nil
}

// accessQueue is how many lines may wait to be written.
const accessQueue = 64 << 10

func (a *accessLog) read(r fs.Access) {
	line := accessLine{
		Time: r.Time.UTC(), Path: r.Path, Offset: r.Offset, Asked: r.Asked, Given: r.Given, Micros: r.Took.Microseconds(), Outcome: outcome(r.Err),
	}
	a.write(line)
}

// outcome is "ok", or the kind of the error.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return fault.KindOf(err).String()
}

// write hands on a line, which marshals.
func (a *accessLog) write(line any) {
	if b, err := json.Marshal(line); err == nil {
		_, _ = a.out.Write(append(b, '\n')) // it cannot fail
	}
}
