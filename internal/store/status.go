package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"gocloud.dev/gcerrors"
	"google.golang.org/api/googleapi"

	"github.com/frifs/frifs/fault"
)

// answer is what an HTTP server said when it did not give what was asked for.
type answer struct {
	status int    // 0: no answer came
	code   string // the server's own word for it, such as NoSuchKey
	text   string
	header http.Header
}

// answerIn finds the server's answer in an error of one of the clients. ok is false if there was none.
func answerIn(err error) (a answer, ok bool) {
	var re *smithyhttp.ResponseError
	if errors.As(err, &re) && re.Response != nil && re.Response.Response != nil {
		a.status, a.header, ok = re.Response.StatusCode, re.Response.Header, true
	}
	var ae smithy.APIError
	if errors.As(err, &ae) {
		a.code, a.text = ae.ErrorCode(), ae.ErrorMessage()
	}
	var ge *googleapi.Error
	if errors.As(err, &ge) {
		a = answer{status: ge.Code, text: ge.Message, header: ge.Header}
		if len(ge.Errors) > 0 {
			a.code = ge.Errors[0].Reason
		}
		return a, true
	}
	var ze *azcore.ResponseError
	if errors.As(err, &ze) {
		a = answer{status: ze.StatusCode, code: ze.ErrorCode}
		if ze.RawResponse != nil {
			a.header = ze.RawResponse.Header
		}
		return a, true
	}
	return a, ok || a.code != ""
}

// retryAfter is how long the server asks to wait, 0 if it does not say.
func (a answer) retryAfter() time.Duration {
	s, err := strconv.Atoi(a.header.Get("Retry-After"))
	if err != nil || s < 0 || s > 3600 {
		return 0
	}
	return time.Duration(s) * time.Second
}

// kind classifies the answer (docs/DESIGN.md, "Errors").
func (a answer) kind() fault.Kind {
	if a.unknownUser() {
		return fault.Denied
	}
	switch a.code {
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "SignatureDoesNotMatch", "AuthorizationHeaderMalformed":
		return fault.Denied
	case "RequestTimeout", "SlowDown", "InternalError", "ServerBusy", "OperationTimedOut":
		return fault.Unavailable
	}
	switch s := a.status; {
	case s == http.StatusUnauthorized, s == http.StatusForbidden:
		return fault.Denied
	case s == http.StatusNotFound, s == http.StatusGone:
		return fault.NotFound
	case s == http.StatusPreconditionFailed, s == http.StatusConflict:
		return fault.Stale
	case s == http.StatusNotImplemented:
		return fault.Unsupported
	case s == http.StatusRequestTimeout, s == http.StatusTooManyRequests, s >= 500:
		return fault.Unavailable
	case s >= 300:
		return fault.Invalid
	}
	return fault.Unknown
}

// kindOfBlob classifies an error of gocloud or of the clients below it.
func kindOfBlob(err error) fault.Kind {
	if k := fault.KindOf(err); k != fault.Unknown {
		return k
	}
	if errors.Is(err, storage.ErrObjectNotExist) || errors.Is(err, storage.ErrBucketNotExist) {
		return fault.NotFound
	}
	if noCredentials(err) {
		return fault.Denied
	}
	if a, ok := answerIn(err); ok {
		if k := a.kind(); k != fault.Unknown {
			return k
		}
	}
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return kindOfMissing(err)
	case gcerrors.PermissionDenied:
		return fault.Denied
	case gcerrors.InvalidArgument:
		return fault.Invalid
	case gcerrors.Unimplemented:
		return fault.Unsupported
	case gcerrors.Canceled:
		return fault.Cancelled
	case gcerrors.DeadlineExceeded:
		return fault.TimedOut
	case gcerrors.FailedPrecondition:
		return fault.Stale
	}
	return kindOfOS(err)
}

// kindOfMissing tells a missing object from a host that could not be found, which gocloud calls by the same name.
func kindOfMissing(err error) fault.Kind {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return fault.Unavailable
	}
	return fault.NotFound
}

// noCredentials reports whether the failure lies in getting credentials, before any request to the store.
func noCredentials(err error) bool {
	var failed *azidentity.AuthenticationFailedError
	if errors.As(err, &failed) || errors.Is(err, errNoCredentials) {
		return true
	}
	text := err.Error()
	for _, s := range []string{"failed to refresh cached credentials", "DefaultAzureCredential", "oauth2: cannot fetch token"} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// errNoCredentials marks failures of the credential chain: nothing was asked of the store.
var errNoCredentials = errors.New("no credentials were found: set up those of the cloud, or read a public bucket with --anonymous")

// queries finds the query of a URL inside a message: a signed URL is a credential.
var queries = regexp.MustCompile(`(https?://[^\s"'?]*)\?[^\s"']*`)

// brief makes an error of a client short, and safe to show: status, code and text of the server, or the innermost cause
// on the way there. Request signatures and URLs with queries do not come through.
func brief(err error) error {
	if noCredentials(err) {
		// An answer in the chain is that of whoever should have given credentials, not the store's.
		first, _, _ := strings.Cut(queries.ReplaceAllString(err.Error(), "$1"), "\n")
		if errors.Is(err, errNoCredentials) {
			return &briefError{first, err}
		}
		return &briefError{fmt.Sprintf("%v (%.200s)", errNoCredentials, first), errors.Join(errNoCredentials, err)}
	}
	if a, ok := answerIn(err); ok && a.status != 0 {
		said := strings.TrimSpace(strings.Join([]string{a.code, a.text}, " "))
		if said == "" {
			said = http.StatusText(a.status)
		}
		if len(said) > 300 {
			said = said[:300] + "..."
		}
		if region := a.header.Get("X-Amz-Bucket-Region"); region != "" && (a.status == http.StatusMovedPermanently || a.status == http.StatusBadRequest) {
			said += fmt.Sprintf(" (the bucket is in region %s: set AWS_REGION or add ?region=%s)", region, region)
		}
		return &briefError{fmt.Sprintf("the store answers %d: %s", a.status, queries.ReplaceAllString(said, "$1")), err}
	}
	cause := err
	var ue *url.Error
	if errors.As(err, &ue) {
		cause = ue.Err
	}
	text := queries.ReplaceAllString(cause.Error(), "$1")
	if len(text) > 600 {
		text = text[:600] + "..."
	}
	return &briefError{text, err}
}

// briefError is an error with a text of our own in front of the chain it stands for.
type briefError struct {
	text  string
	cause error
}

func (e *briefError) Error() string { return e.text }
func (e *briefError) Unwrap() error { return e.cause }

// transient reports whether asking again may help: the server is busy or down, the connection broke, or the answer was
// cut short. What the caller's own context did is for the caller to look at.
func transient(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return false
	}
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.TimedOut, fault.Unknown:
		return true
	}
	return errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, context.Canceled)
}
