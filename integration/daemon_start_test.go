package integration

import (
	"encoding/json"
	"fmt"
	"net"
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

// TestDaemonFromAnywhere starts daemons from surroundings that lack what is usual.
func TestDaemonFromAnywhere(t *testing.T) {
	needFUSE(t)
	for _, tc := range []struct{ name, before, call, after string }{
		{"relative paths", "", `"$F" mount --daemon --log-file log --pid-file pid t.lance mnt`, `test -s pid; test -e log`},
		{"no stdin and stdout", "", `"$F" mount --daemon --log-file log t.lance mnt <&- >&-`, ""},
		{"no stderr either", "", `"$F" mount --daemon --log-file log t.lance mnt <&- >&- 2>&-`, ""},
		{"no environment", "", `env -i "$F" mount --daemon --log-file log t.lance mnt`, ""},
		{"umask", "umask 077", `"$F" mount --daemon --log-file log --pid-file pid t.lance mnt`, `test "$(stat -c %a pid log | tr '\n' ' ')" = "600 600 "; test "$(stat -c %a mnt/README.txt mnt/versions | tr '\n' ' ')" = "444 555 "`},
		{"a directory that goes", "mkdir gone; cd gone", `"$F" mount --daemon --log-file ../log ../t.lance ../mnt`, `cd ..; rmdir gone`},
		{"a stale pid file", "echo 999999 > pid", `"$F" mount --daemon --log-file log --pid-file pid t.lance mnt`, `kill -0 "$(cat pid)"`},
		// What the caller left open must not live on: here the pipe whose end is waited for.
		{"an open pipe", "", `{ "$F" mount --daemon --log-file log t.lance mnt 7>&1 > /dev/null 2>&1; } | timeout 60 cat`, ""},
		{"a terminal's command substitution", "", `x=$("$F" mount --daemon --log-file log t.lance mnt 2>&1); case "$x" in *"is mounted at"*) ;; *) exit 1; esac`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, mnt := openDir(t)
			if err := os.CopyFS(filepath.Join(dir, "t.lance"), os.DirFS(testdata.Dataset(t, "legacy/basic"))); err != nil {
				t.Fatal(err)
			}
			sh(t, dir, `F=$1; `+tc.before+"\n"+tc.call+"\n"+tc.after, exe)
			if _, err := os.Stat(filepath.Join(mnt, "README.txt")); err != nil {
				t.Errorf("it does not answer: %v", err)
			}
			frifs(t, "umount", mnt)
			eventually(t, 10*time.Second, func() error {
				if _, err := os.Stat(filepath.Join(dir, "pid")); err == nil {
					return fmt.Errorf("the pid file is still there")
				}
				return nil
			})
		})
	}
}

// silentServer accepts connections and never says a word. met receives a token for each, as far as there is room.
func silentServer(t *testing.T) (addr string, met chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	met = make(chan struct{}, 1)
	go func() {
		var held []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				for _, c := range held {
					_ = c.Close()
				}
				return
			}
			held = append(held, c)
			select {
			case met <- struct{}{}:
			default:
			}
		}
	}()
	return l.Addr().String(), met
}

// TestDaemonThatDoesNotComeUp has a store that never answers, so that the start lasts.
func TestDaemonThatDoesNotComeUp(t *testing.T) {
	needFUSE(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	for _, tc := range []struct {
		name  string
		ready string
		do    func(parent *exec.Cmd, child int)
		code  int
		says  string
	}{
		{"no time", "2s", nil, 1, "the mount was not ready within 2s (--ready-timeout); the log is "},
		{"the serving process is killed", "60s", func(_ *exec.Cmd, child int) { _ = syscall.Kill(child, syscall.SIGKILL) }, 1, "killed) before the mount stood; the log is "},
		{"the serving process is asked to end", "60s", func(_ *exec.Cmd, child int) { _ = syscall.Kill(child, syscall.SIGTERM) }, 130, "interrupted"},
		{"Ctrl-C", "60s", func(parent *exec.Cmd, _ int) { _ = parent.Process.Signal(os.Interrupt) }, 130, "interrupted"},
		{"SIGQUIT to the serving process", "60s", func(_ *exec.Cmd, child int) { _ = syscall.Kill(child, syscall.SIGQUIT) }, 130, "interrupted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, mnt := openDir(t)
			addr, met := silentServer(t)
			uri := "s3://bucket/t.lance?use_path_style=true&region=us-east-1&endpoint=http://" + addr
			var said log
			parent := exec.Command(exe, "mount", "--daemon", "--ready-timeout", tc.ready, "--log-file", filepath.Join(dir, "log"), uri, mnt)
			parent.Stderr = &said
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			select { // now it waits for the store
			case <-met:
			case <-time.After(30 * time.Second):
				t.Fatalf("it does not ask the store: %s", said.String())
			}
			var child int
			eventually(t, 20*time.Second, func() error {
				out, err := exec.Command("pgrep", "-P", strconv.Itoa(parent.Process.Pid)).Output()
				if err == nil {
					child, err = strconv.Atoi(strings.TrimSpace(string(out)))
				}
				return err
			})
			if tc.do != nil {
				tc.do(parent, child)
			}
			_ = parent.Wait() // the exit code is looked at
			if code := parent.ProcessState.ExitCode(); code != tc.code || !strings.Contains(said.String(), tc.says) || strings.Count(said.String(), "interrupted") > 1 {
				t.Errorf("exit %d: %q; want %d, %q", code, said.String(), tc.code, tc.says)
			}
			if isMounted(t, mnt) {
				t.Error("left mounted")
			}
			eventually(t, 10*time.Second, func() error {
				if alive(child) {
					return fmt.Errorf("process %d is left", child)
				}
				return nil
			})
		})
	}
}

// TestLogsAreRotated moves the logs away under a daemon and signals it.
func TestLogsAreRotated(t *testing.T) {
	needFUSE(t)
	dir, mnt := openDir(t)
	names := []string{filepath.Join(dir, "log"), filepath.Join(dir, "reads")}
	frifs(t, "mount", "--daemon", "--log-file", names[0], "--log-format", "json", "--log-level", "info", "--access-log", names[1],
		"--pid-file", filepath.Join(dir, "pid"), testdata.Dataset(t, "tagged/chain"), mnt)
	pid := pidIn(t, filepath.Join(dir, "pid"))
	read(t, filepath.Join(mnt, "README.txt"))
	for _, n := range names {
		eventually(t, 5*time.Second, func() error {
			if len(read(t, n)) == 0 {
				return fmt.Errorf("%s is empty", n)
			}
			return nil
		})
		if err := os.Rename(n, n+".1"); err != nil {
			t.Fatal(err)
		}
	}
	_ = syscall.Kill(pid, syscall.SIGHUP)
	for _, n := range names {
		eventually(t, 5*time.Second, func() error { _, err := os.Stat(n); return err })
	}
	eventually(t, 5*time.Second, func() error {
		if at, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/2", pid)); err != nil || at != names[0] {
			return fmt.Errorf("stderr leads to %q, %w", at, err)
		}
		return nil
	})
	_ = syscall.Kill(pid, syscall.SIGUSR1) // stacks: a record of their own
	read(t, filepath.Join(mnt, "latest/version.json"))
	held, err := os.Open(filepath.Join(mnt, "dataset.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	_ = syscall.Kill(pid, syscall.SIGTERM) // in use: that is said, in the log
	for _, want := range []string{`"stack":"goroutine`, "still serving"} {
		eventually(t, 10*time.Second, func() error {
			if !strings.Contains(read(t, names[0]), want) {
				return fmt.Errorf("no %s in %s", want, read(t, names[0]))
			}
			return nil
		})
	}
	held.Close()
	sh(t, dir, "umount mnt")
	eventually(t, 10*time.Second, func() error {
		if alive(pid) || !strings.Contains(read(t, names[0]), "the mount is gone") {
			return fmt.Errorf("alive: %v; %s", alive(pid), read(t, names[0]))
		}
		return nil
	})
	for _, n := range append(names, names[0]+".1", names[1]+".1") {
		for line := range strings.Lines(read(t, n)) {
			if !json.Valid([]byte(line)) {
				t.Errorf("%s: no JSON: %q", n, line)
			}
		}
	}
	if !strings.Contains(read(t, names[1]), "version.json") || !strings.Contains(read(t, names[1]+".1"), "README.txt") {
		t.Error("the reads are not where they belong")
	}
}

// TestJSONOnStderr expects nothing but records on the stderr of a mount in the foreground.
func TestJSONOnStderr(t *testing.T) {
	m := mountDataset(t, "tagged/chain", "--log-format", "json", "--log-level", "info", "--omit-index", "no_such_index")
	m.signal(syscall.SIGTERM)
	if !m.ended(10 * time.Second) {
		t.Fatal("it does not end")
	}
	r := command(t, "", exe, "mount", "--log-format", "json", "--version", "999", testdata.Dataset(t, "legacy/basic"), t.TempDir())
	if r.code != 1 {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	text := m.logs.String() + r.stderr
	for line := range strings.Lines(text) {
		var l struct{ Time, Level, Msg string }
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Time == "" || l.Level == "" || l.Msg == "" {
			t.Errorf("%q: %v", line, err)
		}
	}
	for _, want := range []string{"is mounted at " + m.dir, `"level":"WARN","msg":"--omit-index: `, `"msg":"the mount is gone"`, `"level":"ERROR"`, "not retained"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}
