package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

func TestRanges(t *testing.T) {
	const size = 3*pieceSize + 17
	data := long(size)
	f := text(data)
	s := startServer(t, dirOf(map[string]nodes.Node{"f.csv": f, "empty": text("")}), Options{})
	tag := s.ask("HEAD", "/f.csv", "").head.Get("ETag")
	date := fakeTime.UTC().Format(http.TimeFormat)
	part := func(from, to int) string { return data[from:to] }
	for _, tc := range []struct {
		name   string
		header []string
		status int
		body   string // of 200 and 206
		span   string // Content-Range
	}{
		{"none", nil, 200, data, ""},
		{"first bytes", []string{"Range", "bytes=0-9"}, 206, part(0, 10), fmt.Sprintf("bytes 0-9/%d", size)},
		{"across pieces", []string{"Range", fmt.Sprintf("bytes=%d-%d", pieceSize-5, 2*pieceSize+5)}, 206, part(pieceSize-5, 2*pieceSize+6), fmt.Sprintf("bytes %d-%d/%d", pieceSize-5, 2*pieceSize+5, size)},
		{"to the end", []string{"Range", "bytes=100-"}, 206, part(100, size), fmt.Sprintf("bytes 100-%d/%d", size-1, size)},
		{"suffix", []string{"Range", "bytes=-7"}, 206, part(size-7, size), fmt.Sprintf("bytes %d-%d/%d", size-7, size-1, size)},
		{"suffix longer than the file", []string{"Range", fmt.Sprintf("bytes=-%d", size*2)}, 206, data, fmt.Sprintf("bytes 0-%d/%d", size-1, size)},
		{"beyond the end", []string{"Range", fmt.Sprintf("bytes=%d-%d", size-3, size*2)}, 206, part(size-3, size), fmt.Sprintf("bytes %d-%d/%d", size-3, size-1, size)},
		{"after the end", []string{"Range", fmt.Sprintf("bytes=%d-", size)}, 416, "", fmt.Sprintf("bytes */%d", size)},
		{"no range", []string{"Range", "bytes=x"}, 416, "", ""},
		{"more ranges than are answered", []string{"Range", "bytes=0-0" + strings.Repeat(",0-0", 200)}, 200, data, ""},
		{"If-Range that holds", []string{"Range", "bytes=5-6", "If-Range", tag}, 206, part(5, 7), fmt.Sprintf("bytes 5-6/%d", size)},
		{"If-Range of another file", []string{"Range", "bytes=5-6", "If-Range", `"other"`}, 200, data, ""},
		{"If-Range by date", []string{"Range", "bytes=5-6", "If-Range", date}, 206, part(5, 7), fmt.Sprintf("bytes 5-6/%d", size)},
		{"If-None-Match that holds", []string{"If-None-Match", `"other", ` + tag}, 304, "", ""},
		{"If-None-Match of another file", []string{"If-None-Match", `"other"`}, 200, data, ""},
		{"If-Match that holds", []string{"If-Match", tag}, 200, data, ""},
		{"If-Match of another file", []string{"If-Match", `"other"`}, 412, "", ""},
		{"If-Modified-Since", []string{"If-Modified-Since", date}, 304, "", ""},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			r := s.ask(method, "/f.csv", "", tc.header...)
			want := tc.body
			if method == "HEAD" || tc.status == 416 {
				want = ""
			}
			if r.err != nil || r.status != tc.status || (tc.status < 400 && r.body != want) || (tc.span != "" && r.head.Get("Content-Range") != tc.span) {
				t.Errorf("%s %s: %d, %d bytes, %q, %v", method, tc.name, r.status, len(r.body), r.head.Get("Content-Range"), r.err)
			}
			if tc.status < 300 && r.head.Get("Content-Length") != fmt.Sprint(len(tc.body)) {
				t.Errorf("%s %s: Content-Length %q, want %d", method, tc.name, r.head.Get("Content-Length"), len(tc.body))
			}
			if tc.status < 400 && (r.head.Get("ETag") != tag || r.head.Get("Cache-Control") != "no-cache") {
				t.Errorf("%s %s: %v", method, tc.name, r.head)
			}
		}
	}
	if r := s.ask("GET", "/empty", ""); r.status != 200 || r.body != "" || r.head.Get("Content-Length") != "0" {
		t.Errorf("an empty file: %d %q %v", r.status, r.body, r.head)
	}
	if r := s.ask("GET", "/empty", "", "Range", "bytes=0-"); r.status >= 500 || r.body != "" && r.status < 400 {
		t.Errorf("a range of an empty file: %d %q", r.status, r.body)
	}
	if f.get(&f.opened) != f.get(&f.closed) {
		t.Errorf("opened %d times, closed %d times", f.opened, f.closed)
	}
}

func TestSeveralRanges(t *testing.T) {
	data := long(2 * pieceSize)
	s := startServer(t, dirOf(map[string]nodes.Node{"f.csv": text(data)}), Options{})
	r := s.ask("GET", "/f.csv", "", "Range", "bytes=0-4,300000-300009,-3")
	kind, params, err := mime.ParseMediaType(r.head.Get("Content-Type"))
	if r.status != 206 || err != nil || kind != "multipart/byteranges" {
		t.Fatalf("%d %v", r.status, r.head)
	}
	parts := multipart.NewReader(strings.NewReader(r.body), params["boundary"])
	for _, want := range []string{data[:5], data[300000:300010], data[len(data)-3:]} {
		p, err := parts.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(p)
		if err != nil || string(b) != want || !strings.HasPrefix(p.Header.Get("Content-Type"), "text/csv") {
			t.Errorf("got %q %v %v, want %q", b, p.Header, err, want)
		}
	}
	if _, err := parts.NextPart(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last: %v", err)
	}
}

func TestEntityTags(t *testing.T) {
	for _, tc := range []struct {
		ino, size uint64
		want      string
	}{{0x2a, 0x10, `"2a-10"`}, {1<<63 - 1, 0, `"7fffffffffffffff-0"`}} {
		if got := (tagger{}).tag(nodes.Attr{Ino: tc.ino, Size: int64(tc.size)}); got != tc.want {
			t.Errorf("got %s, want %s", got, tc.want)
		}
	}
}

// asked is a file whose looking up does something.
type asked struct{ *fakeFile }

func (asked) Transient() bool { return true }

func TestTransientFilesAreNotKept(t *testing.T) {
	s := startServer(t, dirOf(map[string]nodes.Node{"refresh": asked{text("done")}}), Options{})
	if r := s.ask("GET", "/refresh", ""); r.body != "done" || r.head.Get("Cache-Control") != "no-store" {
		t.Errorf("%q %v", r.body, r.head)
	}
}

func TestMediaTypes(t *testing.T) {
	for name, want := range map[string]string{
		"a.json": "application/json", "errors.jsonl": "application/jsonl", "a.csv": "text/csv", "a.arrow": "application/vnd.apache.arrow.file",
		"a.svg": "image/svg+xml", "a.dot": "text/vnd.graphviz", "README.txt": "text/plain", "metrics": "text/plain",
		"a.lance": "application/octet-stream", "a.html": "application/octet-stream", "a.js": "application/octet-stream", "details.binpb": "application/octet-stream", "": "application/octet-stream",
	} {
		if got := mediaType(name); !strings.HasPrefix(got, want) {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// A file that cannot be read at its start is answered with its error; where the answer has begun, it breaks off.
func TestReadsThatFail(t *testing.T) {
	const size = 4 * pieceSize
	s := startServer(t, dirOf(map[string]nodes.Node{
		"start": failing(long(size), 0, fault.Corrupt), "later": failing(long(size), 3*pieceSize, fault.Unavailable),
	}), Options{})
	if r := s.ask("GET", "/start", ""); r.status != 500 || !strings.Contains(r.body, "the block at 0 is bad") || r.head.Get("ETag") != "" || r.head.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("at the start: %d %q %v", r.status, r.body, r.head)
	}
	if r := s.ask("GET", "/start", "", "Range", "bytes=5-10"); r.status != 500 || r.head.Get("Content-Range") != "" {
		t.Errorf("a range: %d %v", r.status, r.head)
	}
	if r := s.ask("HEAD", "/start", ""); r.status != 200 {
		t.Errorf("HEAD reads nothing: %d", r.status)
	}
	r := s.ask("GET", "/later", "")
	if r.status != 200 || r.err == nil || len(r.body) >= size {
		t.Errorf("later: %d, %d bytes, %v", r.status, len(r.body), r.err)
	}
	if r := s.ask("GET", "/later", "", "Range", "bytes=0-99"); r.status != 206 || len(r.body) != 100 {
		t.Errorf("beside the bad block: %d", r.status)
	}
	if r := s.ask("GET", "/later", "", "Range", fmt.Sprintf("bytes=0-9,%d-", size-10)); r.err == nil {
		t.Errorf("several ranges: %d, %d bytes", r.status, len(r.body))
	}
	failures, requests, _ := s.told()
	if len(failures) != 4 || failures[0].Path != "start" || failures[2].Kind != fault.Unavailable || failures[2].Op != "read" {
		t.Errorf("told of %+v", failures)
	}
	if len(requests) != 6 || requests[3].Err == nil || requests[3].Status != 200 {
		t.Errorf("told of %+v", requests)
	}
}

// A client that does not read is cut off, and meanwhile keeps nobody else from the only worker.
func TestSlowClient(t *testing.T) {
	s := startServer(t, dirOf(map[string]nodes.Node{"f": text(strings.Repeat("x", 32<<20)), "g": text("g")}), Options{Workers: 1, StallTimeout: 100 * time.Millisecond})
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET /f HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReaderSize(c, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q %v", line, err)
	}
	deadline := time.After(10 * time.Second)
	for {
		if r := s.ask("GET", "/g", ""); r.status != 200 {
			t.Fatalf("another client: %d", r.status)
		}
		_, requests, _ := s.told()
		cut := false
		for _, a := range requests {
			cut = cut || a.Path == "/f" && a.Err != nil
		}
		if cut {
			return
		}
		select {
		case <-deadline:
			t.Fatal("it was never cut off")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Requests follow each other on one connection, whatever deadlines the one before left on it.
func TestKeepAlive(t *testing.T) {
	s := startServer(t, dirOf(map[string]nodes.Node{"f": text("12345")}), Options{StallTimeout: 30 * time.Millisecond})
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for i, method := range []string{"GET", "HEAD", "PROPFIND", "HEAD", "GET"} {
		if i > 0 {
			<-time.After(60 * time.Millisecond)
		}
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/f", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Depth", "0")
		if err := req.Write(c); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(in, req)
		if err != nil {
			t.Fatalf("request %d, %s: %v", i, method, err)
		}
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode >= 300 || res.Close {
			t.Fatalf("request %d, %s: %d %v, closes: %v", i, method, res.StatusCode, err, res.Close)
		}
	}
}

func TestRunEnds(t *testing.T) {
	inside, release := make(chan struct{}, 2), make(chan struct{})
	f, deaf := text("f"), text("deaf")
	wait := func(context.Context) error { inside <- struct{}{}; <-release; return nil }
	f.open = wait
	deaf.open = func(context.Context) error { inside <- struct{}{}; select {} }
	root := dirOf(map[string]nodes.Node{"f": f, "deaf": deaf})
	start := func(grace time.Duration) (url string, end func() error) {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Run(ctx, Server(New(root, Options{})), l, grace) }()
		return "http://" + l.Addr().String(), func() error { cancel(); return <-ended }
	}
	get := func(url string) <-chan string {
		out := make(chan string, 1)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				out <- "broken"
				return
			}
			defer res.Body.Close()
			var b bytes.Buffer
			_, _ = b.ReadFrom(res.Body)
			out <- b.String()
		}()
		<-inside
		return out
	}
	url, end := start(10 * time.Second)
	answer := get(url + "/f")
	time.AfterFunc(20*time.Millisecond, func() { close(release) })
	if err := end(); err != nil {
		t.Errorf("with time to end: %v", err)
	}
	if got := <-answer; got != "f" {
		t.Errorf("the request that ran got %q", got)
	}
	url, end = start(20 * time.Millisecond)
	answer = get(url + "/deaf")
	if err := end(); !errors.Is(err, ErrCutOff) {
		t.Errorf("without: %v", err)
	}
	if got := <-answer; got != "broken" {
		t.Errorf("the request that was cut off got %q", got)
	}
}
