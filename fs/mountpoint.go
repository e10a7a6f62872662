package fs

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/frifs/frifs/fault"
)

// deviceFile is the kernel's FUSE device. It is only ever looked at: opening it as a probe can hang.
const deviceFile = "/dev/fuse"

// checkTime bounds the looks at the mountpoint: it may be a dead network mount.
const checkTime = 10 * time.Second

// CheckMountpoint checks that a mount at mountpoint would hide nothing and harm nothing, and returns its absolute
// path. It must exist, be a directory, be empty (unless opt.AllowNonEmpty), be no stale mount (opt.Force clears one),
// and lie neither inside nor above opt.SourceDir. Errors are of kind fault.Invalid, fault.NotFound or
// fault.Unavailable and say what to do.
func CheckMountpoint(ctx context.Context, mountpoint string, opt Options) (string, error) {
	const op = "fs.CheckMountpoint"
	abs, err := filepath.Abs(mountpoint)
	if err != nil {
		return "", fault.Wrap(op, mountpoint, err)
	}
	type result struct {
		real string
		err  error
	}
	look := func() result {
		real, err := checkMountpoint(abs, opt)
		return result{real, err}
	}
	for attempt := 0; ; attempt++ {
		done := make(chan result, 1)
		go func() { done <- look() }()
		var r result
		select {
		case r = <-done:
		case <-ctx.Done():
			return "", fault.Wrap(op, abs, ctx.Err())
		case <-time.After(checkTime):
			return "", fault.New(op, abs, fault.TimedOut, "the mountpoint does not answer; is it a mount of a dead server?")
		}
		if errors.Is(r.err, syscall.ENOTCONN) {
			if opt.Force && attempt == 0 {
				if err := ClearStale(abs); err != nil {
					return "", err
				}
				continue
			}
			return "", fault.New(op, abs, fault.Unavailable,
				"a stale mount lies here (its server is gone: %w); clear it with: fusermount3 -u %s (or mount with --force)",
				syscall.ENOTCONN, shellQuote(abs))
		}
		return r.real, r.err
	}
}

// checkMountpoint does the looking. An error that wraps ENOTCONN means a stale mount.
func checkMountpoint(abs string, opt Options) (string, error) {
	const op = "fs.CheckMountpoint"
	fi, err := os.Stat(abs)
	switch {
	case errors.Is(err, syscall.ENOTCONN):
		return "", err
	case errors.Is(err, os.ErrNotExist):
		return "", fault.New(op, abs, fault.NotFound, "the mountpoint does not exist; make it with: mkdir -p %s", shellQuote(abs))
	case err != nil:
		return "", fault.New(op, abs, fault.KindOf(err), "the mountpoint cannot be looked at: %w", err)
	case !fi.IsDir():
		return "", fault.New(op, abs, fault.Invalid, "the mountpoint is not a directory")
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fault.New(op, abs, fault.KindOf(err), "the mountpoint cannot be resolved: %w", err)
	}
	if e, ok := mountAt(real); ok && e.fstype == "fuse.frifs" {
		// The kernel may still have had the attributes of the directory; statfs always asks the server.
		if err := syscall.Statfs(real, new(syscall.Statfs_t)); errors.Is(err, syscall.ENOTCONN) {
			return "", err
		}
		return "", fault.New(op, real, fault.Invalid,
			"frifs is already mounted here (%s); unmount it first with: frifs umount %s", e.source, shellQuote(real))
	}
	if err := checkOverlap(real, opt.SourceDir); err != nil {
		return "", err
	}
	if err := checkMayMountOn(real, fi, os.Geteuid()); err != nil {
		return "", err
	}
	if opt.AllowNonEmpty {
		return real, nil
	}
	f, err := os.Open(real)
	if err != nil {
		return "", fault.New(op, real, fault.KindOf(err), "the mountpoint cannot be listed: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(1)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fault.New(op, real, fault.KindOf(err), "the mountpoint cannot be listed: %w", err)
	}
	if len(names) > 0 {
		return "", fault.New(op, real, fault.Invalid,
			"the mountpoint is not empty (it holds %q); choose an empty directory, or hide its files with --allow-non-empty", names[0])
	}
	return real, nil
}

// checkOverlap refuses a mountpoint that lies inside the dataset at src ("" for none), or has it inside: by their paths, and
// by what lies at them, since a directory may be bound to several places.
func checkOverlap(real, src string) error {
	const op = "fs.CheckMountpoint"
	if src == "" {
		return nil
	}
	if resolved, err := filepath.EvalSymlinks(src); err == nil {
		src = resolved
	}
	src = filepath.Clean(src)
	at, from := place(real), place(src)
	switch {
	case within(real, src) || within(at, from):
		return fault.New(op, real, fault.Invalid, "the mountpoint lies inside the dataset %s; choose a directory outside it", src)
	case within(src, real) || within(from, at):
		return fault.New(op, real, fault.Invalid, "the dataset %s lies inside the mountpoint and would be hidden by it; choose another directory", src)
	}
	return nil
}

// checkMayMountOn refuses what fusermount3 refuses a user who is not root, in words that say what to do.
func checkMayMountOn(real string, fi os.FileInfo, uid int) error {
	const op = "fs.CheckMountpoint"
	st, ok := fi.Sys().(*syscall.Stat_t)
	switch {
	case uid == 0 || !ok:
		return nil
	case fi.Mode()&os.ModeSticky != 0 && int(st.Uid) != uid:
		return fault.New(op, real, fault.Denied, "the mountpoint belongs to another user and others share it (sticky bit); only root may mount there: choose a directory of yours")
	case !canWrite(real):
		return fault.New(op, real, fault.Denied, "you may not write to the mountpoint, and only root may mount over what it may not write to: choose a directory of yours")
	}
	return nil
}

// refused is the error of a mount that the kernel or fusermount3 did not make. What fusermount3 has to say it writes to
// stderr itself.
func refused(abs string, err error) error {
	text := strings.TrimSpace(err.Error())
	if strings.HasPrefix(text, "fusermount exited") {
		return fault.New("fs.Mount", abs, fault.Denied, "fusermount3 refused the mount; its own message says why")
	}
	return fault.New("fs.Mount", abs, fault.Denied, "the kernel refused the mount: %s; see what this machine lacks with: frifs doctor", text)
}

// within reports whether path is dir or lies below it; both are absolute and clean.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// checkDevice looks for the kernel's device and the mount helper.
func checkDevice() error {
	const op = "fs.Mount"
	for _, c := range Doctor() {
		if !c.OK && c.Needed {
			return fault.New(op, "", fault.Denied, "%s: %s; %s", c.Name, c.Detail, c.Fix)
		}
	}
	return nil
}

// helper returns the path of fusermount3, or of the older fusermount.
func helper() (string, error) {
	var first error
	for _, name := range []string{"fusermount3", "fusermount", "/bin/fusermount3", "/usr/bin/fusermount3", "/bin/fusermount"} {
		p, err := exec.LookPath(name)
		if err == nil {
			return p, nil
		}
		if first == nil {
			first = err
		}
	}
	return "", first
}

// shellQuote quotes a path for a command line that is shown to a user.
func shellQuote(s string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:@%,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
