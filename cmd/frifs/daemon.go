package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fs"
)

// readyEnv tells the serving process of --daemon on which descriptor another process waits for it.
const readyEnv = "FRIFS_READY_FD"

// stopTime is how long a serving process that is not wanted any more may take to end.
const stopTime = 5 * time.Second

// readyMessage is what the serving process says to the waiting one, once.
type readyMessage struct {
	Ready bool   `json:"ready"`
	Text  string `json:"text"`  // for the user
	Code  int    `json:"code"`  // exit code, where it is not ready
	Usage bool   `json:"usage"` // it was called wrongly
}

// readiness is the serving process's end of the pipe. A nil one does nothing.
type readiness struct{ pipe *os.File }

// inheritedReadiness returns the pipe to the process that waits for this one; nil if there is none.
func inheritedReadiness() *readiness {
	fd, err := strconv.Atoi(os.Getenv(readyEnv))
	if err != nil || fd < 3 {
		return nil
	}
	_ = os.Unsetenv(readyEnv) // nobody waits for our own children
	syscall.CloseOnExec(fd)
	return &readiness{os.NewFile(uintptr(fd), "ready")}
}

func (r *readiness) say(m readyMessage) error {
	if r == nil || r.pipe == nil {
		return nil
	}
	b, err := json.Marshal(m)
	if err == nil {
		_, err = r.pipe.Write(b)
	}
	err = errors.Join(err, r.pipe.Close())
	r.pipe = nil
	return err
}

// ready says that the mount stands. An error means that nobody waits any more.
func (r *readiness) ready(text string) error {
	if r == nil {
		return nil
	}
	if err := r.say(readyMessage{Ready: true, Text: text}); err != nil {
		return fault.New("daemon", "", fault.Cancelled, "the process that waited for the mount is gone: %w", err)
	}
	// A working directory must not keep a filesystem busy.
	return fault.Wrap("daemon", "/", os.Chdir("/"))
}

// failed says why there is no mount, if the process has not been ready.
func (r *readiness) failed(text string, err error) {
	var usage usageError
	code := fault.KindOf(err).ExitCode()
	if errors.As(err, &usage) {
		code = 2
	}
	_ = r.say(readyMessage{Text: text, Code: code, Usage: code == 2 && errors.As(err, &usage)}) // the log has it too
}

// startDaemon starts the serving process, waits until its mount answers, and leaves it alone.
func (m *mountFlags) startDaemon(cmd *cobra.Command, args []string) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log, err := m.daemonLog(args[1])
	if err != nil {
		return err
	}
	defer log.Close()
	exe, err := os.Executable()
	if err != nil {
		return fault.Wrap("daemon", "", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fault.Wrap("daemon", "", err)
	}
	defer r.Close()
	flags, err := m.daemonFlags(cmd.Flags(), log.Name())
	if err != nil {
		return err
	}
	child := exec.Command(exe, append(append([]string{"mount"}, flags...), append([]string{"--"}, args...)...)...)
	child.Env = append(os.Environ(), readyEnv+"=3")
	child.ExtraFiles = []*os.File{w}
	child.Stderr = log
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	keepToOurselves()
	begin, err := log.Seek(0, io.SeekEnd)
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		return errors.Join(fault.New("daemon", exe, fault.KindOf(err), "the serving process cannot be started: %w", err), w.Close())
	}
	_ = w.Close() // the child has its own
	d := daemonWait{child: child, log: log, begin: begin, ended: make(chan struct{}), said: make(chan readyMessage, 1)}
	go d.listen(r)
	return d.wait(ctx, args[1], m.readyTimeout, cmd.ErrOrStderr())
}

// daemonLog opens the log of the serving process: --log-file, or one of its own per mountpoint.
func (m *mountFlags) daemonLog(mountpoint string) (*os.File, error) {
	name := m.logs.file
	if name == "" {
		abs, err := filepath.Abs(mountpoint)
		if err != nil {
			return nil, fault.Wrap("daemon", mountpoint, err)
		}
		dir, err := logDir()
		if err != nil {
			return nil, err
		}
		name = filepath.Join(dir, strings.ReplaceAll(strings.Trim(abs, "/"), "/", "-")+".log")
	}
	name, err := filepath.Abs(name)
	if err != nil {
		return nil, fault.Wrap("daemon", name, err)
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fault.New("daemon", name, fault.KindOf(err), "the log file cannot be opened: %w", err)
	}
	return f, nil
}

// logDir makes the directory for logs that nobody named: /var/log/frifs for root; for others frifs in the XDG state
// directory, which mount(8) and systemd may leave to the account to say.
func logDir() (string, error) {
	dir := "/var/log/frifs"
	if os.Geteuid() != 0 {
		state := os.Getenv("XDG_STATE_HOME")
		if state == "" {
			home, err := os.UserHomeDir()
			if err != nil || home == "" {
				u, uerr := user.LookupId(strconv.Itoa(os.Geteuid()))
				if uerr != nil {
					return "", usagef("--daemon: there is no home directory for the log; name a file with --log-file")
				}
				home = u.HomeDir
			}
			state = filepath.Join(home, ".local", "state")
		}
		dir = filepath.Join(state, "frifs")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fault.New("daemon", dir, fault.KindOf(err), "the directory of the log cannot be made (name a file with --log-file): %w", err)
	}
	return dir, nil
}

// daemonFlags are the flags of the serving process: those that were given, with paths that stay right when the working
// directory changes.
func (m *mountFlags) daemonFlags(given *pflag.FlagSet, log string) ([]string, error) {
	out := []string{"--log-file=" + log}
	var bad error
	given.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "daemon", "ready-timeout", "options", "log-file":
			return
		case "pid-file", "cache-dir", "access-log":
			abs, err := filepath.Abs(f.Value.String())
			if f.Value.String() == "-" {
				abs = "-"
			}
			bad = errors.Join(bad, err)
			out = append(out, "--"+f.Name+"="+abs)
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, v := range list.GetSlice() {
				out = append(out, "--"+f.Name+"="+v)
			}
			return
		}
		out = append(out, "--"+f.Name+"="+f.Value.String())
	})
	return out, bad
}

// daemonWait is the waiting process's view of the serving one.
type daemonWait struct {
	child *exec.Cmd
	log   *os.File
	begin int64             // of this run in the log
	ended chan struct{}     // closed when the child has ended
	said  chan readyMessage // what it said, if anything
}

// listen reads what the child says and waits for its end.
func (d *daemonWait) listen(pipe io.Reader) {
	var m readyMessage
	if b, err := io.ReadAll(io.LimitReader(pipe, 1<<20)); err == nil && json.Unmarshal(b, &m) == nil {
		d.said <- m
	}
	_ = d.child.Wait() // how it ended is looked at through ProcessState
	close(d.ended)
}

func (d *daemonWait) wait(ctx context.Context, mountpoint string, limit time.Duration, stderr io.Writer) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case m := <-d.said:
		if !m.Ready {
			<-d.ended
			return d.refused(m)
		}
		if err := answers(ctx, mountpoint, timer.C); err != nil {
			return d.give(mountpoint, err)
		}
		fmt.Fprint(stderr, m.Text)
		return nil
	case <-d.ended:
		select {
		case m := <-d.said: // both at once
			return d.refused(m)
		default:
		}
		return fault.New("daemon", "", fault.Unknown, "the serving process ended (%v) before the mount stood%s; the log is %s",
			d.child.ProcessState, d.tail(), d.log.Name())
	case <-timer.C:
		return d.give(mountpoint, fault.New("daemon", mountpoint, fault.TimedOut, "the mount was not ready within %v (--ready-timeout)", limit))
	case <-ctx.Done():
		return d.give(mountpoint, fault.New("", "", fault.Cancelled, "interrupted"))
	}
}

// refused is the error of a serving process that said why it does not serve.
func (d *daemonWait) refused(m readyMessage) error {
	text := m.Text
	for _, line := range d.written() {
		if strings.Contains(line, "fusermount") && !strings.HasPrefix(line, "frifs: ") && !strings.HasPrefix(line, "{") {
			text += ": " + line // what the helper wrote by itself
		}
	}
	err := error(wordedError{text + "\nfrifs: the log is " + d.log.Name(), fault.New("daemon", "", kindOfCode(m.Code), "%s", m.Text)})
	if m.Usage {
		return usageError{err}
	}
	return err
}

// kindOfCode is a kind with that exit code, for an error that comes from another process.
func kindOfCode(code int) fault.Kind {
	switch code {
	case 2:
		return fault.Invalid
	case 130:
		return fault.Cancelled
	}
	return fault.Unavailable
}

// answers looks at the mount as its users will.
func answers(ctx context.Context, mountpoint string, over <-chan time.Time) error {
	done := make(chan error, 1)
	go func() {
		_, err := os.Stat(filepath.Join(mountpoint, "README.txt"))
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			return fault.New("daemon", mountpoint, fault.Unavailable, "the mount stands but does not answer: %w", err)
		}
		return nil
	case <-over:
		return fault.New("daemon", mountpoint, fault.TimedOut, "the mount stands but did not answer in time (--ready-timeout)")
	case <-ctx.Done():
		return fault.New("", "", fault.Cancelled, "interrupted")
	}
}

// give gives the child up, and leaves nothing mounted.
func (d *daemonWait) give(mountpoint string, err error) error {
	tail := d.tail()
	_ = d.child.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-d.ended:
	case <-time.After(stopTime):
		_ = fs.Unmount(mountpoint, true) // there may be nothing
		_ = d.child.Process.Kill()
		<-d.ended
	}
	return fmt.Errorf("%w%s; the log is %s", err, tail, d.log.Name())
}

// written is the end of what the child wrote to its log, by lines.
func (d *daemonWait) written() []string {
	const most = 2 << 10
	fi, err := d.log.Stat()
	if err != nil {
		return nil
	}
	from := max(d.begin, fi.Size()-most)
	b := make([]byte, fi.Size()-from)
	if n, err := d.log.ReadAt(b, from); err != nil {
		b = b[:n]
	}
	return strings.Split(string(bytes.TrimSpace(b)), "\n")
}

// tail is the last line that the child wrote, as the end of a sentence.
func (d *daemonWait) tail() string {
	lines := d.written()
	if len(lines) == 0 || lines[len(lines)-1] == "" {
		return ""
	}
	return ": " + strings.TrimPrefix(lines[len(lines)-1], "frifs: ")
}

// writePIDFile writes the number of this process, so that it is there whole or not at all.
func (m *mountFlags) writePIDFile() error {
	if m.pidFile == "" {
		return nil
	}
	abs, err := filepath.Abs(m.pidFile)
	if err != nil {
		return fault.Wrap("pid file", m.pidFile, err)
	}
	m.pidFile = abs
	tmp := abs + ".new"
	if err := os.WriteFile(tmp, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return fault.New("pid file", abs, fault.KindOf(err), "it cannot be written: %w", err)
	}
	return fault.Wrap("pid file", abs, os.Rename(tmp, abs))
}

// removePIDFile removes it again, unless another process has made it its own.
func (m *mountFlags) removePIDFile() {
	if m.pidFile == "" {
		return
	}
	if b, err := os.ReadFile(m.pidFile); err == nil && strings.TrimSpace(string(b)) == strconv.Itoa(os.Getpid()) {
		_ = os.Remove(m.pidFile) // a leftover names a process that is gone
	}
}
