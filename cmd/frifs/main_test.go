package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/testdata"
)

// asFrifs makes the test binary behave as frifs with the arguments that follow: for tests that need another process.
const asFrifs = "FRIFS_CMD_TEST_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(asFrifs) != "" {
		signal.Ignore(syscall.SIGPIPE)
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// result is what a command line gave.
type result struct {
	code           int
	stdout, stderr string
}

// frifs runs a command line in this process.
func frifs(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return result{code, out.String(), errs.String()}
}

// must runs a command line that has to succeed and returns its stdout.
func must(t *testing.T, args ...string) string {
	t.Helper()
	r := frifs(t, "", args...)
	if r.code != 0 {
		t.Fatalf("frifs %s: exit %d: %s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r.stdout
}

// TestInterruptWhileWaiting has a command that waits for its input end at the first interrupt, not at the next line.
func TestInterruptWhileWaiting(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	stdin, writer := io.Pipe()
	defer writer.Close()
	code := make(chan int, 1)
	uri := testdata.Dataset(t, "tagged/chain")
	go func() {
		code <- run(ctx, []string{"translate", uri, "--from-file", "-"}, stdin, io.Discard, io.Discard)
	}()
	if _, err := io.WriteString(writer, "1\n"); err != nil { // returns when it has been read
		t.Fatal(err)
	}
	interrupt()
	select {
	case got := <-code:
		if got != 130 {
			t.Errorf("exit code %d, want 130", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("the command still waits for its input")
	}
}
