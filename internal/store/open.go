package store

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/frifs/frifs/fault"
)

var scheme = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*://`)

// IsURI reports whether s starts with a scheme ("s3://"); else it is a path of the operating system.
func IsURI(s string) bool { return scheme.MatchString(s) }

// OpenURI opens the store at uri: a plain path is a local directory, anything with a scheme goes through
// gocloud.dev/blob, in the forms of gocloud and of Lance. No request is made: a root that does not exist, and
// credentials that do not do, show in List, Stat and Open. Errors: fault.Invalid for a uri that cannot be understood or
// that holds credentials, fault.Unsupported for a scheme that this build does not have, fault.Denied where there are no
// credentials at all.
func OpenURI(ctx context.Context, uri string, opt Options) (Store, error) {
	if !IsURI(uri) {
		return NewLocal(uri, opt)
	}
	u, err := parseURI(uri)
	if err != nil {
		return nil, fault.New("store.OpenURI", "", fault.Invalid, "the URI cannot be parsed: %v", bareURLError(err))
	}
	b, err := openBucket(ctx, u, opt)
	if err != nil {
		return nil, err
	}
	return opt.layer().wrap(b), nil
}

// parseURI parses a URI with a scheme. Names of objects are written in it as people write them: a # is part of the name,
// since no store has fragments, and so is a % that begins no escape. A ? begins the options; write %3F in a name.
func parseURI(uri string) (*url.URL, error) {
	name, query, asked := strings.Cut(uri, "?")
	name = escapes.ReplaceAllStringFunc(name, func(s string) string {
		switch {
		case s == "#":
			return "%23"
		case len(s) == 1:
			return "%25"
		}
		return s
	})
	if asked {
		name += "?" + query
	}
	return url.Parse(name)
}

// escapes finds what may be an escape, and #.
var escapes = regexp.MustCompile(`%[0-9A-Fa-f]{2}|%|#`)

// bareURLError drops the URL, which may hold credentials, from an error of url.Parse.
func bareURLError(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}
