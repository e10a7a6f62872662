package store

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // file://
	_ "gocloud.dev/blob/memblob"  // mem://

	"github.com/frifs/frifs/fault"
)

// openBucket opens a URI with a scheme.
func openBucket(ctx context.Context, u *url.URL, opt Options) (Store, error) {
	const op = "store.OpenURI"
	shown := WithoutCredentials(u)
	if u.Scheme == "file" {
		if u.Host != "" && u.Host != "localhost" && u.Host != "." {
			return nil, fault.New(op, shown, fault.Invalid, "a file URI has no host: write file:///path")
		}
		return openFile(ctx, u, opt)
	}
	prefix := strings.Trim(u.Path, "/")
	if u.Scheme == "mem" {
		prefix = strings.Trim(u.Host+u.Path, "/")
		u = &url.URL{Scheme: "mem"}
	}
	if err := CheckName(prefix); err != nil {
		return nil, fault.Wrap(op, shown, err)
	}
	u.Path = ""
	b, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		if !blob.DefaultURLMux().ValidBucketScheme(u.Scheme) {
			return nil, fault.New(op, shown, fault.Unsupported, "this build of frifs has no store for the scheme %q", u.Scheme)
		}
		return nil, failure(ctx, nil, op, shown, 0, kindOfBlob(err), err)
	}
	s := NewBlob(b, shown, opt)
	s.prefix = prefix
	return s, nil
}

// openFile opens a file:// URI through gocloud. Metadata side files and temporary directories are a writer's matter.
func openFile(ctx context.Context, u *url.URL, opt Options) (Store, error) {
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
