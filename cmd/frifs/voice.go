package main

import (
	"bytes"
	"io"
	"log/slog"
	"runtime"

	"github.com/spf13/cobra"
)

// recordWriter makes a record of a JSON log of each line that is written to it. Each call writes whole lines.
type recordWriter struct{ log *slog.Logger }

// Write implements io.Writer.
func (w recordWriter) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		text, ours := bytes.CutPrefix(bytes.TrimRight(line, "\n"), []byte("frifs: "))
		switch text, warning := bytes.CutPrefix(text, []byte("warning: ")); {
		case warning:
			w.log.Warn(string(text))
		case ours || len(text) > 0:
			w.log.Info(string(text))
		}
	}
	return len(p), nil
}

// speakJSON has everything that the command says on stderr become records, where stderr is the log and that is JSON:
// who reads it expects nothing else there. It returns what else the end of the command is told through; nil where
// nothing was changed.
func (m *mountFlags) speakJSON(cmd *cobra.Command) *slog.Logger {
	if m.logs.format.word != "json" || (m.logs.file != "" && m.waiting == nil) {
		return nil
	}
	log := slog.New(slog.NewJSONHandler(cmd.ErrOrStderr(), nil))
	cmd.SetErr(recordWriter{log})
	return log
}

// mostStacks bounds the text of all goroutines' stacks, in bytes.
const mostStacks = 16 << 20

// stacks is what every goroutine does.
func stacks() string {
	for size := 256 << 10; ; size *= 4 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size || size >= mostStacks {
			return string(buf[:n])
		}
	}
}

// dumpStacks writes them to the log, or, where that is text, as they are to where the log goes.
func (m *mountFlags) dumpStacks(stderr io.Writer) {
	if m.logs.format.word == "json" {
		m.logger.Error("stacks of all goroutines, as a signal asked", "stack", stacks())
		return
	}
	_, _ = io.WriteString(stderr, stacks()) // there is nobody to tell
}
