package store

import (
	"context"
	"errors"
	"net/url"
	"regexp"

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
	u, err := url.Parse(uri)
	if err != nil {
		return nil, fault.New("store.OpenURI", "", fault.Invalid, "the URI cannot be parsed: %v", bareURLError(err))
	}
	b, err := openBucket(ctx, u, opt)
	if err != nil {
		return nil, err
	}
	return opt.layer().wrap(b), nil
}

// bareURLError drops the URL, which may hold credentials, from an error of url.Parse.
func bareURLError(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}
