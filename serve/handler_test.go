package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// TestStatus holds the table of statuses beside the one of package fault.
func TestStatus(t *testing.T) {
	for _, tc := range []struct {
		kind   fault.Kind
		status int
		retry  string
	}{
		{fault.NotFound, 404, ""},
		{fault.Stale, 410, ""},
		{fault.Corrupt, 500, ""},
		{fault.Unsupported, 501, ""},
		{fault.Denied, 403, ""},
		{fault.Invalid, 400, ""},
		{fault.TooLarge, 413, ""},
		{fault.Unavailable, 503, "5"},
		{fault.TimedOut, 504, "5"},
		{fault.Cancelled, 503, "1"},
		{fault.ReadOnly, 403, ""},
		{fault.Unknown, 500, ""},
		{fault.Kind(200), 500, ""},
	} {
		if got := Status(tc.kind); got != tc.status {
			t.Errorf("kind %d: status %d, want %d", tc.kind, got, tc.status)
		}
		f := text("content")
		f.open = func(context.Context) error {
			return fault.New("fake.Open", "some/file", tc.kind, "two\nlines")
		}
		s := startServer(t, dirOf(map[string]nodes.Node{"f.json": f}), Options{})
		for _, asJSON := range []bool{false, true} {
			var header []string
			if asJSON {
				header = []string{"Accept", "application/json"}
			}
			r := s.ask("GET", "/f.json", "", header...)
			if r.status != tc.status || r.head.Get("Retry-After") != tc.retry || r.head.Get("Cache-Control") != "no-store" || r.head.Get("ETag") != "" {
				t.Errorf("%v: %d %v", tc.kind, r.status, r.head)
			}
			if strings.Count(r.body, "\n") != 1 || !strings.Contains(r.body, "two lines") {
				t.Errorf("%v: body %q", tc.kind, r.body)
			}
			var body errorBody
			if err := json.Unmarshal([]byte(r.body), &body); (err == nil) != asJSON || asJSON && (body.Kind != tc.kind.String() || body.Path != "/f.json") {
				t.Errorf("%v: JSON %v: %q", tc.kind, asJSON, r.body)
			}
		}
	}
}

func TestMethods(t *testing.T) {
	s := startServer(t, dirOf(map[string]nodes.Node{"f": text("x")}), Options{})
	for method, want := range map[string]int{
		"GET": 200, "HEAD": 200, "OPTIONS": 200, "PROPFIND": 403, // no Depth: all of the tree
		"PUT": 403, "DELETE": 403, "MKCOL": 403, "COPY": 403, "MOVE": 403, "PROPPATCH": 403,
		"POST": 405, "PATCH": 405, "LOCK": 405, "UNLOCK": 405, "TRACE": 405, "NONSENSE": 405,
	} {
		r := s.ask(method, "/f", "")
		if r.status != want {
			t.Errorf("%s: %d, want %d", method, r.status, want)
		}
		if want == 405 && r.head.Get("Allow") != allowed {
			t.Errorf("%s: Allow is %q", method, r.head.Get("Allow"))
		}
	}
	r := s.ask("OPTIONS", "/", "")
	if r.head.Get("Allow") != allowed || r.head.Get("DAV") != "1" {
		t.Errorf("OPTIONS: %v", r.head)
	}
	if r := s.ask("PUT", "/new", strings.Repeat("x", 1<<20)); r.err == nil && r.status != 403 {
		t.Errorf("PUT with a body: %d", r.status)
	}
}

func TestHosts(t *testing.T) {
	for _, tc := range []struct {
		hosts []string
		host  string
		ok    bool
	}{
		{nil, "localhost:80", true}, {nil, "LOCALHOST", true}, {nil, "a.localhost", true}, {nil, "127.0.0.1:1", true}, {nil, "[::1]:80", true},
		{nil, "[fe80::1%25eth0]:80", true}, {nil, "10.1.2.3", true},
		{nil, "", true}, {nil, "evil.example", false}, {nil, "localhost.evil.example:80", false}, {nil, "127.0.0.1.evil.example", false},
		{[]string{"data.example"}, "Data.Example:8080", true}, {[]string{"data.example"}, "other.example", false}, {[]string{"*"}, "other.example", true},
	} {
		h := &handler{opt: Options{Hosts: tc.hosts}}
		if got := h.mayCall(tc.host); got != tc.ok {
			t.Errorf("%q with %q: %v", tc.host, tc.hosts, got)
		}
	}
	s := startServer(t, dirOf(nil), Options{})
	if r := s.ask("GET", "/", "", "Host", "evil.example"); r.status != http.StatusMisdirectedRequest {
		t.Errorf("a stranger's name: %d", r.status)
	}
}

func TestNames(t *testing.T) {
	names := map[string]nodes.Node{}
	for _, n := range oddNames {
		names[n] = text("content of " + n)
	}
	s := startServer(t, dirOf(map[string]nodes.Node{"d": dirOf(names)}), Options{})
	for _, n := range oddNames {
		r := s.ask("GET", escapePath([]string{"d", n}, false), "")
		if r.status != 200 || r.body != "content of "+n {
			t.Errorf("%q: %d %q", n, r.status, r.body)
		}
	}
	// Every reference that a client is given leads back to the file.
	l := readListing(t, s.ask("GET", "/d/?format=json", "").body)
	if len(l.Entries) != len(oddNames) || l.Path != "/d/" {
		t.Fatalf("listed %d of %d in %q", len(l.Entries), len(oddNames), l.Path)
	}
	base, err := url.Parse(s.URL + "/d/")
	if err != nil {
		t.Fatal(err)
	}
	page := s.ask("GET", "/d/", "").body
	for _, e := range l.Entries {
		ref, err := base.Parse(e.Href)
		if err != nil {
			t.Fatalf("%q: %v", e.Href, err)
		}
		if r := s.ask("GET", ref.EscapedPath(), ""); r.body != "content of "+e.Name {
			t.Errorf("%q leads to %q", e.Href, r.body)
		}
	}
	if strings.Contains(page, "<b>") || strings.Contains(page, `href="javascript:`) {
		t.Errorf("a name is not escaped: %s", page)
	}
	m := readMultistatus(t, s.ask("PROPFIND", "/d", "", "Depth", "1").body)
	if len(m.Responses) != len(oddNames)+1 || m.Responses[0].Href != "/d/" {
		t.Fatalf("%d responses, %q", len(m.Responses), m.Responses[0].Href)
	}
	for _, e := range m.Responses[1:] {
		name := *e.Propstats[0].Prop.Name
		if r := s.ask("GET", e.Href, ""); r.body != "content of "+name {
			t.Errorf("%q (%q) leads to %q", e.Href, name, r.body)
		}
	}
}

func TestPathsThatLeadNowhere(t *testing.T) {
	s := startServer(t, dirOf(map[string]nodes.Node{
		"d": dirOf(map[string]nodes.Node{"f": text("f")}), "f": text("f"),
		"up": fakeLink{"../../etc"}, "loop": fakeLink{"loop"}, "gone": fakeLink{"d/none"},
	}), Options{})
	for path, want := range map[string]int{
		"/none": 404, "/d/none": 404, "/f/": 404, "/f/x": 404, "/d%2Ff": 404, "/%00": 404,
		"/../f": 400, "/d/../f": 400, "/d/%2e%2e/f": 400, "/%2e": 400, "/d/..%2ff": 404,
		"/up": 404, "/loop": 400, "/gone": 404, "/up/passwd": 404,
	} {
		for _, method := range []string{"GET", "HEAD", "PROPFIND"} {
			if r := s.ask(method, path, "", "Depth", "1"); r.status != want {
				t.Errorf("%s %s: %d, want %d", method, path, r.status, want)
			}
		}
	}
	if r := s.ask("OPTIONS", "/../..", ""); r.status != 200 {
		t.Errorf("OPTIONS: %d", r.status)
	}
}

func TestLinks(t *testing.T) {
	s := startServer(t, dirOf(map[string]nodes.Node{
		"latest": fakeLink{"versions/7"}, "trace": fakeLink{"latest/trace"},
		"tags": dirOf(map[string]nodes.Node{"v1": fakeLink{"../versions/7"}}),
		"versions": dirOf(map[string]nodes.Node{"7": dirOf(map[string]nodes.Node{
			"f.csv": text("a,b\n"), "trace": dirOf(nil),
		})}),
	}), Options{})
	for path, to := range map[string]string{
		"/latest": "/versions/7/", "/latest/": "/versions/7/", "/trace/?format=json": "/versions/7/trace/?format=json",
		"/tags/v1": "/versions/7/", "/versions": "/versions/", "//versions//7/": "/versions/7/", "//versions/7/f.csv": "/versions/7/f.csv",
	} {
		r := s.ask("GET", path, "")
		if r.status != 307 || r.head.Get("Location") != to || r.head.Get("Cache-Control") != "no-store" || !strings.Contains(r.body, "curl -L") {
			t.Errorf("%s: %d to %q, %q", path, r.status, r.head.Get("Location"), r.body)
		}
	}
	for _, path := range []string{"/latest/f.csv", "/tags/v1/f.csv"} {
		r := s.ask("GET", path, "")
		if r.status != 200 || r.body != "a,b\n" || r.head.Get("Content-Location") != "/versions/7/f.csv" {
			t.Errorf("%s: %d %q at %q", path, r.status, r.body, r.head.Get("Content-Location"))
		}
	}
	if r := s.ask("GET", "/versions/7/f.csv", ""); r.head.Get("Content-Location") != "" {
		t.Errorf("without a link: at %q", r.head.Get("Content-Location"))
	}
	if page := s.ask("GET", "/", "").body; !strings.Contains(page, "versions/7") {
		t.Errorf("the page does not say where latest leads: %s", page)
	}
	m := readMultistatus(t, s.ask("PROPFIND", "/latest", "", "Depth", "1").body)
	if len(m.Responses) != 3 || m.Responses[0].Href != "/latest/" || m.Responses[1].Href != "/latest/f.csv" {
		t.Errorf("PROPFIND of a link: %+v", m)
	}
}

func TestDirectories(t *testing.T) {
	slow := text("slow")
	slow.class = nodes.C2
	root := dirOf(map[string]nodes.Node{"sized": text("12345"), "unsized": text("x"), "scan": slow, "d": dirOf(nil), "l": fakeLink{"d"}}, "sized", "l")
	s := startServer(t, root, Options{Title: "file:///<t>", Release: "1.2"})
	r := s.ask("GET", "/", "")
	for _, want := range []string{"file:///&lt;t&gt;", "frifs 1.2", "5 entries", `href="./d/"`, `<td class="n">5</td>`, "2026-05-04 03:02:01"} {
		if !strings.Contains(r.body, want) {
			t.Errorf("the page lacks %q: %s", want, r.body)
		}
	}
	if r.head.Get("Cache-Control") != "no-cache" || r.head.Get("X-Content-Type-Options") != "nosniff" || r.head.Get("Content-Security-Policy") == "" {
		t.Errorf("headers %v", r.head)
	}
	for header, want := range map[string]string{"": "text/html", "text/html,application/json": "text/html", "application/json": "application/json"} {
		if r := s.ask("HEAD", "/", "", "Accept", header); r.status != 200 || !strings.HasPrefix(r.head.Get("Content-Type"), want) || r.body != "" {
			t.Errorf("Accept %q: %v", header, r.head)
		}
	}
	for _, e := range readListing(t, s.ask("GET", "/", "", "Accept", "application/json").body).Entries {
		if (e.Size != nil) != (e.Name == "sized") || (e.Target != nil) != (e.Name == "l") {
			t.Errorf("%+v", e)
		}
	}
	if n := slow.get(&slow.sized); n != 0 {
		t.Errorf("pages asked for the size of a C2 file %d times", n)
	}
	if l := readListing(t, s.ask("GET", "/d/?format=json", "").body); l.Entries == nil || len(l.Entries) != 0 {
		t.Errorf("an empty directory: %+v", l)
	}
	root.listed = func(context.Context) error { return fault.New("fake", "", fault.Unavailable, "down") }
	if r := s.ask("GET", "/", ""); r.status != 503 {
		t.Errorf("a listing that fails: %d", r.status)
	}
	failures, _, _ := s.told()
	if len(failures) != 1 || failures[0].Op != "list" || failures[0].Kind != fault.Unavailable {
		t.Errorf("told of %+v", failures)
	}
}

func TestWhatTheTreeDoes(t *testing.T) {
	release := make(chan struct{})
	stuck := func(context.Context) error { <-release; return nil }
	slow, deaf, mad, short := text("slow"), text("deaf"), text("mad"), text("short")
	slow.attr = func(ctx context.Context) error { <-ctx.Done(); return fault.Wrap("fake", "slow", ctx.Err()) }
	deaf.open = stuck
	mad.read = func(context.Context, []byte, int64) (int, error) { panic("mad") }
	short.read = func(context.Context, []byte, int64) (int, error) { return 2, nil }
	s := startServer(t, dirOf(map[string]nodes.Node{"slow": slow, "deaf": deaf, "mad": mad, "short": short}), Options{OpTimeout: 30 * time.Millisecond})
	for path, want := range map[string]int{"/slow": 504, "/deaf": 504, "/mad": 500, "/short": 500} {
		if r := s.ask("GET", path, ""); r.status != want {
			t.Errorf("%s: %d %q, want %d", path, r.status, r.body, want)
		}
	}
	_, requests, panics := s.told()
	if panics != 1 || len(requests) != 4 {
		t.Errorf("%d panics, %d requests", panics, len(requests))
	}
	close(release) // the handle that comes late is closed by nobody but the worker
	deadline := time.After(5 * time.Second)
	for deaf.get(&deaf.opened) != deaf.get(&deaf.closed) || deaf.get(&deaf.opened) == 0 {
		select {
		case <-deadline:
			t.Fatalf("opened %d, closed %d", deaf.get(&deaf.opened), deaf.get(&deaf.closed))
		case <-time.After(time.Millisecond):
		}
	}
}

func TestWorkersAreBounded(t *testing.T) {
	release, inside := make(chan struct{}), make(chan struct{})
	f := text("f")
	f.open = func(context.Context) error { inside <- struct{}{}; <-release; return nil }
	s := startServer(t, dirOf(map[string]nodes.Node{"f": f, "g": text("g")}), Options{Workers: 1, MetadataTimeout: 20 * time.Millisecond})
	first := make(chan reply)
	go func() { first <- s.ask("GET", "/f", "") }()
	<-inside
	if r := s.ask("GET", "/g", ""); r.status != 503 || r.head.Get("Retry-After") == "" {
		t.Errorf("with all workers busy: %d", r.status)
	}
	close(release)
	if r := <-first; r.status != 200 {
		t.Errorf("the one at work: %d", r.status)
	}
	if r := s.ask("GET", "/g", ""); r.status != 200 {
		t.Errorf("afterwards: %d", r.status)
	}
}

func TestAbandonedWorkIsBounded(t *testing.T) {
	ws := newWorkers(1, time.Second, nil)
	ws.abandoned.Store(maxAbandoned)
	_, err := run(t.Context(), ws, time.Second, func(context.Context) (int, error) { return 1, nil }, nil)
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
}

func TestClientThatLeaves(t *testing.T) {
	inside := make(chan struct{})
	f := text("f")
	f.open = func(ctx context.Context) error { close(inside); <-ctx.Done(); return ctx.Err() }
	s := startServer(t, dirOf(map[string]nodes.Node{"f": f}), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-inside; cancel() }()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := s.Client().Do(req); err == nil {
		res.Body.Close()
		t.Fatal("it was answered")
	}
	s.Close() // waits for the handler
	failures, requests, _ := s.told()
	if len(failures) != 0 || len(requests) != 1 || !errors.Is(requests[0].Err, context.Canceled) {
		t.Errorf("told of %+v, %+v", failures, requests)
	}
}

func TestAccess(t *testing.T) {
	s := startServer(t, dirOf(map[string]nodes.Node{"a b": text("12345")}), Options{})
	s.ask("GET", "/a%20b", "", "Range", "bytes=1-2")
	_, requests, _ := s.told()
	if len(requests) != 1 {
		t.Fatalf("%d requests", len(requests))
	}
	a := requests[0]
	got := fmt.Sprint(a.Method, " ", a.Path, " ", a.Range, " ", a.Status, " ", a.Bytes, " ", a.Err)
	if got != "GET /a%20b bytes=1-2 206 2 <nil>" || a.Remote == "" || a.Took <= 0 || a.Time.IsZero() {
		t.Errorf("got %q, %+v", got, a)
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"/", "//", "/a/b", "/a/b/", "/a%2Fb", "/%", "/%zz", "/../x", "/a%252Fb", "/\xff", "*", "", "/?", "/a;b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		u := &url.URL{Path: path}
		if raw, err := url.PathUnescape(path); err == nil {
			u = &url.URL{Path: raw, RawPath: path}
		}
		q, err := parsePath(u)
		if err != nil {
			return
		}
		for _, n := range q.names {
			if n == "" || n == "." || n == ".." || strings.ContainsAny(n, "/\x00") {
				t.Fatalf("%q gives the name %q", path, n)
			}
		}
		// What this server writes, it reads back.
		again, err := parsePath(&url.URL{Path: "/" + strings.Join(q.names, "/"), RawPath: escapePath(q.names, q.dir)})
		if err != nil || strings.Join(again.names, "/") != strings.Join(q.names, "/") {
			t.Fatalf("%q becomes %q: %v", q.names, again.names, err)
		}
	})
}
