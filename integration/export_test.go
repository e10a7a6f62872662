package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/testdata"
)

// TestExportSurvivesKills kills an export at many moments; the run after that has to give what one undisturbed run gives.
func TestExportSurvivesKills(t *testing.T) {
	table := testdata.Dataset(t, "tagged/big")
	dir := t.TempDir()
	want, got := filepath.Join(dir, "want"), filepath.Join(dir, "got")
	const path = "latest/fri"
	frifs(t, "export", table, path, want)
	killed := 0
	for wait := 10 * time.Millisecond; wait < 2*time.Second; wait = wait * 3 / 2 {
		cmd := exec.Command(exe, "export", "-j", "2", table, path, got)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("after %d kills: %v", killed, err)
			}
		case <-time.After(wait):
			_ = cmd.Process.Kill()
			<-done
			killed++
			continue
		}
		break
	}
	if _, err := os.Stat(filepath.Join(got, ".frifs-export.jsonl")); err == nil {
		frifs(t, "export", table, path, got)
	}
	if killed == 0 {
		t.Error("the export was too fast to be killed")
	}
	if r := command(t, "", "diff", "-r", want, got); r.code != 0 {
		t.Errorf("after %d kills: %s%s", killed, r.stdout, r.stderr)
	}
}

func TestExportInterrupted(t *testing.T) {
	table := testdata.Dataset(t, "tagged/big")
	dest := filepath.Join(t.TempDir(), "d")
	var errs log
	cmd := exec.Command(exe, "export", "-j", "1", table, "versions", dest)
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, func() error {
		_, err := os.Stat(filepath.Join(dest, ".frifs-export.jsonl"))
		return err
	})
	_ = cmd.Process.Signal(syscall.SIGINT)
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Fatalf("exit %d (%v): %s", code, err, errs.String())
	}
	if text := errs.String(); !strings.Contains(text, "interrupted") {
		t.Errorf("nothing is said: %q", text)
	}
}

// TestExportEqualsTheMount compares an export with what cp -r takes from a mount.
func TestExportEqualsTheMount(t *testing.T) {
	needTool(t, "diff", "cp")
	table := testdata.Dataset(t, "tagged/chain")
	m := mount(t, table)
	dir := t.TempDir()
	for _, path := range []string{"versions/29/fri", "versions/12"} {
		name := strings.ReplaceAll(path, "/", "_")
		copied, exported := filepath.Join(dir, "cp_"+name), filepath.Join(dir, "export_"+name)
		command(t, "", "cp", "-r", "--preserve=mode,timestamps", m.path(path), copied) // what fails there fails here
		r := command(t, "", exe, "export", table, path, exported)
		if r.code != 0 && r.code != 1 {
			t.Fatalf("export: exit %d: %s", r.code, r.stderr)
		}
		_ = os.Remove(filepath.Join(exported, ".frifs-export.jsonl"))
		if d := command(t, "", "diff", "-r", copied, exported); d.code != 0 {
			t.Errorf("%s: %s%s\nexport said: %s", path, d.stdout, d.stderr, r.stderr)
		}
		list := func(dir string) string {
			return sh(t, dir, `find . -type f -printf '%p %m %s %T@\n' | sort`)
		}
		if a, b := list(copied), list(exported); a != b {
			t.Errorf("%s: modes or times differ:\n%s", path, firstDifference(a, b))
		}
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d:\n%s\n%s", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d lines and %d", len(x), len(y))
}
