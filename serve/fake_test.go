package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// A fake tree in memory: every kind of node and failure that the handler must cope with.

var fakeTime = time.Date(2026, 5, 4, 3, 2, 1, 987654321, time.UTC)

type fakeFile struct {
	ino   uint64
	class nodes.Class
	data  string
	attr  func(context.Context) error
	open  func(context.Context) error
	read  func(ctx context.Context, p []byte, off int64) (int, error)

	mu     sync.Mutex // protects what follows
	sized  int        // calls of Attr
	opened int
	closed int
}

func text(data string) *fakeFile {
	h := fnv.New64a()
	h.Write([]byte(data))
	return &fakeFile{class: nodes.C0, data: data, ino: h.Sum64()}
}

func (f *fakeFile) Type() nodes.Type   { return nodes.TypeFile }
func (f *fakeFile) Ino() uint64        { return f.ino }
func (f *fakeFile) Class() nodes.Class { return f.class }
func (f *fakeFile) Close() error       { f.count(&f.closed); return nil }
func (f *fakeFile) Attr(ctx context.Context) (nodes.Attr, error) {
	f.count(&f.sized)
	if f.attr != nil {
		if err := f.attr(ctx); err != nil {
			return nodes.Attr{}, err
		}
	}
	return nodes.Attr{Type: nodes.TypeFile, Size: int64(len(f.data)), Perm: 0o444, Mtime: fakeTime, Ino: f.ino}, nil
}

func (f *fakeFile) Open(ctx context.Context) (nodes.Handle, error) {
	if f.open != nil {
		if err := f.open(ctx); err != nil {
			return nil, err
		}
	}
	f.count(&f.opened)
	return f, nil
}

func (f *fakeFile) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if f.read != nil {
		return f.read(ctx, p, off)
	}
	return copy(p, f.data[off:]), nil
}

func (f *fakeFile) count(n *int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*n++
}

func (f *fakeFile) get(n *int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *n
}

type fakeLink struct{ target string }

func (l fakeLink) Type() nodes.Type { return nodes.TypeLink }
func (l fakeLink) Ino() uint64      { return 77 }
func (l fakeLink) Attr(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Type: nodes.TypeLink, Size: int64(len(l.target)), Perm: 0o777, Mtime: fakeTime, Ino: 77}, nil
}
func (l fakeLink) Target(context.Context) (string, error) { return l.target, nil }

// fakeDir is a directory. Entries of directories, links and files that are marked carry attributes.
type fakeDir struct {
	names  map[string]nodes.Node
	handy  map[string]bool
	listed func(context.Context) error
}

func (d *fakeDir) Type() nodes.Type { return nodes.TypeDir }
func (d *fakeDir) Ino() uint64      { return 99 }
func (d *fakeDir) Volatile() bool   { return true }
func (d *fakeDir) Attr(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Type: nodes.TypeDir, Perm: 0o555, Mtime: fakeTime, Ino: 99}, nil
}

func (d *fakeDir) Entries(ctx context.Context) ([]nodes.Entry, error) {
	if d.listed != nil {
		if err := d.listed(ctx); err != nil {
			return nil, err
		}
	}
	var out []nodes.Entry
	for name, n := range d.names {
		e := nodes.Entry{Name: name, Type: n.Type(), Ino: n.Ino()}
		if e.Type == nodes.TypeDir || d.handy[name] {
			a, err := n.Attr(ctx)
			if err != nil {
				return nil, err
			}
			e.Attr = &a
		}
		out = append(out, e)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

func (d *fakeDir) Lookup(_ context.Context, name string) (nodes.Node, error) {
	if n, ok := d.names[name]; ok {
		return n, nil
	}
	return nil, fault.New("fake.Lookup", name, fault.NotFound, "no such entry")
}

func dirOf(names map[string]nodes.Node, handy ...string) *fakeDir {
	d := &fakeDir{names: names, handy: map[string]bool{}}
	for _, n := range handy {
		d.handy[n] = true
	}
	return d
}

// oddNames are names that URLs, HTML and XML would take for something else.
var oddNames = []string{
	"a%2Fb", "%", "%2E%2E", "x y", "a+b", "a?b=c", "a#b", "<b>&\"'", "é", "日本", "a:b", "javascript:alert(1)", "back\\slash", "a;b", "~2", "…",
}

// failing is a file whose read fails at an offset.
func failing(data string, at int64, kind fault.Kind) *fakeFile {
	f := text(data)
	f.read = func(_ context.Context, p []byte, off int64) (int, error) {
		if off+int64(len(p)) > at {
			return 0, fault.New("fake.Read", "secret", kind, "the block at %d is bad", at)
		}
		return copy(p, f.data[off:]), nil
	}
	return f
}

// long is content that shows at each place where it is.
func long(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + (i^i>>8^i>>16)%26)
	}
	return string(b)
}

// server is a handler at work, and what it told its callbacks.
type server struct {
	*httptest.Server
	t        *testing.T
	mu       sync.Mutex // protects what follows
	failures []Failure
	requests []Access
	panics   int
}

func startServer(t *testing.T, root nodes.Dir, opt Options) *server {
	t.Helper()
	s := &server{t: t}
	opt.OnError = func(f Failure) { s.mu.Lock(); s.failures = append(s.failures, f); s.mu.Unlock() }
	opt.OnRequest = func(a Access) { s.mu.Lock(); s.requests = append(s.requests, a); s.mu.Unlock() }
	opt.OnPanic = func(any, []byte) { s.mu.Lock(); s.panics++; s.mu.Unlock() }
	s.Server = httptest.NewServer(New(root, opt))
	t.Cleanup(s.Close)
	s.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s
}

func (s *server) told() (failures []Failure, requests []Access, panics int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Failure(nil), s.failures...), append([]Access(nil), s.requests...), s.panics
}

type reply struct {
	status int
	head   http.Header
	body   string
	err    error // of reading the body
}

// ask sends a request; header holds names and values by turns.
func (s *server) ask(method, path, body string, header ...string) reply {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Add(header[i], header[i+1])
	}
	res, err := s.Client().Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(b), err}
}

// multistatus is an answer to PROPFIND, as a client reads it.
type multistatus struct {
	Responses []struct {
		Href      string `xml:"href"`
		Propstats []struct {
			Status string `xml:"status"`
			Prop   struct {
				Length     *string   `xml:"getcontentlength"`
				Tag        *string   `xml:"getetag"`
				Modified   *string   `xml:"getlastmodified"`
				Type       *string   `xml:"getcontenttype"`
				Name       *string   `xml:"displayname"`
				Collection *struct{} `xml:"resourcetype>collection"`
				Lock       *struct{} `xml:"supportedlock>lockentry"`
			} `xml:"prop"`
		} `xml:"propstat"`
	} `xml:"response"`
}

func readMultistatus(t *testing.T, body string) multistatus {
	t.Helper()
	var m multistatus
	if err := xml.NewDecoder(bytes.NewReader([]byte(body))).Decode(&m); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return m
}

// listingJSON is the listing of a directory as JSON.
type listingJSON struct {
	Path    string
	Entries []jsonEntry
}

func readListing(t *testing.T, body string) listingJSON {
	t.Helper()
	var l listingJSON
	if err := json.Unmarshal([]byte(body), &l); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return l
}

// recorder keeps the body of an answer.
type recorder struct {
	head http.Header
	body bytes.Buffer
}

func (r *recorder) Header() http.Header {
	if r.head == nil {
		r.head = http.Header{}
	}
	return r.head
}
func (r *recorder) WriteHeader(int)             {}
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
