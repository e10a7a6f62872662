package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/nodes"
)

const exportHelp = `Copies a file or a directory of the tree out. PATH is from the root and may go through links; DEST
is what the copy will be called (a file goes into DEST if that is a directory). DEST must not exist,
or be empty, or hold an export that was interrupted: the same command goes on with that one.
--force exports into a directory that holds something else; nothing of it is removed.

Files are copied in parallel, with their modes and times. Files being written end in .frifs-part. A
file that has to be scanned for first (translated posting sets, scan/) is waited for as long as its
job goes on. A file that fails is named, and the others are copied all the same (exit code 1).

A symbolic link is kept where it leads to something that is exported too; otherwise what it leads to
is copied in its place. What no listing shows (diff, .frifs/refresh) is not copied.

With --link, files that are the dataset's own, byte for byte, become hard links: at once, and
without using space; do not write into them. Where the filesystem can share blocks between files,
they are shared without --link too.`

func newExportCmd() *cobra.Command {
	var t target
	e := export{}
	cmd := &cobra.Command{
		Use:   "export URI PATH DEST",
		Short: "Copy any part of the tree out, without a mount",
		Long:  exportHelp,
		Example: `  frifs export /data/t.lance latest/remapped.lance /tmp/t-now.lance
  frifs export --link /data/t.lance versions/12/remapped.lance /data/t-12.lance
  frifs export --version 12 /data/t.lance latest/fri /tmp/fri
  frifs export /data/t.lance latest/fri/transitions/0001/mapping.csv .`,
		Args: args(3, 3, "URI PATH DEST"),
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			if e.jobs < 1 || e.jobs > 256 {
				return usagef("--jobs: %d is not between 1 and 256", e.jobs)
			}
			if args[2] == "" {
				return usagef("export: DEST is empty")
			}
			src, err := t.source(cmd, args[0])
			if err != nil {
				return err
			}
			defer src.close()
			e.src, e.stderr = src, cmd.ErrOrStderr()
			src.warnOmissions(cmd.Context(), e.stderr, args[1])
			return e.run(cmd.Context(), args[1], args[2])
		}),
	}
	t.flags(cmd)
	t.treeFlags(cmd)
	f := cmd.Flags()
	f.BoolVar(&e.link, "link", false, "make hard links of the dataset's own files instead of copies")
	f.BoolVar(&e.force, "force", false, "export into a directory that is not empty, or where space seems short")
	f.IntVarP(&e.jobs, "jobs", "j", min(8, 2*runtime.GOMAXPROCS(0)), "`N` files are copied at a time")
	return cmd
}

// export is one run of the command.
type export struct {
	link, force bool
	jobs        int
	src         *source
	stderr      io.Writer

	path string // PATH without slashes at its ends
	dest string // the copy: absolute, links in its directory resolved
	log  *exportJournal
	told exportReport
}

func (e *export) run(ctx context.Context, path, dest string) (err error) {
	e.path = strings.Trim(path, "/")
	n, err := nodes.Resolve(ctx, e.src.root, e.path)
	if err != nil {
		return err
	}
	_, isDir := n.(nodes.Dir)
	if e.dest, err = e.destination(dest, isDir); err != nil {
		return err
	}
	e.told.begin(e.stderr)
	defer e.told.end()
	if isDir {
		if e.log, err = openJournal(e.dest, e.header(n), e.force); err != nil {
			return err
		}
	}
	plan, err := e.plan(ctx, n)
	if err == nil {
		err = e.checkSpace(plan)
	}
	if err == nil {
		err = e.copyAll(ctx, plan)
	}
	if err == nil && e.told.failed() == 0 && isDir {
		err = e.finish(plan)
	}
	e.log.close()
	e.told.end()
	return e.summary(ctx, err)
}

// summary says what came of it, and returns the error of the command.
func (e *export) summary(ctx context.Context, err error) error {
	fmt.Fprintf(e.stderr, "frifs: %s\n", e.told.line(e.dest, e.path))
	again := "; run the same command again to go on"
	switch {
	case ctx.Err() != nil:
		return fault.New("", "", fault.Cancelled, "interrupted%s", again)
	case err != nil:
		return err
	case e.told.failed() > 0:
		return printed{fault.New("export", "", fault.Unavailable, "%s failed", countWord(e.told.failed(), "file"))}
	}
	return nil
}

// destination checks DEST and returns the path of the copy. Its directory is made if need be.
func (e *export) destination(dest string, isDir bool) (string, error) {
	abs, err := filepath.Abs(dest)
	if err != nil {
		return "", fault.Wrap("export", dest, err)
	}
	fi, err := os.Stat(abs)
	switch {
	case err == nil && !isDir && fi.IsDir():
		abs = filepath.Join(abs, filepath.Base("/"+e.path))
		fi, err = os.Lstat(abs)
		if err == nil && fi.IsDir() {
			return "", fault.New("export", abs, fault.Denied, "a directory of this name is in the way")
		}
	case err == nil && isDir && !fi.IsDir():
		return "", fault.New("export", abs, fault.Denied, "DEST is a file, but %s is a directory", orRoot(e.path))
	}
	if err == nil && !isDir && !e.force {
		return "", fault.New("export", abs, fault.Denied, "DEST exists; overwrite it with --force")
	}
	real, err := realPath(abs)
	if err != nil {
		return "", fault.New("export", abs, fault.KindOf(err), "DEST cannot be resolved: %w", err)
	}
	if e.src.dir != "" {
		if table, err := filepath.EvalSymlinks(e.src.dir); err == nil && (real == table || strings.HasPrefix(real, table+"/")) {
			return "", fault.New("export", real, fault.Denied, "DEST lies inside the dataset, which is never written to")
		}
	}
	dir := real
	if !isDir {
		dir = filepath.Dir(real)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fault.New("export", dir, fault.KindOf(err), "the directory cannot be made: %w", err)
	}
	return real, nil
}

// realPath resolves the links of the part of path that exists.
func realPath(path string) (string, error) {
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !os.IsNotExist(err) || path == "/" {
			return "", err
		}
		path, rest = filepath.Dir(path), filepath.Join(filepath.Base(path), rest)
	}
}

func orRoot(path string) string {
	if path == "" {
		return "the root"
	}
	return path
}

// header names what is exported: the journal of another export is not continued.
func (e *export) header(n nodes.Node) journalHeader {
	return journalHeader{Version: journalVersion, URI: e.src.uri, Path: e.path, Content: hexIno(n.Ino())}
}

// checkSpace compares what is known to be needed with what is free.
func (e *export) checkSpace(plan *exportPlan) error {
	if e.force {
		return nil
	}
	dir := e.dest
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		dir = filepath.Dir(dir)
	}
	free, ok := freeSpace(dir)
	shared := e.link || sharesBlocks(dir, e.src.dir)
	need := int64(0)
	for _, it := range plan.files {
		if _, local := it.node.(nodes.LocalFile); local && shared {
			continue
		}
		if !e.log.has(it) {
			need += max(it.size, 0)
		}
	}
	if !ok || need <= free {
		return nil
	}
	return fault.New("export", dir, fault.TooLarge, "%s are needed, %s are free; --force tries all the same", sizeText(need), sizeText(free))
}

// finish gives directories their modes and times, the deepest first, and ends the journal.
func (e *export) finish(plan *exportPlan) error {
	if err := e.log.finish(plan.parts()); err != nil {
		return err
	}
	for i := len(plan.dirs) - 1; i >= 0; i-- {
		d := plan.dirs[i]
		if !d.have {
			continue
		}
		p := e.place(d.rel)
		err := os.Chtimes(p, d.attr.Mtime, d.attr.Mtime)
		if err == nil {
			err = os.Chmod(p, os.FileMode(d.attr.Perm))
		}
		if err != nil {
			return fault.New("export", p, fault.KindOf(err), "mode and time cannot be set: %w", err)
		}
	}
	return nil
}

// place is where a path of the plan goes.
func (e *export) place(rel string) string { return filepath.Join(e.dest, filepath.FromSlash(rel)) }

func hexIno(ino uint64) string { return fmt.Sprintf("%016x", ino) }

// sizeText writes a number of bytes for people.
func sizeText(n int64) string {
	const k = 1024
	if n < k {
		return countWord(int(n), "byte")
	}
	f, unit := float64(n)/k, "KiB"
	for _, u := range []string{"MiB", "GiB", "TiB", "PiB"} {
		if f < k {
			break
		}
		f, unit = f/k, u
	}
	return fmt.Sprintf("%.1f %s", f, unit)
}

// shortTime is a duration for people.
func shortTime(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
