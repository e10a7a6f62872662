package serve

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/webdav"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

// allowed are the methods that are answered.
const allowed = "OPTIONS, GET, HEAD, PROPFIND"

// handler serves a tree. It is safe for concurrent use and holds no locks.
type handler struct {
	root    nodes.Dir
	opt     Options
	workers *workers
	pieces  *pieces
	pages   pages
	tags    tagger
	locks   webdav.LockSystem // never locked: package webdav asks for one
}

// New makes a handler that serves the tree below root, read-only.
func New(root nodes.Dir, opt Options) http.Handler {
	opt = opt.withDefaults()
	return &handler{
		root: root, opt: opt, pages: newPages(), tags: newTagger(opt.Content), pieces: newPieces(), locks: webdav.NewMemLS(),
		workers: newWorkers(opt.Workers, opt.MetadataTimeout, opt.OnPanic),
	}
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	began := time.Now()
	asked := r.Header.Get("Range")
	w := newResponse(rw, h.pieces, h.opt.StallTimeout)
	w.patience()
	head := w.Header()
	// Names and stored bytes come from the dataset: a browser must neither guess at their type nor run them.
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox allow-downloads")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("X-Robots-Tag", "noindex, nofollow")
	if r.ContentLength != 0 && r.Method != "PROPFIND" {
		// Nobody reads this body: the connection does not wait for its end.
		head.Set("Connection", "close")
	}
	h.route(w, r)
	broken := w.sent && w.failed != nil && w.status < 400
	if !broken {
		w.end()
	}
	if h.opt.OnRequest != nil {
		h.opt.OnRequest(Access{
			Time: began, Remote: r.RemoteAddr, Method: r.Method, Path: r.URL.EscapedPath(), Range: asked,
			Status: w.status, Bytes: w.bytes, Took: time.Since(began), Err: w.failed,
		})
	}
	if broken {
		// The client must not take a part for the whole, and must see the part: with nothing it would ask again.
		_ = w.control.Flush() // it may be gone
		panic(http.ErrAbortHandler)
	}
}

// route answers a request by its method.
func (h *handler) route(w *response, r *http.Request) {
	if !h.mayCall(r.Host) {
		h.say(w, r, answer{status: http.StatusMisdirectedRequest}, fault.Denied.String(),
			"this server does not answer to the name in the Host header; use localhost or an address, or permit the name")
		return
	}
	switch r.Method {
	case http.MethodOptions:
		w.Header().Set("Allow", allowed)
		w.Header().Set("DAV", "1")
		w.Header().Set("MS-Author-Via", "DAV")
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(http.StatusOK)
	case http.MethodGet, http.MethodHead, "PROPFIND":
		q, err := parsePath(r.URL)
		switch {
		case err != nil:
			h.refuse(w, r, err)
		case r.Method == "PROPFIND":
			h.propfind(w, r, q)
		default:
			h.get(w, r, q)
		}
	case http.MethodPut, http.MethodDelete, "MKCOL", "COPY", "MOVE", "PROPPATCH":
		// What a WebDAV client takes for "not here, and do not try again".
		h.refuse(w, r, fault.New("serve", "", fault.ReadOnly, "nothing here can be changed"))
	default:
		w.Header().Set("Allow", allowed)
		h.say(w, r, answer{status: http.StatusMethodNotAllowed}, fault.ReadOnly.String(),
			"the method is not known here: everything is read-only")
	}
}

// mayCall reports whether a client may call the server by this name (with a port or without). A client of HTTP/1.0 may
// call it by none, which no browser does.
func (h *handler) mayCall(host string) bool {
	name := host
	if n, _, err := net.SplitHostPort(host); err == nil {
		name = n
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	ip, _, _ := strings.Cut(name, "%")
	return name == "" || name == "localhost" || strings.HasSuffix(name, ".localhost") || net.ParseIP(ip) != nil ||
		slices.Contains(h.opt.Hosts, "*") || slices.ContainsFunc(h.opt.Hosts, func(s string) bool { return strings.EqualFold(s, name) })
}

// fail answers a request whose call of the tree failed, and reports the failure. A client that is gone gets nothing,
// and its leaving says nothing about the data.
func (h *handler) fail(w *response, r *http.Request, op, path string, err error) {
	if ctxErr := r.Context().Err(); ctxErr != nil {
		err = fault.Wrap("serve", "", ctxErr)
	}
	h.report(op, path, err)
	h.refuse(w, r, err)
}

func (h *handler) report(op, path string, err error) {
	switch kind := fault.KindOf(err); kind {
	case fault.Cancelled, fault.NotFound, fault.Invalid:
	default:
		h.opt.OnError(Failure{Op: op, Path: path, Kind: kind, Err: err})
	}
}
