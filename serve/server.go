package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
)

const (
	maxConnections = 1024
	maxHeaderBytes = 64 << 10
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
)

// Server makes an HTTP server for a handler of this package, with bounds that no client gets around: on the size of a
// request's head, the time it takes to send it, and how long a connection may lie idle. There is no bound on a whole
// answer: the handler bounds each piece of it.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
	}
}

// Run serves connections of l, a bounded number at a time, until ctx ends; then requests that run have the time grace to
// end. A nil error means that all did.
func Run(ctx context.Context, srv *http.Server, l net.Listener, grace time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(netutil.LimitListener(l, maxConnections)) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := srv.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(ErrCutOff, srv.Close())
	}
	if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// ErrCutOff is the error of Run when requests had to be cut off at the end.
var ErrCutOff = errors.New("requests that were still running were cut off")
