package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStallsAreBounded mounts a table that lies on a filesystem whose server has stopped: reads of it wait in the kernel
// and notice no bound of ours. Every request has to be answered in time all the same.
func TestStallsAreBounded(t *testing.T) {
	below := mountDataset(t, "tagged/chain")
	table := below.path("latest/remapped.lance")
	logName := filepath.Join(t.TempDir(), "log.jsonl")
	const bound = 4 * time.Second
	m := mount(t, table, "--op-timeout", bound.String(), "--log-file", logName, "--log-format", "json")
	readme := read(t, m.path("README.txt"))
	stored, err := filepath.Glob(m.path("latest/indices/*/*/stored/*"))
	if err != nil || len(stored) == 0 {
		t.Fatalf("no stored files: %v", err)
	}
	below.signal(syscall.SIGSTOP)
	defer below.signal(syscall.SIGCONT)
	// What the kernel has cached of the filesystem below may answer some; what has to ask it must not hang.
	timedOut := 0
	for _, name := range stored[:min(3, len(stored))] {
		begin := time.Now()
		_, err := os.ReadFile(name)
		if took := time.Since(begin); took > bound+bound/2 {
			t.Errorf("%s: %v passed, promised are %v", name, took, bound)
		}
		if isErrno(err, syscall.ETIMEDOUT) {
			timedOut++
		}
	}
	if timedOut == 0 {
		t.Fatal("nothing had to wait for the stopped filesystem")
	}
	if got := read(t, m.path("README.txt")); got != readme {
		t.Errorf("a file that needs nothing from below: %q", got)
	}
	if n := metric(t, m, "frifs_mount_stalls_total"); n < 1 {
		t.Errorf("%v stalls were counted", n)
	}
	eventually(t, 5*time.Second, func() error {
		for _, line := range strings.Split(read(t, logName), "\n") {
			var l struct{ Level, Msg, Op, Path, Limit, Stack string }
			if json.Unmarshal([]byte(line), &l) == nil && strings.Contains(l.Stack, "goroutine ") && strings.Contains(l.Stack, "/internal/store.") {
				if l.Level != "ERROR" || l.Path == "" || l.Op == "" || l.Limit == "" {
					t.Errorf("the report is not complete: %s", line)
				}
				return nil
			}
		}
		return fmt.Errorf("no stack in the log:\n%s", read(t, logName))
	})

	// It recovers by itself.
	below.signal(syscall.SIGCONT)
	eventually(t, 20*time.Second, func() error {
		for _, name := range stored {
			if _, err := os.ReadFile(name); err != nil {
				return err
			}
		}
		return nil
	})
}
