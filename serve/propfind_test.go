package serve

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

const askNames = `<?xml version="1.0"?><a:propfind xmlns:a="DAV:"><a:prop><a:getcontentlength/><a:getetag/><a:resourcetype/><a:quota-used-bytes/></a:prop></a:propfind>`

func TestPropfind(t *testing.T) {
	scan, slow, bad, sized := text("scan"), text("slower"), text("bad"), text("12345")
	scan.class, sized.class = nodes.C2, nodes.C2
	bad.attr = func(context.Context) error { return fault.New("fake", "", fault.Corrupt, "bad") }
	s := startServer(t, dirOf(map[string]nodes.Node{
		"d": dirOf(map[string]nodes.Node{
			"scan.csv": scan, "slow.json": slow, "bad": bad, "sized": sized, "sub": dirOf(nil),
			"to-sub": fakeLink{"sub"}, "to-file": fakeLink{"slow.json"}, "nowhere": fakeLink{"none"},
		}, "sized"),
	}), Options{})
	for _, body := range []string{"", askNames, `<propfind xmlns="DAV:"><allprop/></propfind>`} {
		r := s.ask("PROPFIND", "/d/", body, "Depth", "1")
		if r.status != 207 || r.head.Get("Cache-Control") != "no-cache" {
			t.Fatalf("%d %v: %s", r.status, r.head, r.body)
		}
		named := strings.Contains(body, "getetag")
		got := map[string]string{}
		for _, e := range readMultistatus(t, r.body).Responses {
			var has []string
			for _, ps := range e.Propstats {
				if !strings.Contains(ps.Status, "200") {
					if !named {
						t.Errorf("%s: nothing was asked for by name: %s", e.Href, ps.Status)
					}
					if ps.Prop.Length != nil {
						has = append(has, "no size")
					}
					continue
				}
				if ps.Prop.Length != nil {
					has = append(has, *ps.Prop.Length)
				}
				if ps.Prop.Tag != nil {
					has = append(has, "tag")
				}
				if ps.Prop.Collection != nil {
					has = append(has, "dir")
				}
				if ps.Prop.Lock != nil || ps.Prop.Modified != nil && strings.Contains(*ps.Prop.Modified, " 0001 ") {
					t.Errorf("%s: claims locks, or an unknown time", e.Href)
				}
			}
			got[strings.TrimPrefix(e.Href, "/d/")] = strings.Join(has, " ")
		}
		missing := ""
		if named {
			missing = "no size"
		}
		noSize := strings.TrimSpace("dir " + missing)
		want := map[string]string{
			"": noSize, "sub/": noSize, "to-sub/": noSize, "scan.csv": missing, "bad": missing,
			"slow.json": "6 tag", "to-file": "6 tag", "sized": "5 tag",
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("body %.50q\n got %v\nwant %v", body, got, want)
		}
	}
	if n := scan.get(&scan.sized); n != 0 {
		t.Errorf("the size of a C2 file was asked for %d times", n)
	}
	// By itself: a C2 file has its size only where the listing has it.
	for path, want := range map[string]string{"/d/scan.csv": "", "/d/sized": "5", "/d/slow.json": "6", "/d/to-file": "6"} {
		m := readMultistatus(t, s.ask("PROPFIND", path, "", "Depth", "0").body)
		got := ""
		if l := m.Responses[0].Propstats[0].Prop.Length; l != nil {
			got = *l
		}
		if len(m.Responses) != 1 || got != want {
			t.Errorf("%s: size %q, want %q: %+v", path, got, want, m)
		}
	}
	if n := scan.get(&scan.sized); n != 0 {
		t.Errorf("the size of a C2 file was asked for %d times", n)
	}
	if m := readMultistatus(t, s.ask("PROPFIND", "/d", "", "Depth", "0").body); len(m.Responses) != 1 || m.Responses[0].Href != "/d/" {
		t.Errorf("Depth 0: %+v", m)
	}
	if r := s.ask("PROPFIND", "/d", `<propfind xmlns="DAV:"><propname/></propfind>`, "Depth", "1"); r.status != 207 || strings.Contains(r.body, "-1") {
		t.Errorf("propname: %d %s", r.status, r.body)
	}
}

func TestPropfindRefuses(t *testing.T) {
	f := text("f")
	f.attr = func(context.Context) error { return fault.New("fake", "", fault.Denied, "no") }
	s := startServer(t, dirOf(map[string]nodes.Node{"f": f}), Options{})
	for _, tc := range []struct {
		name, path, depth, body string
		status                  int
		says                    string
	}{
		{"the whole tree", "/", "infinity", "", 403, "propfind-finite-depth"},
		{"no depth", "/", "", "", 403, "propfind-finite-depth"},
		{"a bad depth", "/", "2", "", 403, "propfind-finite-depth"},
		{"no XML", "/", "0", "<", 400, ""},
		{"other XML", "/", "0", "<a/>", 400, ""},
		{"a long body", "/", "0", strings.Repeat(" ", maxPropfindBody+1), 413, "body"},
		{"a file that is denied", "/f", "0", "", 403, "denied"},
	} {
		var header []string
		if tc.depth != "" {
			header = []string{"Depth", tc.depth}
		}
		if r := s.ask("PROPFIND", tc.path, tc.body, header...); r.status != tc.status || !strings.Contains(r.body, tc.says) {
			t.Errorf("%s: %d %q", tc.name, r.status, r.body)
		}
	}
}

// Sizes that take long are left out in the end; the listing is answered all the same.
func TestPropfindIsBounded(t *testing.T) {
	names := map[string]nodes.Node{}
	for i := range 20 {
		f := text(fmt.Sprint(i))
		f.attr = func(ctx context.Context) error { <-ctx.Done(); return fault.Wrap("fake", "", ctx.Err()) }
		names[fmt.Sprint(i)] = f
	}
	s := startServer(t, dirOf(names), Options{MetadataTimeout: 200 * time.Millisecond})
	r := s.ask("PROPFIND", "/", "", "Depth", "1")
	if m := readMultistatus(t, r.body); r.status != 207 || len(m.Responses) != 21 || m.Responses[1].Propstats[0].Prop.Length != nil {
		t.Errorf("%d: %+v", r.status, m)
	}
}

// The package for WebDAV writes in pieces of any size.
func TestLeaveOutInPieces(t *testing.T) {
	const one = `<D:response><D:getcontentlength>-1</D:getcontentlength><D:getetag>-</D:getetag><D:getlastmodified>Mon, 01 Jan 0001 00:00:00 GMT</D:getlastmodified>` +
		`<D:supportedlock><D:lockentry/></D:supportedlock></D:response>`
	const want = "<head>" + `<D:response><D:supportedlock></D:supportedlock></D:response>` + "<D:response>-1</D:response>" + "<tail>"
	in := "<head>" + one + "<D:response>-1</D:response>" + "<tail>"
	for n := 1; n < len(in); n++ {
		rec := &recorder{}
		l := &leaveOut{response: newResponse(rec, newPieces(), time.Second)}
		for rest := in; rest != ""; {
			k := min(n, len(rest))
			if _, err := io.WriteString(l, rest[:k]); err != nil {
				t.Fatal(err)
			}
			rest = rest[k:]
		}
		l.flush()
		if got := rec.body.String(); got != want {
			t.Fatalf("in pieces of %d:\n got %s\nwant %s", n, got, want)
		}
	}
}
