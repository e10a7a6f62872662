package nodes

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/frifs/frifs/fault"
)

// errorJSON renders ERROR.json: what is impossible in a directory, and why (docs/DESIGN.md, "Listing").
func errorJSON(es problems) *document {
	j := newJSONDoc()
	j.ArrayOf("errors", len(es), func(e *enc, i int) {
		e.Obj(func() {
			e.K("file").Str(es[i].file)
			e.errMembers(es[i].err)
		})
	})
	return j.Done()
}

// errorBytes is ERROR.json of the directory at path, of the dataset at uri, where it does not follow from a manifest
// alone: its inode follows the text.
func errorBytes(ctx context.Context, uri, path string, mtime time.Time, es problems) (*bytesFile, error) {
	data, err := jsonBytes(ctx, errorJSON(es))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return &bytesFile{base: base{ino: inode(uri, "ERROR.json", string(sum[:])), path: path + "/ERROR.json", mtime: mtime}, data: data}, nil
}

// errMembers writes kind, message, path and detail of an error: message is the innermost cause, path the file or URI it
// is about, detail the whole chain.
func (e *enc) errMembers(err error) {
	cause, path := err, ""
	for {
		var fe *fault.Error
		if !errors.As(cause, &fe) {
			break
		}
		if fe.Path != "" {
			path = fe.Path
		}
		if fe.Err == nil {
			break
		}
		cause = fe.Err
	}
	e.K("kind").Str(fault.KindOf(err).String())
	e.K("message").Str(cause.Error())
	e.K("path").OptStr(path)
	e.K("detail").Str(err.Error())
}

// Err writes an error as {kind, message, path, detail}, or null.
func (e *enc) Err(err error) {
	if err == nil {
		e.Null()
		return
	}
	e.Obj(func() { e.errMembers(err) })
}
