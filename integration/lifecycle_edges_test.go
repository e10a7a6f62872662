package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/testdata"
)

// TestSignalsThatMustNotKill sends what would end a Go program, and leave a dead mount behind.
func TestSignalsThatMustNotKill(t *testing.T) {
	m := mountDataset(t, "legacy/basic")
	for _, s := range []syscall.Signal{syscall.SIGUSR2, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGUSR1} {
		m.signal(s)
	}
	eventually(t, 10*time.Second, func() error {
		if !strings.Contains(m.logs.String(), "goroutine ") {
			return fmt.Errorf("SIGUSR1 wrote no stacks: %s", m.logs)
		}
		return nil
	})
	if got := read(t, m.path("latest/version.json")); !strings.HasPrefix(got, "{") || m.ended(0) {
		t.Errorf("it no longer serves: %q, %s", got, m.logs)
	}
	m.signal(syscall.SIGQUIT)
	if !m.ended(15*time.Second) || m.cmd.ProcessState.ExitCode() != 0 || isMounted(t, m.dir) {
		t.Errorf("after SIGQUIT: %v, mounted: %v: %s", m.cmd.ProcessState, isMounted(t, m.dir), m.logs)
	}
}

// TestUnmountedFromOutside has others take the mount away.
func TestUnmountedFromOutside(t *testing.T) {
	for _, how := range []string{"fusermount3 -u mnt", "umount mnt", "umount -l mnt"} {
		t.Run(how, func(t *testing.T) {
			if strings.HasPrefix(how, "umount") && os.Geteuid() != 0 {
				missing(t, "only root can call umount(2)")
			}
			m := mountDataset(t, "legacy/basic")
			sh(t, filepath.Dir(m.dir), how)
			if !m.ended(10*time.Second) || m.cmd.ProcessState.ExitCode() != 0 || !strings.Contains(m.logs.String(), "was unmounted") {
				t.Errorf("%v: %s", m.cmd.ProcessState, m.logs)
			}
		})
	}
}

// TestOverlapIsSeen places mountpoints inside the dataset, and around it, by links, URIs and bind mounts.
func TestOverlapIsSeen(t *testing.T) {
	needFUSE(t)
	needTool(t, "unshare")
	if os.Geteuid() != 0 {
		missing(t, "only root can bind directories")
	}
	dir, _ := openDir(t)
	if err := os.CopyFS(filepath.Join(dir, "up/t.lance"), os.DirFS(testdata.Dataset(t, "legacy/basic"))); err != nil {
		t.Fatal(err)
	}
	sh(t, dir, "mkdir up/t.lance/in bound; ln -s up/t.lance/in link; ln -s up uplink")
	const inside, around = "lies inside the dataset", "lies inside the mountpoint"
	for _, tc := range []struct{ name, bind, uri, at, says string }{
		{"a link", "", "up/t.lance", "link", inside},
		{"the dataset itself", "", "up/t.lance", "up/t.lance", inside},
		{"around", "", "up/t.lance", "up", around},
		{"around, by a link", "", "up/t.lance", "uplink", around},
		{"a URI", "", "file://$PWD/up/t.lance", "link", inside},
		{"a URI, around", "", "file://localhost$PWD/up/t.lance", "up", around},
		{"its directory bound elsewhere", "up/t.lance/in", "up/t.lance", "bound", inside},
		{"the dataset bound elsewhere", "up/t.lance", "up/t.lance", "bound/in", inside},
		{"named by where it is bound", "up/t.lance", "bound", "up/t.lance/in", inside},
		{"what is around bound elsewhere", "up", "up/t.lance", "bound", around},
	} {
		t.Run(tc.name, func(t *testing.T) {
			script := `cd "$0"; [ -z "$1" ] || mount --bind "$1" bound || exit 77
				timeout 20 "$2" mount --allow-non-empty ` + tc.uri + ` ` + tc.at
			r := command(t, "", "unshare", "-m", "--propagation", "private", "bash", "-c", script, dir, tc.bind, exe)
			if r.code == 77 {
				missing(t, "directories cannot be bound here: %s", r.stderr)
			}
			if r.code != 2 || !strings.Contains(r.stderr, tc.says) {
				t.Errorf("exit %d: %q, want 2 and %q", r.code, r.stderr, tc.says)
			}
		})
	}
}

// TestDoctorOfDatasetsAndDirectories has doctor look at directories that are not there, full or no directories.
func TestDoctorOfDatasetsAndDirectories(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	damaged := testdata.Copy(t, "legacy/basic")
	manifests, err := filepath.Glob(filepath.Join(damaged, "_versions/*.manifest"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, name := range manifests {
		if err := os.WriteFile(name, []byte("nonsense"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	good := testdata.Dataset(t, "legacy/basic")
	for _, tc := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"a table", []string{good}, 0, []string{"ok       dataset: ", "5 versions"}},
		{"a database", []string{filepath.Dir(good)}, 0, []string{"ok       dataset: ", "tables"}},
		{"nothing", []string{filepath.Join(dir, "none")}, 3, []string{"MISSING  dataset: ", "does not exist", "_versions in it, see: ls " + dir}},
		{"a damaged table", []string{damaged}, 3, []string{"MISSING  dataset: ", "cannot be read", "older version may work"}},
		{"an unknown scheme", []string{"gopher://x/y"}, 3, []string{"MISSING  dataset: ", "write s3://"}},
		{"a cache directory that will be made", []string{"--cache-dir", filepath.Join(dir, "new/deep"), good}, 0, []string{"ok       cache directory: ", "not there yet"}},
		{"a file for a cache directory", []string{"--cache-dir", file, good}, 3, []string{"MISSING  cache directory: ", "--cache-dir", "ok       dataset: "}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := command(t, "", exe, append([]string{"doctor"}, tc.args...)...)
			if _, err := os.Stat("/dev/fuse"); err == nil && r.code != tc.code {
				t.Errorf("exit %d, want %d: %s", r.code, tc.code, r.stdout)
			}
			for _, want := range tc.says {
				if !strings.Contains(r.stdout, want) {
					t.Errorf("no %q in %s", want, r.stdout)
				}
			}
		})
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("doctor left %v, %v", left, err)
	}
}
