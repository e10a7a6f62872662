package serve

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/frifs/frifs/nodes"
)

// What net/http refuses by itself has a reason like everything else, as text and as JSON.
func TestRefusalsHaveReasons(t *testing.T) {
	s := startServer(t, dirOf(map[string]nodes.Node{"f.csv": text("0123456789")}), Options{})
	for _, tc := range []struct {
		name   string
		header []string
		status int
		kind   string
		says   string
		span   string
	}{
		{"after the end", []string{"Range", "bytes=10-"}, 416, "invalid", "10", "bytes */10"},
		{"no range", []string{"Range", "bytes=x-y"}, 416, "invalid", "x-y", ""},
		{"another file", []string{"If-Match", `"other"`}, 412, "not_found", "f.csv", ""},
		{"changed since", []string{"If-Unmodified-Since", "Mon, 01 Jan 2001 00:00:00 GMT"}, 412, "not_found", "f.csv", ""},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			r := s.ask(method, "/f.csv", "", append([]string{"Accept", "application/json"}, tc.header...)...)
			var body errorBody
			if err := json.Unmarshal([]byte(r.body), &body); method == "GET" && (err != nil || body.Kind != tc.kind || !strings.Contains(body.Message, tc.says) || body.Path != "/f.csv") {
				t.Errorf("%s: %q: %v", tc.name, r.body, err)
			}
			if r.status != tc.status || r.head.Get("Content-Range") != tc.span || method == "HEAD" && r.body != "" || r.head.Get("ETag") != "" {
				t.Errorf("%s %s: %d %v %q", method, tc.name, r.status, r.head, r.body)
			}
		}
		if r := s.ask("GET", "/f.csv", "", tc.header...); r.status != tc.status || !strings.HasPrefix(r.head.Get("Content-Type"), "text/plain") || strings.Count(r.body, "\n") != 1 {
			t.Errorf("%s: as text: %d %q %v", tc.name, r.status, r.body, r.head)
		}
	}
	// The server works on.
	if r := s.ask("GET", "/f.csv", "", "Range", "bytes=3-4"); r.status != 206 || r.body != "34" {
		t.Errorf("afterwards: %d %q", r.status, r.body)
	}
}

// Through latest the same second may belong to two versions: a date does not make a range of one of the other.
func TestRangeByDateThroughALink(t *testing.T) {
	s := startServer(t, dirOf(map[string]nodes.Node{
		"latest": fakeLink{"v"}, "v": dirOf(map[string]nodes.Node{"f": text("0123456789")}),
	}), Options{})
	date, tag := fakeTime.UTC().Format(http.TimeFormat), s.ask("HEAD", "/v/f", "").head.Get("ETag")
	for _, tc := range []struct {
		path, when string
		status     int
	}{{"/v/f", date, 206}, {"/latest/f", date, 200}, {"/latest/f", tag, 206}, {"/latest/f", `"x"`, 200}, {"/latest/f", "W/" + tag, 200}} {
		if r := s.ask("GET", tc.path, "", "Range", "bytes=2-3", "If-Range", tc.when); r.status != tc.status {
			t.Errorf("%s if %s: %d, want %d", tc.path, tc.when, r.status, tc.status)
		}
	}
}

// What was made in another way has another tag, in WebDAV too.
func TestTagsTellHowFilesAreMade(t *testing.T) {
	root := dirOf(map[string]nodes.Node{"f": text("0123456789")})
	seen := map[string]string{}
	for _, content := range []string{"", "a", "b"} {
		s := startServer(t, root, Options{Content: content})
		tag := s.ask("HEAD", "/f", "").head.Get("ETag")
		if other, ok := seen[tag]; ok || tag == "" {
			t.Errorf("%q has the tag %s, as %q", content, tag, other)
		}
		seen[tag] = content
		m := readMultistatus(t, s.ask("PROPFIND", "/f", "", "Depth", "0").body)
		if got := m.Responses[0].Propstats[0].Prop.Tag; got == nil || *got != tag {
			t.Errorf("%q: WebDAV says %v, want %s", content, got, tag)
		}
		if again := startServer(t, root, Options{Content: content}).ask("GET", "/f", "", "If-None-Match", tag); again.status != 304 {
			t.Errorf("%q: after a restart: %d", content, again.status)
		}
	}
}

// Nothing is compressed on the way: sizes and ranges are those of the file, and a file that is compressed stays so.
func TestNothingIsEncoded(t *testing.T) {
	var b strings.Builder
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(long(1 << 16))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, dirOf(map[string]nodes.Node{"a.csv": text(long(1 << 16)), "a.csv.gz": text(b.String())}), Options{})
	for path, want := range map[string]string{"/a.csv": long(1 << 16), "/a.csv.gz": b.String()} {
		r := s.ask("GET", path, "", "Accept-Encoding", "gzip, br, zstd")
		if r.body != want || r.head.Get("Content-Encoding") != "" || r.head.Get("Content-Length") != fmt.Sprint(len(want)) {
			t.Errorf("%s: %d of %d bytes, %v", path, len(r.body), len(want), r.head)
		}
	}
}
