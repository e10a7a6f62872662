package serve

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/webdav"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

const (
	maxPropfindBody = 8 << 10          // clients ask for a dozen properties
	bodyTimeout     = 10 * time.Second // for sending it
	maxSized        = 1000             // files of a directory whose size is looked up for one PROPFIND
)

// finiteDepth is the body that RFC 4918 has for a server that does not answer for a whole tree at once.
const finiteDepth = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<D:error xmlns:D="DAV:"><D:propfind-finite-depth/></D:error>` + "\n"

// propfind answers PROPFIND for a node, and with Depth 1 for the entries of a directory. Sizes of C2 files that are not
// at hand are left out.
func (h *handler) propfind(w *response, r *http.Request, q request) {
	depth := r.Header.Get("Depth")
	if depth != "0" && depth != "1" {
		w.Header().Set("Content-Type", "application/xml; charset=utf-8")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, finiteDepth) // the client may be gone
		return
	}
	_ = w.control.SetReadDeadline(time.Now().Add(bodyTimeout)) // a reader without deadlines (in tests) has none
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPropfindBody))
	_ = w.control.SetReadDeadline(time.Time{})
	if err != nil {
		w.Header().Set("Connection", "close")
		kind := fault.Invalid
		if large := new(http.MaxBytesError); errors.As(err, &large) {
			kind = fault.TooLarge
		}
		h.refuse(w, r, fault.New("serve", "", kind, "the body of a PROPFIND: %w", err))
		return
	}
	known, err := h.look(r.Context(), q, depth == "1")
	if err != nil {
		h.fail(w, r, "propfind", strings.Join(q.names, "/"), err)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	asked := r.Clone(r.Context())
	asked.URL.Path, asked.URL.RawPath = "/"+strings.Join(q.names, "/"), ""
	asked.Body = io.NopCloser(bytes.NewReader(body))
	out := &leaveOut{response: w, missing: asksByName(body)}
	dav := webdav.Handler{FileSystem: known, LockSystem: h.locks}
	dav.ServeHTTP(out, asked)
	out.flush()
}

// asksByName reports whether the body of a PROPFIND names properties. Only then are those that a node lacks named in
// the answer.
func asksByName(body []byte) bool {
	d := xml.NewDecoder(bytes.NewReader(body))
	for depth := 0; ; {
		t, err := d.Token()
		if err != nil {
			return false
		}
		switch t := t.(type) {
		case xml.StartElement:
			if depth++; depth == 2 && t.Name.Local == "prop" {
				return true
			}
		case xml.EndElement:
			depth--
		}
	}
}

// look finds what a PROPFIND is about to say: a node, and the entries of a directory if they are asked for.
func (h *handler) look(ctx context.Context, q request, entries bool) (*known, error) {
	return run(ctx, h.workers, h.opt.MetadataTimeout, func(ctx context.Context) (*known, error) {
		at, err := find(ctx, h.root, q.names)
		if err != nil {
			return nil, err
		}
		path := "/" + strings.Join(q.names, "/")
		k := &known{infos: map[string]*info{}}
		top := &info{path: path, name: lastOf(q.names), kind: at.node.Type(), tags: h.tags}
		if q.dir && top.kind != nodes.TypeDir {
			return nil, fault.New("serve", at.path(), fault.NotFound, "it is a file; its path has no slash at the end")
		}
		if top.attr, err = attrOf(ctx, at); err != nil {
			return nil, err
		}
		k.infos[path] = top
		dir, ok := at.node.(nodes.Dir)
		if !ok || !entries {
			return k, nil
		}
		return k, h.lookBelow(ctx, k, top, dir, at.names)
	}, nil)
}

// attrOf gives the attributes of a node without C2 work; nil where that would need some.
func attrOf(ctx context.Context, at place) (*nodes.Attr, error) {
	if f, ok := at.node.(nodes.File); ok && f.Class() != nodes.C0 && f.Class() != nodes.C1 {
		es, err := at.parent.Entries(ctx)
		if err != nil {
			return nil, err
		}
		for _, e := range es {
			if e.Name == lastOf(at.names) {
				return e.Attr, nil
			}
		}
		return nil, nil // it is not listed, and its size is not known
	}
	a, err := at.node.Attr(ctx)
	return &a, err
}

// lookBelow finds the entries of a directory. Looking up attributes that the listing has not at hand may take half of
// the time; what is not known then is left out.
func (h *handler) lookBelow(ctx context.Context, k *known, top *info, dir nodes.Dir, names []string) error {
	es, err := dir.Entries(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.opt.MetadataTimeout/2)
	defer cancel()
	top.below = make([]*info, 0, len(es))
	sized := 0
	for _, e := range es {
		i := &info{path: joinPath(top.path, e.Name), name: e.Name, kind: e.Type, attr: e.Attr, tags: h.tags}
		if e.Type == nodes.TypeLink || (e.Type == nodes.TypeFile && e.Attr == nil) {
			if sized++; sized <= maxSized && ctx.Err() == nil {
				i.follow(ctx, h.root, append(names[:len(names):len(names)], e.Name))
			}
		}
		if i.kind == nodes.TypeLink {
			continue // it leads nowhere, or it is not known where to: WebDAV has no links
		}
		top.below = append(top.below, i)
		k.infos[i.path] = i
	}
	return nil
}

// follow finds what an entry is: the node that a link leads to, and attributes that cost no C2 work.
func (i *info) follow(ctx context.Context, root nodes.Dir, names []string) {
	at, err := find(ctx, root, names)
	if err != nil {
		return
	}
	if i.kind == nodes.TypeLink {
		i.kind, i.attr = at.node.Type(), nil
	}
	if f, ok := at.node.(nodes.File); ok && f.Class() != nodes.C0 && f.Class() != nodes.C1 {
		return
	}
	if a, err := at.node.Attr(ctx); err == nil {
		i.attr = &a
	}
}

func lastOf(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1]
}

func joinPath(dir, name string) string {
	if dir == "/" {
		return dir + name
	}
	return dir + "/" + name
}

// The marks that stand for what is not known until leaveOut takes them away. No text of the dataset can look like them,
// since it is escaped.
const (
	unknownSize = -1
	unknownTag  = "-"
)

// leaveOut is a writer that takes from the answers of package webdav what it cannot be told to leave out: properties that
// are not known, and locks, which there are none of. missing has it name the former as missing.
type leaveOut struct {
	*response
	missing bool
	buf     []byte
}

// Write implements io.Writer: what is complete is passed on.
func (l *leaveOut) Write(p []byte) (int, error) {
	const end = "</D:response>"
	l.buf = append(l.buf, p...)
	for {
		n := bytes.Index(l.buf, []byte(end))
		if n < 0 {
			return len(p), nil
		}
		one := string(l.buf[:n])
		l.buf = l.buf[n+len(end):]
		if _, err := io.WriteString(l.response, l.clean(one)+end); err != nil {
			return 0, err
		}
	}
}

// ReadFrom keeps the one of response out of the way.
func (l *leaveOut) ReadFrom(src io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{l}, src)
}

func (l *leaveOut) flush() {
	if len(l.buf) > 0 {
		_, _ = l.response.Write(l.buf) // the client may be gone
	}
}

// clean changes one response element, without its end.
func (l *leaveOut) clean(text string) string {
	var gone strings.Builder
	for _, p := range [...]struct{ name, value string }{
		{"getcontentlength", strconv.Itoa(unknownSize)},
		{"getetag", unknownTag},
		{"getlastmodified", time.Time{}.UTC().Format(http.TimeFormat)},
	} {
		element := "<D:" + p.name + ">" + p.value + "</D:" + p.name + ">"
		if before, after, ok := strings.Cut(text, element); ok {
			text = before + after
			gone.WriteString("<D:" + p.name + "></D:" + p.name + ">")
		}
	}
	const lock = "<D:supportedlock>"
	if before, rest, ok := strings.Cut(text, lock); ok {
		if _, after, ok := strings.Cut(rest, "</D:supportedlock>"); ok {
			text = before + lock + "</D:supportedlock>" + after
		}
	}
	if gone.Len() > 0 && l.missing {
		text += "<D:propstat><D:prop>" + gone.String() + "</D:prop><D:status>HTTP/1.1 404 Not Found</D:status></D:propstat>"
	}
	return text
}
