package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
)

// logFlags are the flags that say what is logged and where.
type logFlags struct {
	level  *choice
	format *choice
	file   string
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

// open makes the logger; close ends it.
func (l *logFlags) open(stderr io.Writer) (log *slog.Logger, closer func(), err error) {
	out, closer := stderr, func() {}
	if l.file != "" {
		f, err := os.OpenFile(l.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, nil, fault.New("frifs", l.file, fault.Denied, "the log file cannot be opened: %w", err)
		}
		out, closer = f, func() { _ = f.Close() }
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.level.word)) // one of the words above
	opt := &slog.HandlerOptions{Level: level}
	if l.format.word == "json" {
		return slog.New(slog.NewJSONHandler(out, opt)), closer, nil
	}
	return slog.New(slog.NewTextHandler(out, opt)), closer, nil
}
