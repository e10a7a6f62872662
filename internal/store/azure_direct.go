package store

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	azobject "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"

	"github.com/frifs/frifs/fault"
)

// direct is a driver that makes requests with the cloud's own client, since gocloud changes the names of some objects on
// their way: on Azure every % and #, and Lance writes %2F. Keys are those of the bucket, as they are.
type direct interface {
	// list gives one page of what lies below prefix up to the next slash; Name is the whole key.
	list(ctx context.Context, prefix string, token []byte, size int) (out []Object, next []byte, err error)
	head(ctx context.Context, key string) (Object, error)
	// read asks for n bytes at off; etag is what the object must have, if it is not empty.
	read(ctx context.Context, key string, off, n int64, etag string) (*body, error)
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func (d azureDriver) list(ctx context.Context, prefix string, token []byte, size int) (out []Object, next []byte, err error) {
	most := int32(min(size, pageSize))
	opts := &container.ListBlobsHierarchyOptions{Prefix: &prefix, MaxResults: &most}
	if marker := string(token); !bytes.Equal(token, blob.FirstPageToken) {
		opts.Marker = &marker
	}
	page, err := d.client.NewListBlobsHierarchyPager("/", opts).NextPage(ctx)
	if err != nil {
		return nil, nil, err
	}
	if s := page.Segment; s != nil {
		for _, p := range s.BlobPrefixes {
			out = append(out, Object{Name: value(p.Name), Dir: true})
		}
		for _, b := range s.BlobItems {
			o := Object{Name: value(b.Name)}
			if p := b.Properties; p != nil {
				o.Size, o.Modified, o.ETag = value(p.ContentLength), value(p.LastModified), quoted(p.ETag)
			}
			out = append(out, o)
		}
	}
	return out, []byte(value(page.NextMarker)), nil
}

func (d azureDriver) head(ctx context.Context, key string) (Object, error) {
	p, err := d.client.NewBlobClient(key).GetProperties(ctx, nil)
	if err != nil {
		return Object{}, err
	}
	return Object{Size: value(p.ContentLength), Modified: value(p.LastModified), ETag: quoted(p.ETag)}, nil
}

func (d azureDriver) read(ctx context.Context, key string, off, n int64, etag string) (*body, error) {
	if n == 0 { // no range of nothing can be asked for
		o, err := d.head(ctx, key)
		return &body{http.NoBody, o, off}, err
	}
	opts := &azobject.DownloadStreamOptions{Range: azobject.HTTPRange{Offset: off, Count: n}}
	if tag := azcore.ETag(etag); etag != "" {
		opts.AccessConditions = &azobject.AccessConditions{ModifiedAccessConditions: &azobject.ModifiedAccessConditions{IfMatch: &tag}}
	}
	answer, err := d.client.NewBlobClient(key).DownloadStream(ctx, opts)
	if err != nil {
		return nil, err
	}
	contentRange := value(answer.ContentRange)
	if start := startOf(contentRange); start != off {
		_ = answer.Body.Close() // nothing of it is used
		return nil, fault.New("", "", fault.Unavailable, "bytes from %d on were asked for, the answer begins at %d: does a proxy drop the Range header?", off, start)
	}
	size := sizeOf(contentRange)
	if size < 0 {
		size = value(answer.ContentLength)
	}
	return &body{limited{io.LimitReader(answer.Body, n), answer.Body}, Object{Size: size, Modified: value(answer.LastModified), ETag: quoted(answer.ETag)}, off}, nil
}

// limited is a part of an answer.
type limited struct {
	io.Reader
	io.Closer
}

// sizeOf is the size of the object in a Content-Range header, -1 if it is not there.
func sizeOf(contentRange string) int64 {
	_, size, _ := strings.Cut(contentRange, "/")
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}
