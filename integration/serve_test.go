package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/testdata"
)

// served is a process that serves a dataset over HTTP.
type served struct {
	t    testing.TB
	url  string // without a slash at the end
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	logs *log          // its stderr
}

// serve serves a dataset of the test data.
func serve(t testing.TB, name string, flags ...string) *served {
	t.Helper()
	return serveURI(t, testdata.Dataset(t, name), append(flags, rebase(t, name)...)...)
}

// serveURI starts `frifs serve` and returns once it says where it answers. It is ended when the test ends.
func serveURI(t testing.TB, uri string, flags ...string) *served {
	t.Helper()
	s := &served{t: t, cmd: exec.Command(exe, append([]string{"serve", uri}, flags...)...), done: make(chan struct{}), logs: new(log)}
	s.cmd.Stderr = s.logs
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n')
		line <- text
		_ = s.cmd.Wait() // the exit code is looked at through ProcessState
		close(s.done)
	}()
	t.Cleanup(func() {
		if s.end(syscall.SIGTERM) != 0 {
			t.Errorf("after SIGTERM: %v: %s", s.cmd.ProcessState, s.logs)
		}
	})
	select {
	case text := <-line:
		if s.url = strings.TrimSuffix(text, "/\n"); !strings.HasPrefix(s.url, "http://127.0.0.1:") {
			t.Fatalf("it said %q; %s", text, s.logs)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("it says nothing: %s", s.logs)
	}
	return s
}

// end signals the process, if it runs, waits for its end, and returns its exit code.
func (s *served) end(sig os.Signal) int {
	_ = s.cmd.Process.Signal(sig) // it may have ended
	select {
	case <-s.done:
	case <-time.After(15 * time.Second):
		s.t.Errorf("still serving 15 s after %v: %s", sig, s.logs)
		_ = s.cmd.Process.Kill()
		<-s.done
	}
	return s.cmd.ProcessState.ExitCode()
}

// treeFile is a file of the tree as `frifs cat` gives it, in a folder of the test.
func treeFile(t testing.TB, name, path string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "want")
	if err := os.WriteFile(out, []byte(frifs(t, append([]string{"cat", testdata.Dataset(t, name), path}, rebase(t, name)...)...)), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

const servedDir = "latest/fri/transitions/0004"

func TestCurl(t *testing.T) {
	needTool(t, "curl")
	s := serve(t, "tagged/chain")
	want := treeFile(t, "tagged/chain", servedDir+"/mapping.csv")
	for _, c := range []struct{ name, script string }{
		{"a file", `curl -sSf "$1" | cmp - "$2"`},
		{"with a redirect, and a listing", `curl -sSfL "${1%%/latest*}/latest?format=json" | grep '"name":"fri"' >/dev/null`},
		{"a range", `curl -sSf -r 100-299 "$1" | cmp - <(tail -c +101 "$2" | head -c 200)`},
		{"the last bytes", `curl -sSf -r -77 "$1" | cmp - <(tail -c 77 "$2")`},
		{"several ranges", `test "$(curl -sSf -r 0-3,10-12,-5 "$1" | grep -c Content-Range)" = 3`},
		{"a resumed download", `head -c 4000 "$2" > "$3/part"; curl -sSf -C - -o "$3/part" "$1"; cmp "$3/part" "$2"`},
		{"a tag", `curl -sSf --etag-save "$3/tag" -o "$3/first" "$1"; test "$(curl -sSf --etag-compare "$3/tag" -o "$3/again" -w '%{http_code}' "$1")" = 304; cmp "$3/first" "$2"`},
		{"a resumed download of another file", `! curl -sSf -H 'If-Match: "other"' -C 10 -o /dev/null "$1" 2>"$3/err"; grep -q 412 "$3/err"`},
		{"one connection", `curl -sSf -w '%{num_connects}\n' -o "$3/a" "$1" -o "$3/b" "$1" | sort | tr -d '\n' | grep -qx 01; cmp "$3/b" "$2"`},
		{"what is not there", `test "$(curl -s -o /dev/null -w '%{http_code}' "$1.gz")" = 404`},
		{"what cannot be done", `test "$(curl -s -o /dev/null -w '%{http_code}' -T "$2" "$1")" = 403`},
		{"up and out", `test "$(curl -s --path-as-is -o /dev/null -w '%{http_code}' "${1%%/latest*}/../../../etc/passwd")" = 400`},
		{"a stranger's name", `test "$(curl -s -o /dev/null -w '%{http_code}' -H 'Host: evil.example' "$1")" = 421`},
		{"a file that has to be worked out", `curl -sSfI "${1%%/latest*}/latest/fri/scan/composed.csv" | grep -i '^content-length: [1-9]' >/dev/null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			sh(t, root, c.script, s.url+"/"+servedDir+"/mapping.csv", want, t.TempDir())
		})
	}
}

// A damaged manifest costs its version only, and the answer says why.
func TestServeDamage(t *testing.T) {
	needTool(t, "curl")
	table := testdata.Copy(t, "legacy/basic")
	manifests, err := filepath.Glob(filepath.Join(table, "_versions", "*.manifest"))
	if err != nil || len(manifests) < 2 {
		t.Fatalf("%q: %v", manifests, err)
	}
	s := serveURI(t, table)
	newest := sh(t, root, `curl -sS -o /dev/null -w '%{redirect_url}' "$1/latest" | grep -oE '[0-9]+/$'`, s.url)
	damaged := "versions/" + newest
	older := 0
	for _, m := range manifests {
		n, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(m), ".manifest"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if v := min(n, math.MaxUint64-n); fmt.Sprintf("%d/", v) == newest {
			if err := os.Truncate(m, 20); err != nil {
				t.Fatal(err)
			}
		} else {
			older = int(v)
		}
	}
	s = serveURI(t, table)
	body := sh(t, root, `curl -sS -H 'Accept: application/json' -w '%{http_code}' "$1/$2version.json"`, s.url, damaged)
	var e struct{ Kind, Message, Path string }
	text, code, _ := strings.Cut(body, "\n")
	if err := json.Unmarshal([]byte(text), &e); err != nil || code != "500" || e.Kind != "corrupt" || e.Path != "/"+damaged+"version.json" || e.Message == "" {
		t.Errorf("%q: %v", body, err)
	}
	sh(t, root, `curl -sSf "$1/$2ERROR.json" | grep corrupt >/dev/null; curl -sSf -o /dev/null "$1/versions/$3/version.json"`, s.url, damaged, strconv.Itoa(older))
}

func TestHTTPClients(t *testing.T) {
	s := serve(t, "tagged/chain")
	want := fmt.Sprint(viewOf(t, treeFile(t, "tagged/chain", servedDir+"/mapping.csv")))
	script := filepath.Join(root, "integration/py/http_clients.py")
	ask := func(t *testing.T, env, group string, into any) {
		t.Helper()
		r := command(t, "", interpreter(t, env), script, group, s.url, servedDir)
		if r.code != 0 {
			t.Fatalf("%s: exit %d: %s", group, r.code, r.stderr)
		}
		if err := json.Unmarshal([]byte(r.stdout), into); err != nil {
			t.Fatal(err)
		}
	}
	check := func(t *testing.T, seen map[string][]json.Number, n int) {
		t.Helper()
		if len(seen) != n {
			t.Errorf("%d clients, want %d", len(seen), n)
		}
		for client, v := range seen {
			if fmt.Sprint(v) != want {
				t.Errorf("%s sees %v, the bytes say %s", client, v, want)
			}
		}
	}
	t.Run("DuckDB, fsspec and WebDAV", func(t *testing.T) {
		var got struct {
			Seen          map[string][]json.Number
			Version, Size int
			Listed, Names []string
			Refused       string
		}
		ask(t, "http", "http", &got)
		check(t, got.Seen, 3)
		all := strings.Split(strings.TrimSpace(frifs(t, "ls", testdata.Dataset(t, "tagged/chain"), servedDir)), "\n")
		all = slices.DeleteFunc(all, func(n string) bool { return n == "scan" })
		if fmt.Sprint(got.Listed) != fmt.Sprint(all) || fmt.Sprint(got.Names) != fmt.Sprint(all) {
			t.Errorf("listed %q and %q, want %q", got.Listed, got.Names, all)
		}
		if got.Version != 29 || got.Size == 0 || got.Refused == "" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("data frames", func(t *testing.T) {
		var got struct {
			Seen  map[string][]json.Number
			Lance string
		}
		ask(t, newest, "frames", &got)
		check(t, got.Seen, 3)
		// Lance has no store for HTTP. When it gets one, remapped.lance is to be read through it here.
		if !strings.Contains(got.Lance, "scheme") {
			t.Errorf("the official reader says %q", got.Lance)
		}
	})
}

// WebDAV clients of people: one that syncs, and one for the terminal.
func TestWebDAVClients(t *testing.T) {
	needTool(t, "rclone", "cadaver", "diff")
	s := serve(t, "tagged/chain")
	dir := t.TempDir()
	frifs(t, "export", testdata.Dataset(t, "tagged/chain"), "versions/29/fri/transitions", filepath.Join(dir, "want"))
	const remote = `rclone --config /dev/null --webdav-url "$1" `
	sh(t, dir, remote+`copy --exclude '**/scan/**' :webdav:latest/fri/transitions got; rm -rf want/*/scan; diff -r want got`, s.url)
	names := sh(t, dir, remote+`lsf -R :webdav:versions/29/fri | sort`, s.url)
	for _, want := range []string{"history.json", "scan/", "scan/composed.csv", "transitions/0004/mapping.csv"} {
		if !slices.Contains(strings.Split(names, "\n"), want) {
			t.Errorf("rclone does not list %s: %q", want, names)
		}
	}
	sh(t, dir, `! `+remote+`copyto want/0001/mapping.csv :webdav:new.csv --retries 1 --low-level-retries 1 2>err; grep -q 403 err`, s.url)
	out := sh(t, dir, `printf 'ls\ncd latest\nls\nget version.json got.json\nput want/0001/mapping.csv\nmkcol x\nquit\n' | cadaver "$1"`, s.url)
	if strings.Count(out, "403 Forbidden") != 2 || !regexp.MustCompile(`Coll: +latest `).MatchString(out) || !regexp.MustCompile(`(?m)^ +version\.json +\d{3,}`).MatchString(out) {
		t.Errorf("cadaver: %s", out)
	}
	if got := read(t, filepath.Join(dir, "got.json")); got != read(t, treeFile(t, "tagged/chain", "latest/version.json")) {
		t.Errorf("cadaver got %d bytes", len(got))
	}
}

// A real browser makes of the pages what a person is to see: every name, as a link that leads somewhere.
func TestBrowser(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-headless-shell", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && browser == "" {
			browser = path
		}
	}
	if browser == "" {
		missing(t, "there is no Chromium (Debian: apt-get install chromium)")
	}
	needTool(t, "curl")
	s := serve(t, "tagged/all_types")
	see := func(path string) string {
		t.Helper()
		r := command(t, "", browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir="+t.TempDir(), "--dump-dom", s.url+path)
		if r.code != 0 || r.stdout == "" {
			t.Fatalf("%s: exit %d: %.2000s", path, r.code, r.stderr)
		}
		return r.stdout
	}
	dom := see("/latest/indices/")
	if !strings.Contains(dom, "<title>/versions/") {
		t.Errorf("the link was not followed to the real path: %.500s", dom)
	}
	links := regexp.MustCompile(`<td><a href="\./([^"]+)">`).FindAllStringSubmatch(dom, -1)
	names := strings.Split(strings.TrimSpace(frifs(t, "ls", testdata.Dataset(t, "tagged/all_types"), "latest/indices")), "\n")
	if len(links) != len(names) {
		t.Fatalf("%d links for %q: %s", len(links), names, dom)
	}
	for _, l := range links {
		if code := sh(t, root, `curl -s -o /dev/null -w '%{http_code}' "$1"`, s.url+"/latest/indices/"+l[1]); code != "307" {
			t.Errorf("%s: %s", l[1], code)
		}
	}
	if dom := see("/latest/version.json"); !strings.Contains(dom, "rows") {
		t.Errorf("version.json: %.300s", dom)
	}
}

func TestServeLifecycle(t *testing.T) {
	needTool(t, "curl")
	access := filepath.Join(t.TempDir(), "access.jsonl")
	s := serve(t, "tagged/chain", "--access-log", access)
	if said := s.logs.String(); !strings.Contains(said, s.url) || !strings.Contains(said, "29 versions") || strings.Contains(said, "password") {
		t.Errorf("it says %q", said)
	}
	sh(t, root, `curl -sSf -r 0-9 -o /dev/null "$1/latest/version.json"; curl -s -o /dev/null "$1/nothing"`, s.url)
	if code := s.end(os.Interrupt); code != 0 {
		t.Errorf("after SIGINT: exit %d: %s", code, s.logs)
	}
	var outcomes []string
	for _, line := range strings.Split(strings.TrimSpace(read(t, access)), "\n") {
		var l struct {
			Method, Path, Range, Outcome string
			Status, Given                int
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		outcomes = append(outcomes, fmt.Sprintf("%s %s %q %d %d %s", l.Method, l.Path, l.Range, l.Status, l.Given, l.Outcome))
	}
	for _, want := range []string{`GET /latest/version.json "bytes=0-9" 206 10 ok`, `GET /nothing "" 404`} {
		if !slices.ContainsFunc(outcomes, func(o string) bool { return strings.HasPrefix(o, want) }) {
			t.Errorf("the access log lacks %s: %q", want, outcomes)
		}
	}
}
