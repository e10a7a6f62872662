package serve

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/frifs/frifs/fault"
)

// answer is what a kind of failure means to an HTTP client: the status, and after how many seconds it is worth asking
// again (0: it is not).
type answer struct {
	status int
	retry  int
}

// table stands beside that of package fault. A client may ask again after a 503 or 504 only: the other statuses would
// be the same.
var table = [...]answer{
	fault.Unknown:     {http.StatusInternalServerError, 0},
	fault.NotFound:    {http.StatusNotFound, 0},
	fault.Stale:       {http.StatusGone, 0},
	fault.Corrupt:     {http.StatusInternalServerError, 0},
	fault.Unsupported: {http.StatusNotImplemented, 0},
	fault.Denied:      {http.StatusForbidden, 0},
	fault.Invalid:     {http.StatusBadRequest, 0},
	fault.TooLarge:    {http.StatusRequestEntityTooLarge, 0},
	fault.Unavailable: {http.StatusServiceUnavailable, 5},
	fault.TimedOut:    {http.StatusGatewayTimeout, 5},
	fault.Cancelled:   {http.StatusServiceUnavailable, 1},
	fault.ReadOnly:    {http.StatusForbidden, 0},
}

func answerTo(kind fault.Kind) answer {
	if int(kind) >= len(table) {
		kind = fault.Unknown
	}
	return table[kind]
}

// Status is the HTTP status that an error of this kind is answered with.
func Status(kind fault.Kind) int { return answerTo(kind).status }

// errorBody is the body of a failed request where JSON is asked for.
type errorBody struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Path    string `json:"path"`
}

// refuse answers a request with an error: one line of text, or of JSON where that is asked for.
func (h *handler) refuse(w *response, r *http.Request, err error) {
	kind := fault.KindOf(err)
	a := answerTo(kind)
	h.say(w, r, a, kind.String(), h.opt.Message(err))
	w.failed = err
}

// say answers with a status and a line.
func (h *handler) say(w *response, r *http.Request, a answer, kind, text string) {
	text = strings.Join(strings.Fields(text), " ")
	head := w.Header()
	for _, k := range []string{"Accept-Ranges", "Content-Length", "Content-Range", "Content-Location", "Etag", "Last-Modified"} {
		if k != "Content-Range" || a.status != http.StatusRequestedRangeNotSatisfiable {
			head.Del(k)
		}
	}
	head.Set("Cache-Control", "no-store")
	head.Set("Content-Type", "text/plain; charset=utf-8")
	if a.retry > 0 {
		head.Set("Retry-After", strconv.Itoa(a.retry))
	}
	body := []byte(text + "\n")
	if wantsJSON(r) {
		if b, err := json.Marshal(errorBody{kind, text, r.URL.EscapedPath()}); err == nil {
			head.Set("Content-Type", "application/json")
			body = append(b, '\n')
		}
	}
	head.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(a.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may be gone
	}
}

// wantsJSON reports whether a page or an error is to be JSON: by ?format=json, or because the Accept header names JSON
// and not HTML.
func wantsJSON(r *http.Request) bool {
	switch r.URL.Query().Get("format") {
	case "json":
		return true
	case "html":
		return false
	}
	accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}
