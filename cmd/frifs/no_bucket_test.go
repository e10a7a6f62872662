package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A bucket that does not exist and a key that the store does not know are called so, not "no dataset".
func TestNoBucketIsNoMissingDataset(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "y")
	code := ""
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, "<Error><Code>%s</Code><Message>in words</Message></Error>", code)
		}
	}))
	defer h.Close()
	uri := "s3://nowhere/t.lance?region=us-east-1&s3ForcePathStyle=true&endpoint=" + h.URL
	for _, tc := range []struct{ code, kind, says string }{
		{"NoSuchBucket", "not found", "the bucket does not exist"},
		{"XAdminUserNotFound", "denied", "the store does not know these credentials"},
		{"NoSuchKey", "not found", "there is no _versions directory here"},
	} {
		code = tc.code
		for _, args := range [][]string{{"ls", uri}, {"versions", uri}, {"translate", uri, "1"}} {
			r := frifs(t, "", args...)
			if r.code != 1 || !strings.Contains(r.stderr, tc.kind+": ") || !strings.Contains(r.stderr, tc.says) ||
				strings.Contains(r.stderr, "no _versions") != (code == "NoSuchKey") || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("%s, %s: exit %d, %s", args[0], code, r.code, r.stderr)
			}
		}
		r := frifs(t, "", "doctor", uri)
		if r.code != 3 || !strings.Contains(r.stdout, tc.says) || !strings.Contains(r.stdout, "cannot be opened") {
			t.Errorf("doctor, %s: exit %d, %s", code, r.code, r.stdout)
		}
	}
}
