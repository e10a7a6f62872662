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

func TestSignals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			m := mountDataset(t, "legacy/basic")
			m.signal(s)
			if !m.ended(10 * time.Second) {
				t.Fatalf("still running 10 s after the signal: %s", m.logs)
			}
			if code := m.cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("exit %d: %s", code, m.logs)
			}
			if isMounted(t, m.dir) {
				t.Error("still mounted")
			}
		})
	}
}

func TestBusy(t *testing.T) {
	m := mountDataset(t, "legacy/basic")
	f, err := os.Open(m.path("latest/version.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m.signal(syscall.SIGTERM)
	eventually(t, 10*time.Second, func() error {
		if !strings.Contains(m.logs.String(), "busy") {
			return fmt.Errorf("nothing is said about the mount being busy: %q", m.logs)
		}
		return nil
	})
	if m.ended(0) || !isMounted(t, m.dir) {
		t.Fatal("a busy mount went away at the first signal")
	}
	if got := read(t, m.path("latest/fri/history.json")); !strings.HasPrefix(got, "{") {
		t.Errorf("the busy mount no longer serves: %q", got)
	}
	m.signal(syscall.SIGTERM)
	eventually(t, 10*time.Second, func() error {
		if isMounted(t, m.dir) {
			return fmt.Errorf("still mounted after the second signal: %s", m.logs)
		}
		return nil
	})
	f.Close()
	if !m.ended(15 * time.Second) {
		t.Errorf("still running 15 s after the last file was closed: %s", m.logs)
	}
}

func TestStaleMount(t *testing.T) {
	m := mountDataset(t, "legacy/basic")
	m.signal(syscall.SIGKILL)
	<-m.done
	eventually(t, 5*time.Second, func() error { // what the kernel has cached may answer for a moment
		f, err := os.Open(m.path("latest/fri/status.json"))
		if err == nil {
			f.Close()
		}
		if !isErrno(err, syscall.ENOTCONN) {
			return fmt.Errorf("after kill -9: %w, want ENOTCONN", err)
		}
		return nil
	})
	r := command(t, "", exe, "mount", testdata.Dataset(t, "legacy/basic"), m.dir)
	if r.code != 1 || !strings.Contains(r.stderr, "stale") || !strings.Contains(r.stderr, "--force") {
		t.Errorf("mount over a stale mount: exit %d, %q", r.code, r.stderr)
	}
	again := start(t, m.dir, exe, "mount", "--force", testdata.Dataset(t, "legacy/basic"), m.dir)
	again.ready()
}

func TestUmountCommand(t *testing.T) {
	m := mountDataset(t, "legacy/basic")
	frifs(t, "umount", m.dir)
	if !m.ended(10*time.Second) || m.cmd.ProcessState.ExitCode() != 0 || isMounted(t, m.dir) {
		t.Errorf("after umount: %s", m.logs)
	}

	m = mountDataset(t, "legacy/basic")
	f, err := os.Open(m.path("latest/version.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r := command(t, "", exe, "umount", m.dir); r.code != 1 || !strings.Contains(r.stderr, "busy") || !strings.Contains(r.stderr, "--lazy") {
		t.Errorf("umount while busy: exit %d, %q", r.code, r.stderr)
	}
	frifs(t, "umount", "--lazy", m.dir)
	if isMounted(t, m.dir) {
		t.Error("still mounted after umount --lazy")
	}
	if b := make([]byte, 1); true {
		if _, err := f.ReadAt(b, 0); err != nil || b[0] != '{' {
			t.Errorf("an open file after umount --lazy: %q %v", b, err)
		}
	}
	f.Close()
	if !m.ended(15 * time.Second) {
		t.Errorf("still running after the last file was closed: %s", m.logs)
	}
	if r := command(t, "", exe, "umount", m.dir); r.code == 0 {
		t.Error("umount of what is not mounted succeeds")
	}
}

func TestMountpointChecks(t *testing.T) {
	needFUSE(t)
	table := testdata.Copy(t, "legacy/basic")
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	full := filepath.Join(dir, "full")
	if err := os.MkdirAll(filepath.Join(full, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(table, "mnt")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, dir, says string }{
		{"absent", filepath.Join(dir, "absent"), "absent"},
		{"file", file, "directory"},
		{"not empty", full, "empty"},
		{"inside the dataset", inside, "inside"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := command(t, "", exe, "mount", table, c.dir)
			if r.code == 0 || !strings.Contains(r.stderr, c.says) || strings.Count(r.stderr, "\n") > 3 {
				t.Errorf("exit %d: %q", r.code, r.stderr)
			}
			if isMounted(t, c.dir) {
				t.Error("mounted all the same")
			}
		})
	}
	t.Run("not a dataset", func(t *testing.T) {
		empty := filepath.Join(dir, "empty")
		if err := os.Mkdir(empty, 0o755); err != nil {
			t.Fatal(err)
		}
		if r := command(t, "", exe, "mount", filepath.Join(dir, "nothing"), empty); r.code != 1 || !strings.Contains(r.stderr, "nothing") {
			t.Errorf("exit %d: %q", r.code, r.stderr)
		}
	})
	t.Run("allow-non-empty", func(t *testing.T) {
		m := start(t, full, exe, "mount", "--allow-non-empty", table, full)
		m.ready()
	})
}

func TestDemo(t *testing.T) {
	for _, args := range [][]string{{"demo"}, {"demo", "--no-mount"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			if len(args) == 1 {
				needFUSE(t)
			}
			tmp := t.TempDir()
			cmd := exec.Command(exe, args...)
			cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, want := range []string{"jq", "awk", "mapping.csv", "history.json", "moved"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("the tour does not show %s:\n%s", want, out)
				}
			}
			if b := read(t, "/proc/self/mounts"); strings.Contains(b, tmp) {
				t.Errorf("left mounted:\n%s", b)
			}
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}
