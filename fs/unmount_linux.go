package fs

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// haveMountTable says that mountAt knows what is mounted.
const haveMountTable = true

var errDirectDenied = errors.New("only root may call umount(2)")

func directUnmount(abs string, lazy bool) error {
	flags := unix.UMOUNT_NOFOLLOW
	if lazy {
		flags |= unix.MNT_DETACH
	}
	return unix.Unmount(abs, flags)
}

// forceUnmount unmounts and makes the kernel give up on requests that the server never answered.
func forceUnmount(abs string) error {
	return unix.Unmount(abs, unix.UMOUNT_NOFOLLOW|unix.MNT_FORCE|unix.MNT_DETACH)
}

// maxHolders bounds the list of processes that is worth reading.
const maxHolders = 8

// Holders lists processes that use files below mountpoint, as far as /proc shows them to this user. It reads links
// only, and never touches the mount.
func Holders(mountpoint string) []Holder {
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var out []Holder
	self := os.Getpid()
	for _, p := range procs {
		pid, err := strconv.Atoi(filepath.Base(p))
		if err != nil || pid == self {
			continue
		}
		what := usage(p, mountpoint)
		if what == "" {
			continue
		}
		comm, _ := os.ReadFile(p + "/comm")
		out = append(out, Holder{PID: pid, Command: strings.TrimSpace(string(comm)), What: what})
		if len(out) == maxHolders {
			break
		}
	}
	return out
}

// usage says how the process uses the mount, or "".
func usage(proc, mountpoint string) string {
	inside := func(link string) (string, bool) {
		t, err := os.Readlink(link)
		if err != nil || !within(t, mountpoint) {
			return "", false
		}
		rel, err := filepath.Rel(mountpoint, t)
		return rel, err == nil
	}
	if _, ok := inside(proc + "/cwd"); ok {
		return "working directory"
	}
	if _, ok := inside(proc + "/root"); ok {
		return "root directory"
	}
	fds, err := os.ReadDir(proc + "/fd")
	if err == nil {
		for _, fd := range fds {
			if rel, ok := inside(proc + "/fd/" + fd.Name()); ok {
				return "open file " + rel
			}
		}
	}
	maps, err := os.ReadFile(proc + "/maps")
	if err == nil {
		if i := strings.Index(string(maps), " "+mountpoint+"/"); i >= 0 {
			line, _, _ := strings.Cut(string(maps)[i+len(mountpoint)+2:], "\n")
			return "mapped file " + line
		}
	}
	return ""
}
