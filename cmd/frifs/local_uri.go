package main

import (
	"net/url"
	"path/filepath"
	"strings"
)

// localDir is the directory of this machine that a URI of the schemes for files means, in the forms of gocloud and of
// Lance; "" for anything else.
func localDir(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return ""
	}
	if scheme = strings.ToLower(scheme); scheme != "file" && scheme != "file-object-store" {
		return ""
	}
	path, _, _ := strings.Cut(rest, "?")
	if i := strings.IndexByte(path, '/'); i > 0 { // a host: this machine
		path = path[i:]
	}
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	if !strings.HasPrefix(path, "/") {
		return ""
	}
	return filepath.Clean(path)
}
