package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/testdata"
	"github.com/frifs/frifs/serve"
)

// startServe runs the command until the test's context ends, and returns the URL that it prints.
func startServe(t *testing.T, args ...string) (url string, end func() result) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	out, w := io.Pipe()
	var errs bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, append([]string{"serve"}, args...), strings.NewReader(""), w, &errs)
		_ = w.Close()
		ended <- code
	}()
	line := make([]byte, 256)
	n, err := out.Read(line)
	if err != nil {
		t.Fatalf("it printed nothing: exit %d: %s", <-ended, errs.String())
	}
	return strings.TrimSpace(string(line[:n])), func() result {
		cancel()
		return result{<-ended, "", errs.String()}
	}
}

func fetch(t *testing.T, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestServe(t *testing.T) {
	chain := testdata.Dataset(t, "tagged/chain")
	url, end := startServe(t, "--version", "12", chain)
	if !strings.HasPrefix(url, "http://127.0.0.1:") || !strings.HasSuffix(url, "/") {
		t.Errorf("it printed %q", url)
	}
	want := must(t, "cat", "--version", "12", chain, "latest/fri/history.json")
	if status, got := fetch(t, url+"latest/fri/history.json"); status != 200 || got != want {
		t.Errorf("status %d, %d bytes, want %d", status, len(got), len(want))
	}
	if status, got := fetch(t, url+"versions/13/version.json"); status != 404 || strings.Contains(got, "lookup:") {
		t.Errorf("a version that is not shown: %d %q", status, got)
	}
	r := end()
	if r.code != 0 || !strings.Contains(r.stderr, "(version 12) is served at "+url) {
		t.Errorf("exit %d: %q", r.code, r.stderr)
	}
}

func TestServeRefuses(t *testing.T) {
	chain := testdata.Dataset(t, "tagged/chain")
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tc := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"all addresses", []string{"--listen", "0.0.0.0:0", chain}, 2, "--allow-remote"},
		{"all addresses, IPv6", []string{"--listen", "[::]:0", chain}, 2, "without a password"},
		{"no port", []string{"--listen", "127.0.0.1", chain}, 2, "HOST:PORT"},
		{"a port that is taken", []string{"--listen", taken.Addr().String(), chain}, 1, "in use"},
		{"no dataset", []string{chain + "/none"}, 1, "does not exist"},
		{"no version", []string{"--version", "999", chain}, 1, "not retained"},
		{"no URI", nil, 2, "URI is missing"},
		{"no access log", []string{"--access-log", "/proc/none/log", chain}, 1, "/proc/none/log"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if r := frifs(t, "", append([]string{"serve"}, tc.args...)...); r.code != tc.code || !strings.Contains(r.stderr, tc.says) || r.stdout != "" {
				t.Errorf("exit %d, %q, %q; want %d and %q", r.code, r.stdout, r.stderr, tc.code, tc.says)
			}
		})
	}
}

func TestServeSaysWhatItExposes(t *testing.T) {
	_, end := startServe(t, "--listen", "0.0.0.0:0", "--allow-remote", testdata.Dataset(t, "legacy/basic"))
	if r := end(); r.code != 0 || !strings.Contains(r.stderr, "can read the whole dataset, without a password") {
		t.Errorf("exit %d: %q", r.code, r.stderr)
	}
}

func TestListen(t *testing.T) {
	for addr, ok := range map[string]bool{":0": true, "localhost:0": true, "127.0.0.2:0": true, "0.0.0.0:0": false} {
		l, err := listen(t.Context(), addr, false)
		if (err == nil) != ok {
			t.Errorf("%s: %v", addr, err)
		}
		if err != nil {
			continue
		}
		if a, is := l.Addr().(*net.TCPAddr); !is || !a.IP.IsLoopback() {
			t.Errorf("%s listens at %v", addr, l.Addr())
		}
		_ = l.Close()
	}
}

func TestRequestLines(t *testing.T) {
	var out bytes.Buffer
	a, err := openAccessLog("-", &out)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	a.request(serve.Access{Time: at, Remote: "127.0.0.1:1", Method: "GET", Path: "/a", Range: "bytes=0-1", Status: 206, Bytes: 2, Took: 3 * time.Microsecond})
	a.request(serve.Access{Time: at, Method: "GET", Path: "/b", Status: 500, Err: fault.New("x", "y", fault.Corrupt, "z")})
	a.close()
	const want = `{"time":"2026-05-04T03:02:01Z","remote":"127.0.0.1:1","method":"GET","path":"/a","range":"bytes=0-1","status":206,"given":2,"microseconds":3,"outcome":"ok"}
{"time":"2026-05-04T03:02:01Z","remote":"","method":"GET","path":"/b","range":"","status":500,"given":0,"microseconds":0,"outcome":"corrupt"}
`
	if out.String() != want {
		t.Errorf("got %s", out.String())
	}
}
