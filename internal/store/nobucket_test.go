package store

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"google.golang.org/api/googleapi"

	"github.com/frifs/frifs/fault"
)

// Answers of S3 that are about the bucket or about who asks are told from those about a name.
func TestS3AnswersAboutNoName(t *testing.T) {
	for _, tc := range []struct {
		status   int
		code     string
		kind     fault.Kind
		noBucket bool
		says     string
	}{
		{404, "NoSuchBucket", fault.NotFound, true, "NoSuchBucket in words: the bucket does not exist"},
		{404, "XAdminUserNotFound", fault.Denied, false, "XAdminUserNotFound in words: the store does not know these credentials"},
		{403, "InvalidAccessKeyId", fault.Denied, false, "the store does not know these credentials"},
		{403, "AccessDenied", fault.Denied, false, "AccessDenied"},
		{404, "SomethingNew", fault.NotFound, true, "SomethingNew in words: the bucket does not exist"},
		{404, "", fault.NotFound, true, "the bucket does not exist"},
		{404, "NoSuchKey", fault.NotFound, false, "NoSuchKey"},
	} {
		t.Run(tc.code, func(t *testing.T) {
			s, st, _ := serveS3(t, nil)
			s.answer = func(w http.ResponseWriter, r *http.Request) bool {
				w.WriteHeader(tc.status)
				if tc.code != "" && r.Method == http.MethodGet {
					fmt.Fprintf(w, "<Error><Code>%s</Code><Message>in words</Message></Error>", tc.code)
				}
				return true
			}
			_, err := st.List(t.Context(), "")
			if !fault.Is(err, tc.kind) || NoBucket(err) != tc.noBucket || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("list: %v (kind %v, no bucket %v)", err, fault.KindOf(err), NoBucket(err))
			}
			if !fault.Is(err, fault.NotFound) || tc.code != "NoSuchBucket" {
				return
			}
			r, err := st.Open(t.Context(), "a")
			if err == nil {
				_ = r.Close()
			}
			if !fault.Is(err, fault.NotFound) {
				t.Errorf("open: %v", err)
			}
		})
	}
}

// So are those of the other clouds.
func TestAnswersAboutABucket(t *testing.T) {
	azure := func(code string) error { return &azcore.ResponseError{StatusCode: 404, ErrorCode: code} }
	google := &googleapi.Error{Code: 404, Errors: []googleapi.ErrorItem{{Reason: "notFound"}}}
	for _, tc := range []struct {
		name         string
		err          error
		list, single bool
	}{
		{"no container", azure("ContainerNotFound"), true, true},
		{"no file system", azure("FilesystemNotFound"), true, true},
		{"no blob", azure("BlobNotFound"), false, false},
		{"no bucket", fmt.Errorf("%w: %w", storage.ErrBucketNotExist, google), true, true},
		{"nothing", google, true, false},
		{"no object", fmt.Errorf("%w: %w", storage.ErrObjectNotExist, google), true, false},
		{"busy", &googleapi.Error{Code: 503}, false, false},
		{"no answer", errors.New("broken"), false, false},
	} {
		for listing, want := range map[bool]bool{true: tc.list, false: tc.single} {
			if got := NoBucket(explained(tc.err, kindOfBlob(tc.err), listing)); got != want {
				t.Errorf("%s, of a listing %v: %v", tc.name, listing, got)
			}
		}
	}
}
