package store

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/logging"
	gcaws "gocloud.dev/aws"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"github.com/frifs/frifs/fault"
)

// maxIdle is how many connections to one host are kept open for the next request.
const maxIdle = 64

// openS3 opens a bucket of S3 or of a compatible server. Where no region is configured, or another than that of the
// bucket, the server's first answer tells the right one. Options of the URI are gocloud's (region, endpoint, profile,
// anonymous, use_path_style, ...) and those of Lance's storage options that say where the data are. Credentials come
// from the chain of the AWS SDK.
func openS3(ctx context.Context, a *address, opt Options) (*bucket, error) {
	const op = "store.OpenURI"
	endpoint, given := a.take("endpoint", "aws_endpoint", "aws_endpoint_url", "endpoint_url")
	plain, _, err := a.flag("disable_https", "disablessl", "allow_http", "aws_allow_http")
	if err != nil {
		return nil, err
	}
	if !given && env("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") == "" {
		endpoint = env("AWS_ENDPOINT") // the name that Lance reads; the SDK reads the others
	}
	q, pathStyle, err := s3Params(a, opt)
	if err != nil {
		return nil, err
	}
	if err := a.unknown(); err != nil {
		return nil, err
	}
	cfg, err := awsConfig(ctx, q)
	if err != nil {
		return nil, fault.New(op, a.shown, fault.Invalid, "the options for S3 do not do: %w", brief(err))
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1"
	}
	cfg.Retryer = func() aws.Retryer { return aws.NopRetryer{} } // the request layer repeats
	cfg.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 2*maxIdle, maxIdle
	})
	if endpoint != "" {
		if !IsURI(endpoint) { // as the older options of gocloud have it
			scheme := "https://"
			if plain {
				scheme = "http://"
			}
			endpoint = scheme + endpoint
		}
		if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.User != nil {
			return nil, fault.New(op, a.shown, fault.Invalid, "the endpoint is no URL such as http://localhost:9000")
		}
		cfg.BaseEndpoint = aws.String(endpoint)
	}
	in := func(region string) (*blob.Bucket, error) {
		client := s3.NewFromConfig(cfg, func(o *s3.Options) {
			o.Region = region
			if o.BaseEndpoint != nil {
				endpoint = *o.BaseEndpoint
				o.UsePathStyle = true // servers beside Amazon's rarely have a host name per bucket
			}
			if pathStyle != nil {
				o.UsePathStyle = *pathStyle
			}
			o.DisableLogOutputChecksumValidationSkipped = true
		})
		return s3blob.OpenBucket(context.WithoutCancel(ctx), client, a.bucket, nil)
	}
	b, err := in(cfg.Region)
	if err != nil {
		return nil, fault.New(op, a.shown, fault.Invalid, "%w", brief(err))
	}
	if u, err := url.Parse(endpoint); err == nil {
		endpoint = u.Host // what names the store, without anything secret
	}
	return &bucket{
		blob: b, region: cfg.Region, in: in, identity: "s3|" + endpoint + "|" + a.bucket, driver: s3Driver{},
		unordered: strings.HasSuffix(a.bucket, "--x-s3"), // directory buckets list in any order
	}, nil
}

// awsConfig loads the configuration of the SDK, without its habit of writing warnings to the standard error of whoever
// uses it. Options that only gocloud knows how to apply are left to it.
func awsConfig(ctx context.Context, q url.Values) (aws.Config, error) {
	quiet := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	for name := range q {
		v := q.Get(name)
		switch on, err := strconv.ParseBool(v); {
		case name == "region":
			quiet = append(quiet, config.WithRegion(v))
		case name == "profile":
			quiet = append(quiet, config.WithSharedConfigProfile(v))
		case name == "anonymous":
			quiet = append(quiet, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
		case name == "dualstack" && err == nil && on:
			quiet = append(quiet, config.WithUseDualStackEndpoint(aws.DualStackEndpointStateEnabled))
		case name == "fips" && err == nil && on:
			quiet = append(quiet, config.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
		default:
			return gcaws.V2ConfigFromURLParams(ctx, q)
		}
	}
	return config.LoadDefaultConfig(ctx, quiet...)
}

// s3Params turns the options of a URI into gocloud's.
func s3Params(a *address, opt Options) (url.Values, *bool, error) {
	q := url.Values{}
	set := func(name string, from ...string) bool {
		v, ok := a.take(append([]string{name}, from...)...)
		if ok {
			q.Set(name, v)
		}
		return ok
	}
	set("region", "aws_region", "aws_default_region", "default_region")
	for _, n := range []string{"profile", "dualstack", "fips", "hostname_immutable", "role", "role_session_name", "role_external_id",
		"role_duration", "web_identity_token_file", "request_checksum_calculation", "response_checksum_validation"} {
		set(n)
	}
	for _, n := range []string{"awssdk", "ssetype", "kmskeyid", "accelerate"} {
		a.take(n) // of writing, or of no consequence here
	}
	anonymous, _, err := a.flag("anonymous", "skip_signature", "aws_skip_signature")
	if err != nil {
		return nil, nil, err
	}
	if fromEnv, err := strconv.ParseBool(os.Getenv("AWS_SKIP_SIGNATURE")); err == nil && fromEnv {
		anonymous = true
	}
	if anonymous || opt.Anonymous {
		q.Set("anonymous", "true")
	}
	var pathStyle *bool
	if v, given, err := a.flag("use_path_style", "s3forcepathstyle"); err != nil {
		return nil, nil, err
	} else if given {
		pathStyle = &v
	}
	if v, given, err := a.flag("virtual_hosted_style_request", "aws_virtual_hosted_style_request"); err != nil {
		return nil, nil, err
	} else if given {
		v = !v
		pathStyle = &v
	}
	return q, pathStyle, nil
}

// s3Driver knows the types of the AWS SDK behind gocloud's.
type s3Driver struct{}

func (s3Driver) suffix() bool { return true }

func (s3Driver) prepare(as func(any) bool, suffix int64, etag string) {
	var in *s3.GetObjectInput
	if !as(&in) {
		return
	}
	if suffix > 0 {
		in.Range = aws.String(fmt.Sprintf("bytes=-%d", suffix))
	}
	if etag != "" {
		in.IfMatch = aws.String(etag)
	}
}

func (s3Driver) listed(o *blob.ListObject) string {
	var raw types.Object
	if o.As(&raw) {
		return aws.ToString(raw.ETag)
	}
	return ""
}

func (s3Driver) attributes(a *blob.Attributes) string { return a.ETag }

func (s3Driver) answered(r *blob.Reader) (etag, contentRange string, known bool) {
	var raw s3.GetObjectOutput
	if !r.As(&raw) {
		return "", "", false
	}
	return aws.ToString(raw.ETag), aws.ToString(raw.ContentRange), true
}
