package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
)

// logFlags are the flags that say what is logged and where.
type logFlags struct {
	level  *choice
	format *choice
	file   string
	stderr bool   // stderr leads to the log file too, as a descriptor
	reopen func() // opens the log file anew, after it was moved away; set by open
}

func (l *logFlags) add(cmd *cobra.Command, level string) {
	l.level = newChoice("debug", "info", "warn", "error")
	l.level.word = level
	l.format = newChoice("text", "json")
	f := cmd.Flags()
	f.Var(l.level, "log-level", "least `level` that is logged: debug, info, warn or error")
	f.Var(l.format, "log-format", "`form` of the log: text or json")
	f.StringVar(&l.file, "log-file", "", "append the log to `FILE` instead of stderr")
}

// open makes the logger; closer writes what is left and ends it. Logging never waits for its reader.
func (l *logFlags) open(stderr io.Writer) (log *slog.Logger, closer func(), err error) {
	out, closeFile := stderr, func() {}
	l.reopen = func() {}
	if l.file != "" {
		f := &logFile{stderr: l.stderr}
		if f.name, err = filepath.Abs(l.file); err == nil {
			err = f.open()
		}
		if err != nil {
			return nil, nil, fault.New("frifs", l.file, fault.KindOf(err), "the log file cannot be opened: %w", err)
		}
		out, closeFile = f, f.close
		l.reopen = func() {
			if err := f.open(); err != nil {
				log.Error("the log file cannot be opened again; the old one is written to", "error", err)
			}
		}
	}
	lost := func(n int64) string {
		return fmt.Sprintf("%d log lines were dropped: the log was not read fast enough\n", n)
	}
	if l.format.word == "json" {
		lost = func(n int64) string {
			return fmt.Sprintf("{\"level\":\"WARN\",\"msg\":\"log lines were dropped\",\"lines\":%d}\n", n)
		}
	}
	async := newAsyncWriter(out, logQueue, lost)
	closer = func() {
		async.close()
		closeFile()
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.level.word)) // one of the words above
	opt := &slog.HandlerOptions{Level: level}
	if l.format.word == "json" {
		return slog.New(slog.NewJSONHandler(async, opt)), closer, nil
	}
	return slog.New(slog.NewTextHandler(async, opt)), closer, nil
}

// logFile is a file that can be opened anew while it is written to.
type logFile struct {
	name   string
	stderr bool       // stderr leads there too
	mu     sync.Mutex // protects f
	f      *os.File
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		_ = l.f.Close() // what cannot be written is lost
		if l.stderr {
			err = redirectStderr(f)
		}
	}
	l.f = f
	return err
}

// Write implements io.Writer.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Write(p)
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		_ = l.f.Close() // what cannot be written is lost
	}
}

const (
	logQueue = 1024        // lines that may wait to be written
	logDrain = time.Second // for writing what is left at the end
)

// asyncWriter writes lines from a goroutine of its own. When more lines wait than its queue holds (a terminal that is
// stopped, a pipe that nobody reads) further ones are dropped and counted: a request of the kernel must not wait for
// a reader of the log.
type asyncWriter struct {
	lines   chan []byte
	stop    chan struct{}
	done    chan struct{}
	dropped atomic.Int64
	lost    func(n int64) string // the line that stands for n dropped ones
}

func newAsyncWriter(out io.Writer, queue int, lost func(n int64) string) *asyncWriter {
	w := &asyncWriter{lines: make(chan []byte, queue), lost: lost, stop: make(chan struct{}), done: make(chan struct{})}
	go w.run(out)
	return w
}

// Write queues one line, or drops it.
func (w *asyncWriter) Write(p []byte) (int, error) {
	select {
	case w.lines <- bytes.Clone(p):
	default:
		w.dropped.Add(1)
	}
	return len(p), nil
}

func (w *asyncWriter) run(out io.Writer) {
	defer close(w.done)
	put := func(line []byte) {
		_, _ = out.Write(line) // nobody can be told
		if n := w.dropped.Swap(0); n > 0 {
			_, _ = io.WriteString(out, w.lost(n)) // likewise
		}
	}
	for {
		select {
		case line := <-w.lines:
			put(line)
		case <-w.stop:
			for {
				select {
				case line := <-w.lines:
					put(line)
				default:
					return
				}
			}
		}
	}
}

// close writes what is queued, for at most logDrain.
func (w *asyncWriter) close() {
	close(w.stop)
	select {
	case <-w.done:
	case <-time.After(logDrain):
	}
}
