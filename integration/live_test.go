package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
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

// writer is integration/py/writer.py: official Lance that does to a table what it is told.
type writer struct {
	t     testing.TB
	table string
	in    io.WriteCloser
	out   *bufio.Scanner
}

// did is what the writer answers.
type did struct {
	Did      string
	Version  uint64                            // the newest
	Made     map[uint64]madeVersion            // versions that it made
	Branches map[string]map[uint64]madeVersion // the same of branches, without the rows one by one
	Indices  int                               // of a dataset that was checked
	Pages    [2][]uint64                       // values and addresses of a BTREE
	Error    string
}

// madeVersion is what official Lance says of a version when it has made it.
type madeVersion struct {
	Rows, Sum       uint64   // live rows, and the sum of their ids
	Addresses, Keys []uint64 // of each row; a key is one row for ever
}

func startWriter(t testing.TB, table string, args ...string) *writer {
	t.Helper()
	py := filepath.Join(root, "integration", ".venv", "bin", "python")
	if _, err := os.Stat(py); err != nil {
		missing(t, "there are no Python clients: make venv installs them")
	}
	cmd := exec.Command(py, append([]string{filepath.Join(root, "integration/py/writer.py"), table}, args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs := new(log)
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the writer: %v: %s", err, errs)
		}
	})
	sc := bufio.NewScanner(out)
	sc.Buffer(nil, 16<<20)
	return &writer{t, table, in, sc}
}

// try has the writer do one thing, which may fail.
func (w *writer) try(what string) (d did, err error) {
	if _, err := fmt.Fprintln(w.in, what); err != nil {
		return d, err
	}
	if !w.out.Scan() {
		return d, fmt.Errorf("the writer ended at %q: %w", what, w.out.Err())
	}
	return d, json.Unmarshal(w.out.Bytes(), &d)
}

// do has the writer do one thing.
func (w *writer) do(what string) did {
	w.t.Helper()
	d, err := w.try(what)
	if err != nil {
		w.t.Fatal(err)
	}
	if d.Error != "" {
		w.t.Fatalf("the writer could not %s: %s", what, d.Error)
	}
	return d
}

func latestOf(m *mounted) (string, error) { return os.Readlink(m.path("latest")) }

// leads waits until latest leads to a version.
func (m *mounted) leads(within time.Duration, version uint64) {
	m.t.Helper()
	eventually(m.t, within, func() error {
		got, err := latestOf(m)
		if want := fmt.Sprintf("versions/%d", version); err == nil && got != want {
			err = fmt.Errorf("latest leads to %s, want %s", got, want)
		}
		return err
	})
}

// TestLiveVersionsAppear: what the kernel has cached does not keep a client from seeing a new version in time, by each
// way of looking.
func TestLiveVersionsAppear(t *testing.T) {
	table := filepath.Join(t.TempDir(), "t.lance")
	w := startWriter(t, table)
	v := w.do("append").Version
	poll := mount(t, table, "--poll-interval", "1s")
	slow := mount(t, table, "--poll-interval", "1h")
	pinned := mount(t, table, "--poll-interval", "1s", "--version", fmt.Sprint(v))
	for _, m := range []*mounted{poll, slow, pinned} {
		m.leads(0, v)
		if _, err := os.Stat(m.path(fmt.Sprintf("versions/%d", v+1))); !os.IsNotExist(err) {
			t.Fatalf("version %d is there already: %v", v+1, err)
		}
		if _, err := os.Stat(m.path("tags/now")); !os.IsNotExist(err) {
			t.Fatalf("the tag is there already: %v", err)
		}
	}
	v = w.do("append").Version
	w.do("tag now")
	poll.leads(4*time.Second, v) // an interval, and a second; the rest is for a slow machine
	eventually(t, 4*time.Second, func() error {
		target, err := os.Readlink(poll.path("tags/now"))
		if err == nil && target != fmt.Sprintf("../versions/%d", v) {
			err = fmt.Errorf("tags/now leads to %s", target)
		}
		return err
	})
	if r := command(t, "", exe, "refresh", slow.dir); r.code != 0 || !strings.HasPrefix(r.stdout, fmt.Sprintf("version %d is the newest; it was version %d", v, v-1)) {
		t.Errorf("frifs refresh: %+v", r)
	}
	slow.leads(time.Second, v)
	if r := command(t, "", exe, "refresh", slow.dir); r.code != 0 || !strings.Contains(r.stdout, "nothing has changed") {
		t.Errorf("frifs refresh again: %+v", r)
	}
	v = w.do("append").Version
	slow.signal(syscall.SIGHUP)
	slow.leads(4*time.Second, v)
	pinned.leads(0, 1)
	if r := command(t, "", exe, "refresh", pinned.dir); r.code != 0 || !strings.Contains(r.stdout, "pinned to version 1") {
		t.Errorf("frifs refresh of a pinned mount: %+v", r)
	}
	if r := command(t, "", exe, "refresh", t.TempDir()); r.code != 2 || !strings.Contains(r.stderr, "nothing is mounted here") {
		t.Errorf("frifs refresh of no mount: %+v", r)
	}
	for _, name := range strings.Fields(sh(t, slow.dir, "ls -a .frifs")) {
		if name == "refresh" {
			t.Error("refresh is listed")
		}
	}
}

// TestLiveCleanUp: a version that is cleaned up leaves the listing; what is open of it goes on as long as its objects
// are there, and says ESTALE and why when they are not.
func TestLiveCleanUp(t *testing.T) {
	dir := testdata.Copy(t, "legacy/basic")
	m := mount(t, dir, append(rebase(t, "legacy/basic"), "--poll-interval", "1h", "--memory", "1MiB", "--no-passthrough")...)
	stored := sh(t, m.dir, "find latest/indices -path '*/stored/*' -name '*.lance' | head -1")
	held, err := os.Open(m.path(stored))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	want, err := os.ReadFile(m.path(stored))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.Open(m.path("latest/manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer doc.Close()
	newest, err := latestOf(m)
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("bash", "-c", "cd "+m.path(newest)+" && echo in && read go; cat version.json; ls indices 2>&1; true")
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the shell does not start")
	}
	number, err := strconv.ParseUint(strings.TrimPrefix(newest, "versions/"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fmt.Sprintf("%d.manifest", number), fmt.Sprintf("%020d.manifest", ^number)} {
		if err := os.Remove(filepath.Join(dir, "_versions", name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "_indices")); err != nil {
		t.Fatal(err)
	}
	if r := command(t, "", exe, "refresh", m.dir); r.code != 0 {
		t.Fatalf("refresh: %+v", r)
	}
	eventually(t, 2*time.Second, func() error {
		if _, err := os.Stat(m.path(newest)); !os.IsNotExist(err) {
			return fmt.Errorf("%s is still there (stat gives %w)", newest, err)
		}
		return nil
	})
	b, err := io.ReadAll(held)
	if err == nil && string(b) != string(want) {
		t.Error("an open file gives other bytes than it had")
	}
	if err != nil && !isErrno(err, syscall.ESTALE) {
		t.Errorf("an open file: %v", err)
	}
	if _, err := io.Copy(io.Discard, doc); err != nil && !isErrno(err, syscall.ESTALE) {
		t.Errorf("an open document: %v", err)
	}
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // whatever it can still see; it must end
	}
	if err := shell.Wait(); err != nil {
		t.Error(err)
	}
}
