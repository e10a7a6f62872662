package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/testdata"
)

// Set by TestMain: the binaries under test, and the root of the project.
var exe, slowmount, root string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "frifs-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if root, err = testdata.Root(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	exe, slowmount = filepath.Join(dir, "frifs"), filepath.Join(dir, "slowmount")
	for out, pkg := range map[string]string{exe: "./cmd/frifs", slowmount: "./integration/slowmount"} {
		build := exec.Command("go", "build", "-o", out, pkg)
		build.Dir = root
		if text, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build %s: %v\n%s", pkg, err, text)
			return 1
		}
	}
	return m.Run()
}

// missing skips the test because the machine lacks something, or fails it where nothing may be lacking.
func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("FRIFS_CI") != "" {
		t.Fatalf("FRIFS_CI is set, and "+format, args...)
	}
	t.Skipf(format, args...)
}

// needTool skips unless a program is installed.
func needTool(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			missing(t, "%s is not installed", name)
		}
	}
}

// needFUSE skips unless this process may mount. /dev/fuse is not opened: that can hang (docs/TROUBLESHOOTING.md).
func needFUSE(t testing.TB) {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		missing(t, "there is no /dev/fuse: %v", err)
	}
	if _, err := exec.LookPath("fusermount3"); err != nil {
		missing(t, "fusermount3 is not installed (package fuse3)")
	}
}

// result is what a finished program left.
type result struct {
	stdout, stderr string
	code           int
}

// command runs a program to its end; a program that does not end is killed after two minutes (in benchmarks after 20).
func command(t testing.TB, stdin, name string, args ...string) result {
	t.Helper()
	limit := 2 * time.Minute
	if _, ok := t.(*testing.B); ok {
		limit *= 10
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%s %q did not end within %v; stderr: %s", name, args, limit, errs.String())
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// frifs runs the binary, which has to succeed, and returns its standard output.
func frifs(t testing.TB, args ...string) string {
	t.Helper()
	r := command(t, "", exe, args...)
	if r.code != 0 {
		t.Fatalf("frifs %q: exit %d: %s", args, r.code, r.stderr)
	}
	return r.stdout
}

// sh runs a bash script in a folder; it has to succeed. Its standard output is returned without the last newline.
func sh(t testing.TB, dir, script string, args ...string) string {
	t.Helper()
	r := command(t, "", "bash", append([]string{"-c", "set -euo pipefail; cd \"$0\"; " + script, dir}, args...)...)
	if r.code != 0 {
		t.Fatalf("in %s: %s: exit %d: %.2000s%.4000s", dir, script, r.code, r.stderr, r.stdout)
	}
	return strings.TrimSuffix(r.stdout, "\n")
}

// eventually polls until check returns nil; the last error fails the test when the time is over.
func eventually(t testing.TB, within time.Duration, check func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(within)
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %v: %v", within, err)
		}
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
