package integration

import (
	"bytes"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/internal/store"
	"github.com/frifs/frifs/internal/testdata"
)

// hardNames are names that a client may get wrong. Lance itself writes %2F.
var hardNames = []string{
	"feature%2Fx.json", "100%.json", "%zz", "%25", "a b", "a+b", "a#b", "a?b", "a&b=c;d", "ü ñ 漢字.lance", "e\u0301", "(x)[y]{z}", "a'b\"c", "~tilde!$@,:",
	"star*", "caret^`|<>", "trailing ", " leading", "..hidden", "...", "con.", "-dash",
}

// putRaw writes an object with the cloud's own client, since what gocloud does to names is part of what is tested.
func (o *objects) putRaw(t testing.TB, key string, data []byte) error {
	t.Helper()
	b := o.bucket(t)
	var aws3 *s3.Client
	var gcs *storage.Client
	var az *container.Client
	switch {
	case b.As(&aws3):
		_, err := aws3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: aws.String(key), Body: bytes.NewReader(data)})
		return err
	case b.As(&gcs):
		w := gcs.Bucket("bucket").Object(key).NewWriter(t.Context())
		w.ChunkSize = 0
		if _, err := w.Write(data); err != nil {
			return err
		}
		return w.Close()
	case b.As(&az):
		_, err := az.NewBlockBlobClient(key).UploadBuffer(t.Context(), data, nil)
		return err
	}
	t.Fatalf("%s: no client", o.name)
	return nil
}

// TestHardNames reads objects whose names have to be escaped on their way, each the right one.
func TestHardNames(t *testing.T) {
	eachServer(t, func(t *testing.T, o *objects) {
		var put []string
		for _, n := range hardNames {
			if err := o.putRaw(t, "t #1%/"+n, []byte("content of "+n)); err != nil {
				t.Logf("%s does not take %q: %.100v", o.name, n, err)
				continue
			}
			put = append(put, n)
		}
		if len(put) < len(hardNames)/2 {
			t.Fatalf("only %q", put)
		}
		for _, root := range []string{"t%20%231%25", "t #1%"} { // as a URL, and as people write
			st, err := store.OpenURI(t.Context(), o.uri(t, o.target, root+"/"), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			list, err := st.List(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, obj := range list {
				names = append(names, obj.Name)
			}
			if want := slices.Sorted(slices.Values(put)); !slices.Equal(names, want) {
				t.Errorf("listed\n%q, want\n%q", names, want)
			}
			for _, obj := range list {
				want := "content of " + obj.Name
				if got, err := st.ReadRange(t.Context(), obj.Name, 0, 1000); err != nil || string(got) != want {
					t.Errorf("%q by name: %q, %v", obj.Name, got, err)
				}
				if got, err := store.ReadObject(t.Context(), st, obj, 0, 1000); err != nil || string(got) != want {
					t.Errorf("%q as listed: %q, %v", obj.Name, got, err)
				}
				if now, err := st.Stat(t.Context(), obj.Name); err != nil || !now.SameContent(obj) {
					t.Errorf("%q: stat gives %+v, %v; listed as %+v", obj.Name, now, err, obj)
				}
				r, err := st.Open(t.Context(), obj.Name)
				if err != nil {
					t.Errorf("%q: %v", obj.Name, err)
					continue
				}
				p := make([]byte, len(want))
				if _, err := r.ReadAt(p, 0); err != nil || string(p) != want || !r.Stat().SameContent(obj) {
					t.Errorf("%q opened: %q, %v", obj.Name, p, err)
				}
				r.Close()
			}
			for _, n := range put {
				if _, err := st.Stat(t.Context(), n+"x"); !fault.Is(err, fault.NotFound) {
					t.Errorf("%q, which is not there: %v", n+"x", err)
				}
			}
		}
	})
}

// TestFormsOfURIs reads one table by each way to name it.
func TestFormsOfURIs(t *testing.T) {
	dir := testdata.Dataset(t, "legacy/basic")
	want := frifs(t, "cat", dir, "latest/manifest.json")
	check := func(t *testing.T, uri string) string {
		t.Helper()
		r := command(t, "", exe, "cat", uri, "latest/manifest.json")
		if r.code != 0 || r.stdout != want {
			t.Errorf("%s: exit %d, %d bytes, %s", uri, r.code, len(r.stdout), r.stderr)
		}
		return r.stderr
	}
	t.Run("local", func(t *testing.T) {
		odd := filepath.Join(t.TempDir(), "a #1 100% ü+?.lance")
		if err := os.CopyFS(odd, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		for _, uri := range []string{
			dir, dir + "/", dir + "/.", "file://" + dir, "file://" + dir + "/", "file://localhost" + dir, "file-object-store://" + dir,
			odd, odd + "/", (&url.URL{Scheme: "file", Path: odd}).String(), "file://" + strings.ReplaceAll(odd, "?", "%3F"),
		} {
			check(t, uri)
		}
	})
	t.Run("s3", func(t *testing.T) {
		o := startS3(t)
		o.upload(t, dir, "db/my t#1.lance")
		o.uri(t, o.target, "")
		q := "endpoint=" + o.target
		for _, uri := range []string{
			"s3://bucket/db/my%20t%231.lance?region=us-east-1&" + q, "s3://bucket/db/my t#1.lance/?" + q, "S3://bucket/db/my t#1.lance?" + q + "&s3ForcePathStyle=true",
			"s3a://bucket/db/my t#1.lance?" + q, "s3://bucket/db/my t#1.lance?endpoint=" + strings.TrimPrefix(o.target, "http://") + "&disable_https=true",
		} {
			if said := check(t, uri); strings.Contains(said, "newest version") {
				t.Errorf("%s: %s", uri, said)
			}
		}
		if said := check(t, "s3+ddb://bucket/db/my t#1.lance?ddbTableName=T&"+q); !strings.Contains(said, "newest version may be missing") {
			t.Errorf("s3+ddb: %q", said)
		}
		setenv(t, "AWS_ENDPOINT_URL", o.target)
		check(t, "s3://bucket/db/my t#1.lance")
		for uri, says := range map[string]string{
			"s3://bucket/nosuch.lance": "not a Lance dataset", "s3://nobucket/t.lance": "ucket", "s3://bucket/db/my t#1.lance?nosuch=1": "nosuch",
		} {
			r := command(t, "", exe, "ls", uri)
			if r.code == 0 || !strings.Contains(r.stderr, says) {
				t.Errorf("%s: exit %d, %q", uri, r.code, r.stderr)
			}
		}
	})
	t.Run("gcs", func(t *testing.T) {
		o := startGCS(t)
		o.upload(t, dir, "db/my t#1.lance")
		o.uri(t, o.target, "")
		for _, uri := range []string{"gs://bucket/db/my t#1.lance", "gcs://bucket/db/my%20t%231.lance/", "gs://bucket/db/my t#1.lance?anonymous=true"} {
			check(t, uri)
		}
	})
	t.Run("azure", func(t *testing.T) {
		o := startAzure(t)
		files, err := filepath.Glob(filepath.Join(dir, "_*", "*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files, %v", len(files), err)
		}
		for _, f := range files { // gocloud writes other names
			if data, err := os.ReadFile(f); err == nil {
				if err := o.putRaw(t, "db/my t#1.lance/"+filepath.Base(filepath.Dir(f))+"/"+filepath.Base(f), data); err != nil {
					t.Fatal(err)
				}
			}
		}
		q := o.uri(t, o.target, "")
		_, q, _ = strings.Cut(q, "?")
		for _, scheme := range []string{"az", "azblob", "azure"} {
			check(t, scheme+"://bucket/db/my t#1.lance/?"+q)
		}
		check(t, "az://bucket/db/my%20t%231.lance?endpoint="+o.target+"/"+azAccount)
	})
}

// TestClosedPrefixesCostTheirFilesAlone reads a table whose _refs and _transactions may neither be listed nor read, with
// a user who may do nothing but list and read.
func TestClosedPrefixesCostTheirFilesAlone(t *testing.T) {
	o := startS3(t)
	dir := testdata.Dataset(t, "legacy/basic")
	o.upload(t, dir, "t.lance")
	p := behind(t, o, nil)
	uri := o.uri(t, p.URL, "t.lance")
	want := localTree(t, dir)
	p.SetPlanAnswer(func(r *http.Request) int {
		q, _ := url.QueryUnescape(r.URL.RawQuery)
		for _, closed := range []string{"t.lance/_refs/", "t.lance/_transactions/"} {
			if strings.Contains(r.URL.Path, closed) || strings.Contains(q, "prefix="+closed) {
				return http.StatusForbidden
			}
		}
		return 0
	})
	tree, err := openTree(t, uri, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := walkWhere(t, tree, "s3://bucket/t.lance", outsideScan)
	differ := map[string]bool{}
	for path, w := range want {
		if g, ok := got[path]; ok && g != w && !strings.HasSuffix(path, "/") {
			differ[filepath.Base(path)] = true
		}
	}
	delete(differ, "transaction.json")
	delete(differ, "changes.json")
	delete(differ, "version.json") // names the operation
	if len(differ) > 0 || len(got) < 50 {
		t.Errorf("%d entries; these are not as they should be: %v", len(got), differ)
	}
	for _, method := range p.Requests() {
		if !strings.HasPrefix(method, "GET ") && !strings.HasPrefix(method, "HEAD ") {
			t.Errorf("%s: only lists and reads are allowed", method)
		}
	}
}
