package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
)

// version is set at link time (-X main.version=…) and never changed.
var version string

func main() {
	// A closed pipe must come back as an error: a mount whose log pipe closes must not die of SIGPIPE.
	signal.Ignore(syscall.SIGPIPE)
	if mountHelper(os.Args[0]) || calledByMountFuse(os.Args[1:]) {
		os.Exit(runMountHelper(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return report(cmd, err, stderr)
}

// usageError is an error in how the command was called.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// findings ends a command that did its work and found something to act on.
type findings struct{ text string }

func (f findings) Error() string { return f.text }

// printed wraps an error that the user has been told about already.
type printed struct{ err error }

func (p printed) Error() string { return p.err.Error() }
func (p printed) Unwrap() error { return p.err }

// report prints err and returns the exit code that it means.
func report(cmd *cobra.Command, err error, stderr io.Writer) int {
	var usage usageError
	var found findings
	var told printed
	switch {
	case err == nil, errors.Is(err, syscall.EPIPE):
		return 0
	case errors.As(err, &found):
		if found.text != "" {
			fmt.Fprintln(stderr, "frifs:", found.text)
		}
		return 3
	case errors.As(err, &usage) && errors.As(err, &told):
		return 2
	case errors.As(err, &usage):
		if cmd.Name() == "help" {
			cmd = cmd.Root()
		}
		fmt.Fprintf(stderr, "frifs: %v\nRun '%s --help' for usage.\n", err, cmd.CommandPath())
		return 2
	}
	if !errors.As(err, &told) {
		fmt.Fprintln(stderr, "frifs:", message(cmd, err))
	}
	return fault.KindOf(err).ExitCode()
}

// release is the version of this binary.
func release() string {
	if version != "" {
		return version
	}
	if bi, ok := debug.ReadBuildInfo(); ok && bi.Main.Version != "" {
		return bi.Main.Version
	}
	return "unknown"
}

// interruptGrace is how long the work of a command may go on after an interrupt.
const interruptGrace = time.Second

// interruptible gives the work of a command a context that SIGINT and SIGTERM end; a second signal kills. Work that
// does not notice, because it waits for a terminal, or for a reader of its pipe, is left behind.
func interruptible(work func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop)
		cmd.SetContext(ctx)
		ended := make(chan error, 1)
		go func() { ended <- work(cmd, args) }()
		interrupted := fault.New("", "", fault.Cancelled, "interrupted")
		select {
		case err := <-ended:
			if err != nil && ctx.Err() != nil {
				return interrupted
			}
			return err
		case <-ctx.Done():
		}
		select {
		case err := <-ended:
			if err == nil {
				return nil
			}
		case <-time.After(interruptGrace):
		}
		return interrupted
	}
}
