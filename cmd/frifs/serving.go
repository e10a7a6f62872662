package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/frifs/frifs/fault"
	"github.com/frifs/frifs/fs"
)

// drainTime is how long a lazily unmounted filesystem may go on serving open files after the second signal.
const drainTime = 5 * time.Second

// secondSignal is how long after the first signal another one counts as the second. Wrappers such as timeout(1) and
// terminals deliver the same wish twice.
const secondSignal = time.Second

// serving is a mount that is being served. The zero value of all but the first three fields is usable.
type serving struct {
	srv    *fs.Server
	sig    <-chan os.Signal
	stderr io.Writer
	reload func()             // what SIGHUP asks for beyond looking names up again
	dump   func()             // writes down what every goroutine does
	tell   func(state string) // told in a few words how it goes
}

func (s *serving) state(text string) {
	if s.tell != nil {
		s.tell(text)
	}
}

// serve waits for the end of the mount. It returns only when nothing is mounted any more.
func (s *serving) serve() error {
	srv, stderr := s.srv, s.stderr
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
				s.state(busy.Error() + "; still serving")
			default:
				fmt.Fprintf(stderr, "frifs: %s; still serving. Signal again to force\n", plain(err))
			}
			refused = true
		case got := <-s.sig:
			switch {
			case got == syscall.SIGHUP:
				srv.Refresh()
				if s.reload != nil {
					s.reload()
				}
			case got == syscall.SIGUSR2: // it has no meaning, and must not end a process that is mounted
			case got == syscall.SIGUSR1 || got == syscall.SIGQUIT:
				if s.dump != nil {
					s.dump()
				}
				if got == syscall.SIGQUIT {
					return force(srv, stderr)
				}
			case asked.IsZero():
				asked = time.Now()
				s.state("unmounting")
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
