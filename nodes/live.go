package nodes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"strconv"
	"sync"
	"time"
)

// livePeriod is how long a live file's content stays the same at least: a name gives at most one new inode a second.
const livePeriod = time.Second

// live makes live files: each lookup gives a file whose content is frozen, and whose inode follows the content
// (docs/DESIGN.md, "Identity").
type live struct {
	t      *Tree
	fresh  *flight[string, *bytesFile]
	mu     sync.Mutex // protects latest
	latest map[string]*bytesFile
}

func newLive(t *Tree) *live {
	return &live{t: t, fresh: newFlight[string, *bytesFile](64<<20, t.cfg.OpTimeout/2, t.now), latest: map[string]*bytesFile{}}
}

// file returns the file at path as it is now, or as it was less than livePeriod ago.
func (l *live) file(ctx context.Context, path string, render func(context.Context) ([]byte, error)) (*bytesFile, error) {
	key := path + "\x00" + strconv.FormatInt(int64(l.t.now().Sub(l.t.start)/livePeriod), 10)
	f, err := l.fresh.get(ctx, key, func(ctx context.Context) (*bytesFile, int64, error) {
		data, err := render(ctx)
		if err != nil {
			return nil, 0, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if old := l.latest[path]; old != nil && bytes.Equal(old.data, data) {
			return old, int64(len(data)), nil
		}
		sum := sha256.Sum256(data)
		f := &bytesFile{base: base{ino: l.t.inode(path, string(sum[:])), path: path, mtime: l.t.now()}, data: data}
		l.latest[path] = f
		return f, int64(len(data)), nil
	})
	if err != nil {
		return nil, l.t.failed("render", path, err)
	}
	return f, nil
}

// liveName stands for a live file in a listing: nothing is rendered to list it.
type liveName struct{ base }

func (l *live) name(path string) liveName {
	l.mu.Lock()
	f := l.latest[path]
	l.mu.Unlock()
	if f != nil {
		return liveName{f.base}
	}
	return liveName{base{ino: l.t.inode(path, "live"), path: path}}
}

// Type implements Node.
func (liveName) Type() Type { return TypeFile }

// Attr implements Node. A liveName is never handed out: it only stands in listings.
func (n liveName) Attr(context.Context) (Attr, error) {
	return Attr{Type: TypeFile, Perm: permFile, Mtime: n.mtime, Ino: n.ino}, nil
}

// jsonBytes renders a document as a whole.
func jsonBytes(ctx context.Context, d *document) ([]byte, error) {
	var out []byte
	err := d.walk(ctx, &cursor{}, false, func(b []byte) bool {
		out = append(out, b...)
		return true
	})
	return out, err
}
