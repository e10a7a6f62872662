package main

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fs"
)

const mountHelp = `Mounts the dataset at URI read-only at MOUNTPOINT, an empty directory, and serves it in the
foreground. README.txt at the root is there once the mount serves.

Ctrl-C (SIGINT) or SIGTERM unmounts and exits 0. While files of the mount are in use it says by whom
and goes on serving; a second signal takes the mount away all the same. New versions, tags and
branches show within --poll-interval; SIGHUP, or frifs refresh MOUNTPOINT, looks for them at once.
SIGHUP also reopens the log files. SIGUSR1 writes to the log what every goroutine does; SIGQUIT
(Ctrl-\) does that and takes the mount away.
kill -9 leaves a stale mount behind: the next mount there says how to clear it, --force clears it.

With --daemon the command returns when the mount answers, and it is served in the background; if it
does not come to that, the command says why and where the log is. In a unit of systemd use
Type=notify instead (contrib/systemd/frifs@.service). In /etc/fstab, with frifs linked as
/sbin/mount.frifs:

  /data/t.lance  /mnt/t  frifs  _netdev,nofail,version=12,allow_other  0 0

-o takes flags of this command without their dashes, and ignores what only mount(8) is to know. A
mount is always read-only, whatever is asked.

Without a selector all versions are shown; --version and --asof pin the tree to one.`

// mountFlags are the flags of mount, and what they come to.
type mountFlags struct {
	target target
	logs   logFlags
	opt    fs.Options

	readAhead         sizeValue
	entryTimeout      time.Duration // 0: the kernel keeps nothing
	attrTimeout       time.Duration
	uid, gid          idValue
	fileMode, dirMode modeValue
	options           []string
	daemon            bool
	readyTimeout      time.Duration
	pidFile           string
	debugAddr         string
	accessLog         string
	logger            *slog.Logger
	waiting           *readiness // of the process that waits for this one; nil for none
	stderr            io.Writer  // as the process was given it: where the log goes that has no file
}

func newMountCmd() *cobra.Command {
	m := &mountFlags{readAhead: 1 << 20}
	cmd := &cobra.Command{
		Use:   "mount URI MOUNTPOINT",
		Short: "Mount a dataset",
		Long:  mountHelp,
		Example: `  mkdir -p /mnt/t && frifs mount /data/t.lance /mnt/t
  frifs mount --version 12 /data/t.lance /mnt/t
  frifs mount --daemon --log-file /var/log/frifs.log --log-format json /data/t.lance /mnt/t
  frifs mount --asof 2026-05-04T12:00:00Z --allow-other --uid 1000 /data/t.lance /mnt/t
  frifs mount --for-reader 2.0.1 --omit-index body_fts /data/t.lance /mnt/t
  frifs mount --debug-addr :6060 --access-log reads.jsonl /data/t.lance /mnt/t`,
		Args: args(2, 2, "URI MOUNTPOINT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := m.apply(cmd, m.options); err != nil {
				return err
			}
			m.waiting = inheritedReadiness()
			if m.daemon && m.waiting == nil {
				if err := m.check(args[1]); err != nil {
					return err
				}
				return m.startDaemon(cmd, args)
			}
			m.stderr = cmd.ErrOrStderr()
			log := m.speakJSON(cmd)
			err := m.check(args[1])
			if err == nil {
				err = m.run(cmd, args[0], args[1])
			}
			if err != nil {
				m.waiting.failed(message(cmd, err), err)
				if log != nil {
					log.Error(message(cmd, err))
					err = printed{err}
				}
			}
			return err
		},
	}
	m.target.flags(cmd)
	m.target.treeFlags(cmd)
	m.target.pollFlag(cmd)
	m.logs.add(cmd, "warn")
	f := cmd.Flags()
	f.StringArrayVarP(&m.options, "options", "o", nil, "flags as fstab has them: `OPT[,OPT...]`, such as version=12,allow_other")
	f.BoolVar(&m.daemon, "daemon", false, "serve in the background; return when the mount answers")
	f.DurationVar(&m.readyTimeout, "ready-timeout", 30*time.Second, "how long --daemon waits for that")
	f.StringVar(&m.pidFile, "pid-file", "", "write the number of the serving process to `FILE`, and remove it in the end")
	f.BoolVar(&m.opt.AllowOther, "allow-other", false, "let other users in (user_allow_other in /etc/fuse.conf, unless root mounts)")
	f.BoolVar(&m.opt.AllowRoot, "allow-root", false, "let root in, and no other user (the same)")
	f.Var(&m.uid, "uid", "user `ID` that owns all files (default: who mounts)")
	f.Var(&m.gid, "gid", "group `ID` of all files (default: of who mounts)")
	f.Var(&m.fileMode, "file-mode", "permissions of all files, such as 0440 (default: 0444, below remapped.lance 0644)")
	f.Var(&m.dirMode, "dir-mode", "permissions of all directories, such as 0550 (default: 0555, below remapped.lance 0755)")
	f.BoolVar(&m.opt.AllowNonEmpty, "allow-non-empty", false, "mount over a directory that holds files; they are hidden meanwhile")
	f.BoolVar(&m.opt.Force, "force", false, "clear a stale mount at MOUNTPOINT first")
	f.DurationVar(&m.entryTimeout, "entry-timeout", 24*time.Hour, "how long the kernel keeps names; those that may change at most 1s; 0s: not at all")
	f.DurationVar(&m.attrTimeout, "attr-timeout", 24*time.Hour, "the same for attributes of files and directories")
	f.IntVar(&m.opt.InodeLimit, "inode-limit", 100_000, "inodes that the kernel may keep; the least recently used go")
	f.Var(&m.readAhead, "max-read-ahead", "how far the kernel reads ahead; above 128KiB only root can set it")
	f.BoolVar(&m.opt.NoPassthrough, "no-passthrough", false, "never let the kernel read local data files by itself (Linux 6.9, root)")
	f.StringVar(&m.debugAddr, "debug-addr", "", "serve metrics (Prometheus) and profiles (pprof) at `HOST:PORT`; without HOST on this machine only")
	f.StringVar(&m.accessLog, "access-log", "", "append a line of JSON for each read to `FILE`; the kernel reads no file by itself then")
	f.BoolVar(&m.opt.DebugFUSE, "debug-fuse", false, "print every request of the kernel and its answer to stderr")
	return cmd
}

// checkNumbers finds numbers that make no sense, before anything is started.
func (m *mountFlags) checkNumbers() error {
	switch {
	case m.readyTimeout <= 0:
		return usagef("--ready-timeout: %v is not positive", m.readyTimeout)
	case m.entryTimeout < 0:
		return usagef("--entry-timeout: %v is negative", m.entryTimeout)
	case m.attrTimeout < 0:
		return usagef("--attr-timeout: %v is negative", m.attrTimeout)
	case m.opt.InodeLimit <= 0:
		return usagef("--inode-limit: %d is not positive", m.opt.InodeLimit)
	}
	return nil
}

// check finds what makes no sense before anything is started.
func (m *mountFlags) check(mountpoint string) error {
	if err := m.checkNumbers(); err != nil {
		return err
	}
	return m.checkPlaces(mountpoint)
}

// checkPlaces refuses to write to files that the mount would hide, or would have to serve itself.
func (m *mountFlags) checkPlaces(mountpoint string) error {
	abs, err := filepath.Abs(mountpoint)
	if err != nil {
		return fault.Wrap("mount", mountpoint, err)
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(dir, filepath.Base(abs))
	}
	for _, f := range []struct{ flag, name string }{
		{"--cache-dir", m.target.cacheDir}, {"--log-file", m.logs.file}, {"--access-log", m.accessLog}, {"--pid-file", m.pidFile},
	} {
		if f.name == "" || f.name == "-" {
			continue
		}
		at, err := filepath.Abs(f.name)
		if err != nil {
			return fault.Wrap("mount", f.name, err)
		}
		if dir, err := filepath.EvalSymlinks(filepath.Dir(at)); err == nil {
			at = filepath.Join(dir, filepath.Base(at))
		}
		if at == abs || strings.HasPrefix(at, strings.TrimSuffix(abs, "/")+"/") {
			return usagef("%s: %s lies at or below the mountpoint, where the mount hides it; name another place", f.flag, f.name)
		}
	}
	return nil
}

// run mounts and serves in this process.
func (m *mountFlags) run(cmd *cobra.Command, uri, mountpoint string) error {
	m.logs.stderr = m.waiting != nil
	log, closeLog, err := m.logs.open(m.stderr)
	if err != nil {
		return err
	}
	defer closeLog()
	m.logger = log
	slog.SetDefault(log) // what libraries log by themselves, too
	opt := m.opt
	opt.Logger = log
	opt.MaxReadAhead = int(m.readAhead)
	opt.EntryTimeout, opt.AttrTimeout = m.entryTimeout, m.attrTimeout
	for _, d := range []*time.Duration{&opt.EntryTimeout, &opt.AttrTimeout} {
		if *d == 0 {
			*d = -1 // 0 would be the default
		}
	}
	opt.UID, opt.GID = m.uid.id, m.gid.id
	opt.FileMode, opt.DirMode = uint32(m.fileMode), uint32(m.dirMode)
	if m.accessLog != "" {
		a, err := openAccessLog(m.accessLog, m.stderr)
		if err != nil {
			return err
		}
		defer a.close()
		reopen := m.logs.reopen
		m.logs.reopen = func() {
			reopen()
			a.reopen()
		}
		opt.OnRead = a.read
	}
	return m.mount(cmd, uri, mountpoint, opt)
}

// apply sets the flags that -o names. What only mount(8) and systemd are to know is passed over.
func (m *mountFlags) apply(cmd *cobra.Command, lists []string) error {
	for _, list := range lists {
		for _, opt := range splitOptions(list) {
			name, value, given := strings.Cut(opt, "=")
			switch {
			case name == readWrite:
				fmt.Fprintln(cmd.ErrOrStderr(), "frifs: note: -o rw changes nothing: a mount of frifs is always read-only")
				continue
			case name == "remount":
				return usagef("-o remount: a mount of frifs cannot be changed; unmount it and mount it again")
			case forMountOnly(name):
				continue
			}
			if env, ok := strings.CutPrefix(name, "env."); ok && given && env != "" {
				if err := os.Setenv(env, value); err != nil {
					return usagef("-o %s: %w", opt, err)
				}
				continue
			}
			name = strings.ReplaceAll(name, "_", "-")
			if name == "nonempty" {
				name = "allow-non-empty"
			}
			f := cmd.Flags().Lookup(name)
			if f == nil || name == "options" || name == "help" {
				return usagef("-o: there is no option %q", name)
			}
			if !given {
				if f.NoOptDefVal == "" {
					return usagef("-o: %s needs a value: %s=...", name, name)
				}
				value = f.NoOptDefVal
			}
			if err := cmd.Flags().Set(name, value); err != nil {
				return usagef("-o %s: %w", opt, err)
			}
		}
	}
	return nil
}

// splitOptions splits at commas; a comma that belongs to a value has a backslash before it.
func splitOptions(list string) []string {
	var out []string
	var b strings.Builder
	for i := 0; i < len(list); i++ {
		switch {
		case list[i] == '\\' && i+1 < len(list):
			i++
			b.WriteByte(list[i])
		case list[i] == ',':
			out = append(out, b.String())
			b.Reset()
		default:
			b.WriteByte(list[i])
		}
	}
	out = append(out, b.String())
	return out
}

// forMountOnly reports whether an option of fstab is none of ours: what mount(8), systemd and the kernel's own flags
// are about. A mount is read-only without devices and set-user-ID programs, whatever is asked.
func forMountOnly(name string) bool {
	if strings.HasPrefix(name, "x-") || strings.HasPrefix(name, "X-") || strings.HasPrefix(name, "comment") {
		return true
	}
	switch name {
	case "", "defaults", "_netdev", "nofail", "auto", "noauto", "user", "nouser", "users", "owner", "group",
		"ro", "dev", "nodev", "suid", "nosuid", "exec", "noexec", "async", "sync", "dirsync",
		"atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime", "strictatime", "nostrictatime",
		"lazytime", "nolazytime", "loud", "silent", "fail", "default_permissions":
		return true
	}
	return false
}

// idValue is a flag with the number of a user or group; unset is nil.
type idValue struct{ id *uint32 }

// Set implements pflag.Value.
func (v *idValue) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n == math.MaxUint32 {
		return fmt.Errorf("%q is not the number of a user or group", s)
	}
	id := uint32(n)
	v.id = &id
	return nil
}

// String implements pflag.Value.
func (v *idValue) String() string {
	if v.id == nil {
		return ""
	}
	return strconv.FormatUint(uint64(*v.id), 10)
}

// Type implements pflag.Value.
func (v *idValue) Type() string { return "ID" }

// modeValue is a flag with permissions in octal; unset is 0.
type modeValue uint32

// Set implements pflag.Value.
func (v *modeValue) Set(s string) error {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil || n == 0 || n > 0o777 {
		return fmt.Errorf("%q are no permissions in octal, such as 0444", s)
	}
	*v = modeValue(n)
	return nil
}

// String implements pflag.Value.
func (v *modeValue) String() string {
	if *v == 0 {
		return ""
	}
	return fmt.Sprintf("%04o", uint32(*v))
}

// Type implements pflag.Value.
func (v *modeValue) Type() string { return "MODE" }
