package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fs"
	"github.com/frifs/frifs/nodes"
)

// mount mounts and serves until the end of the mount.
func (m *mountFlags) mount(cmd *cobra.Command, uri, mountpoint string, opt fs.Options) error {
	// Signals from here on are for us: none may end the process while it is mounted.
	sig := make(chan os.Signal, 8)
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(sig)

	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	interrupted := make(chan os.Signal, 1)
	loading := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		// Until the mount stands, a signal ends the loading.
		defer close(stopped)
		for {
			select {
			case s := <-sig:
				switch s {
				case syscall.SIGHUP, syscall.SIGUSR2:
				case syscall.SIGUSR1:
					m.dumpStacks(cmd.ErrOrStderr())
				default:
					interrupted <- s
					cancel()
					return
				}
			case <-loading:
				return
			}
		}
	}()
	srv, src, err := startMount(ctx, cmd, &m.target, uri, mountpoint, opt)
	close(loading)
	<-stopped
	if err != nil {
		if len(interrupted) > 0 {
			return fault.New("", "", fault.Cancelled, "interrupted")
		}
		return err
	}
	defer src.close()
	if len(interrupted) > 0 {
		sig <- <-interrupted
	}
	return m.stand(ctx, cmd, src, srv, sig)
}

// stand serves a mount that stands: it says so to all who wait for it, and lets its helpers run until it ends.
func (m *mountFlags) stand(ctx context.Context, cmd *cobra.Command, src *source, srv *fs.Server, sig <-chan os.Signal) error {
	end, err := m.debug(ctx, cmd.ErrOrStderr(), src)
	if err == nil {
		defer end()
		err = m.writePIDFile()
	}
	if err != nil {
		return errors.Join(err, endMount(srv, cmd.ErrOrStderr()))
	}
	defer m.removePIDFile()
	var said strings.Builder
	what := src.describe(ctx)
	announce(ctx, &said, what, src, srv, m.waiting == nil)
	src.warnOmissions(ctx, &said, "")
	if m.waiting == nil {
		fmt.Fprint(cmd.ErrOrStderr(), said.String())
	}
	if err := m.waiting.ready(said.String()); err != nil {
		return errors.Join(err, endMount(srv, cmd.ErrOrStderr()))
	}
	m.logger.Info("the mount stands", "uri", src.uri, "mountpoint", srv.Mountpoint(), "pid", os.Getpid(), "release", release())
	defer m.logger.Info("the mount is gone", "mountpoint", srv.Mountpoint())
	n := newNotifier(srv, m.logger)
	n.ready(what + " at " + srv.Mountpoint())
	defer n.stopping()
	watching, endWatch := context.WithCancel(ctx)
	defer endWatch()
	go src.tree.Watch(watching)
	s := serving{srv: srv, sig: sig, stderr: cmd.ErrOrStderr(), tell: n.status, reload: func() {
		m.logs.reopen()
		go refresh(watching, src.tree, m.logger)
	}, dump: func() { m.dumpStacks(cmd.ErrOrStderr()) }}
	return s.serve()
}

func startMount(ctx context.Context, cmd *cobra.Command, t *target, uri, mountpoint string, opt fs.Options) (*fs.Server, *source, error) {
	log := opt.Logger
	cmd.SetContext(ctx)
	t.onError = func(r nodes.ErrorRecord) {
		log.Log(ctx, r.Kind.Level(), r.Message, "op", r.Op, "path", r.Path, "kind", r.Kind.String())
	}
	var live atomic.Pointer[fs.Server]
	t.gauges = func() []nodes.Gauge { return mountGauges(live.Load()) }
	t.onChange = func(c nodes.Change) {
		logChange(ctx, log, c)
		if srv := live.Load(); srv != nil {
			srv.Invalidate(c.Names()...)
		}
	}
	t.settle = func(ctx context.Context) {
		if srv := live.Load(); srv != nil {
			srv.Settle(ctx)
		}
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit(int64(t.memory)))
	}
	src, err := t.source(cmd, uri)
	if err != nil {
		return nil, nil, err
	}
	opt.Source = src.uri
	if opt.SourceDir = src.dir; opt.SourceDir == "" {
		opt.SourceDir = localDir(uri)
	}
	opt.OpTimeout = t.opTimeout
	opt.OnError = func(f fs.Failure) {
		level := slog.LevelDebug
		if unseen(f) {
			src.tree.Report(f.Op, f.Path, f.Err)
			level = slog.LevelWarn
		}
		log.Log(ctx, level, "request failed", slog.String("op", f.Op), slog.String("path", f.Path), slog.Any("error", f.Err))
	}
	srv, err := fs.Mount(context.WithoutCancel(ctx), src.root, mountpoint, opt)
	if err != nil {
		src.close()
		return nil, nil, err
	}
	live.Store(srv)
	return srv, src, nil
}

// mountGauges are the figures of the mount for .frifs/status.json and .frifs/metrics.
func mountGauges(srv *fs.Server) []nodes.Gauge {
	if srv == nil {
		return nil
	}
	st := srv.Stats()
	return append(processGauges(), []nodes.Gauge{
		{Name: "frifs_mount_inodes", Help: "Inodes that the kernel may hold.", Value: float64(st.Inodes)},
		{Name: "frifs_mount_requests_running", Help: "Requests at work.", Value: float64(st.Running)},
		{Name: "frifs_mount_requests_abandoned", Help: "Workers that went on past the end of their request.", Value: float64(st.Abandoned)},
		{Name: "frifs_mount_stalls_total", Help: "Requests that were answered at the end of their time without their work.", Value: float64(st.Stalls)},
		{Name: "frifs_mount_notices_total", Help: "Names that the kernel had and was told to look up again.", Value: float64(st.Notices)},
		{Name: "frifs_mount_passthrough_opens_total", Help: "Opened files that the kernel reads by itself.", Value: float64(st.Passed)},
	}...)
}

// processGauges are the figures of the process, under the names that Prometheus's own clients give them.
func processGauges() []nodes.Gauge {
	gs := []nodes.Gauge{{Name: "go_goroutines", Help: "Goroutines that exist.", Value: float64(runtime.NumGoroutine())}}
	memory := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(memory)
	if memory[0].Value.Kind() == metrics.KindUint64 && memory[1].Value.Kind() == metrics.KindUint64 {
		held := memory[0].Value.Uint64() - memory[1].Value.Uint64()
		gs = append(gs, nodes.Gauge{Name: "go_memory_used_bytes", Help: "Memory that the runtime holds.", Value: float64(held)})
	}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		gs = append(gs, nodes.Gauge{Name: "process_open_fds", Help: "Open file descriptors.", Value: float64(len(fds))})
	}
	return gs
}

// unseen reports whether the tree cannot know of a failed request: that it took too long, or that it was our own fault.
// The tree notes failures of its files itself.
func unseen(f fs.Failure) bool { return f.Kind == fault.TimedOut || f.Kind == fault.Unknown }

// memoryLimit is the soft limit of the process for a budget of cached bytes: room for as much garbage and a base.
func memoryLimit(budget int64) int64 {
	if budget <= 0 {
		budget = defaultMemory
	}
	return 2*budget + 64<<20
}

// announce says what is served, where, how to stop it, and what the reader should know about the table.
func announce(ctx context.Context, stderr io.Writer, what string, src *source, srv *fs.Server, foreground bool) {
	fmt.Fprintf(stderr, "frifs: %s is mounted at %s\n", what, srv.Mountpoint())
	if foreground {
		fmt.Fprintf(stderr, "frifs: use it from another terminal; stop with Ctrl-C or: frifs umount %s\n", srv.Mountpoint())
	} else {
		fmt.Fprintf(stderr, "frifs: served by process %d; stop with: frifs umount %s\n", os.Getpid(), srv.Mountpoint())
	}
	if line := src.advice(ctx); line != "" {
		fmt.Fprintf(stderr, "frifs: %s\n", line)
	}
}
