package serve

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// maxRanges is how many ranges of one request are answered; with more, the whole file is.
const maxRanges = 64

// tagger makes entity tags.
type tagger struct{ suffix string }

// newTagger makes the tagger of files whose bytes depend on content (Options.Content) beside the dataset.
func newTagger(content string) tagger {
	if content == "" {
		return tagger{}
	}
	h := fnv.New32a()
	_, _ = io.WriteString(h, content) // a hash does not fail
	return tagger{"-" + strconv.FormatUint(uint64(h.Sum32()), 16)}
}

// tag is a strong entity tag: equal tags, equal bytes, since an inode number never gets other content.
func (t tagger) tag(a nodes.Attr) string {
	return `"` + strconv.FormatUint(a.Ino, 16) + "-" + strconv.FormatInt(a.Size, 16) + t.suffix + `"`
}

// opened is a place that was found, and how: its attributes, and an open handle of a file.
type opened struct {
	place
	attr   nodes.Attr
	handle nodes.Handle // nil for a directory, and where nothing is to be read
}

func (o opened) close() {
	if o.handle != nil {
		_ = o.handle.Close() // of what was only read
	}
}

// open finds the node at names. Of a file it finds the size, which may take a C2 file long, and opens it if it is to be
// read.
func (h *handler) open(ctx context.Context, names []string, reads bool) (opened, error) {
	return run(ctx, h.workers, h.opt.OpTimeout, func(ctx context.Context) (o opened, err error) {
		if o.place, err = find(ctx, h.root, names); err != nil {
			return o, err
		}
		if o.attr, err = o.node.Attr(ctx); err != nil {
			return o, err
		}
		if f, ok := o.node.(nodes.File); ok && reads {
			o.handle, err = f.Open(ctx)
		}
		return o, err
	}, opened.close)
}

// get answers GET and HEAD.
func (h *handler) get(w *response, r *http.Request, q request) {
	o, err := h.open(r.Context(), q.names, r.Method == http.MethodGet)
	defer o.close()
	if err != nil {
		h.fail(w, r, "open", strings.Join(q.names, "/"), err)
		return
	}
	dir, isDir := o.node.(nodes.Dir)
	real := escapePath(o.names, isDir)
	switch {
	case isDir && (o.linked || !q.dir || !q.plain):
		h.redirect(w, r, real)
	case isDir:
		h.directory(w, r, o, dir)
	case q.dir:
		h.fail(w, r, "open", o.path(), fault.New("serve", o.path(), fault.NotFound, "it is a file; its path has no slash at the end"))
	case !q.plain:
		h.redirect(w, r, escapePath(q.names, false))
	default:
		h.file(w, r, o, real)
	}
}

// redirect sends the client to another path. The answer is not kept: what a link means may change.
func (h *handler) redirect(w *response, r *http.Request, path string) {
	w.Header().Set("Location", withQuery(path, r))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	text := "It is at " + path + " (curl -L follows).\n"
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusTemporaryRedirect)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, text) // the client may be gone
	}
}

func withQuery(path string, r *http.Request) string {
	if r.URL.RawQuery == "" {
		return path
	}
	return path + "?" + r.URL.RawQuery
}

// file answers with a file, or what the headers of the request make of it.
func (h *handler) file(w *response, r *http.Request, o opened, real string) {
	head := w.Header()
	head.Set("Content-Type", mediaType(o.names[len(o.names)-1]))
	head.Set("ETag", h.tags.tag(o.attr))
	head.Set("Cache-Control", "no-cache")
	if t, ok := o.node.(nodes.Transient); ok && t.Transient() {
		head.Set("Cache-Control", "no-store") // asking for it does something
	}
	if o.linked {
		head.Set("Content-Location", real)
	}
	asked := r.Header.Get("Range")
	if plain := plainRange(asked, o.attr.Size); plain == "" {
		r.Header.Del("Range")
	} else {
		r.Header.Set("Range", plain)
	}
	if o.linked && !strings.HasPrefix(r.Header.Get("If-Range"), `"`) && r.Header.Get("If-Range") != "" {
		r.Header.Del("Range") // two versions may be of one second: a date does not tell whether it is the same file
	}
	body := &body{ctx: r.Context(), h: h, handle: o.handle, size: o.attr.Size}
	w.quiet = true // what it says of a failure is said below, with a reason
	http.ServeContent(w, r, "", o.attr.Mtime, body)
	w.quiet = false
	switch {
	case body.failed == nil && w.status == http.StatusRequestedRangeNotSatisfiable:
		w.status = 0
		h.say(w, r, answer{status: http.StatusRequestedRangeNotSatisfiable}, fault.Invalid.String(),
			fmt.Sprintf("%s: no byte of the range %q is in the file, which has %d", o.path(), asked, o.attr.Size))
		return
	case body.failed == nil && w.status == http.StatusPreconditionFailed:
		w.status = 0
		h.say(w, r, answer{status: http.StatusPreconditionFailed}, fault.Stale.String(), o.path()+": it is not the file that the request means")
		return
	case body.failed == nil:
		return
	}
	if w.sent {
		h.report("read", o.path(), body.failed)
		w.failed = body.failed
		return
	}
	w.status = 0
	h.fail(w, r, "read", o.path(), body.failed)
}

// body reads an open file in order, for one answer.
type body struct {
	ctx    context.Context
	h      *handler
	handle nodes.Handle
	size   int64
	off    int64
	failed error // of the first read that failed
}

// Seek implements io.Seeker.
func (b *body) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += b.off
	case io.SeekEnd:
		off += b.size
	}
	if off < 0 {
		return 0, errors.New("serve: negative position")
	}
	b.off = off
	return off, nil
}

// next reads the next bytes, at most limit, into a buffer that the caller gives back: work that is left behind at the
// end of its time still writes to its buffer. n is 0 with io.EOF.
func (b *body) next(limit int64) (buf *piece, n int, err error) {
	if b.failed != nil {
		return nil, 0, b.failed
	}
	want, off := int(min(limit, pieceSize, b.size-b.off)), b.off
	if want <= 0 {
		return nil, 0, io.EOF
	}
	type got struct {
		buf *piece
		n   int
	}
	ps := b.h.pieces
	g, err := run(b.ctx, b.h.workers, b.h.opt.OpTimeout, func(ctx context.Context) (got, error) {
		buf := ps.get()
		n, err := b.handle.ReadAt(ctx, buf.data[:want], off)
		return got{buf, n}, err
	}, func(g got) { ps.put(g.buf) })
	if err == nil && g.n < want {
		err = fault.New("serve", "", fault.Corrupt, "%d of %d bytes at offset %d; the size is %d", g.n, want, off, b.size)
	}
	if err != nil {
		ps.put(g.buf)
		b.failed = err
		return nil, 0, err
	}
	b.off += int64(want)
	return g.buf, want, nil
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	buf, n, err := b.next(int64(len(p)))
	if err != nil {
		return 0, err
	}
	copy(p, buf.data[:n])
	b.h.pieces.put(buf)
	return n, nil
}
