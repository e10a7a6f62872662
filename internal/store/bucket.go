package store

import (
	"context"
	"net/url"
	"os"
	"path/filepath"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // file://
	"gocloud.dev/blob/memblob"

	"github.com/frifs/frifs/fault"
)

// openBucket opens a URI with a scheme.
func openBucket(ctx context.Context, u *url.URL, opt Options) (*Blob, error) {
	a, err := parseAddress(u)
	if err != nil {
		return nil, err
	}
	var b *bucket
	switch a.scheme {
	case "file":
		return openFile(ctx, u, opt)
	case "mem":
		b = &bucket{blob: memblob.OpenBucket(nil)}
	case "s3":
		b, err = openS3(ctx, a, opt)
	case "gs":
		b, err = openGCS(ctx, a, opt)
	case "azblob":
		b, err = openAzure(ctx, a, opt)
	}
	if err != nil {
		return nil, err
	}
	if a.unlisted && opt.Warn != nil {
		opt.Warn(a.shown + ": the commit table in DynamoDB is not asked: the newest version may be missing until Lance has put it in its final place")
	}
	return &Blob{bucket: b, root: a.shown, prefix: a.prefix, opt: opt}, nil
}

// openFile opens a file:// URI through gocloud. Metadata side files and temporary directories are a writer's matter.
func openFile(ctx context.Context, u *url.URL, opt Options) (*Blob, error) {
	const op = "store.OpenURI"
	dir, err := filepath.Abs(filepath.FromSlash(u.Path))
	if err != nil {
		return nil, fault.New(op, "", fault.Invalid, "%w", err)
	}
	shown := (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String()
	if fi, err := os.Stat(dir); err != nil {
		return nil, failure(ctx, nil, op, shown, 0, kindOfOS(err), err)
	} else if !fi.IsDir() {
		return nil, fault.New(op, shown, fault.Invalid, "not a directory")
	}
	b, err := blob.OpenBucket(ctx, shown+"?metadata=skip&no_tmp_dir=true")
	if err != nil {
		return nil, failure(ctx, nil, op, shown, 0, kindOfBlob(err), err)
	}
	s := NewBlob(b, shown, opt)
	if !opt.FollowOutside {
		if s.guard, err = newFence(dir); err != nil {
			return nil, failure(ctx, nil, op, shown, 0, kindOfOS(err), err)
		}
	}
	return s, nil
}
