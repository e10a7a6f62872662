package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/frifs/frifs/fault"
)

const debugPage = `frifs, for those who look after it:
/metrics          figures of the table, the mount and the process (Prometheus)
/debug/pprof/     profiles (go tool pprof)
`

// debug serves metrics and profiles, if asked to, until end is called.
func (m *mountFlags) debug(ctx context.Context, stderr io.Writer, src *source) (end func(), err error) {
	if m.debugAddr == "" {
		return func() {}, nil
	}
	host, port, err := net.SplitHostPort(m.debugAddr)
	if err != nil {
		return nil, usagef("--debug-addr: %w; write HOST:PORT or :PORT", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fault.New("debug", m.debugAddr, fault.Unavailable, "%w", err)
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		m.logger.Warn("metrics and profiles can be reached from other machines", "addr", l.Addr().String())
	}
	srv := &http.Server{Handler: debugHandler(src), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			m.logger.Error("metrics and profiles are not served any more", "error", err)
		}
	}()
	if m.waiting == nil {
		fmt.Fprintf(stderr, "frifs: metrics and profiles are at http://%s/\n", l.Addr())
	} else {
		m.logger.Info("metrics and profiles are served", "addr", l.Addr().String())
	}
	return func() { _ = srv.Close() }, nil
}

func debugHandler(src *source) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, debugPage) // the client may be gone
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		text, err := readNode(r.Context(), src.root, ".frifs/metrics")
		if err != nil {
			http.Error(w, plain(err), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(text) // likewise
	})
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
