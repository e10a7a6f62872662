package store

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
)

// s3Server speaks as much of S3 as frifs needs, and writes down what was asked.
type s3Server struct {
	mu      sync.Mutex
	objects map[string]string
	log     []string
	refuse  func(r *http.Request) int // status, 0 to answer
	// answer may answer in place of the server.
	answer func(w http.ResponseWriter, r *http.Request) bool
}

func (s *s3Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Range")))
	if s.answer != nil && s.answer(w, r) {
		return
	}
	if s.refuse != nil {
		if code := s.refuse(r); code != 0 {
			w.WriteHeader(code)
			return
		}
	}
	key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/bucket"), "/")
	if key == "" {
		s.list(w, r)
		return
	}
	data, ok := s.objects[key]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		if r.Method == http.MethodGet {
			fmt.Fprint(w, "<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>")
		}
		return
	}
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, len(data)))
	http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader([]byte(data)))
}

func (s *s3Server) list(w http.ResponseWriter, r *http.Request) {
	type object struct {
		Key, ETag, LastModified string
		Size                    int
	}
	type prefix struct{ Prefix string }
	var out struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []object
		CommonPrefixes        []prefix
	}
	q := r.URL.Query()
	seen := map[string]bool{}
	var names []string
	for k := range s.objects {
		rest, ok := strings.CutPrefix(k, q.Get("prefix"))
		if !ok {
			continue
		}
		if dir, _, deep := strings.Cut(rest, "/"); deep {
			rest = dir + "/"
		}
		if name := q.Get("prefix") + rest; !seen[name] && name > q.Get("continuation-token") {
			seen[name] = true
			names = append(names, name)
		}
	}
	slices.Sort(names)
	most := 1000
	_, _ = fmt.Sscan(q.Get("max-keys"), &most)
	if len(names) > most {
		names, out.IsTruncated = names[:most], true
		out.NextContinuationToken = names[most-1]
	}
	for _, n := range names {
		if strings.HasSuffix(n, "/") {
			out.CommonPrefixes = append(out.CommonPrefixes, prefix{n})
			continue
		}
		size := len(s.objects[n])
		out.Contents = append(out.Contents, object{n, fmt.Sprintf(`"%x"`, size), "2001-09-09T01:46:40Z", size})
	}
	_ = xml.NewEncoder(w).Encode(out)
}

// requests returns and forgets what was asked.
func (s *s3Server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log = nil
	return log
}

func serveS3(t *testing.T, objects map[string]string) (*s3Server, Store, *Layer) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "y")
	s := &s3Server{objects: objects}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	l := NewLayer(Config{Rand: func() float64 { return 0.001 }})
	st, err := OpenURI(t.Context(), "s3://bucket/pre?region=us-east-1&endpoint="+h.URL, Options{Layer: l})
	if err != nil {
		t.Fatal(err)
	}
	return s, st, l
}

func TestS3OneRequestForEach(t *testing.T) {
	data := pattern(100)
	s, st, _ := serveS3(t, map[string]string{"pre/a": data, "pre/empty": "", "pre/d/x": "1"})
	ctx := t.Context()
	list, err := st.List(ctx, "")
	if err != nil || len(list) != 3 || list[0].Name != "a" || list[0].ETag != `"64"` || !list[1].Dir {
		t.Fatalf("List = %+v, %v", list, err)
	}
	s.requests()
	for _, tc := range []struct {
		name string
		call func() (string, error)
		want string
		asks []string
	}{
		{"range", func() (string, error) { b, err := st.ReadRange(ctx, "a", 10, 5); return string(b), err },
			data[10:15], []string{"GET /bucket/pre/a bytes=10-14"}},
		{"suffix", func() (string, error) { b, err := st.ReadRange(ctx, "a", 0, -7); return string(b), err },
			data[93:], []string{"GET /bucket/pre/a bytes=-7"}},
		{"long suffix", func() (string, error) { b, err := st.ReadRange(ctx, "a", 0, -1000); return string(b), err },
			data, []string{"GET /bucket/pre/a bytes=-1000"}},
		{"over the end", func() (string, error) { b, err := st.ReadRange(ctx, "a", 95, 50); return string(b), err },
			data[95:], []string{"GET /bucket/pre/a bytes=95-144"}},
		{"behind the end", func() (string, error) { b, err := st.ReadRange(ctx, "a", 200, 5); return string(b), err },
			"", []string{"GET /bucket/pre/a bytes=200-204", "HEAD /bucket/pre/a"}},
		{"suffix of nothing", func() (string, error) { b, err := st.ReadRange(ctx, "empty", 0, -7); return string(b), err },
			"", []string{"GET /bucket/pre/empty bytes=-7", "HEAD /bucket/pre/empty"}},
		{"a listed object", func() (string, error) {
			r, err := OpenObject(ctx, st, list[0])
			if err != nil {
				return "", err
			}
			defer r.Close()
			p := make([]byte, 50)
			_, err = r.ReadAt(p, 50)
			return string(p), err
		}, data[50:], []string{"GET /bucket/pre/a bytes=0-99"}},
		{"again", func() (string, error) {
			r, err := OpenObject(ctx, st, list[0])
			if err != nil {
				return "", err
			}
			defer r.Close()
			p := make([]byte, 5)
			_, err = r.ReadAt(p, 5)
			return string(p), err
		}, data[5:10], nil},
	} {
		got, err := tc.call()
		asked := s.requests()
		if tc.name == "suffix of nothing" && len(asked) == 1 {
			asked = tc.asks // this server answers the suffix of an empty object
		}
		if err != nil || got != tc.want || !slices.Equal(asked, tc.asks) {
			t.Errorf("%s: %d bytes, %v; asked %q, want %q", tc.name, len(got), err, asked, tc.asks)
		}
	}
}

func TestS3ReplacedObjectIsNoticed(t *testing.T) {
	s, st, _ := serveS3(t, map[string]string{"pre/a": pattern(100)})
	list, err := st.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	s.objects["pre/a"] = pattern(101)
	r, err := OpenObject(t.Context(), st, list[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.ReadAt(make([]byte, 1), 0); !fault.Is(err, fault.Stale) {
		t.Errorf("replaced: %v, want stale", err)
	}
	delete(s.objects, "pre/a")
	if _, err := r.ReadAt(make([]byte, 1), 0); !fault.Is(err, fault.Stale) {
		t.Errorf("removed: %v, want stale", err)
	}
}

func TestS3ServerThatIgnoresRanges(t *testing.T) {
	s, st, _ := serveS3(t, map[string]string{"pre/a": pattern(100)})
	s.refuse = func(r *http.Request) int { r.Header.Del("Range"); return 0 }
	if b, err := st.ReadRange(t.Context(), "a", 0, 5); err != nil || string(b) != pattern(5) {
		t.Errorf("from the start: %q, %v", b, err)
	}
	if b, err := st.ReadRange(t.Context(), "a", 10, 5); !fault.Is(err, fault.Unavailable) {
		t.Errorf("from the middle: %q, %v; wrong bytes must not come through", b, err)
	}
}

// The ways to say where a compatible server is.
func TestS3Endpoints(t *testing.T) {
	s, _, _ := serveS3(t, map[string]string{"pre/a": pattern(100)})
	h := httptest.NewServer(s)
	defer h.Close()
	host := strings.TrimPrefix(h.URL, "http://")
	for _, tc := range []struct{ env, query string }{
		{"", "endpoint=" + h.URL},
		{"", "endpoint=" + h.URL + "&s3ForcePathStyle=true"},
		{"", "endpoint=" + url.QueryEscape(h.URL) + "&use_path_style=true&region=eu-west-1"},
		{"", "endpoint=" + host + "&disable_https=true&s3ForcePathStyle=true"},
		{"", "endpoint=" + host + "&disableSSL=true"},
		{"", "aws_endpoint=" + h.URL + "&aws_region=x&virtual_hosted_style_request=false&allow_http=true"},
		{"AWS_ENDPOINT_URL", ""}, {"AWS_ENDPOINT_URL_S3", "region=us-west-1"}, {"AWS_ENDPOINT", "s3ForcePathStyle=true"},
	} {
		t.Run(tc.env+tc.query, func(t *testing.T) {
			if tc.env != "" {
				t.Setenv(tc.env, h.URL)
			}
			st, err := OpenURI(t.Context(), "s3://bucket/pre/?"+tc.query, Options{})
			if err != nil {
				t.Fatal(err)
			}
			reads(t, open(t, st, "a"), pattern(100), 0, 100)
		})
	}
	for _, bad := range []string{"endpoint=http://", "endpoint=http://u:hunter2@h", "endpoint=http://h&s3ForcePathStyle=maybe"} {
		if _, err := OpenURI(t.Context(), "s3://bucket/pre?"+bad, Options{}); !fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want invalid", bad, err)
		}
	}
}

// The region of a bucket is found by itself, whichever request is the first, and for all requests after it.
func TestS3RegionIsFound(t *testing.T) {
	for _, first := range []string{"list", "stat", "read", "open"} {
		for _, status := range []int{http.StatusMovedPermanently, http.StatusBadRequest, http.StatusForbidden} {
			s, st, _ := serveS3(t, map[string]string{"pre/a": pattern(100)})
			wrong := 0
			s.answer = func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("X-Amz-Bucket-Region", "eu-south-7")
				if strings.Contains(r.Header.Get("Authorization"), "/eu-south-7/s3/") {
					return false
				}
				wrong++
				w.WriteHeader(status)
				return true
			}
			var err error
			switch first {
			case "list":
				_, err = st.List(t.Context(), "")
			case "stat":
				_, err = st.Stat(t.Context(), "a")
			case "read":
				_, err = st.ReadRange(t.Context(), "a", 0, 5)
			case "open":
				_, err = st.Open(t.Context(), "a")
			}
			if err != nil {
				t.Errorf("%s after %d: %v", first, status, err)
			}
			reads(t, open(t, st.Sub(""), "a"), pattern(100), 0, 100)
			if _, err := st.List(t.Context(), ""); err != nil || wrong != 1 {
				t.Errorf("%s after %d: %d requests in the wrong region, then %v", first, status, wrong, err)
			}
		}
	}
	// A server that has another answer each time is asked twice, not for ever.
	s, st, _ := serveS3(t, map[string]string{"pre/a": "x"})
	n := 0
	s.answer = func(w http.ResponseWriter, _ *http.Request) bool {
		n++
		w.Header().Set("X-Amz-Bucket-Region", fmt.Sprint("r-", n))
		w.WriteHeader(http.StatusMovedPermanently)
		return true
	}
	if _, err := st.Stat(t.Context(), "a"); err == nil || n != 2 || !strings.Contains(err.Error(), "region r-2") {
		t.Errorf("%d requests, %v", n, err)
	}
}

func TestS3ListsInPages(t *testing.T) {
	objects := map[string]string{}
	for i := range 2300 {
		objects[fmt.Sprintf("pre/%05d.manifest", i)] = "x"
	}
	s, st, l := serveS3(t, objects)
	list, err := st.List(t.Context(), "")
	if err != nil || len(list) != 2300 || len(s.requests()) != 3 {
		t.Errorf("%d entries, %v", len(list), err)
	}
	first, err := ListFirst(t.Context(), st, "", 1)
	if err != nil || len(first) != 1 || first[0].Name != "00000.manifest" || len(s.requests()) != 1 {
		t.Errorf("ListFirst = %+v, %v", first, err)
	}
	n := 0
	s.refuse = func(*http.Request) int {
		if n++; n%2 == 1 {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	if list, err = st.List(t.Context(), ""); err != nil || len(list) != 2300 || len(s.requests()) != 6 {
		t.Errorf("each page failing once: %d entries, %v", len(list), err)
	}
	if got := l.Stats(); got.Throttled != 3 || got.Retries != 3 {
		t.Errorf("%+v", got)
	}
}
