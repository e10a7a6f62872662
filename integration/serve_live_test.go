package integration

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/frifs/frifs/internal/testdata"
)

// body is what curl gets, with the status in a line of its own at the end.
func (s *served) body(path string, flags ...string) string {
	s.t.Helper()
	args := append([]string{"-sS", "-m", "60", "--path-as-is", "-w", "\n%{http_code}"}, flags...)
	r := command(s.t, "", "curl", append(args, s.url+path)...)
	if r.code != 0 {
		s.t.Fatalf("%s: curl exits %d: %s", path, r.code, r.stderr)
	}
	return r.stdout
}

// leadsTo is the version that latest leads to.
func (s *served) leadsTo() string {
	s.t.Helper()
	r := command(s.t, "", "curl", "-sS", "-m", "60", "-o", "/dev/null", "-w", "%{redirect_url}", s.url+"/latest")
	return strings.TrimPrefix(r.stdout, s.url)
}

// New versions show: by looking at intervals, at SIGHUP, and not where a version is selected. What a client has open by
// its number stays as it is.
func TestServeLive(t *testing.T) {
	needTool(t, "curl")
	table := filepath.Join(t.TempDir(), "t.lance")
	w := startWriter(t, table)
	first := w.do("append").Version
	poll := serveURI(t, table, "--poll-interval", "300ms")
	hup := serveURI(t, table, "--poll-interval", "1h")
	pinned := serveURI(t, table, "--version", fmt.Sprint(first))
	dir := fmt.Sprintf("/versions/%d/", first)
	for _, s := range []*served{poll, hup, pinned} {
		if got := s.leadsTo(); got != dir {
			t.Fatalf("latest leads to %q, want %q", got, dir)
		}
	}
	tag := regexp.MustCompile(`(?i)etag: (\S+)`)
	before := tag.FindString(poll.body("/latest/version.json", "-I"))
	second := w.do("append").Version
	want := fmt.Sprintf("/versions/%d/", second)
	shows := func(s *served, want string) {
		t.Helper()
		eventually(t, 20*time.Second, func() error {
			if got := s.leadsTo(); got != want {
				return fmt.Errorf("latest leads to %q, want %q", got, want)
			}
			return nil
		})
	}
	shows(poll, want)
	if got := hup.leadsTo(); got != dir {
		t.Errorf("before it is told to look: %q", got)
	}
	if err := hup.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	shows(hup, want)
	if got := pinned.leadsTo(); got != dir {
		t.Errorf("with a version selected latest leads to %q", got)
	}
	if got := pinned.body(want + "version.json"); !strings.HasSuffix(got, "\n404") {
		t.Errorf("with a version selected another one shows: %q", got)
	}
	// A client that has what latest was, and asks whether it still is that.
	_, old, _ := strings.Cut(before, " ")
	if got := poll.body("/latest/version.json", "-H", "If-None-Match: "+strings.TrimSpace(old)); !strings.HasSuffix(got, "\n200") {
		t.Errorf("the old tag still counts: %.200q", got)
	}
	if got := poll.body("/latest/version.json", "-r", "0-9", "-H", "If-Range: "+strings.TrimSpace(old)); !strings.HasSuffix(got, "\n200") {
		t.Errorf("a range of another version: %.200q", got)
	}
	if got := poll.body(dir+"version.json", "-H", "If-None-Match: "+strings.TrimSpace(old)); !strings.HasSuffix(got, "\n304") {
		t.Errorf("the version by its number: %.200q", got)
	}
}

// Names from the dataset stay names: in pages, in references, in WebDAV, and for a browser, whatever is in them.
func TestServeNames(t *testing.T) {
	needTool(t, "curl")
	table := testdata.Copy(t, "legacy/basic")
	evil := []string{`<script>document.title="owned"</script>`, `"><img src=x onerror=document.title='owned'>`, "a b#c?d", "100%", "é表", "javascript:alert(1)", "x\ny"}
	if err := os.MkdirAll(filepath.Join(table, "_refs", "tags"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range evil {
		write(t, filepath.Join(table, "_refs", "tags", url.PathEscape(name)+".json"), []byte(`{"version":3}`))
	}
	s := serveURI(t, table)
	var listing struct {
		Entries []struct{ Name, Href, Target string }
	}
	text := s.body("/tags/?format=json")
	if err := json.Unmarshal([]byte(strings.TrimSuffix(text, "\n200")), &listing); err != nil || len(listing.Entries) != len(evil) {
		t.Fatalf("%d tags, %v: %s", len(listing.Entries), err, text)
	}
	for _, e := range listing.Entries {
		if got := s.body("/tags/"+strings.TrimPrefix(e.Href, "./")+"/version.json", "-o", "/dev/null"); got != "\n200" || e.Target != "../versions/3" {
			t.Errorf("%q leads to %q: %q", e.Href, e.Target, got)
		}
	}
	page := s.body("/tags/")
	if strings.Contains(page, "<script>") || strings.Contains(page, "<img") || strings.Contains(page, `href="javascript:`) {
		t.Errorf("a name is not escaped: %s", page)
	}
	if dav := s.body("/tags/", "-X", "PROPFIND", "-H", "Depth: 1"); strings.Contains(dav, "<script>") || strings.Count(dav, "<D:response>") != len(evil)+1 {
		t.Errorf("WebDAV: %s", dav)
	}
	for _, path := range []string{"/tags/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/versions/..%5c..%5c", "//etc/passwd", "/tags/%00", "/versions/%ff"} {
		if got := s.body(path); !regexp.MustCompile(`\n(400|404)$`).MatchString(got) || strings.Contains(got, "root:") {
			if !strings.HasSuffix(got, "\n307") { // to the same path without the empty segment
				t.Errorf("%s: %q", path, got)
			}
		}
	}
	for _, method := range []string{"PUT", "DELETE", "MKCOL", "MOVE", "COPY", "PROPPATCH", "LOCK", "UNLOCK", "POST", "PATCH"} {
		if got := s.body("/README.txt", "-X", method, "-H", "Destination: "+s.url+"/x", "-H", "Accept: application/json"); !regexp.MustCompile(`"kind":"read_only".*\n\n?40[35]$`).MatchString(got) {
			t.Errorf("%s: %q", method, got)
		}
	}
	for _, depth := range []string{"infinity", "", "5"} {
		if got := s.body("/", "-X", "PROPFIND", "-H", "Depth: "+depth); !strings.HasSuffix(got, "\n403") {
			t.Errorf("PROPFIND with depth %q: %.300q", depth, got)
		}
	}
}

// A database shows its tables, and its pages and WebDAV open none of them to list their names.
func TestServeDatabase(t *testing.T) {
	needTool(t, "curl")
	db := t.TempDir()
	for _, name := range []string{"legacy/basic", "tagged/chain"} {
		from := testdata.Copy(t, name)
		if err := os.Rename(from, filepath.Join(db, filepath.Base(from))); err != nil {
			t.Fatal(err)
		}
	}
	s := serveURI(t, db)
	if got := s.body("/tables/?format=json"); !strings.Contains(got, `"name":"basic"`) || !strings.Contains(got, `"name":"chain"`) {
		t.Errorf("tables: %s", got)
	}
	if got := s.body("/tables/", "-X", "PROPFIND", "-H", "Depth: 1"); strings.Count(got, "<D:response>") != 3 {
		t.Errorf("WebDAV: %s", got)
	}
	const path = "latest/fri/scan/composed.csv"
	want := frifs(t, "cat", filepath.Join(db, "chain.lance"), path)
	if got := s.body("/tables/chain/" + path); got != want+"\n200" {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	if got := s.body("/latest", "-H", "Accept: application/json"); !strings.Contains(got, `"kind":"not_found"`) || !strings.Contains(got, "There are basic, chain") {
		t.Errorf("latest of a database: %s", got)
	}
	for _, flags := range [][]string{{"--version", "1"}, {"--tag", "x"}} {
		if r := command(t, "", exe, append([]string{"serve", db}, flags...)...); r.code != 2 {
			t.Errorf("%q: exit %d: %s", flags, r.code, r.stderr)
		}
	}
}

// With a selector the tree is that of one version, and of a branch.
func TestServeSelects(t *testing.T) {
	needTool(t, "curl")
	for _, tc := range []struct {
		flags []string
		leads string
	}{
		{[]string{"--tag", "before"}, "/versions/3/"}, {[]string{"--version", "5"}, "/versions/5/"}, {[]string{"--branch", "exp/wide"}, "/versions/9/"},
		{[]string{"--branch", "exp/wide", "--version", "6"}, "/versions/6/"}, {nil, "/versions/10/"},
	} {
		s := serve(t, "legacy/branchy", tc.flags...)
		if got := s.leadsTo(); got != tc.leads {
			t.Errorf("%q: latest leads to %q, want %q", tc.flags, got, tc.leads)
		}
		want := frifs(t, append([]string{"cat", testdata.Dataset(t, "legacy/branchy"), "latest/version.json"}, tc.flags...)...)
		if got := s.body("/latest/version.json"); got != want+"\n200" {
			t.Errorf("%q: %s, want %s", tc.flags, got, want)
		}
	}
}

// Out of a store it is the same, and what the store refuses has its own status.
func TestServeStore(t *testing.T) {
	needTool(t, "curl")
	o := startS3(t)
	o.upload(t, testdata.Dataset(t, "tagged/chain"), "t.lance")
	uri := o.uri(t, o.target, "t.lance")
	s := serveURI(t, uri)
	const path = servedDir + "/mapping.csv"
	if got, want := s.body("/"+path), read(t, treeFile(t, "tagged/chain", path)); got != want+"\n200" {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	if got := s.body("/"+path, "-r", "-10"); !strings.HasSuffix(got, "\n206") {
		t.Errorf("the last bytes: %q", got)
	}
	if said := s.logs.String() + s.body("/"); strings.Contains(said, s3RootKey) {
		t.Errorf("the secret is told: %s", said)
	}
	r := command(t, "", exe, "serve", o.uri(t, o.target, "none.lance"))
	if r.code != 1 || r.stdout != "" {
		t.Errorf("what is not there: exit %d: %s", r.code, r.stderr)
	}
}
