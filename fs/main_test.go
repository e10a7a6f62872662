package fs

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// serveEnv makes the test binary mount the fake tree at the path it names and serve it: the tests are the clients, in
// another process, since a process must never read its own mount.
const serveEnv = "FRIFS_FS_TEST_SERVE"

func TestMain(m *testing.M) {
	if mp := os.Getenv(serveEnv); mp != "" {
		os.Exit(serveFake(mp))
	}
	os.Exit(m.Run())
}

func serveFake(mp string) int {
	limit, _ := strconv.Atoi(os.Getenv("FRIFS_FS_TEST_INODES"))
	opt := Options{
		Source:          "fake,with\\odd chars",
		OpTimeout:       2 * time.Second,
		MetadataTimeout: 2 * time.Second,
		InterruptGrace:  700 * time.Millisecond,
		VolatileTimeout: 100 * time.Millisecond,
		InodeLimit:      limit,
		Logger:          slog.New(slog.NewTextHandler(os.Stderr, nil)),
		OnError: func(f Failure) {
			fmt.Fprintf(os.Stderr, "failure op=%s path=%s kind=%v\n", f.Op, f.Path, f.Kind)
		},
		Force:    os.Getenv("FRIFS_FS_TEST_FORCE") != "",
		writable: os.Getenv("FRIFS_FS_TEST_RW") != "",
		byHelper: os.Getenv("FRIFS_FS_TEST_HELPER") != "",

		NoPassthrough: os.Getenv("FRIFS_FS_TEST_NOPASS") != "",
	}
	if d, err := time.ParseDuration(os.Getenv("FRIFS_FS_TEST_VOLATILE")); err == nil {
		opt.VolatileTimeout = d
	}
	sig := make(chan os.Signal, 4)
	signal.Notify(sig, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	tree := fakeTree()
	moving := addMoving(tree)
	srv, err := Mount(context.Background(), tree, mp, opt)
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fmt.Println("ready")
	for {
		select {
		case <-srv.Done():
			return 0
		case s := <-sig:
			switch s {
			case syscall.SIGHUP:
				srv.Refresh()
			case syscall.SIGUSR2:
				srv.Invalidate(moving.next()...)
			case syscall.SIGUSR1:
				fmt.Printf("stats %+v\n", srv.Stats())
			default:
				if err := srv.Unmount(); err != nil {
					fmt.Println("busy:", err)
				}
			}
		}
	}
}

// server is a mount of the fake tree in another process.
type server struct {
	mp  string
	cmd *exec.Cmd
	out *bufio.Scanner
}

// needFUSE skips where this machine cannot mount; in CI that is a failure.
func needFUSE(t testing.TB) {
	t.Helper()
	for _, c := range Doctor() {
		if !c.OK && c.Needed {
			if os.Getenv("FRIFS_CI") == "1" {
				t.Fatalf("FRIFS_CI=1 but this machine cannot mount: %s", c.Detail)
			}
			t.Skipf("this machine cannot mount: %s", c.Detail)
		}
	}
}

// start serves the fake tree; env are additional "NAME=value" settings.
func start(t testing.TB, env ...string) *server {
	t.Helper()
	needFUSE(t)
	mp := t.TempDir()
	s := startAt(t, mp, env...)
	if line := s.line(t); line != "ready" {
		t.Fatalf("the server said %q", line)
	}
	return s
}

func startAt(t testing.TB, mp string, env ...string) *server {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), serveEnv+"="+mp, "GORACE=atexit_sleep_ms=0"), env...)
	if testing.Verbose() {
		cmd.Stderr = os.Stderr
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{mp: mp, cmd: cmd, out: bufio.NewScanner(out)}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		done := make(chan struct{})
		go func() { _ = cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Errorf("the server did not end after SIGTERM")
			_ = Unmount(mp, true)
			_ = cmd.Process.Kill()
			<-done
		}
		if _, ok := mountAt(mp); ok {
			t.Errorf("%s is still mounted", mp)
			_ = unmountPath(mp, true)
		}
	})
	return s
}

func (s *server) line(t testing.TB) string {
	t.Helper()
	if !s.out.Scan() {
		t.Fatalf("the server ended: %v", s.out.Err())
	}
	return s.out.Text()
}

func (s *server) path(name string) string { return filepath.Join(s.mp, name) }

// calls reads the counters of the fake tree.
func (s *server) calls(t testing.TB) map[string]int {
	t.Helper()
	b, err := os.ReadFile(s.path("calls"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, l := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		name, n, _ := strings.Cut(l, " ")
		out[name], _ = strconv.Atoi(n)
	}
	return out
}

// freshCalls waits for the counters' name to expire, so that they are those of now.
func (s *server) freshCalls(t testing.TB) map[string]int {
	t.Helper()
	before := inoOf(t, s.path("calls"))
	deadline := time.Now().Add(5 * time.Second)
	for inoOf(t, s.path("calls")) == before {
		if time.Now().After(deadline) {
			t.Fatal("a volatile name did not expire")
		}
		time.Sleep(20 * time.Millisecond)
	}
	return s.calls(t)
}

func inoOf(t testing.TB, path string) uint64 {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		t.Fatalf("stat %s: %v", path, err)
	}
	return st.Ino
}
