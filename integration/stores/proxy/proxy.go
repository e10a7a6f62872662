package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// Fault is what happens to one request. The zero value lets it pass.
type Fault struct {
	Delay  time.Duration // before anything else
	Status int           // answered instead of asking the server, with RetryAfter seconds if that is positive
	// RetryAfter is the header of that name.
	RetryAfter int
	Reset      bool // the connection is reset instead of an answer
	// From here on the server's answer comes, but its body ends or halts after Bytes bytes.
	Bytes    int64
	Cut      bool          // the connection breaks there
	Shorten  bool          // the answer says that it has no more bytes
	Lengthen bool          // the answer says that it has Bytes more bytes than it has
	Stall    time.Duration // nothing comes for so long, then the connection breaks
}

// Plan says what happens to the n-th request (from 1). It may be called from several goroutines.
type Plan func(n int, r *http.Request) Fault

// Proxy is a running proxy. Its address is used in place of the server's.
type Proxy struct {
	URL string // http://127.0.0.1:PORT
	// RewriteHost gives the server its own name in the header Host, where it does not take another's. By default the
	// header stays as it is, since clients sign it. Set it before the first request.
	RewriteHost bool

	target *url.URL
	server *http.Server
	client *http.Transport
	ended  context.Context
	stop   context.CancelFunc

	mu    sync.Mutex // guards the rest
	plan  Plan
	n     int
	log   []string
	bytes int64
}

// New starts a proxy for the server at target (http://HOST:PORT). plan may be nil.
func New(target string, plan Plan) (*Proxy, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		URL: "http://" + l.Addr().String(), target: u, plan: plan,
		client: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
	}
	p.ended, p.stop = context.WithCancel(context.Background())
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = p.server.Serve(l) }() // ends with Close
	return p, nil
}

// Close ends the proxy and all its connections.
func (p *Proxy) Close() {
	p.stop()
	_ = p.server.Close()
	p.client.CloseIdleConnections()
}

// SetPlan replaces the plan and counts anew.
func (p *Proxy) SetPlan(plan Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan, p.n, p.log, p.bytes = plan, 0, nil, 0
}

// SetPlanAnswer is SetPlan for a plan that only answers in place of the server: with the status, or not if that is 0.
func (p *Proxy) SetPlanAnswer(status func(r *http.Request) int) {
	p.SetPlan(func(_ int, r *http.Request) Fault { return Fault{Status: status(r)} })
}

// Requests lists the requests since the last SetPlan: method, path, query and range.
func (p *Proxy) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.log...)
}

// Bytes is the number of body bytes passed on since the last SetPlan.
func (p *Proxy) Bytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

// Latency is a plan that delays every request.
func Latency(d time.Duration) Plan {
	return func(int, *http.Request) Fault { return Fault{Delay: d} }
}

func (p *Proxy) next(r *http.Request) Fault {
	p.mu.Lock()
	p.n++
	n, plan := p.n, p.plan
	p.log = append(p.log, fmt.Sprint(r.Method, " ", r.URL.RequestURI(), " ", r.Header.Get("Range")))
	p.mu.Unlock()
	if plan == nil {
		return Fault{}
	}
	return plan(n, r)
}

// wait waits, unless the client or the proxy goes away before.
func (p *Proxy) wait(r *http.Request, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
	case <-p.ended.Done():
	}
	return false
}

// ServeHTTP passes a request on, or not.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := p.next(r)
	if f.Delay > 0 && !p.wait(r, f.Delay) {
		return
	}
	if f.Reset {
		reset(w)
		return
	}
	if f.Status != 0 {
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(f.RetryAfter))
		}
		w.WriteHeader(f.Status)
		return
	}
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.URL.Scheme, out.URL.Host = p.target.Scheme, p.target.Host
	if p.RewriteHost {
		out.Host = p.target.Host
	}
	answer, err := p.client.RoundTrip(out)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = answer.Body.Close() }() // only read from
	if err := p.pass(w, r, answer, f); err != nil {
		panic(http.ErrAbortHandler) // breaks the connection
	}
}

// errBroken asks for the connection to be broken.
var errBroken = errors.New("broken on purpose")

func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, answer *http.Response, f Fault) error {
	for k, v := range answer.Header {
		w.Header()[k] = v
	}
	if r.Method == http.MethodHead { // no body that a network could harm
		f = Fault{}
	}
	faulty := f.Cut || f.Shorten || f.Stall > 0
	if f.Shorten && answer.ContentLength > f.Bytes {
		w.Header().Set("Content-Length", strconv.FormatInt(f.Bytes, 10))
	}
	if f.Lengthen && answer.ContentLength >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(answer.ContentLength+f.Bytes+1, 10))
	}
	w.WriteHeader(answer.StatusCode)
	if f.Lengthen {
		n, _ := io.Copy(w, answer.Body)
		p.passed(n)
		return errBroken
	}
	if !faulty {
		n, err := io.Copy(w, answer.Body)
		p.passed(n)
		return err
	}
	n, err := io.CopyN(w, answer.Body, f.Bytes)
	p.passed(n)
	if errors.Is(err, io.EOF) { // shorter than where the fault would be
		return nil
	}
	if err != nil {
		return err
	}
	if f.Shorten {
		return nil
	}
	if flush, ok := w.(http.Flusher); ok {
		flush.Flush()
	}
	if f.Stall > 0 {
		p.wait(r, f.Stall)
	}
	return errBroken
}

func (p *Proxy) passed(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += n
}

// reset ends a connection in the rudest way there is.
func reset(w http.ResponseWriter) {
	h, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	c, _, err := h.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // then Close sends a reset
	}
	_ = c.Close()
}
