package main

import "testing"

func TestDirectoriesOfURIs(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///data/t.lance":                     "/data/t.lance",
		"file:///data/t.lance/?metadata=skip":      "/data/t.lance",
		"FILE://localhost/data/a%20b.lance":        "/data/a b.lance",
		"file-object-store:///data/../x.lance":     "/x.lance",
		"file:///data/100%.lance":                  "/data/100%.lance",
		"s3://bucket/data":                         "",
		"/data/t.lance":                            "",
		"file://relative":                          "",
		"https://example.org/file:///data/t.lance": "",
	} {
		if got := localDir(uri); got != want {
			t.Errorf("%s: got %q, want %q", uri, got, want)
		}
	}
}
