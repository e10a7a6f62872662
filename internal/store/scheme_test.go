package store

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/frifs/frifs/fault"
)

func TestURIForms(t *testing.T) {
	for _, tc := range []struct {
		uri                           string
		scheme, bucket, prefix, shown string
		params                        string
	}{
		{"s3://b/p/q", "s3", "b", "p/q", "s3://b/p/q", ""},
		{"s3://b", "s3", "b", "", "s3://b", ""},
		{"s3://b/p/", "s3", "b", "p", "s3://b/p", ""},
		{"S3://b/p?region=eu-west-1", "s3", "b", "p", "s3://b/p", "region=eu-west-1"},
		{"s3+ddb://b/p?ddbTableName=T", "s3", "b", "p", "s3://b/p", ""},
		{"s3+ddb://b/p?ddbTableName=T&region=x", "s3", "b", "p", "s3://b/p", "region=x"},
		{"gs://b/p", "gs", "b", "p", "gs://b/p", ""},
		{"az://c/p", "azblob", "c", "p", "az://c/p", ""},
		{"azblob://c/p?storage_account=a", "azblob", "c", "p", "az://c/p", "storage_account=a"},
		{"abfss://c@acc.dfs.core.windows.net/p", "azblob", "c", "p", "abfss://c@acc.dfs.core.windows.net/p", "domain=blob.core.windows.net&storage_account=acc"},
		{"memory://x/y", "mem", "", "x/y", "mem://x/y", ""},
		{"file:///a/b", "file", "", "a/b", "file:///a/b", ""},
		{"file-object-store:///a/b", "file", "", "a/b", "file:///a/b", ""},
		{"s3://b/my table.lance/", "s3", "b", "my table.lance", "s3://b/my%20table.lance", ""},
		{"s3://b/my%20table.lance", "s3", "b", "my table.lance", "s3://b/my%20table.lance", ""},
		{"gs://b/a#1 + 100%/ü&=.lance", "gs", "b", "a#1 + 100%/ü&=.lance", "gs://b/a%231%20+%20100%25/%C3%BC&=.lance", ""},
		{"az://c/what%3F/x%2525?storage_account=a", "azblob", "c", "what?/x%25", "az://c/what%3F/x%2525", "storage_account=a"},
		{"s3a://b/p", "s3", "b", "p", "s3://b/p", ""},
		{"gcs://b/p", "gs", "b", "p", "gs://b/p", ""},
		{"azure://c/p", "azblob", "c", "p", "az://c/p", ""},
		{"mem://", "mem", "", "", "mem:", ""},
	} {
		u, err := parseURI(tc.uri)
		if err != nil {
			t.Fatal(err)
		}
		a, err := parseAddress(u)
		if err != nil {
			t.Errorf("%s: %v", tc.uri, err)
			continue
		}
		if a.scheme != tc.scheme || a.bucket != tc.bucket || a.prefix != tc.prefix || a.shown != tc.shown || a.params.Encode() != tc.params {
			t.Errorf("%s: %+v", tc.uri, a)
		}
		if a.unlisted != strings.HasPrefix(tc.uri, "s3+ddb") {
			t.Errorf("%s: commit table %t", tc.uri, a.unlisted)
		}
	}
}

func TestURIsThatDoNotDo(t *testing.T) {
	const secret = "hunter2"
	for uri, kind := range map[string]fault.Kind{
		"ftp://host/" + "p":                             fault.Unsupported,
		"s3:///p":                                       fault.Invalid,
		"s3://user:" + secret + "@b/p":                  fault.Invalid,
		"s3://b/p?secret_access_key=" + secret:          fault.Invalid,
		"s3://b/p?aws_secret_access_key=" + secret:      fault.Invalid,
		"s3://b/p?X-Amz-Signature=" + secret:            fault.Invalid,
		"az://c/p?account_key=" + secret:                fault.Invalid,
		"az://c/p?sig=" + secret:                        fault.Invalid,
		"abfss://c:" + secret + "@a.dfs.x/p":            fault.Invalid,
		"abfss://a.dfs.core.windows.net/p":              fault.Invalid,
		"abfss://c@host/p":                              fault.Invalid,
		"gs://b/p?google_service_account_key=" + secret: fault.Invalid,
		"s3://b/a/../c":                                 fault.Invalid,
		"s3://b/p?region=a&region=b":                    fault.Invalid,
		"s3://b/p?nosuch=" + secret:                     fault.Invalid,
		"s3://b/p?anonymous=" + secret:                  fault.Invalid,
		"gs://b/p?nosuch=" + secret:                     fault.Invalid,
		"az://c/p?storage_account=a&nosuch=" + secret:   fault.Invalid,
		"az://c/p?storage_account=a_" + "b":             fault.Invalid,
	} {
		_, err := OpenURI(t.Context(), uri, Options{})
		if !fault.Is(err, kind) {
			t.Errorf("%s: %v, want %v", uri, err, kind)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the message shows a secret: %v", uri, err)
		}
	}
}

func TestOptionsOfTheRootReachItsBases(t *testing.T) {
	for _, tc := range [][3]string{
		{"s3://b/p?endpoint=http://h&region=x", "s3://b/q", "s3://b/q?endpoint=http%3A%2F%2Fh&region=x"},
		{"s3+ddb://b/p?ddbTableName=T&region=x", "s3://c/q", "s3://c/q?region=x"},
		{"s3://b/p?region=x", "s3://b/q?region=y", "s3://b/q?region=y"},
		{"s3://b/p?region=x", "gs://b/q", "gs://b/q"},
		{"s3://b/p", "s3://b/q", "s3://b/q"},
		{"/a", "s3://b/q", "s3://b/q"},
		{"az://c/p?storage_account=a", "azblob://c/q", "azblob://c/q?storage_account=a"},
	} {
		if got := WithOptionsOf(tc[0], tc[1]); got != tc[2] {
			t.Errorf("WithOptionsOf(%q, %q) = %q, want %q", tc[0], tc[1], got, tc[2])
		}
	}
}

func TestMessagesKeepSignaturesSecret(t *testing.T) {
	err := &url.Error{Op: "Get", URL: "https://a.blob.core.windows.net/c/k?sig=hunter2", Err: errors.New("connection refused")}
	for _, e := range []error{
		err,
		fmt.Errorf("more: %w", err),
		errors.New(`GET "https://b.s3.amazonaws.com/k?X-Amz-Signature=hunter2": reset`),
	} {
		if got := brief(e); strings.Contains(got.Error(), "hunter2") || !errors.Is(got, e) {
			t.Errorf("%v", got)
		}
	}
}
