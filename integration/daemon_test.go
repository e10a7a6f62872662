package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/testdata"
)

// openDir makes a directory that every user can get to, and its mountpoint mnt.
func openDir(t *testing.T) (dir, mnt string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "frifs-daemon-") //nolint:usetesting // others must get into it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("fusermount3", "-uz", filepath.Join(dir, "mnt")).Run()
		_ = os.RemoveAll(dir)
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	mnt = filepath.Join(dir, "mnt")
	if err := os.Mkdir(mnt, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, mnt
}

// pidIn reads a pid file.
func pidIn(t *testing.T, name string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(read(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestDaemonAnswersWhenItReturns(t *testing.T) {
	needFUSE(t)
	dir, mnt := openDir(t)
	logName, pidName := filepath.Join(dir, "frifs.log"), filepath.Join(dir, "frifs.pid")
	r := command(t, "", exe, "mount", "--daemon", "--log-file", logName, "--log-format", "json", "--log-level", "debug", "--pid-file", pidName,
		testdata.Dataset(t, "tagged/chain"), mnt)
	if r.code != 0 || r.stdout != "" || !strings.Contains(r.stderr, "is mounted at "+mnt) {
		t.Fatalf("exit %d: %q %q", r.code, r.stdout, r.stderr)
	}
	if _, err := os.Stat(filepath.Join(mnt, "README.txt")); err != nil {
		t.Fatalf("it does not answer: %v", err)
	}
	pid := pidIn(t, pidName)
	if !alive(pid) || !strings.Contains(r.stderr, strconv.Itoa(pid)) {
		t.Errorf("process %d: alive %v; said %q", pid, alive(pid), r.stderr)
	}
	if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid)); err != nil || cwd != "/" {
		t.Errorf("its working directory is %q, %v", cwd, err)
	}
	// A log that was moved away is begun anew after SIGHUP.
	if err := os.Rename(logName, logName+".1"); err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(pid, syscall.SIGHUP)
	eventually(t, 5*time.Second, func() error { _, err := os.Stat(logName); return err })
	if _, err := os.Stat(filepath.Join(mnt, "latest/nothing")); err == nil {
		t.Error("there is something called nothing")
	}
	if r := command(t, "", exe, "mount", testdata.Dataset(t, "legacy/basic"), mnt); r.code == 0 || !strings.Contains(r.stderr, "already mounted") {
		t.Errorf("a second mount: exit %d, %q", r.code, r.stderr)
	}
	frifs(t, "umount", mnt)
	eventually(t, 10*time.Second, func() error {
		if _, err := os.Stat(pidName); err == nil || alive(pid) {
			return fmt.Errorf("process %d: alive %v, pid file there: %v", pid, alive(pid), err == nil)
		}
		return nil
	})
	for _, line := range strings.Split(strings.TrimSpace(read(t, logName+".1")+read(t, logName)), "\n") {
		if line != "" && !json.Valid([]byte(line)) && !strings.HasPrefix(line, "frifs: ") {
			t.Errorf("no JSON in the log: %q", line)
		}
	}
}

func TestDaemonSaysWhyNot(t *testing.T) {
	needFUSE(t)
	dir, mnt := openDir(t)
	logName := filepath.Join(dir, "frifs.log")
	table := testdata.Dataset(t, "legacy/basic")
	for _, tc := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no dataset", []string{filepath.Join(dir, "none"), mnt}, 1, "does not exist"},
		{"no mountpoint", []string{table, filepath.Join(dir, "none")}, 1, "mkdir -p"},
		{"no version", []string{"--version", "999", table, mnt}, 1, "not retained"},
		{"a bad flag", []string{"--version", "3", "--asof", "2026-01-01", table, mnt}, 2, "exclude each other"},
		{"no time", []string{"--ready-timeout", "1ns", table, mnt}, 1, "not ready within 1ns"},
		{"no debug address", []string{"--debug-addr", "999.1.1.1:1", table, mnt}, 1, "999.1.1.1"},
		{"no pid file", []string{"--pid-file", "/proc/none/pid", table, mnt}, 1, "/proc/none/pid"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := command(t, "", exe, append([]string{"mount", "--daemon", "--log-file", logName}, tc.args...)...)
			if r.code != tc.code || !strings.Contains(r.stderr, tc.says) || !strings.Contains(r.stderr, logName) {
				t.Errorf("exit %d: %q; want %d, %q and the log's path", r.code, r.stderr, tc.code, tc.says)
			}
			if isMounted(t, mnt) {
				t.Error("left mounted")
			}
			eventually(t, 5*time.Second, func() error {
				if out, err := exec.Command("pgrep", "-f", mnt).Output(); err == nil {
					return fmt.Errorf("left running: %s", out)
				}
				return nil
			})
		})
	}
}

// TestSystemdIsTold plays systemd's part: a service with Type=notify and a watchdog.
func TestSystemdIsTold(t *testing.T) {
	needFUSE(t)
	dir, mnt := openDir(t)
	sock, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	var errs log
	cmd := exec.Command(exe, "mount", testdata.Dataset(t, "tagged/chain"), mnt)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(dir, "notify"), "WATCHDOG_USEC=200000")
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	m := &mounted{t: t, dir: mnt, cmd: cmd, done: done, logs: &errs}
	t.Cleanup(m.stop)
	next := func(want string) {
		t.Helper()
		b := make([]byte, 4096)
		for {
			_ = sock.SetReadDeadline(time.Now().Add(10 * time.Second))
			n, err := sock.Read(b)
			if err != nil {
				t.Fatalf("waiting for %s: %v; %s", want, err, errs.String())
			}
			if strings.Contains(string(b[:n]), want) {
				if want == "READY=1" && !strings.Contains(string(b[:n]), "STATUS=serving ") {
					t.Errorf("no status: %q", b[:n])
				}
				return
			}
		}
	}
	next("READY=1")
	if _, err := os.Stat(m.path("README.txt")); err != nil {
		t.Errorf("ready, but: %v", err)
	}
	for range 3 {
		next("WATCHDOG=1")
	}
	m.signal(syscall.SIGTERM)
	next("STATUS=unmounting")
	next("STOPPING=1")
	if !m.ended(10*time.Second) || cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("after SIGTERM: %v, %s", cmd.ProcessState, errs.String())
	}
}

func TestWhoMayUseTheMount(t *testing.T) {
	needFUSE(t)
	needTool(t, "setpriv")
	if os.Geteuid() != 0 {
		missing(t, "only root can become another user")
	}
	table := testdata.Dataset(t, "legacy/basic")
	as := func(uid, file string) int {
		return command(t, "", "setpriv", "--reuid", uid, "--clear-groups", "cat", file).code
	}
	for _, tc := range []struct {
		flag string
		ok   bool
	}{{"", false}, {"--allow-other", true}, {"--allow-root", false}} {
		t.Run(tc.flag, func(t *testing.T) {
			_, mnt := openDir(t)
			args := []string{"mount", table, mnt}
			if tc.flag != "" {
				args = append(args, tc.flag)
			}
			m := start(t, mnt, exe, args...)
			m.ready()
			if code := as("65534", m.path("README.txt")); (code == 0) != tc.ok {
				t.Errorf("another user: exit %d", code)
			}
			if _, err := os.ReadFile(m.path("README.txt")); err != nil {
				t.Errorf("root: %v", err)
			}
		})
	}
	t.Run("owner and modes", func(t *testing.T) {
		_, mnt := openDir(t)
		m := start(t, mnt, exe, "mount", "-o", "allow_other,uid=4242,gid=4343,file_mode=0400,dir_mode=0500", table, mnt)
		m.ready()
		for name, mode := range map[string]uint32{"README.txt": syscall.S_IFREG | 0o400, "versions": syscall.S_IFDIR | 0o500, ".": syscall.S_IFDIR | 0o500} {
			var st syscall.Stat_t
			if err := syscall.Stat(m.path(name), &st); err != nil || st.Uid != 4242 || st.Gid != 4343 || uint32(st.Mode) != mode { //nolint:unconvert // 16 bits elsewhere
				t.Errorf("%s: %d:%d %o, %v; want %o", name, st.Uid, st.Gid, st.Mode, err, mode)
			}
		}
		for uid, ok := range map[string]bool{"4242": true, "4243": false} {
			if code := as(uid, m.path("README.txt")); (code == 0) != ok {
				t.Errorf("user %s: exit %d", uid, code)
			}
		}
	})
}

func TestDebugAddress(t *testing.T) {
	m := mountDataset(t, "tagged/chain", "--debug-addr", ":0")
	var base string
	eventually(t, 5*time.Second, func() error {
		_, after, ok := strings.Cut(m.logs.String(), "profiles are at ")
		if base, _, _ = strings.Cut(after, "\n"); !ok {
			return fmt.Errorf("no address in %q", m.logs)
		}
		return nil
	})
	if !strings.HasPrefix(base, "http://127.0.0.1:") {
		t.Errorf("it listens at %q", base)
	}
	get := func(path string) string {
		t.Helper()
		r, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %v", path, r.Status, err)
		}
		return string(b)
	}
	metrics := get("metrics")
	for _, want := range []string{"\nfrifs_uptime_seconds ", "\nfrifs_mount_inodes ", "\nfrifs_mount_stalls_total 0", "\ngo_goroutines ", "\nprocess_open_fds "} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %q among the metrics", strings.TrimSpace(want))
		}
	}
	if !strings.Contains(get("debug/pprof/goroutine?debug=1"), "goroutine profile") || !strings.Contains(get(""), "/metrics") {
		t.Error("no profiles, or no page that names them")
	}
}

func TestAccessLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "reads.jsonl")
	m := mountDataset(t, "tagged/chain", "--access-log", name)
	stored, err := filepath.Glob(m.path("latest/indices/*/*/stored/*"))
	if err != nil || len(stored) == 0 {
		t.Fatalf("no stored files: %v", err)
	}
	want := map[string]int{} // bytes by path
	for _, f := range append(stored, m.path("latest/fri/transitions/0001/mapping.csv"), m.path("latest/fri/history.json")) {
		rel, _ := filepath.Rel(m.dir, f)
		real := strings.Replace(rel, "latest/", "versions/29/", 1)
		want[real] = len(read(t, f))
	}
	eventually(t, 5*time.Second, func() error {
		got := map[string]int{}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		for sc := bufio.NewScanner(f); sc.Scan(); {
			var l struct {
				Time         time.Time
				Path         string
				Offset       int64
				Asked, Given int
				Microseconds *int64
				Outcome      string
			}
			if err := json.Unmarshal(sc.Bytes(), &l); err != nil || l.Time.IsZero() || l.Microseconds == nil || l.Outcome != "ok" || l.Given > l.Asked {
				t.Fatalf("%q: %v", sc.Text(), err)
			}
			got[l.Path] += l.Given
		}
		for p, n := range want {
			if got[p] != n {
				return fmt.Errorf("%s: reads of %d bytes are in the log, %d were read", p, got[p], n)
			}
		}
		return nil
	})
}

func TestReadAheadIsRaised(t *testing.T) {
	m := mountDataset(t, "legacy/basic", "--max-read-ahead", "512KiB")
	able := false
	for _, line := range strings.Split(command(t, "", exe, "doctor").stdout, "\n") {
		able = able || strings.HasPrefix(line, "ok") && strings.Contains(line, "read-ahead")
	}
	var st syscall.Stat_t
	if err := syscall.Stat(m.dir, &st); err != nil {
		t.Fatal(err)
	}
	bdi := fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", st.Dev>>8&0xfff, st.Dev&0xff|st.Dev>>12&0xfff00)
	got := strings.TrimSpace(read(t, bdi))
	if want := map[bool]string{true: "512", false: "128"}[able]; got != want {
		t.Errorf("%s is %s, want %s (rights: %v)", bdi, got, want, able)
	}
}

// TestInodesStayBounded has find walk 20,000 versions.
func TestInodesStayBounded(t *testing.T) {
	table := testdata.Copy(t, "legacy/basic")
	dir := filepath.Join(table, "_versions")
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var last string
	for _, e := range names {
		if strings.HasSuffix(e.Name(), ".manifest") && (last == "" || len(e.Name()) < 20) {
			last = filepath.Join(dir, e.Name())
		}
	}
	const versions, limit = 20_000, 2_000
	for v := 1; v <= versions; v++ {
		name := fmt.Sprintf("%020d.manifest", ^uint64(0)-uint64(v))
		if err := os.Link(last, filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	m := mount(t, table, "--inode-limit", strconv.Itoa(limit))
	out := command(t, "", "find", m.path("versions"), "-maxdepth", "2")
	if n := strings.Count(out.stdout, "\n"); n < 2*versions {
		t.Fatalf("find saw %d names: %s", n, out.stderr)
	}
	eventually(t, 10*time.Second, func() error {
		if n := metric(t, m, "frifs_mount_inodes"); n > limit {
			return fmt.Errorf("the kernel holds %v inodes, the limit is %d", n, limit)
		}
		return nil
	})
	status := read(t, fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	_, after, _ := strings.Cut(status, "VmRSS:")
	var kb int
	if _, err := fmt.Sscan(after, &kb); err != nil || kb > 256<<10 {
		t.Errorf("%d KiB of memory are in use, %v", kb, err)
	}
	if _, err := os.Stat(m.path("versions/1/version.json")); err != nil && !os.IsNotExist(err) && !isErrno(err, syscall.EIO) {
		t.Errorf("an evicted name: %v", err)
	}
}

func TestDoctorLooksAtAll(t *testing.T) {
	r := command(t, "", exe, "doctor", testdata.Dataset(t, "tagged/chain"))
	for _, want := range []string{"kernel: ", "right to mount: ", "FUSE device: ", "mount helper: ", "access for other users: ",
		"read-ahead: ", "passthrough of local files: ", "cache directory: ", "dataset: ", "29 versions"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is not looked at:\n%s", want, r.stdout)
		}
	}
	r = command(t, "", exe, "doctor", "--cache-dir", "/proc/none", filepath.Join(t.TempDir(), "none"))
	if r.code != 3 || !strings.Contains(r.stdout, "MISSING  cache directory: ") || !strings.Contains(r.stdout, "MISSING  dataset: ") {
		t.Errorf("exit %d:\n%s", r.code, r.stdout)
	}
	// Each thing that is not as it should be comes with what to do.
	lines := strings.Split(r.stdout, "\n")
	for i, l := range lines {
		if (strings.HasPrefix(l, "MISSING") || strings.HasPrefix(l, "note     ") && strings.Contains(l, ": ")) &&
			!strings.HasPrefix(lines[i+1], "         ") && !strings.Contains(l, "is not installed") {
			t.Errorf("nothing is said about what to do: %s", l)
		}
	}
}
