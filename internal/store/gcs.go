package store

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"google.golang.org/api/option"

	"github.com/frifs/frifs/fault"
)

// openGCS opens a bucket of Google Cloud Storage. Credentials come from Google's default chain; STORAGE_EMULATOR_HOST
// leads to an emulator. Options of the URI: anonymous, access_id=- (the same), universe_domain, endpoint.
func openGCS(ctx context.Context, a *address, opt Options) (*bucket, error) {
	const op = "store.OpenURI"
	anonymous, _, err := a.flag("anonymous", "skip_signature", "google_skip_signature")
	if err != nil {
		return nil, err
	}
	if id, _ := a.take("access_id"); id == "-" {
		anonymous = true
	}
	opts := []option.ClientOption{storage.WithDisabledClientMetrics()}
	where := os.Getenv("STORAGE_EMULATOR_HOST")
	if domain, ok := a.take("universe_domain"); ok {
		opts = append(opts, option.WithUniverseDomain(domain))
		where = domain
	}
	if endpoint, ok := a.take("endpoint", "google_endpoint"); ok {
		opts = append(opts, option.WithEndpoint(endpoint))
		where = endpoint
	}
	if err := a.unknown(); err != nil {
		return nil, err
	}
	if anonymous || opt.Anonymous {
		opts = append(opts, option.WithoutAuthentication())
	} else {
		opts = append(opts, option.WithScopes(storage.ScopeReadOnly))
	}
	client, err := storage.NewClient(ctx, opts...)
	if err != nil {
		return nil, fault.New(op, a.shown, fault.Denied,
			"no credentials for Google Cloud Storage: run `gcloud auth application-default login`, set GOOGLE_APPLICATION_CREDENTIALS, or read a public bucket with --anonymous: %w", brief(err))
	}
	client.SetRetry(storage.WithPolicy(storage.RetryNever)) // the request layer repeats
	b, err := gcsblob.OpenBucket(ctx, nil, a.bucket, &gcsblob.Options{Client: client})
	if err != nil {
		return nil, fault.New(op, a.shown, fault.Invalid, "%w", brief(err))
	}
	return &bucket{blob: b, identity: "gs|" + where + "|" + a.bucket, driver: gcsDriver{client.Bucket(a.bucket)}}, nil
}

// gcsDriver knows the types of Google's client behind gocloud's. E-tags are generation numbers: the two interfaces of
// the store give other e-tags to the same object.
type gcsDriver struct{ bucket *storage.BucketHandle }

func (gcsDriver) suffix() bool { return true }

func generation(n int64) string {
	if n == 0 {
		return ""
	}
	return "g" + strconv.FormatInt(n, 10)
}

func (gcsDriver) prepare(as func(any) bool, _ int64, etag string) {
	var h **storage.ObjectHandle
	if n, err := strconv.ParseInt(trimPrefix(etag, "g"), 10, 64); err == nil && as(&h) {
		*h = (*h).If(storage.Conditions{GenerationMatch: n})
	}
}

func trimPrefix(s, prefix string) string {
	if len(s) > len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):]
	}
	return ""
}

func (gcsDriver) listed(o *blob.ListObject) string {
	var raw storage.ObjectAttrs
	if o.As(&raw) {
		return generation(raw.Generation)
	}
	return ""
}

func (gcsDriver) attributes(a *blob.Attributes) string {
	var raw storage.ObjectAttrs
	if a.As(&raw) {
		return generation(raw.Generation)
	}
	return ""
}

func (gcsDriver) answered(r *blob.Reader) (etag, contentRange string, known bool) {
	var raw *storage.Reader
	if !r.As(&raw) {
		return "", "", false
	}
	return generation(raw.Attrs.Generation), fmt.Sprintf("bytes %d-", raw.Attrs.StartOffset), true
}

// tail is a suffix read, which gocloud does not let through.
func (d gcsDriver) tail(ctx context.Context, key string, n int64) (*body, error) {
	r, err := d.bucket.Object(key).NewRangeReader(ctx, -n, -1)
	if err != nil {
		return nil, err
	}
	return &body{r, Object{Size: r.Attrs.Size, Modified: r.Attrs.LastModified, ETag: generation(r.Attrs.Generation)}, r.Attrs.StartOffset}, nil
}
