package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fs"
)

const demoHelp = `Writes a small sample dataset, made by Lance and with records of both generations, to a temporary
directory, mounts it, prints a short tour, unmounts and cleans up.

With MOUNTPOINT, an empty directory, it is mounted there. With --stay it stays mounted after the tour
until Ctrl-C, to look around. Where mounting is not possible, and with --no-mount, the tour reads the
same files without a mount.`

func newDemoCmd() *cobra.Command {
	var noMount, stay bool
	cmd := &cobra.Command{
		Use:   "demo [MOUNTPOINT]",
		Short: "Mount a sample dataset and print a tour",
		Long:  demoHelp,
		Example: `  frifs demo
  mkdir -p /tmp/demo && frifs demo --stay /tmp/demo
  frifs demo --no-mount`,
		Args: args(0, 1, "[MOUNTPOINT]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if noMount && (stay || len(args) > 0) {
				return usagef("--no-mount goes with neither MOUNTPOINT nor --stay")
			}
			d := demo{cmd: cmd, stay: stay}
			if len(args) > 0 {
				d.mountpoint = args[0]
			}
			return d.run(noMount)
		},
	}
	cmd.Flags().BoolVar(&noMount, "no-mount", false, "read the files without a mount")
	cmd.Flags().BoolVar(&stay, "stay", false, "stay mounted after the tour until Ctrl-C")
	return cmd
}

type demo struct {
	cmd        *cobra.Command
	mountpoint string // "": one in the temporary directory
	stay       bool
}

func (d *demo) run(noMount bool) (err error) {
	sig := make(chan os.Signal, 8)
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(sig)
	ctx, cancel := context.WithCancel(d.cmd.Context())
	defer cancel()

	tmp, err := os.MkdirTemp("", "frifs-demo-")
	if err != nil {
		return fault.Wrap("demo", "", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	path, err := unpackDemo(tmp)
	if err != nil {
		return err
	}
	t := &target{memory: defaultMemory, opTimeout: time.Minute}
	if noMount {
		return d.unmounted(ctx, t, path, sig)
	}
	if why := cannotMount(); why != "" && d.mountpoint == "" && !d.stay {
		fmt.Fprintf(d.cmd.ErrOrStderr(), "frifs: no mount here: %s\nfrifs: the tour reads the same files without one; frifs doctor says more\n\n", why)
		return d.unmounted(ctx, t, path, sig)
	}
	mp := d.mountpoint
	if mp == "" {
		mp = filepath.Join(tmp, "mnt")
		if err := os.Mkdir(mp, 0o755); err != nil {
			return fault.Wrap("demo", "", err)
		}
	}
	log := slog.New(slog.NewTextHandler(d.cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	srv, src, err := startMount(ctx, d.cmd, t, path, mp, fs.Options{Logger: log})
	if err != nil && d.mountpoint == "" && !d.stay && !fault.Is(err, fault.Cancelled) {
		fmt.Fprintf(d.cmd.ErrOrStderr(), "frifs: no mount here: %v\nfrifs: the tour reads the same files without one\n\n", err)
		return d.unmounted(ctx, t, path, sig)
	}
	if err != nil {
		return err
	}
	defer src.close()
	return d.mounted(ctx, src, srv, sig)
}

// cannotMount says what this machine lacks to mount, "" for nothing.
func cannotMount() string {
	for _, c := range fs.Doctor() {
		if !c.OK && c.Needed {
			return c.Detail + "; " + c.Fix
		}
	}
	return ""
}

// mounted runs the tour through the mount and ends the mount, whatever happens.
func (d *demo) mounted(ctx context.Context, src *source, srv *fs.Server, sig chan os.Signal) error {
	tour := tour{src: src, mountpoint: srv.Mountpoint(), out: d.cmd.OutOrStdout()}
	err := untilSignal(ctx, sig, tour.run)
	if err == nil && d.stay {
		fmt.Fprintf(d.cmd.ErrOrStderr(), "frifs: still mounted at %s; stop with Ctrl-C\n", srv.Mountpoint())
		return (&serving{srv: srv, sig: sig, stderr: d.cmd.ErrOrStderr()}).serve()
	}
	return errors.Join(err, endMount(srv, d.cmd.ErrOrStderr()))
}

func (d *demo) unmounted(ctx context.Context, t *target, path string, sig chan os.Signal) error {
	d.cmd.SetContext(ctx)
	src, err := t.source(d.cmd, path)
	if err != nil {
		return err
	}
	defer src.close()
	tour := tour{src: src, out: d.cmd.OutOrStdout()}
	return untilSignal(ctx, sig, tour.run)
}

// untilSignal runs work with a context that a signal ends.
func untilSignal(ctx context.Context, sig <-chan os.Signal, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	select {
	case err := <-done:
		return err
	case <-sig:
		cancel()
		<-done //nolint:errcheck // what the signal interrupted says only that
		return fault.New("", "", fault.Cancelled, "interrupted")
	}
}

// endMount unmounts; a mount that someone keeps busy is taken away all the same, since its dataset goes too.
func endMount(srv *fs.Server, stderr io.Writer) error {
	err := srv.Unmount()
	var busy *fs.BusyError
	if errors.As(err, &busy) {
		fmt.Fprintf(stderr, "frifs: %v; taking it away\n", busy)
		err = srv.UnmountLazy()
	}
	if err != nil {
		return err
	}
	select {
	case <-srv.Done():
	case <-time.After(drainTime):
		srv.Abort()
	}
	return nil
}
