//go:build !gocloud

package store

import (
	"context"
	"net/url"

	"github.com/frifs/frifs/fault"
)

// openBucket refuses: this build has no object stores.
func openBucket(_ context.Context, u *url.URL, _ Options) (Store, error) {
	return nil, fault.New("store.OpenURI", WithoutCredentials(u), fault.Unsupported,
		"this build of frifs reads plain local paths only, not the scheme %q", u.Scheme)
}
