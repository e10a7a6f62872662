package fs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// mountEntry is one line of the mount table.
type mountEntry struct {
	dev    string // "major:minor"
	root   string // what of that filesystem is mounted
	path   string
	fstype string
	source string
}

// mountAt returns the topmost mount at exactly path. The mount table is read, never the path: it may hang.
func mountAt(path string) (mountEntry, bool) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return mountEntry{}, false
	}
	defer f.Close()
	return findMount(f, func(at string) bool { return at == path })
}

// place names what lies at path, which is absolute, by its filesystem and its path in it: the same wherever that is bound to.
// A path that cannot be placed stands for itself. Only the mount table is read.
func place(path string) string {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return path
	}
	defer f.Close()
	return placeIn(f, path)
}

// placeIn is place for a mount table in the format of /proc/self/mountinfo: the deepest mount above path counts, and of
// several at one path the last.
func placeIn(table io.Reader, path string) string {
	deepest := ""
	e, ok := findMount(table, func(at string) bool {
		if !within(path, at) || len(at) < len(deepest) {
			return false
		}
		deepest = at
		return true
	})
	if !ok {
		return path
	}
	return e.dev + ":" + filepath.Join(e.root, strings.TrimPrefix(path, e.path))
}

// canWrite reports whether this process may make files in the directory.
func canWrite(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }

// findMount scans a mount table in the format of /proc/self/mountinfo for the last mountpoint that is meant.
func findMount(r io.Reader, is func(mountpoint string) bool) (found mountEntry, ok bool) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		before, after, sep := strings.Cut(sc.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !sep || len(left) < 5 || len(right) < 2 {
			continue
		}
		if p := unescapeMount(left[4]); is(p) {
			found, ok = mountEntry{dev: left[2], root: unescapeMount(left[3]), path: p, fstype: right[0], source: unescapeMount(right[1])}, true
		}
	}
	return found, ok
}

// unescapeMount undoes the \ooo escapes of the mount table.
func unescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// writable reports whether this process may write to the file.
func writable(path string) bool { return unix.Access(path, unix.R_OK|unix.W_OK) == nil }

// bdiDir holds one directory per mounted filesystem with its read-ahead.
const bdiDir = "/sys/class/bdi"

// canRaiseReadAhead reports whether this process could raise a mount's read-ahead.
func canRaiseReadAhead() bool {
	var st unix.Statfs_t
	if os.Geteuid() != 0 || unix.Statfs(bdiDir, &st) != nil {
		return false
	}
	return st.Flags&unix.ST_RDONLY == 0
}

// raiseReadAhead lets the kernel read ahead by opt.MaxReadAhead bytes, where this process has the right to say so.
func raiseReadAhead(mountpoint string, opt Options) {
	e, ok := mountAt(mountpoint)
	if !ok {
		return
	}
	file := fmt.Sprintf("%s/%s/read_ahead_kb", bdiDir, e.dev)
	kb := strconv.Itoa(max(opt.MaxReadAhead>>10, 4))
	if err := os.WriteFile(file, []byte(kb), 0o644); err != nil {
		opt.Logger.Debug("read-ahead stays at the kernel's default", "error", err)
	}
}

// kernel returns the release of the running kernel.
func kernel() kernelRelease {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return kernelRelease{}
	}
	return parseKernel(unix.ByteSliceToString(u.Release[:]))
}

// waitMount has nothing to wait for: NewServer has answered the kernel's first request. go-fuse's own WaitMount opens a
// file of the mount, for the sake of processes that use their own mounts. A process that is killed with such a file
// open never ends: the kernel waits for it to answer its own close. We never use our own mount.
func waitMount(*fuse.Server) error { return nil }
