package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
	"github.com/frifs/frifs/serve"
)

const serveHelp = `Serves the dataset at URI over HTTP and WebDAV, read-only: the same files as a mount, for machines
without FUSE and for readers that speak HTTP (curl, DuckDB, pyarrow, a browser, rclone). Prints the
address on stdout once it answers, and serves until Ctrl-C (SIGINT) or SIGTERM, which end it with
exit code 0 after the requests that run, within five seconds.

SIGHUP has it look for new versions at once, and opens the log file anew.

Files have exact sizes, ranges, and an ETag that stays equal over restarts with the same flags as long
as the bytes do.
A directory is a page; with ?format=json, or Accept: application/json, a listing as JSON. The
path of a directory that goes through a link, such as latest/, redirects to the real one (curl -L);
a file below a link is answered at once, and Content-Location names the real path. A reader that asks
for a file in pieces should use versions/<N>/ rather than latest/, which may come to mean another
version between two of them, or send If-Range.

It listens on this machine only. --allow-remote lets it listen elsewhere: then everybody who reaches
the address can read all files of the tree, with the rights of who serves it. There are no passwords
and no encryption; put a proxy in front that has them. On this machine, every user can read too.`

// serveGrace is how long requests may go on after the signal to end.
const serveGrace = 5 * time.Second

// serveFlags are the flags of serve.
type serveFlags struct {
	target      target
	logs        logFlags
	listen      string
	allowRemote bool
	hosts       []string
	accessLog   string
	hup         chan struct{} // a SIGHUP came
}

func newServeCmd() *cobra.Command {
	s := &serveFlags{hup: make(chan struct{}, 1)}
	cmd := &cobra.Command{
		Use:   "serve URI",
		Short: "Serve a dataset over HTTP and WebDAV, without a mount",
		Long:  serveHelp,
		Example: `  frifs serve /data/t.lance
  frifs serve --listen 127.0.0.1:8080 /data/t.lance     # then: curl http://127.0.0.1:8080/versions/?format=json
  frifs serve --version 12 --access-log - /data/t.lance
  frifs serve --listen 0.0.0.0:8080 --allow-remote --allow-host data.example.org /data/t.lance`,
		Args: args(1, 1, "URI"),
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, args[0]) },
	}
	s.target.flags(cmd)
	s.target.treeFlags(cmd)
	s.target.pollFlag(cmd)
	s.logs.add(cmd, "warn")
	f := cmd.Flags()
	f.StringVar(&s.listen, "listen", "127.0.0.1:0", "address to listen on: `HOST:PORT`; without HOST on this machine only, port 0 for any that is free")
	f.BoolVar(&s.allowRemote, "allow-remote", false, "permit an address that other machines reach: all files are open to all who do")
	f.StringArrayVar(&s.hosts, "allow-host", nil, "answer also to clients that call the server by `NAME` (* for any); localhost and IP addresses always may")
	f.StringVar(&s.accessLog, "access-log", "", "append a line of JSON for each request to `FILE` (- for stderr)")
	return cmd
}

// run serves until a signal.
func (s *serveFlags) run(cmd *cobra.Command, uri string) error {
	log, closeLog, err := s.logs.open(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer closeLog()
	sig := make(chan os.Signal, 8)
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(sig)
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	go func() {
		for {
			select {
			case got := <-sig:
				if got == syscall.SIGHUP {
					s.logs.reopen()
					select {
					case s.hup <- struct{}{}:
					default: // one is waiting
					}
					continue
				}
				signal.Stop(sig) // a second one kills
				cancel()
			case <-ctx.Done():
				return
			}
		}
	}()
	err = s.serve(ctx, cmd, uri, log)
	if err != nil && ctx.Err() != nil && fault.Is(err, fault.Cancelled) {
		return fault.New("", "", fault.Cancelled, "interrupted")
	}
	return err
}

func (s *serveFlags) serve(ctx context.Context, cmd *cobra.Command, uri string, log *slog.Logger) error {
	opt := serve.Options{Release: release(), Content: s.content(), OpTimeout: s.target.opTimeout, Hosts: s.names(), Message: plain}
	if s.accessLog != "" {
		a, err := openAccessLog(s.accessLog, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		defer a.close()
		opt.OnRequest = a.request
	}
	l, err := listen(ctx, s.listen, s.allowRemote)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // it may be closed already
	cmd.SetContext(ctx)
	s.target.onError = func(r nodes.ErrorRecord) {
		log.Log(ctx, r.Kind.Level(), r.Message, "op", r.Op, "path", r.Path, "kind", r.Kind.String())
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit(int64(s.target.memory)))
	}
	s.target.onChange = func(c nodes.Change) { logChange(ctx, log, c) }
	src, err := s.target.source(cmd, uri)
	if err != nil {
		return err
	}
	defer src.close()
	go src.tree.Watch(ctx)
	go s.refreshOnHangup(ctx, src.tree, log)
	opt.Title = src.uri
	opt.OnPanic = func(v any, stack []byte) { log.Error("panic", "value", v, "stack", string(stack)) }
	opt.OnError = func(f serve.Failure) {
		level := slog.LevelDebug
		if f.Kind == fault.TimedOut || f.Kind == fault.Unknown { // the tree notes its other failures itself
			src.tree.Report(f.Op, f.Path, f.Err)
			level = slog.LevelWarn
		}
		log.Log(ctx, level, "request failed", slog.String("op", f.Op), slog.String("path", f.Path), slog.Any("error", f.Err))
	}
	srv := serve.Server(serve.New(src.root, opt))
	srv.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelInfo)
	// The address answers from here on: connections wait in the listener until Run takes them.
	url := "http://" + l.Addr().String() + "/"
	s.announce(ctx, cmd, src, url, l.Addr())
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), url); err != nil {
		return err
	}
	err = serve.Run(ctx, srv, l, serveGrace)
	if errors.Is(err, serve.ErrCutOff) {
		log.Warn(err.Error())
		return nil
	}
	return fault.Wrap("serve", url, err)
}

// refreshOnHangup has the tree look for new versions at each SIGHUP.
func (s *serveFlags) refreshOnHangup(ctx context.Context, tree *nodes.Tree, log *slog.Logger) {
	for {
		select {
		case <-s.hup:
			refresh(ctx, tree, log)
		case <-ctx.Done():
			return
		}
	}
}

// content is what the bytes of files depend on beside the dataset.
func (s *serveFlags) content() string {
	t := &s.target
	return fmt.Sprintf("%q", [][]string{{release(), t.forReader, fmt.Sprint(t.follow, int64(t.manifest))}, t.omitIndex, t.base, t.rebase, t.allowBase})
}

// names are those by which clients may call the server: that in --listen, and where other machines reach it the name of
// this one. No page of a stranger can be called by them.
func (s *serveFlags) names() []string {
	names := slices.Clone(s.hosts)
	if host, _, err := net.SplitHostPort(s.listen); err == nil && host != "" && host != "*" {
		names = append(names, host)
	}
	if s.allowRemote {
		if host, err := os.Hostname(); err == nil && host != "" {
			names = append(names, host)
		}
	}
	return names
}

// announce says what is served, where, and to whom.
func (s *serveFlags) announce(ctx context.Context, cmd *cobra.Command, src *source, url string, addr net.Addr) {
	stderr := cmd.ErrOrStderr()
	fmt.Fprintf(stderr, "frifs: %s is served at %s (HTTP and WebDAV, read-only); stop with Ctrl-C\n", src.describe(ctx), url)
	if a, ok := addr.(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		fmt.Fprintf(stderr, "frifs: everybody who reaches %s can read the whole dataset, without a password and without encryption\n", addr)
	}
	if line := src.advice(ctx); line != "" {
		fmt.Fprintf(stderr, "frifs: %s\n", line)
	}
}

// listen opens addr. Unless remote is set, only addresses of this machine's loopback are.
func listen(ctx context.Context, addr string, remote bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, usagef("--listen: %w; write HOST:PORT or :PORT", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	hosts := []string{host}
	if !remote {
		ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
		if err != nil {
			return nil, fault.New("serve", addr, fault.Invalid, "--listen: %w", err)
		}
		hosts = nil // looked up once
		for _, ip := range ips {
			if !ip.IP.IsLoopback() {
				return nil, usagef("--listen: other machines reach %s, and everybody there could read the whole dataset without a password; if that is meant, add --allow-remote", addr)
			}
			hosts = append(hosts, ip.String())
		}
		// Not every machine on which a name has an address of IPv6 can listen there.
		slices.SortStableFunc(hosts, func(a, b string) int { return strings.Count(a, ":") - strings.Count(b, ":") })
	}
	var first error
	for _, h := range hosts {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(h, port))
		if err == nil {
			return l, nil
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fault.New("serve", addr, fault.Unavailable, "--listen: %w; with port 0 it takes one that is free", err)
		}
		if first == nil {
			first = err
		}
	}
	return nil, fault.New("serve", addr, fault.Unavailable, "--listen: %w", first)
}

// requestLine is one answered request in the access log.
type requestLine struct {
	Time    time.Time `json:"time"`
	Remote  string    `json:"remote"`
	Method  string    `json:"method"`
	Path    string    `json:"path"` // percent-encoded, as asked for
	Range   string    `json:"range"`
	Status  int       `json:"status"`
	Given   int64     `json:"given"` // bytes of the body
	Micros  int64     `json:"microseconds"`
	Outcome string    `json:"outcome"` // "ok", or the kind of the error
}

// request logs an answered request.
func (a *accessLog) request(r serve.Access) {
	line := requestLine{
		Time: r.Time.UTC(), Remote: r.Remote, Method: strings.ToValidUTF8(r.Method, "?"), Path: r.Path, Range: r.Range,
		Status: r.Status, Given: r.Bytes, Micros: r.Took.Microseconds(), Outcome: outcome(r.Err),
	}
	a.write(line)
}
