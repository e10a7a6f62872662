package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fs"
	"github.com/frifs/frifs/nodes"
)

// drainTime is how long a lazily unmounted filesystem may go on serving open files after the second signal.
const drainTime = 5 * time.Second

const mountHelp = `Mounts the dataset at URI read-only at MOUNTPOINT, an empty directory, and serves it in the
foreground. README.txt at the root is there once the mount serves.

Ctrl-C (SIGINT) or SIGTERM unmounts and exits 0. While files of the mount are in use it says by whom
and goes on serving; a second signal takes the mount away all the same. SIGHUP makes the kernel look
names up again; new versions of the table show within seconds anyway. kill -9 leaves a stale mount
behind: the next mount there says how to clear it, --force clears it.

Without a selector all versions are shown; --version and --asof pin the tree to one.`

func newMountCmd() *cobra.Command {
	var t target
	var logs logFlags
	opt := fs.Options{}
	readAhead := sizeValue(1 << 20)
	cmd := &cobra.Command{
		Use:   "mount URI MOUNTPOINT",
		Short: "Mount a dataset (foreground)",
		Long:  mountHelp,
		Example: `  mkdir -p /mnt/t && frifs mount /data/t.lance /mnt/t
  frifs mount --version 12 /data/t.lance /mnt/t
  frifs mount --for-reader 2.0.1 --omit-index body_fts /data/t.lance /mnt/t
  frifs mount --asof 2026-05-04T12:00:00Z --log-file /var/log/frifs.log /data/t.lance /mnt/t`,
		Args: args(2, 2, "URI MOUNTPOINT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			log, closeLog, err := logs.open(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer closeLog()
			opt.Logger = log
			opt.MaxReadAhead = int(readAhead)
			return mount(cmd, &t, args[0], args[1], opt)
		},
	}
	t.flags(cmd)
	t.treeFlags(cmd)
	logs.add(cmd, "warn")
	f := cmd.Flags()
	f.BoolVar(&opt.AllowNonEmpty, "allow-non-empty", false, "mount over a directory that holds files; they are hidden meanwhile")
	f.BoolVar(&opt.Force, "force", false, "clear a stale mount at MOUNTPOINT first")
	f.IntVar(&opt.InodeLimit, "inode-limit", 100_000, "inodes that the kernel may keep; the least recently used go")
	f.Var(&readAhead, "max-read-ahead", "how far the kernel reads ahead; above 128KiB only root can set it")
	f.BoolVar(&opt.NoPassthrough, "no-passthrough", false, "never let the kernel read local data files by itself (Linux 6.9, root)")
	f.BoolVar(&opt.DebugFUSE, "debug-fuse", false, "print every request of the kernel and its answer to stderr")
	return cmd
}

// mount mounts and serves until the end of the mount.
func mount(cmd *cobra.Command, t *target, uri, mountpoint string, opt fs.Options) error {
	// Signals from here on are for us: none may end the process while it is mounted.
	sig := make(chan os.Signal, 8)
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
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
				if s != syscall.SIGHUP {
					interrupted <- s
					cancel()
					return
				}
			case <-loading:
				return
			}
		}
	}()
	srv, src, err := startMount(ctx, cmd, t, uri, mountpoint, opt)
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
	announce(ctx, cmd.ErrOrStderr(), src, srv)
	return serve(srv, sig, cmd.ErrOrStderr())
}

func startMount(ctx context.Context, cmd *cobra.Command, t *target, uri, mountpoint string, opt fs.Options) (*fs.Server, *source, error) {
	log := opt.Logger
	cmd.SetContext(ctx)
	t.onError = func(r nodes.ErrorRecord) {
		log.Log(ctx, r.Kind.Level(), r.Message, "op", r.Op, "path", r.Path, "kind", r.Kind.String())
	}
	var live atomic.Pointer[fs.Server]
	t.gauges = func() []nodes.Gauge { return mountGauges(live.Load()) }
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit(int64(t.memory)))
	}
	src, err := t.source(cmd, uri)
	if err != nil {
		return nil, nil, err
	}
	opt.Source = src.uri
	opt.SourceDir = src.dir
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
	return []nodes.Gauge{
		{Name: "frifs_mount_inodes", Help: "Inodes that the kernel may hold.", Value: float64(st.Inodes)},
		{Name: "frifs_mount_requests_running", Help: "Requests at work.", Value: float64(st.Running)},
		{Name: "frifs_mount_requests_abandoned", Help: "Workers that went on past the end of their request.", Value: float64(st.Abandoned)},
		{Name: "frifs_mount_passthrough_opens_total", Help: "Opened files that the kernel reads by itself.", Value: float64(st.Passed)},
	}
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
func announce(ctx context.Context, stderr io.Writer, src *source, srv *fs.Server) {
	fmt.Fprintf(stderr, "frifs: %s is mounted at %s\n", src.describe(ctx), srv.Mountpoint())
	fmt.Fprintf(stderr, "frifs: use it from another terminal; stop with Ctrl-C or: frifs umount %s\n", srv.Mountpoint())
	if line := src.advice(ctx); line != "" {
		fmt.Fprintf(stderr, "frifs: %s\n", line)
	}
}

// secondSignal is how long after the first signal another one counts as the second. Wrappers such as timeout(1) and
// terminals deliver the same wish twice.
const secondSignal = time.Second

// serve waits for the end of the mount. It returns only when nothing is mounted any more.
func serve(srv *fs.Server, sig <-chan os.Signal, stderr io.Writer) error {
	unmounted := make(chan error, 1)
	var asked time.Time // of the first signal; zero: none yet
	refused := false    // the unmount that it asked for failed
	for {
		select {
		case <-srv.Done():
			if asked.IsZero() {
				fmt.Fprintf(stderr, "frifs: %s was unmounted\n", srv.Mountpoint())
			}
			return nil
		case err := <-unmounted:
			var busy *fs.BusyError
			switch {
			case err == nil:
				continue
			case errors.As(err, &busy):
				fmt.Fprintf(stderr, "frifs: %v; still serving. Unmount when it is free, or signal again to force\n", busy)
			default:
				fmt.Fprintf(stderr, "frifs: %s; still serving. Signal again to force\n", plain(err))
			}
			refused = true
		case s := <-sig:
			switch {
			case s == syscall.SIGHUP:
				srv.Refresh()
			case asked.IsZero():
				asked = time.Now()
				go func() { unmounted <- srv.Unmount() }()
			case refused || time.Since(asked) > secondSignal:
				return force(srv, stderr)
			}
		}
	}
}

// force takes the mount away although it is in use, and gives those who use it a little time.
func force(srv *fs.Server, stderr io.Writer) error {
	fmt.Fprintf(stderr, "frifs: taking %s away; open files are served for %v more\n", srv.Mountpoint(), drainTime)
	if err := srv.UnmountLazy(); err != nil {
		return err
	}
	select {
	case <-srv.Done():
		return nil
	case <-time.After(drainTime):
	}
	srv.Abort()
	return fault.New("umount", srv.Mountpoint(), fault.Unavailable, "files were still in use; their readers get errors now")
}
