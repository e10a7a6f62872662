package store

import (
	"errors"
	"fmt"
	"net/http"

	"cloud.google.com/go/storage"

	"github.com/frifs/frifs/fault"
)

// errNoBucket marks a "not found" that is about no name in a bucket.
var errNoBucket = errors.New("the bucket does not exist at this endpoint: check its name, the endpoint and the region")

// errUnknownUser marks that a store knows nobody with the credentials it was given.
var errUnknownUser = errors.New("the store does not know these credentials: check the access key, and that they are for this endpoint (AWS_PROFILE, AWS_ACCESS_KEY_ID)")

// NoBucket reports whether err, a fault.NotFound of a store, is about the bucket (a container, a file system) as a whole:
// it says nothing about any name in it.
func NoBucket(err error) bool { return errors.Is(err, errNoBucket) }

// unknownUser reports whether the store says that it knows nobody of this name, or no such key. Some say so with 404.
func (a answer) unknownUser() bool {
	switch a.code {
	case "InvalidAccessKeyId", "XAdminUserNotFound", "XAdminNoSuchUser", "XMinioAdminNoSuchUser", "XMinioAdminNoSuchAccessKey",
		"XMinioInvalidIAMCredentials", "NoSuchUser", "UserNotFound", "NoSuchAccessKey", "NotSignedUp", "InvalidClientTokenId":
		return true
	}
	return false
}

// noBucket reports whether a store's "not found" is about the bucket. Of a listing it always is, if the code does not
// say otherwise: stores answer 200 where nothing lies below a prefix.
func noBucket(err error, listing bool) bool {
	if errors.Is(err, storage.ErrBucketNotExist) {
		return true
	}
	a, ok := answerIn(err)
	if !ok || a.status != http.StatusNotFound && a.status != 0 {
		return false
	}
	switch a.code {
	case "NoSuchBucket", "ContainerNotFound", "ContainerDisabled", "FilesystemNotFound", "AccountNotFound":
		return true
	case "NoSuchKey", "NoSuchVersion", "BlobNotFound", "PathNotFound":
		return false
	}
	return listing && a.status == http.StatusNotFound
}

// explained is brief with what to do about answers that are about more than a name.
func explained(err error, kind fault.Kind, listing bool) error {
	said := brief(err)
	if a, ok := answerIn(err); ok && kind == fault.Denied && a.unknownUser() && !noCredentials(err) {
		return fmt.Errorf("%w: %w", said, errUnknownUser)
	}
	if kind == fault.NotFound && noBucket(err, listing) {
		return fmt.Errorf("%w: %w", said, errNoBucket)
	}
	return said
}
