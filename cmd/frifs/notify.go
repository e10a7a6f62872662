package main

import (
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/frifs/frifs/fs"
)

// notifier tells systemd how the service goes (sd_notify); where no systemd listens it does nothing.
type notifier struct {
	srv *fs.Server
	log *slog.Logger
	end chan struct{}
}

func newNotifier(srv *fs.Server, log *slog.Logger) *notifier {
	return &notifier{srv: srv, log: log, end: make(chan struct{})}
}

func (n *notifier) send(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		n.log.Warn("systemd cannot be told", "state", state, "error", err)
	}
}

// ready says that the mount serves, and begins to feed the watchdog, if there is one.
func (n *notifier) ready(text string) {
	n.send(daemon.SdNotifyReady + "\nSTATUS=serving " + text)
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		n.log.Warn("systemd's watchdog cannot be fed", "error", err)
	}
	if err != nil || every <= 0 {
		return
	}
	go n.feed(every / 2)
}

// feed tells the watchdog that the mount is alive, unless it refuses all work.
func (n *notifier) feed(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if n.srv.Healthy() {
			n.send(daemon.SdNotifyWatchdog)
		} else {
			n.log.Error("too many requests are stuck; systemd's watchdog is not fed")
		}
		select {
		case <-tick.C:
		case <-n.end:
			return
		}
	}
}

// status says in words how it goes.
func (n *notifier) status(text string) { n.send("STATUS=" + text) }

// stopping says that the mount is gone and the process about to end.
func (n *notifier) stopping() {
	close(n.end)
	n.send(daemon.SdNotifyStopping)
}
