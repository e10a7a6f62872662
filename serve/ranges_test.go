package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/frifs/frifs/nodes"
)

// What net/http would answer wrongly, by RFC 9110, 14.1 and 14.2.
func TestOddRanges(t *testing.T) {
	s := startServer(t, dirOf(map[string]nodes.Node{"f": text("0123456789"), "empty": text("")}), Options{})
	huge := strings.Repeat("9", 40)
	for _, tc := range []struct {
		header string
		status int
		body   string
		span   string
	}{
		{"bytes=-0", 416, "", "bytes */10"},
		{"bytes=-00", 416, "", "bytes */10"},
		{"bytes=-0,0-1", 206, "01", "bytes 0-1/10"},
		{"items=0-1", 200, "0123456789", ""},
		{"seconds=x", 200, "0123456789", ""},
		{"items", 200, "0123456789", ""},
		{"Bytes=2-3", 206, "23", "bytes 2-3/10"},
		{"bytes=0-18446744073709551616", 206, "0123456789", "bytes 0-9/10"},
		{"bytes=8-" + huge, 206, "89", "bytes 8-9/10"},
		{"bytes=-" + huge, 206, "0123456789", "bytes 0-9/10"},
		{"bytes=" + huge + "-", 416, "", "bytes */10"},
		{"bytes=" + huge + "-" + huge + "9", 416, "", "bytes */10"},
		{"bytes=0000000000000000000000000001-2", 206, "12", "bytes 1-2/10"},
		{"bytes= 1-2 , 4-4", 206, "multipart", ""},
		{"bytes=3-2", 416, "", ""},
		{"bytes=" + huge + "-2", 416, "", ""},
		{"bytes", 200, "0123456789", ""},
		{"bytes=-", 416, "", ""},
		{"bytes=--1", 416, "", ""},
		{"bytes=1", 416, "", ""},
		{"bytes=+1-2", 416, "", ""},
		{"bytes=0-0,+1-2", 416, "", ""},
		{"bytes=,3-4,", 206, "34", "bytes 3-4/10"},
		{"bytes=0x1-2", 416, "", ""},
	} {
		r := s.ask("GET", "/f", "", "Range", tc.header)
		if r.status != tc.status || tc.span != "" && r.head.Get("Content-Range") != tc.span {
			t.Errorf("%q: %d %q, want %d %q", tc.header, r.status, r.head.Get("Content-Range"), tc.status, tc.span)
		}
		if tc.status < 300 && tc.body != "multipart" && r.body != tc.body {
			t.Errorf("%q: %q, want %q", tc.header, r.body, tc.body)
		}
		if head := s.ask("HEAD", "/f", "", "Range", tc.header); head.status != tc.status {
			t.Errorf("HEAD %q: %d, want %d", tc.header, head.status, tc.status)
		}
		if r := s.ask("GET", "/empty", "", "Range", tc.header); r.status != 200 && r.status != 416 || r.body != "" && r.status == 200 {
			t.Errorf("%q of an empty file: %d %q", tc.header, r.status, r.body)
		}
	}
}

// Whatever the header holds, an answer is the whole file, a part of it that Content-Range names, or a refusal.
func FuzzRange(f *testing.F) {
	const data = "0123456789"
	for _, s := range []string{"bytes=0-1", "bytes=-0", "bytes=5-", "bytes=-3", "bytes=1-2,4-", "items=1", "bytes=99999999999999999999-", "bytes = 1-2", "bytes=1-2,x"} {
		f.Add(s)
	}
	h := New(dirOf(map[string]nodes.Node{"f": text(data)}), Options{})
	f.Fuzz(func(t *testing.T, header string) {
		if strings.ContainsFunc(header, func(r rune) bool { return r < ' ' || r > '~' }) {
			return // no header
		}
		req, rec := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/f", http.NoBody), httptest.NewRecorder()
		req.Header.Set("Range", header)
		h.ServeHTTP(rec, req)
		r := reply{status: rec.Code, head: rec.Header(), body: rec.Body.String()}
		var from, to, size int
		switch {
		case r.status == 200 && r.body == data, r.status == 416:
		case r.status == 206 && strings.HasPrefix(r.head.Get("Content-Type"), "multipart/"):
		case r.status == 206:
			if n, err := fmt.Sscanf(r.head.Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &size); n != 3 || err != nil || size != len(data) ||
				from > to || to >= size || r.body != data[from:to+1] {
				t.Errorf("%q: %q of %q", header, r.body, r.head.Get("Content-Range"))
			}
		default:
			t.Errorf("%q: %d %q", header, r.status, r.body)
		}
	})
}
